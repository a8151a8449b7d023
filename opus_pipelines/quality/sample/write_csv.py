"""Writes CSV: the ledger with its own column names and split costs, and the expense tool with four formats of times."""

import csv
import io
from datetime import UTC, datetime, timedelta, timezone

from opus_pipelines.quality.sample.cases import Case, Performed
from opus_pipelines.quality.sample.records import case_id, cost_parts, instructions, outcome, usd
from opus_pipelines.quality.sample.sources import Source

LEDGER = (
    "Document No",
    "Document Type",
    "Header Text",
    "Company Code",
    "Step",
    "Step Purpose",
    "Work Instruction",
    "Begun",
    "Finished",
    "Processed By",
    "Processor Class",
    "Engine",
    "Engine Tokens In",
    "Engine Tokens Out",
    "Charge USD",
    "Labour USD",
    "Engine USD",
    "Compute USD",
    "Needs",
    "Yields",
    "Step Correct",
    "Result",
)
EXPENSES = (
    "case",
    "title",
    "description",
    "activity",
    "task_description",
    "instructions",
    "start",
    "end",
    "actor",
    "actor_kind",
    "model",
    "tokens_in",
    "tokens_out",
    "inputs",
    "outputs",
    "task_success",
    "outcome",
)
CLASSES = {"human": "employee", "code": "program", "model": "llm"}
MANILA = timezone(timedelta(hours=8))


def ledger(source: Source, cases: list[Case]) -> bytes:
    """Writes one row for each step, with the total cost and its parts."""
    return _rows(LEDGER, [_ledger_row(source, case, step) for case in cases for step in case.performed])


def expenses(source: Source, cases: list[Case]) -> bytes:
    """Writes one row for each step, without costs.

    Descriptions and instructions contain newlines. Each case is written by one release of the tool.
    """
    return _rows(EXPENSES, [_expense_row(source, case, step) for case in cases for step in case.performed])


def _ledger_row(source: Source, case: Case, step: Performed) -> list[object]:
    human, model, compute = cost_parts(step)
    return [
        case_id(case),
        case.kind.title,
        case.description,
        "1000" if case.number % 3 else "2000",
        source.key(step.task.name),
        step.task.description,
        instructions(step),
        _iso(step.start_ms),
        _iso(step.end_ms),
        step.actor,
        CLASSES[step.mode.actor_kind],
        step.mode.model or "",
        step.tokens_in or "",
        step.tokens_out or "",
        usd(step),
        human,
        model,
        compute,
        "; ".join(step.task.inputs),
        "; ".join(step.task.outputs),
        "yes" if step.right else "no",
        outcome(source, case) or "",
    ]


def _expense_row(source: Source, case: Case, step: Performed) -> list[object]:
    release = case.number % 4
    return [
        case_id(case),
        case.kind.title,
        case.description.replace("; ", ";\n"),
        source.key(step.task.name),
        step.task.description,
        instructions(step),
        _released(step.start_ms, release),
        _released(step.end_ms, release),
        step.actor,
        step.mode.actor_kind,
        step.mode.model or "",
        step.tokens_in or "",
        step.tokens_out or "",
        "; ".join(step.task.inputs),
        "; ".join(step.task.outputs),
        str(step.right).lower(),
        outcome(source, case) or "",
    ]


def _rows(header: tuple[str, ...], rows: list[list[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _released(ms: int, release: int) -> str:
    """Returns a time as one of the tool's four releases wrote it; the second and the fourth stated no zone."""
    moment = datetime.fromtimestamp(ms / 1000, MANILA)
    milli = f"{moment.microsecond // 1000:03d}"
    return (
        moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + milli + "Z",
        moment.strftime("%Y-%m-%d %H:%M:%S.") + milli,
        moment.strftime("%Y/%m/%d %H:%M:%S.") + milli + "+08:00",
        moment.strftime("%d.%m.%Y %H:%M:%S.") + milli,
    )[release]

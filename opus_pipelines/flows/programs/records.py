"""Programs and tasks from files, and runs of programs as rows of the lake and as history.

A run is a Workflow Implementation with its steps as tasks. `write_history` makes a source that `opus rebuild` reads
with the reader of JSON Lines: a case for each run, a task for each round. So what programs did enters the Work
Knowledge Graph like any other work.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.json_lines import parsed
from opus_pipelines.core.schemas import PROGRAM_RUNS, PROGRAM_STEPS
from opus_pipelines.core.settings_files import toml_quoted
from opus_pipelines.flows.programs.executors import action_of
from opus_pipelines.flows.programs.interpreter import ProgramRun, ProgramTask, Visit
from opus_pipelines.flows.programs.tools import TypedValue, plain
from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.lake.layout import Lake, table_of, write_table
from opus_pipelines.workflow.blocks.expressions import FlowError, Literal
from opus_pipelines.workflow.blocks.formats.core_flow import flow_program
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, parse_core
from opus_pipelines.workflow.blocks.formats.registry import format_of, read_flow

_Row = dict[str, Any]
FINE = ("answered", "no_answer")


def read_program(file: Path) -> CoreProgram:
    """Returns the program of a file: CoRE text, or a flow of another format. Raises InputError with the place."""
    if format_of(file) != "core":
        return flow_program(read_flow(file))
    try:
        return parse_core(file.read_bytes().decode("utf-8"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: it is not UTF-8 (byte {error.start})") from None
    except FlowError as error:
        raise FlowError(f"{file}: {error}") from None


def run_row(run: ProgramRun, title: str, client: str | None = None) -> _Row:
    """Returns the row of a run in programs/runs."""
    outcomes = [visit.outcome for visit in run.visits]
    asked = [one for one in outcomes if one.tokens_in is not None]
    costs = [one.cost_usd for one in outcomes if one.tool is not None or one.tokens_in is not None]
    return {
        "run": run.id,
        "program": run.program,
        "title": title,
        "task": run.task_id,
        "task_text": run.task,
        "executor": run.executor,
        "status": run.status,
        "rounds": len(run.visits),
        "answer": run.answer,
        "failures": sum(one.status not in FINE for one in outcomes),
        "tokens_in": sum(one.tokens_in or 0 for one in asked) if asked else None,
        "tokens_out": sum(one.tokens_out or 0 for one in asked) if asked else None,
        "cost_usd": None if None in costs or not costs else sum(cost or 0.0 for cost in costs),
        "client": client,
    }


def step_rows(run: ProgramRun) -> list[_Row]:
    """Returns the rows of a run in programs/steps, one for each round."""
    return [{"run": run.id} | _step(visit) for visit in run.visits]


def _step(visit: Visit) -> _Row:
    outcome, step = visit.outcome, visit.step
    return {
        "round": visit.round,
        "step": step.name,
        "kind": step.kind,
        "instruction": step.instruction,
        "notes": list(visit.notes),
        "answer": outcome.answer,
        "tool": outcome.tool,
        "arguments": list(outcome.arguments.items()),
        "status": outcome.status,
        "branch": None if visit.choice is None else step.branches[visit.choice.branch][0],
        "branch_by": None if visit.choice is None else visit.choice.by,
        "next_step": visit.next_step,
        "tokens_in": outcome.tokens_in,
        "tokens_out": outcome.tokens_out,
        "cost_usd": outcome.cost_usd,
        "duration_ms": outcome.duration_ms,
    }


def publish_runs(lake: Lake, runs: Iterable[ProgramRun], title: str, client: str | None = None) -> int:
    """Writes runs into the lake, each once; the caller holds the lock. Returns how many were new."""
    lake.ensure_empty()
    new = 0
    for run in runs:
        rows = {PROGRAM_STEPS: step_rows(run), PROGRAM_RUNS: [run_row(run, title, client)]}
        folders = {dataset: lake.folder(dataset, run_key=run.id) for dataset in rows}
        if folders[PROGRAM_RUNS].exists():
            continue
        with lake.staging() as staged:
            for dataset, own in rows.items():  # the run last: one that has it is whole
                write_table(dataset, table_of(dataset, own), staged / dataset.view)
                folders[dataset].parent.mkdir(parents=True, exist_ok=True)
                lake.publish(staged / dataset.view, folders[dataset])
        new += 1
    return new


def write_history(folder: Path, runs: Sequence[ProgramRun], labels: Mapping[str, str]) -> Path:
    """Writes runs as a source of history into a new folder: source.toml and runs.jsonl. Returns the folder.

    `labels`: industry, client and contract of the source. Decisions are control flow and no work, so they are left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} = {toml_quoted(value)}" for name, value in labels.items()]
    lines += ["", "[record]", 'case = "run"', 'tasks = "steps"', 'title = "task"']
    lines += ["", "[task]", 'activity = "step"', 'description = "instruction"', 'success = "ok"', 'cost = "cost_usd"']
    lines += ["", "[success]", 'column = "ended"', "equals = true"]
    text = "\n".join(lines) + "\n"
    write_atomically(folder / "source.toml", lambda path: path.write_text(text, "utf-8"))
    records = "".join(json.dumps(_record(run), ensure_ascii=False) + "\n" for run in runs)
    write_atomically(folder / "runs.jsonl", lambda path: path.write_text(records, "utf-8"))
    return folder


def _activity(visit: Visit) -> str:
    """The name of the work: the tool with its constants, else the instruction in words. `Step 1` would name nothing."""
    action = action_of(visit.step)
    if action.tool:
        constants = [str(operand.value) for _, operand in action.operands if isinstance(operand, Literal)]
        return " ".join([action.tool, *constants])
    return action.words or visit.step.name


def _record(run: ProgramRun) -> _Row:
    work = [visit for visit in run.visits if visit.step.kind == "process"]
    steps = []
    for visit in work:
        step: _Row = {"step": _activity(visit), "instruction": visit.step.instruction}
        step["ok"] = visit.outcome.status in FINE
        if visit.outcome.cost_usd is not None:
            step["cost_usd"] = visit.outcome.cost_usd
        steps.append(step)
    return {"run": run.id, "task": run.task, "program": run.program, "ended": run.is_ended, "steps": steps}


LARGEST_BYTES = 50_000_000


def task_of(text: str, identity: str | None = None, variables: dict[str, Any] | None = None) -> ProgramTask:
    """Returns a task with the variables `task` (its text) and `plan` (empty), and those that are given."""
    given = {name: plain(content) for name, content in (variables or {}).items()}
    own = {"task": TypedValue("text", text), "plan": TypedValue("list", ())} | given
    return ProgramTask(identity or digest("task", text)[:12], text, own)


def read_tasks(file: Path) -> list[ProgramTask]:
    """Returns the tasks of a file. Raises InputError for a line that is none, with its number, and for no task."""
    found = list(_read(file))
    ids = [task.id for task in found]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise InputError(f"{file}: two tasks have the id {twice[0]!r}")
    if not found:
        raise InputError(f"{file}: there is no task")
    return found


def _read(file: Path) -> Iterator[ProgramTask]:
    try:
        if file.stat().st_size > LARGEST_BYTES:
            raise InputError(f"{file}: it has more than {LARGEST_BYTES:,} bytes")
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: it is not UTF-8 (byte {error.start})") from None
    for number, value, broken in parsed(text.splitlines()):
        if broken is not None:
            raise InputError(f"{file}, line {number}: it is not JSON")
        if not isinstance(value, dict) or not isinstance(value.get("text"), str) or not value["text"].strip():
            raise InputError(f"{file}, line {number}: a task needs a text: {{'id': …, 'text': …}}")
        variables = value.get("variables", {})
        if not isinstance(variables, dict):
            raise InputError(f"{file}, line {number}: variables must be an object")
        yield task_of(value["text"], str(value["id"]) if "id" in value else None, variables)

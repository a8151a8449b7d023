"""How far the cases of history conform to a BPMN file, a block flow or a ranked workflow: measures and deviations."""

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import duckdb

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import number, share
from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.reporting.explain import find_workflow
from opus_pipelines.reporting.tasks import Row, nearest, rows
from opus_pipelines.reporting.workflows import read_workflow
from opus_pipelines.workflow.blocks.formats.registry import read_flow, written
from opus_pipelines.workflow.conformance.alignment import Alignment, Measures, Trace, align, measures, shortest_run
from opus_pipelines.workflow.conformance.net import Net, net_of_bpmn
from opus_pipelines.workflow.formats.registry import exported
from opus_pipelines.workflow.model import REVIEW

logger = logging.getLogger(__name__)

Deviating = tuple[str, str]  # the kind of a deviation and its step
CONFORMS: Deviating = "none: conforms", ""
_PROGRESS = 500  # variants between two lines


@dataclass(frozen=True)
class Conformance:
    """How the cases of one scope and one model agree.

    Attributes:
        measures: fitness, precision and generalisation.
        deviations: a row for each kind of deviation and step, those of most cases first, and one for conforming cases.
        cases: a row for each case: its fitness and its deviations in their order.
        unmatched: the steps of the model that no case of history knows.
        compared: of which source, client and contract the cases are.
    """

    measures: Measures
    deviations: Sequence[Row]
    cases: Sequence[Row]
    unmatched: Sequence[str]
    compared: str


def conformance(connection: duckdb.DuckDBPyConnection, model: str, scope: Mapping[str, str | None]) -> Conformance:
    """Compares the finished cases of `scope` (source, client, contract; None is any) with a model.

    Without a scope, a ranked workflow is compared with the cases of its contract or, where cases state no contract, of
    its client. `model` is a file of BPMN or of a block flow, or the id of a ranked workflow or its beginning. Its steps
    are found in history by any name of a task, whatever their case and separators. Reviews are steps that history does
    not have under a name of its own, so that they are left out of a ranked workflow. Raises InputError where the model
    cannot be read, where the scope has no finished case, and where history knows no step of the model.
    """
    net, labels, own = _net(connection, model)
    scopes = [scope] if any(scope.values()) or not own else [own, own | {"contract": None}]
    for scope in scopes:
        stated = {name: scope.get(name) for name in ("source", "client", "contract")}
        if cases := rows(connection, "conformance_cases", **stated):
            break
    compared = ", ".join(f"{name} {value}" for name, value in stated.items() if value) or "every source and client"
    if not cases:
        raise InputError(
            f"history has no finished case of {compared}; `opus query process_summary` lists what there is"
        )
    titles = _named(connection, net, {task for case in cases for task in case["tasks"]}) | labels
    unmatched = sorted(
        {label for label in net.labels if label is not None} - {titles[t] for c in cases for t in c["tasks"]}
    )
    if len(unmatched) == len({*net.labels} - {None}):
        near = nearest(unmatched[0], titles.values())
        raise InputError(
            f"{model}: no case has a step of the model; the nearest activities to {unmatched[0]!r}: {', '.join(near)}"
        )
    traces = [tuple(titles[task] for task in case["tasks"]) for case in cases]
    variants = Counter(traces)
    shortest = shortest_run(net)
    alignments: dict[Trace, Alignment | None] = {}
    for place, trace in enumerate(variants, start=1):
        alignments[trace] = align(net, trace, shortest)
        if place % _PROGRESS == 0:
            logger.info("%s of %s variants aligned", f"{place:,}", f"{len(variants):,}")
    told = [_case(case, alignments[trace]) for case, trace in zip(cases, traces, strict=True)]
    groups = defaultdict[Deviating, list[Row]](list, {CONFORMS: []})
    for row, trace in zip(told, traces, strict=True):
        if (alignment := alignments[trace]) is not None:
            for deviation in dict.fromkeys(alignment.deviations) or (CONFORMS,):
                groups[deviation].append(row)
    return Conformance(measures(net, variants, alignments), _deviations(groups, len(cases)), told, unmatched, compared)


def _net(connection: duckdb.DuckDBPyConnection, model: str) -> tuple[Net, dict[str, str], dict[str, str | None]]:
    """Returns the net of a model, and for a ranked workflow the labels of its tasks by id, and whose it is."""
    path, workflow = Path(model), None
    labels: dict[str, str] = {}
    own: dict[str, str | None] = {}
    if path.suffix.casefold() == ".bpmn":
        try:
            net = net_of_bpmn(path.read_bytes(), model)
        except OSError as error:
            raise InputError(f"{model}: {error.strerror or error}") from None
    elif path.suffix:
        net = net_of_bpmn(written(read_flow(path), "bpmn")[0], model)
    else:
        found = find_workflow(connection, model)
        head = rows(connection, "workflow", workflows=[found])[0]
        own = {"client": head["client"], "contract": head["contract"]}
        workflow = read_workflow(connection, found)
        net = net_of_bpmn(exported(workflow, "bpmn"), model)
        reviews = {_key(workflow.title_of(entry.id)) for entry in workflow.file.tasks if entry.kind == REVIEW}
        net.labels = [None if label is None or _key(label) in reviews else label for label in net.labels]
    spelled = {_key(label): label for label in reversed(net.labels) if label is not None}
    net.labels = [None if label is None else spelled[_key(label)] for label in net.labels]
    if workflow is not None:
        titles = {entry.task_id: _key(workflow.title_of(entry.id)) for entry in workflow.file.tasks if entry.task_id}
        labels = {task: spelled[title] for task, title in titles.items() if title in spelled}
    return net, labels, own


def _named(connection: duckdb.DuckDBPyConnection, net: Net, tasks: set[str]) -> dict[str, str]:
    """Returns the name of each task: the label of the model where one of its names is the same, else its title."""
    labels = {_key(label): label for label in net.labels if label is not None}
    names = {}
    for row in rows(connection, "task_names"):
        if row["task_id"] in tasks:
            keys = [_key(name) for name in (row["title"], *(row["names"] or ())) if name]
            names[row["task_id"]] = next((labels[key] for key in keys if key in labels), row["title"])
    return {task: names.get(task, task) for task in tasks}


def _key(name: str) -> str:
    return plain(name) or name


def _case(case: Row, alignment: Alignment | None) -> Row:
    return {
        "implementation_id": case["implementation_id"],
        "fitness": alignment and alignment.fitness,
        "deviations": alignment and [f"{kind}: {label}" for kind, label in alignment.deviations],
        "success": case["success"],
        "cost_usd": case["cost_usd"],
        "lead_hours": None if case["lead_time_ms"] is None else case["lead_time_ms"] / 3_600_000,
    }


def _deviations(groups: Mapping[Deviating, Sequence[Row]], cases: int) -> list[Row]:
    ordered = sorted(groups.items(), key=lambda item: (item[0] != CONFORMS, -len(item[1]), item[0]))
    return [
        {
            "deviation": kind,
            "activity": label,
            "cases": len(group),
            "share": len(group) / cases,
            "success_share": _mean(group, "success"),
            "cost_usd_mean": _mean(group, "cost_usd"),
            "lead_hours_p50": median(known) if (known := _known(group, "lead_hours")) else None,
        }
        for (kind, label), group in ordered
    ]


def _known(cases: Sequence[Row], column: str) -> list[Any]:
    return [case[column] for case in cases if case[column] is not None]


def _mean(cases: Sequence[Row], column: str) -> float | None:
    known = _known(cases, column)
    return fmean(known) if known else None


def in_words(found: Conformance) -> list[str]:
    """Returns the measures as sentences."""
    of = found.measures
    lines = [
        f"{of.conforming:,} of {of.cases:,} finished cases of {found.compared} conform "
        f"({share(of.conforming / of.cases)}). "
        f"Fitness {number(of.fitness, 3)} by alignments, {number(of.replay_fitness, 3)} by token replay; "
        f"precision {number(of.precision, 3)}; generalisation {number(of.generalisation, 3)}."
    ]
    if of.replay_fitness is None or of.precision is None:
        lines.append(
            "A measure without a figure went through too many states: the model has too many optional branches."
        )
    if of.not_aligned:
        lines.append(f"{of.not_aligned:,} cases were not aligned: the search for each reached its limit of states.")
    if found.unmatched:
        lines.append(f"No case has these steps of the model under any name: {', '.join(found.unmatched)}.")
    return lines

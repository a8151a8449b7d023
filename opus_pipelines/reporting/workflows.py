"""Reads a ranked workflow back from the lake, for all its formats and for `opus decide`, with DuckDB only.

It adds the events, outcomes and returns to expect between steps, as text for the edges of a picture, and lists the
cases of history behind a step. `opus decide` looks up the workflow that is meant, and the tasks that an edited workflow
may contain.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
from pydantic import ValidationError

from opus_pipelines.core.errors import InputError, LakeError
from opus_pipelines.core.formatting import grid, hours, number, usd
from opus_pipelines.core.schemas import OPTIMIZED
from opus_pipelines.intakes.decisions.edited import KnownTasks
from opus_pipelines.intakes.decisions.record import Decision, Kind, WorkflowContent, decisions_of, steps_of
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.results import results_of
from opus_pipelines.reporting.explain import find_workflow
from opus_pipelines.reporting.tasks import Row, rows
from opus_pipelines.reporting.views import only_results_with
from opus_pipelines.wkg.graph import ExecutionMode, Task
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.files import (
    AnnotatedWorkflow,
    InputEntry,
    OutputEntry,
    Penalties,
    TaskEntry,
    Weights,
    WorkflowFile,
)
from opus_pipelines.workflow.model import TASK_FIGURES, UNKNOWN, Actor

FlowRow = Mapping[str, Any]
Edge = tuple[str, str]


def between(flow: Sequence[FlowRow], nodes: Iterable[FlowRow], links: Iterable[FlowRow]) -> dict[Edge, tuple[str, ...]]:
    """Returns the events and returns to expect on each edge of the workflow, with their share of similar cases.

    `flow`: rows of workflows/expected_flow with titles.
    """
    links = list(links)
    node_of = {row["task_id"]: row["node"] for row in nodes if row["kind"] == "task"}
    ends = [
        {"task": row[side], "kind": row[f"{side}_kind"], "place": row[f"{side}_place"], "title": row[f"{side}_title"]}
        for row in flow
        for side in ("src", "dst")
    ]
    order = sorted({end["task"]: end for end in ends}.values(), key=lambda end: end["place"])
    after: dict[str | None, list[str]] = defaultdict(list)
    step = None  # the last one so far; what comes before the first step stands behind the client's input
    for end in order:
        if end["kind"] == "step":
            step = node_of.get(end["task"], step)
        else:
            after[step].append(f"{end['title']}{_share(row['support'] for row in flow if row['dst'] == end['task'])}")
        after[step] += [
            f"{'again' if row['src'] == row['dst'] else 'back to ' + row['dst_title']}{_share([row['support']])}"
            for row in flow
            if row["src"] == end["task"] and row["dst_kind"] == "step" and row["dst_place"] <= row["src_place"]
        ]
    inputs = {link["src"] for link in links} - {link["dst"] for link in links}
    texts = {(link["src"], link["dst"]): after[None if link["src"] in inputs else link["src"]] for link in links}
    return {edge: tuple(words) for edge, words in texts.items() if words}


def _share(supports: Iterable[float | None]) -> str:
    """Formats the largest known share in per cent."""
    known = [support for support in supports if support is not None]
    return f" ({100 * max(known):.0f} %)" if known else ""


_SCORES = ("cohesion", "coupling", "observability", "hygiene")
_FIGURES = ("kind", "task_id", "title", "description", "inputs", "outputs", *TASK_FIGURES)


def read_workflow(connection: duckdb.DuckDBPyConnection, workflow: str) -> AnnotatedWorkflow:
    """Returns the workflow with this id. Raises LakeError where the lake's rows form no workflow."""
    with only_results_with(connection, workflow):
        return read_workflows(connection, [workflow])[workflow]


def read_workflows(connection: duckdb.DuckDBPyConnection, workflows: Sequence[str]) -> dict[str, AnnotatedWorkflow]:
    """Returns workflows by id; one query for each dataset reads all. Raises LakeError as `described` does."""
    heads = {row["workflow_id"]: row for row in rows(connection, "workflow", workflows=workflows)}
    parts: dict[str, tuple[list[Row], list[Row], list[Row]]] = {one: ([], [], []) for one in workflows}
    for place, name in enumerate(("nodes", "links", "expected")):
        for row in rows(connection, name, workflows=workflows):
            parts[row["workflow_id"]][place].append(row)
    return {one: described(heads[one], *parts[one]) for one in workflows}


def described(head: Row, nodes: Sequence[Row], links: Sequence[Row], flow: Sequence[Row] = ()) -> AnnotatedWorkflow:
    """Returns the workflow of rows of `workflows/optimized`, `workflows/tasks`, `workflows/edges` and expected flow.

    Raises LakeError where the rows form no workflow.
    """
    by_kind: dict[str, list[Row]] = {"input": [], "task": [], "output": []}
    for row in nodes:
        by_kind["task" if row["kind"] == "review" else row["kind"]].append(row)
    try:
        file = WorkflowFile(
            title=head["title"],
            weights=Weights.model_validate_json(head["weights"]) if head["weights"] else None,
            inputs=tuple(
                InputEntry(**_known(id=r["node"], title=r["title"], prior=r["success_probability"]))
                for r in by_kind["input"]
            ),
            tasks=tuple(_task(r) for r in by_kind["task"]),
            outputs=tuple(_output(r, head, len(by_kind["output"])) for r in by_kind["output"]),
            edges=tuple((r["src"], r["dst"]) for r in links),
        )
    except ValidationError as error:
        raise LakeError(f"workflow {head['workflow_id']} cannot be read back from the lake: {error}") from None
    return AnnotatedWorkflow(
        file,
        head["workflow_id"],
        start_ms=_by_node(nodes, "start_ms"),
        finish_ms=_by_node(nodes, "finish_ms"),
        evidence=_by_node(nodes, "evidence"),
        origins=_by_node(nodes, "origin"),
        data_types={(r["src"], r["dst"]): r["data_type"] for r in links if r["data_type"]},
        expected=between(flow, nodes, links),
    )


def _task(row: Row) -> TaskEntry:
    scores = _known(**{name: row[name] for name in _SCORES})
    instructions = tuple(i["text"] for i in row["instructions"] or () if i["text"])
    unknown = {
        f"{name}_basis": UNKNOWN
        for name, figure in (("cost", "cost_usd"), ("duration", "duration_ms"))
        if row[figure] is None
    }
    return TaskEntry(
        id=row["node"],
        instructions=instructions,
        scores=Penalties(**scores) if scores else None,
        **_known(**{name: row[name] for name in _FIGURES}) | unknown,
    )


def _output(row: Row, head: Row, outputs: int) -> OutputEntry:
    """Returns an output with its gain.

    A result of an older version states only the gain of the whole, which a single output then has. Without a stated
    gain no output has one.
    """
    gain = row["gain_usd"] if row["gain_usd"] is not None else head["gain_usd"] if outputs == 1 else None
    if gain is None and head["gain_usd"] is not None:
        raise LakeError(
            f"{head['workflow_id']}: the gain of output {row['node']} is not in the lake; `opus generate` makes it anew"
        )
    return OutputEntry(id=row["node"], title=row["title"], gain_usd=gain)


def _known(**values: Any) -> dict[str, Any]:
    """Returns the values that are not None; the rest is left to the defaults."""
    return {name: value for name, value in values.items() if value is not None}


def _by_node(nodes: Sequence[Row], column: str) -> Mapping[str, Any]:
    return {r["node"]: r[column] for r in nodes if r[column] is not None}


def evidence_of(connection: duckdb.DuckDBPyConnection, workflow: str, task: str, limit: int) -> str:
    """Lists the cases that carried out `task` (title, id or node), those most similar to the intake first.

    A review that planning placed is no task of history: the sources of its figures are listed instead. Raises
    InputError where the workflow has no such task.
    """
    with only_results_with(connection, workflow):
        row = rows(connection, "workflow", workflows=[workflow])[0]
        steps = [s for s in rows(connection, "steps", workflow=workflow) if s["kind"] in ("task", "review")]
    step = next(
        (s for s in steps if task in (s["task_id"], s["node"]) or task.casefold() == (s["title"] or "").casefold()),
        None,
    )
    if step is None:
        raise InputError(
            f"{workflow} has no task {task!r}; it has: {', '.join(s['title'] or s['node'] for s in steps)}"
        )
    if step["task_id"] is None:
        return _placed(step)
    names = rows(connection, "aliases", task_id=step["task_id"], client=row["client"])
    keys, shown = [name["name"] for name in names], [name["name"] for name in names if name["is_own"]]
    cases = rows(
        connection,
        "evidence",
        task_id=step["task_id"],
        task_keys=keys,
        client=row["client"],
        intake_id=row["intake_id"],
        intention_id=row["intention_id"],
        limit=limit,
    )
    head = f"{step['title']} ({step['task_id']}), known in history as {', '.join(shown) or 'nothing of its own'}"
    if not cases:
        known = step["nearest"]
        return (
            f"{head}\nno case of history carried it out: its figures are "
            f"{f'estimates, those of {known!r}' if known else 'priors'}"
        )
    counted = (
        f"carried out {cases[0]['found']:,} times, {cases[0]['near']:,} of them in the cases nearest to intake "
        f"{row['intake']}"
    )
    return "\n".join(
        [head, counted, *_table(cases), *([f"  the first {limit} are shown"] if cases[0]["found"] > len(cases) else [])]
    )


def _placed(step: dict[str, Any]) -> str:
    """Describes the figures of a step that no case of history has, and their sources."""
    figures = (
        ("cost", usd(step["cost_usd"]), step["cost_basis"]),
        ("time", hours(step["duration_ms"]), step["duration_basis"]),
        ("right after it, if right before", number(step["p"], 3), step["p_basis"]),
        ("right after it, if wrong before", number(step["q"], 3), step["q_basis"]),
    )
    head = (
        f"{step['title'] or step['node']} ({step['node']}): a {step['kind']} that the plan placed, no task of history"
    )
    return "\n".join([head, *grid([[name, value, basis or "-"] for name, value, basis in figures])])


def _table(cases: list[dict[str, Any]]) -> list[str]:
    head = ["near", "source", "case", "step", "as", "who", "took", "cost", "step done", "case succeeded", "file"]
    words = {True: "yes", False: "no", None: "-"}
    return grid(
        [
            head,
            *(
                [
                    number(r["similarity"], 3),
                    r["source"],
                    r["case_id"] or "-",
                    str(r["position"]),
                    r["task_key"] or "-",
                    " ".join(filter(None, (r["actor_kind"], r["model"] or r["actor"]))) or "-",
                    hours(r["duration_ms"]),
                    usd(r["cost_usd"]),
                    words[r["success"]],
                    words[r["case_success"]],
                    r["path"] or "-",
                ]
                for r in cases
            ),
        ]
    )


@dataclass(frozen=True)
class WorkflowLookup:
    """Looks up workflows of a lake that can be decided on; `connection` has the lake's views."""

    lake: Lake
    connection: duckdb.DuckDBPyConnection

    def decision(self, text: str, kind: Kind, now: datetime, encoder: str) -> Decision:
        """Returns a decision, without reason and number, on the workflow whose id is or begins with `text`.

        A workflow that is no longer ranked but was decided on can be decided on again, which takes a rejection back.
        Raises InputError where no workflow or several match, and where it is in an older result only.
        """
        try:
            workflow = find_workflow(self.connection, text)
        except InputError as error:
            return self._decided_before(text, kind, now) or self._refuse(text, error)
        (head,) = rows(self.connection, "workflow", workflows=[workflow])
        goals = self.connection.execute(
            "SELECT vector FROM generation_intentions WHERE intake_id = $1 AND intention_id = $2",
            [head["intake_id"], head["intention_id"]],
        ).fetchall()
        goal = goals[0][0] if goals else None
        content, titles = _content(self.connection, workflow)
        return Decision(
            head["client"],
            head["contract"],
            kind,
            head["intake_id"],
            head["intake"],
            head["intention_id"],
            workflow,
            head["result"],
            head["rank"],
            steps_of(content, titles),
            now,
            vector=tuple(goal) if goal else None,
            encoder=encoder if goal else None,
        )

    def _decided_before(self, text: str, kind: Kind, now: datetime) -> Decision | None:
        """Returns a new decision on a workflow that an earlier decision kept, or None where there is none."""
        matches = self.connection.execute(
            "SELECT DISTINCT client, contract, workflow_id FROM decisions WHERE starts_with(workflow_id, $1) AND "
            "decision <> 'edit'",
            [text],
        ).fetchall()
        if kind == "edit" or len(matches) != 1:
            return None
        client, contract, workflow = matches[0]
        earlier = [
            d
            for d in decisions_of(self.lake, client, contract).all
            if d.workflow_id == workflow and d.decision != "edit"
        ]
        last = earlier[-1]
        return Decision(
            client,
            contract,
            kind,
            last.intake_id,
            last.intake,
            last.intention_id,
            workflow,
            last.result,
            last.rank,
            last.steps,
            now,
            vector=last.vector,
            encoder=last.encoder,
        )

    def _refuse(self, text: str, error: InputError) -> Decision:
        """Raises InputError that names the older result with the workflow, or else `error`."""
        current = {pointer["result"] for pointer in self.lake.results()}
        for one in results_of(self.lake):
            for workflow in one.read(self.lake, OPTIMIZED, ["workflow_id"])["workflow_id"].to_pylist():
                if one.result not in current and workflow.startswith(text):
                    raise InputError(
                        f"{workflow} stands in result {one.result} of {one.client} / {one.contract}, which is not the "
                        f"current one; "
                        "decide on a workflow that `opus best` shows"
                    ) from None
        raise error


def known_tasks(connection: duckdb.DuckDBPyConnection, workflow: str, with_others: bool = False) -> KnownTasks:
    """Returns the tasks of the current snapshot and those of the workflow itself.

    The workflow may have steps that only its procedure asks for. Names count within the workflow's industry, or within
    all industries where that is unknown. The actors are those that a result for the workflow's client shows
    (`Task.seen_by`), unless it shows those of other clients, too (`with_others`).
    """
    found = connection.execute(
        "SELECT any_value(o.client), any_value(i.industry) FROM workflows_optimized AS o JOIN generation_intakes AS i "
        "USING (client, contract, intake_id) WHERE o.workflow_id = $1",
        [workflow],
    ).fetchall()
    client, industry = found[0] if found else (None, None)
    titles, execution_modes = dict[str, str](), dict[str, list[Actor]]()
    names: dict[str, set[str]] = defaultdict(set)
    for row in rows(connection, "task_names"):
        titles[row["task_id"]] = row["title"] or row["task_id"]
        ways = row["ways"] or ()
        modes = tuple(
            ExecutionMode(way["kind"], way["model"], way["team"], clients=tuple(way["clients"] or ())) for way in ways
        )
        task = Task(row["task_id"], titles[row["task_id"]], execution_modes=modes)
        shown = task if with_others else task.seen_by(client)
        execution_modes[row["task_id"]] = [mode.actor for mode in shown.execution_modes]
        if industry is None or industry in (row["industries"] or ()):
            for name in {titles[row["task_id"]], *(row["names"] or ())}:
                names[folded(name)].add(row["task_id"])
    for node in rows(connection, "nodes", workflows=[workflow]):
        if node["kind"] == "task":
            titles.setdefault(node["task_id"], node["title"] or node["task_id"])
            execution_modes.setdefault(node["task_id"], [Actor(node["actor_kind"], node["model"], node["actor_group"])])
            names[folded(titles[node["task_id"]])].add(node["task_id"])
    return KnownTasks(titles, {name: frozenset(task_ids) for name, task_ids in names.items()}, execution_modes)


def _content(connection: duckdb.DuckDBPyConnection, workflow: str) -> tuple[WorkflowContent, dict[str, str]]:
    nodes = rows(connection, "nodes", workflows=[workflow])
    links = [(row["src"], row["dst"]) for row in rows(connection, "links", workflows=[workflow])]
    tasks = {node["node"]: node for node in nodes if node["kind"] == "task"}
    behind = {dst: src for src, dst in links for node in nodes if node["node"] == dst and node["kind"] == "review"}
    actors = {node["node"]: Actor(node["actor_kind"], node["model"], node["actor_group"]) for node in nodes}
    pairs = ((behind.get(src, src), dst) for src, dst in links if src in tasks or src in behind)
    content = WorkflowContent(
        tuple(node["task_id"] for node in tasks.values()),
        frozenset((tasks[a]["task_id"], tasks[b]["task_id"]) for a, b in pairs if a in tasks and b in tasks and a != b),
        {node["task_id"]: actors[name] for name, node in tasks.items()},
        {tasks[task]["task_id"]: actors[review] for review, task in behind.items() if task in tasks},
    )
    return content, {node["task_id"]: node["title"] or node["task_id"] for node in tasks.values()}

"""Looks up for `opus decide` the workflow that is meant, and the tasks that an edited workflow may contain."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

import duckdb

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import OPTIMIZED
from opus_pipelines.intakes.decisions.edited import KnownTasks
from opus_pipelines.intakes.decisions.record import Decision, Kind, WorkflowContent, decisions_of, steps_of
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.results import results_of
from opus_pipelines.reporting.explain import find_workflow
from opus_pipelines.reporting.tasks import rows
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.model import Actor


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
        (head,) = rows(self.connection, "workflow", workflow=workflow)
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


def known_tasks(connection: duckdb.DuckDBPyConnection, workflow: str) -> KnownTasks:
    """Returns the tasks of the current snapshot and those of the workflow itself.

    The workflow may have steps that only its procedure asks for. Names count within the workflow's industry, or within
    all industries where that is unknown.
    """
    industries = connection.execute(
        "SELECT any_value(i.industry) FROM workflows_optimized AS o JOIN generation_intakes AS i USING (client, "
        "contract, intake_id) "
        "WHERE o.workflow_id = $1",
        [workflow],
    ).fetchall()
    industry = industries[0][0] if industries else None
    titles, execution_modes = dict[str, str](), dict[str, list[Actor]]()
    names: dict[str, set[str]] = defaultdict(set)
    for row in rows(connection, "task_names"):
        titles[row["task_id"]] = row["title"] or row["task_id"]
        execution_modes[row["task_id"]] = [Actor(w["kind"], w["model"], w["team"]) for w in row["ways"] or ()]
        if industry is None or industry in (row["industries"] or ()):
            for name in {titles[row["task_id"]], *(row["names"] or ())}:
                names[folded(name)].add(row["task_id"])
    for node in rows(connection, "nodes", workflow=workflow):
        if node["kind"] == "task":
            titles.setdefault(node["task_id"], node["title"] or node["task_id"])
            execution_modes.setdefault(node["task_id"], [Actor(node["actor_kind"], node["model"], node["actor_group"])])
            names[folded(titles[node["task_id"]])].add(node["task_id"])
    return KnownTasks(titles, {name: frozenset(task_ids) for name, task_ids in names.items()}, execution_modes)


def _content(connection: duckdb.DuckDBPyConnection, workflow: str) -> tuple[WorkflowContent, dict[str, str]]:
    nodes = rows(connection, "nodes", workflow=workflow)
    links = [(row["src"], row["dst"]) for row in rows(connection, "links", workflow=workflow)]
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

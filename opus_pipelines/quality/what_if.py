"""Answers the intakes of contracts again under a scenario, and compares the best workflow with today's.

Nothing is published: both answers are made from the current snapshot in this process. A scenario changes settings, the
terms of contracts, or what is known of tasks.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import InputError, OpusError, SettingsError
from opus_pipelines.core.schemas import OPTIMIZED, WORKFLOW_TASKS
from opus_pipelines.core.settings import Settings, fields_of, parse
from opus_pipelines.generation.bulk.chunks import (
    IntakeOutcome,
    outcome_of,
    second_reader_of,
    shown_index,
    transcriber_of,
)
from opus_pipelines.generation.records import ContractTerms, GenerationContext
from opus_pipelines.intakes.contract_settings import ContractSettings
from opus_pipelines.intakes.intake import ContractFolder, Intake, read_intake
from opus_pipelines.intakes.stored import Inherited
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.interface import LargeWorkModel
from opus_pipelines.lwm.retrieval.case_memory import ContractCatalogue
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.quality.score_rows import Row
from opus_pipelines.wkg.graph import Task, WorkGraph
from opus_pipelines.workflow.constraints import Constraints, folded, merged

TASK_KEYS = {"p", "q", "cost"}
_NAMES = {"client", "contract", "industry"}  # of a contract: another one is no scenario
_ADVICE = ("conflict:", "relax:")  # violations that say what to change
FIGURES = {  # shown of both answers: the name, and the column with its factor
    "reward_usd": ("reward_usd", 1.0),
    "cost_usd": ("cost_usd", 1.0),
    "success": ("success_probability", 1.0),
    "lead_hours_p50": ("lead_time_ms_p50", 1 / 3_600_000),
    "reward_usd_p05": ("reward_usd_p05", 1.0),
    "reward_usd_p95": ("reward_usd_p95", 1.0),
}


@dataclass(frozen=True)
class Scenario:
    """What is otherwise than today.

    Attributes:
        settings: sections of opus.toml.
        contract: keys of contract.toml, over those of every contract and of its intakes.
        tasks: by title `p` and `q` (probabilities) and `cost` (a factor on the cost of each way of doing it).
    """

    settings: Mapping[str, Any]
    contract: Mapping[str, Any]
    tasks: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, stated: Mapping[str, Any], where: str) -> "Scenario":
        """Sorts what is stated by what it belongs to: contract.toml, opus.toml, or tasks.

        Raises SettingsError where a key belongs to none of them, or where nothing is stated.
        """
        of_contract, of_settings = set(fields_of(ContractSettings)) - _NAMES, set(fields_of(Settings))
        for key in stated:
            if key not in of_contract | of_settings | {"tasks"}:
                near = get_close_matches(key, of_contract | of_settings, n=1)
                raise SettingsError(
                    f"{where}: {key!r} is no key of contract.toml or opus.toml, nor `tasks`"
                    + (f"; did you mean {near[0]!r}?" if near else "")
                )
        if not stated:
            raise SettingsError(f"{where}: the scenario states nothing; for example --set gain_usd=200")
        tasks = stated.get("tasks", {})
        for title, figures in tasks.items():
            if not isinstance(figures, Mapping) or not figures.keys() <= TASK_KEYS:
                raise SettingsError(f"{where}: tasks.{title!r} has the keys {', '.join(sorted(TASK_KEYS))}")
            for key, value in figures.items():
                if (
                    isinstance(value, bool)
                    or not isinstance(value, int | float)
                    or not 0 <= value <= (1 if key in "pq" else 1e9)
                ):
                    allowed = "a probability" if key in "pq" else "a factor from 0 on"
                    raise SettingsError(f"{where}: tasks.{title!r}.{key} is {value!r}; it is {allowed}")
        return cls(
            {key: value for key, value in stated.items() if key in of_settings - of_contract},
            {key: value for key, value in stated.items() if key in of_contract},
            tasks,
        )

    def settings_of(self, today: Settings) -> Settings:
        """Returns the settings under the scenario. Raises SettingsError where they are not allowed."""
        return parse(Settings, over(today.model_dump(), self.settings), "scenario") if self.settings else today

    def contract_of(self, today: ContractFolder) -> ContractFolder:
        """Returns the contract under the scenario. Raises SettingsError where its terms are not allowed."""
        if not self.contract:
            return today
        stated = over(today.settings.model_dump(exclude_unset=True), self.contract)
        return replace(today, settings=parse(ContractSettings, stated, f"scenario, {today.folder / 'contract.toml'}"))

    def intake_of(self, today: Intake) -> Intake:
        """Returns an intake under the scenario, which wins over what the intake itself states."""
        constraints = parse(Constraints, self.contract.get("constraints", {}), "scenario, constraints")
        gain = {"gain_usd": self.contract["gain_usd"], "gain_basis": "observed"} if "gain_usd" in self.contract else {}
        return replace(today, constraints=merged(today.constraints, constraints), **gain)

    def graph_of(self, today: WorkGraph) -> WorkGraph:
        """Returns the graph under the scenario. Raises SettingsError where a task is not known."""
        tasks = dict(today.tasks)
        for title, figures in self.tasks.items():
            named = [task for task in today.tasks.values() if folded(task.title) == folded(title)]
            if not named:
                near = get_close_matches(title, [task.title for task in today.tasks.values()], n=1, cutoff=0.5)
                raise SettingsError(
                    f"scenario: no task is called {title!r}" + (f"; the nearest is {near[0]!r}" if near else "")
                )
            tasks |= {task.task_id: _changed(task, figures) for task in named}
        return replace(today, tasks=tasks) if self.tasks else today


def over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a table with the keys of another one over its own; tables within them likewise."""
    merged = dict(below)
    for key, value in above.items():
        own = merged.get(key)
        merged[key] = over(own, value) if isinstance(own, Mapping) and isinstance(value, Mapping) else value
    return merged


def _changed(task: Task, figures: Mapping[str, float]) -> Task:
    stated: dict[str, Any] = {name: figures[name] for name in ("p", "q") if name in figures}
    factor = figures.get("cost", 1.0)
    costs = ("cost_usd_mean", "cost_usd_deviation", "cost_compute_usd", "cost_model_usd", "cost_human_usd")
    modes = []
    for mode in task.execution_modes:
        known = {name: cost for name in costs if (cost := getattr(mode, name)) is not None}
        changed: dict[str, Any] = stated | {name: factor * cost for name, cost in known.items()}
        modes.append(replace(mode, **changed))
    stated |= {f"{name}_basis": "stated" for name in stated}
    return replace(task, execution_modes=tuple(modes), **stated)


@dataclass(frozen=True)
class Lookups:
    """What both answers share: the snapshot's lookups, the encoder and the model."""

    index: SnapshotIndex
    encoder: TextEncoder
    model: LargeWorkModel


def compare(
    contracts: Sequence[ContractFolder],
    scenario: Scenario,
    settings: Settings,
    lookups: Lookups,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[Row]:
    """Returns a row for each Intention: today's best workflow beside the one under the scenario.

    Raises SettingsError where the scenario is not allowed, and InputError where there is no intake.
    """
    index = copy.copy(lookups.index)
    index.graph = scenario.graph_of(lookups.index.graph)
    then = scenario.settings_of(settings), replace(lookups, index=index)
    work = [(contract, folder) for contract in contracts for folder in contract.intakes]
    if not work:
        raise InputError("there is no such intake in these contracts")
    rows: list[Row] = []
    for done, (contract, folder) in enumerate(work):
        report(done, len(work))
        today = _answer(contract, folder, (settings, lookups), lambda intake: intake)
        rows += _rows(
            contract, folder.name, today, _answer(scenario.contract_of(contract), folder, then, scenario.intake_of)
        )
    report(len(work), len(work))
    return rows


def _answer(
    contract: ContractFolder, folder: Path, using: tuple[Settings, Lookups], changed: Callable[[Intake], Intake]
) -> IntakeOutcome:
    settings, lookups = using
    try:
        transcribe = transcriber_of(settings, contract.client)
        inherited = Inherited.of(contract, transcribe)
        intake = changed(read_intake(contract, folder, settings, inherited.elements, transcribe))
    except OpusError as error:
        return IntakeOutcome("failed", f"failed: {error}")
    if intake.refusal:
        return IntakeOutcome("refused", f"refused: {intake.refusal}")
    index = shown_index(lookups.index, settings, intake.client)
    names = intake.client or "", intake.contract or ""
    catalogue = ContractCatalogue(index, *names, inherited.catalogue) if inherited.catalogue else None
    context = GenerationContext(
        index,
        lookups.encoder,
        lookups.model,
        settings,
        ContractTerms.of(contract, settings),
        catalogue=catalogue,
        second=second_reader_of(settings, intake.client),
    )
    return outcome_of(intake, context)


@dataclass(frozen=True)
class _Best:
    """The rank-1 workflow of an Intention: its row, and who does each of its steps by title, in order."""

    row: Row
    steps: Mapping[str, str]


def _best(outcome: IntakeOutcome) -> dict[str, _Best]:
    """Returns the best workflow of each Intention, by its id."""
    steps: dict[str, dict[str, str]] = {}
    for row in _by_row(outcome.rows.get(WORKFLOW_TASKS.name, {})):
        if row["kind"] in ("task", "review"):
            who = row["model"] or row["actor_group"] or row["actor_kind"] or "not known"
            steps.setdefault(row["workflow_id"], {})[row["title"]] = who
    return {
        row["intention_id"]: _Best(row, steps.get(row["workflow_id"], {}))
        for row in _by_row(outcome.rows.get(OPTIMIZED.name, {}))
        if row["rank"] == 1
    }


def _by_row(columns: Mapping[str, Sequence[Any]]) -> Iterator[Row]:
    return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def _rows(contract: ContractFolder, intake: str, today: IntakeOutcome, then: IntakeOutcome) -> Iterable[Row]:
    before, after = _best(today), _best(then)
    for intention in sorted(before.keys() | after.keys()) or [""]:  # an intake without an answer has a row, too
        a, b = before.get(intention), after.get(intention)
        figures: Row = {}
        for shown, (column, factor) in FIGURES.items():
            for name, best in ((f"{shown}_today", a), (shown, b)):
                value = None if best is None else best.row[column]
                figures[name] = None if value is None else factor * value
        own, new = (best.steps if best else {} for best in (a, b))
        both = bool(a and b)
        added = [title for title in new if both and title not in own]
        left_out = [title for title in own if both and title not in new]
        by = [f"{title}: {own[title]} → {who}" for title, who in new.items() if both and own.get(title, who) != who]
        yield {
            "client": contract.client,
            "contract": contract.contract,
            "intake": intake,
            "change": _change(a, b, bool(added or left_out), bool(by)),
            **figures,
            "steps_added": ", ".join(added) or None,
            "steps_left_out": ", ".join(left_out) or None,
            "done_by": ", ".join(by) or None,
            "broken": "; ".join(v for v in b.row["violations"] if not v.startswith(_ADVICE)) or None if b else None,
            "reason": None if both else then.summary if b is None else today.summary,
        }


def _change(a: _Best | None, b: _Best | None, other_steps: bool, other_people: bool) -> str:
    if a is None or b is None:
        return "no answer, as today" if a is b else "no answer any more" if b is None else "answered now"
    if other_steps:
        return "other steps"
    if list(a.steps) != list(b.steps):
        return "another order"
    if other_people:
        return "done by others"
    same = all(a.row[column] == b.row[column] for column, _ in FIGURES.values())
    return "none" if same else "other figures"

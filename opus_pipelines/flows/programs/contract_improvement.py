"""Improves the published workflows of a contract by what history says they earn, and publishes before and after.

The workflows are planned again from the contract's intakes, which gives the same ids; a workflow that the current
result does not have is left out, so that each row names a workflow that people can look up. A search begins at the
published plan, or at the same tasks as history does them: one after the other, each in its most frequent mode, without
reviews.
Nothing of the result changes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import make_id
from opus_pipelines.core.schemas import OPTIMIZED, PROGRAM_IMPROVEMENTS
from opus_pipelines.core.settings import Settings
from opus_pipelines.flows.programs.contract_search import EditPolicyOfPlans, improve_plan, plan_program
from opus_pipelines.generation.bulk.contracts import contracts_of
from opus_pipelines.generation.flow import generate
from opus_pipelines.generation.planning.plan_cache import plan_cache_of
from opus_pipelines.generation.planning.ranking_context import Candidate
from opus_pipelines.generation.records import ContractTerms, GenerationContext, Refused
from opus_pipelines.generation.search.local_search import LocalSearch
from opus_pipelines.generation.search.plan_states import PlanSpace, PlanState
from opus_pipelines.intakes.contract_settings import prices
from opus_pipelines.intakes.discover import ContractFolder
from opus_pipelines.intakes.intake import read_intake
from opus_pipelines.intakes.stored.files import Inherited
from opus_pipelines.lake.layout import Lake, read_table, table_of, write_table
from opus_pipelines.lake.results import ResultKey
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import encoder_of
from opus_pipelines.lwm.interface import backend_of
from opus_pipelines.lwm.retrieval.contract_catalogue import ContractCatalogue
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.blocks.formats.core_text import write
from opus_pipelines.workflow.evaluation.reward import Evaluation, evaluate
from opus_pipelines.workflow.task_order import TaskOrder

VERSION = 3
METHOD = "policy gradient"
STARTS = ("published", "history")
Row = dict[str, Any]


@dataclass(frozen=True)
class Budget:
    """The workflows that each search may score, the seed, and where searches begin."""

    scored: int = 200
    seed: int = 0
    starts: Sequence[str] = STARTS

    def improvement(self, key: ResultKey) -> str:
        """Returns the id of the improvement of a result: a hash of the result and the budget."""
        return make_id("v", VERSION, key.client, key.contract, key.result, self.scored, self.seed, *self.starts)


@dataclass(frozen=True)
class Improvement:
    """The rows of one run over a contract's workflows, in programs/improvements, and the intakes that were left out."""

    id: str
    rows: list[Row]
    left_out: list[str]


def improve_contract(
    lake: Lake,
    settings: Settings,
    named: tuple[str, str],
    budget: Budget,
    report: Callable[[str], None] = lambda line: None,
) -> Improvement:
    """Returns what the search found for each published workflow of a contract, which is named by client and contract.

    Raises InputError where the contract is not known, has no current result, or was generated from another snapshot.
    """
    contract = _contract(lake, settings, named)
    key = _current(lake, named)
    published = set(key.read(lake, OPTIMIZED, ["workflow_id"])["workflow_id"].to_pylist())
    identity = budget.improvement(key)
    rows: list[Row] = []
    left_out, searches = [], _Searches(budget)
    for name, candidates in _planned(lake, settings, contract):
        found = [(rank, candidate, space) for rank, candidate, space in candidates if candidate.id in published]
        if not found:
            left_out.append(name)
        for rank, candidate, space in found:
            for start in budget.starts:
                row = searches.row(candidate, space, start)
                rows.append({"improvement": identity, "rank": rank} | _names(key, candidate) | row)
            report(f"{name}, rank {rank}: {_told(rows[-len(budget.starts) :])}")
    if not rows:
        raise InputError(
            f"no workflow of the current result of {named[0]} / {named[1]} can be planned again from its intakes; "
            "run `opus generate` first"
        )
    return Improvement(identity, rows, left_out)


def improved_contract(
    lake: Lake,
    settings: Settings,
    named: tuple[str, str],
    budget: Budget,
    report: Callable[[str], None] = lambda line: None,
) -> Improvement:
    """Returns the improvement of a contract's current result as the lake holds it, and makes and publishes it before.

    An improvement that is published already is read, and nothing is searched. The caller holds the lock. Raises
    InputError as `improve_contract`.
    """
    identity = budget.improvement(_current(lake, named))
    folder = lake.folder(PROGRAM_IMPROVEMENTS, improvement_key=identity)
    if folder.is_dir():
        report(f"{named[0]} / {named[1]}: up to date, skipped")
        return Improvement(identity, read_table(PROGRAM_IMPROVEMENTS, folder).to_pylist(), [])
    done = improve_contract(lake, settings, named, budget, report)
    publish_improvement(lake, done)
    return done


def publish_improvement(lake: Lake, done: Improvement) -> None:
    """Writes the rows into the lake; the same improvement is written once. The caller holds the lock."""
    lake.ensure_empty()
    with lake.staging() as staged:
        final = lake.folder(PROGRAM_IMPROVEMENTS, improvement_key=done.id)
        write_table(PROGRAM_IMPROVEMENTS, table_of(PROGRAM_IMPROVEMENTS, done.rows), staged / "new")
        final.parent.mkdir(parents=True, exist_ok=True)
        lake.publish(staged / "new", final)


def improved_row(space: PlanSpace, begin: PlanState, start: str, budget: Budget) -> Row:
    """Returns the figures and the texts before and after a search that begins at a plan."""
    search = LocalSearch(space)
    policy = EditPolicyOfPlans(np.random.default_rng(budget.seed))
    found = improve_plan(METHOD, space, begin, budget.scored, policy)
    before, after = search.evaluate_state(begin), found.plan
    row: Row = {
        "start": start,
        "method": METHOD,
        "seed": budget.seed,
        "calls": found.scored,
        "is_better": after.state != before.state,
        "keeps_limits_before": before.keeps_limits,
        "keeps_limits_after": after.keeps_limits,
        "edits": [step.what for step in after.steps],
        "curve": [
            {"calls": scored, "worth": plan.worth if plan.keeps_limits else None} for scored, plan in found.curve
        ],
        "before": write(plan_program(search, before)),
        "after": write(plan_program(search, after)),
    }
    for name, plan in (("before", before), ("after", after)):
        workflow = search.workflow(plan.state)
        figures = evaluate(workflow, space.cost, space.reward)
        row |= _figures(figures, name)
        row[f"penalty_{name}"] = None if space.penalty is None else space.penalty(workflow)
    return row


def _figures(figures: Evaluation, name: str) -> Row:
    return {
        f"reward_{name}_usd": figures.reward_usd,
        f"success_{name}": figures.success_probability,
        f"cost_{name}_usd": figures.cost_usd,
    }


@dataclass
class _Searches:
    """Searches of a run; those that begin at the same plan are done once."""

    budget: Budget
    _kept: dict[tuple[int, str, PlanState], tuple[PlanSpace, Row]] = field(default_factory=dict)

    def row(self, candidate: Candidate, space: PlanSpace, start: str) -> Row:
        assert candidate.plan.refined_plan is not None
        state = candidate.plan.refined_plan.state
        begin = state if start == "published" else PlanState(TaskOrder.chain(state.tasks), {})
        key = id(space), start, begin
        if key not in self._kept:  # the space is kept, too, so that its id stays its own
            self._kept[key] = space, improved_row(space, begin, start, self.budget)
        return self._kept[key][1]


def _names(key: ResultKey, candidate: Candidate) -> Row:
    return {"client": key.client, "contract": key.contract, "result": key.result, "workflow_id": candidate.id}


def _told(rows: Sequence[Row]) -> str:
    return "; ".join(
        f"from {row['start']} {_worth(row, 'before')} to {_worth(row, 'after')} ({len(row['edits'])} edits)"
        for row in rows
    )


def _worth(row: Row, when: str) -> str:
    reward = row[f"reward_{when}_usd"]
    return f"success {row[f'success_{when}']:.3f}" if reward is None else f"{reward:.2f} USD"


def _contract(lake: Lake, settings: Settings, named: tuple[str, str]) -> ContractFolder:
    known = contracts_of(lake, settings.paths.intakes)
    for contract in known:
        if (contract.client, contract.contract) == named:
            if contract.problem:
                raise InputError(f"{named[0]} / {named[1]} cannot be used: {contract.problem}")
            return contract
    names = "; ".join(f"{one.client} / {one.contract}" for one in known)
    raise InputError(f"no contract {named[0]} / {named[1]}; there are: {names}")


def _current(lake: Lake, named: tuple[str, str]) -> ResultKey:
    pointer = lake.result_pointer(*named)
    if pointer is None:
        raise InputError(f"{named[0]} / {named[1]} has no result; run `opus generate` first")
    return ResultKey.of(pointer)


Planned = tuple[str, list[tuple[int, Candidate, PlanSpace]]]


def _planned(lake: Lake, settings: Settings, contract: ContractFolder) -> Iterator[Planned]:
    """Yields the name of each intake with its ranked workflows and the space of plans that each of them lies in."""
    index = SnapshotIndex(Snapshot.open(lake))
    terms = ContractTerms(
        prices(settings, contract.settings, contract.folder),
        contract.settings.review,
        contract.decisions,
        contract.settings.calendar,
    )
    encoder = CachedEncoder(encoder_of(settings.encoder), lake.kept / "embeddings")
    inherited = Inherited.of(contract)
    catalogue = None
    if inherited.catalogue:
        catalogue = ContractCatalogue(index, contract.client, contract.contract, inherited.catalogue)
    context = GenerationContext(index, encoder, backend_of(settings), settings, terms, catalogue=catalogue)
    for folder in contract.intakes:
        intake = read_intake(contract, folder, settings, inherited.elements)
        try:
            done = generate(intake, context)
        except Refused:
            done = []
        spaces = [(one, plan_cache_of(one.planned.candidates.key).refiner.space) for one in done]
        yield (
            folder.name,
            [(rank, found, space) for one, space in spaces for rank, found in one.ranked if found.plan.refined_plan],
        )

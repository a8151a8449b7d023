"""Improves a program by several methods, interpreters and seeds on a split set of tasks, and publishes what came of it.

The tasks are split by their ids. The search sees rewards of the tasks to select on; the program that it ends with is
scored once on the others. Each row is one search with one seed; intervals are drawn over seeds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import make_id
from opus_pipelines.core.schemas import PROGRAM_CURVES, PROGRAM_SEARCHES
from opus_pipelines.flows.programs import planning_set
from opus_pipelines.flows.programs.drafts import draft_of
from opus_pipelines.flows.programs.executors import ToolExecutor
from opus_pipelines.flows.programs.rewards import Harness, scorer
from opus_pipelines.flows.programs.search import METHODS, SEARCH_VERSION, Searched, improve
from opus_pipelines.lake.layout import Lake, table_of, write_table
from opus_pipelines.lwm.training.tracking import DataHash, Tracking
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, write_core

_Row = dict[str, Any]
INTERPRETERS = ("exact", "similar")


@dataclass(frozen=True)
class Plan:
    """What is to be searched: methods, interpreters, seeds, the limit of calls of each search, and the reward.

    `most_tasks`: of each half at most so many tasks; None: all.
    """

    methods: Sequence[str] = METHODS
    interpreters: Sequence[str] = ("exact",)
    seeds: Sequence[int] = tuple(range(10))
    calls: int = 2_000
    reward: str = "task_score"
    most_tasks: int | None = None

    def __post_init__(self) -> None:
        for kind, given, known in (
            ("method", self.methods, METHODS),
            ("interpreter", self.interpreters, INTERPRETERS),
        ):
            if strange := [one for one in given if one not in known]:
                raise InputError(f"no {kind} {strange[0]!r}; there are: {', '.join(known)}")


@dataclass(frozen=True)
class Experiment:
    """The rows of a finished experiment in programs/searches and programs/curves."""

    id: str
    searches: list[_Row]
    curves: list[_Row]


def experiment(begin: CoreProgram, plan: Plan, report: Callable[[str], None] = lambda line: None) -> Experiment:
    """Returns the rows of all searches. Raises InputError for a program that edits cannot improve."""
    score = scorer(plan.reward)
    select, held_out = (part[: plan.most_tasks] for part in planning_set.split(planning_set.tasks()))
    identity = make_id(
        "h",
        SEARCH_VERSION,
        [t.id for t in (*select, *held_out)],
        write_core(begin),
        plan.reward,
        plan.calls,
        *map(list, _parts(plan)),
    )
    optimum = fmean(score(task, task.needed) for task in held_out)
    searches: list[_Row] = []
    curves: list[_Row] = []
    for interpreter in plan.interpreters:
        executor = ToolExecutor(planning_set.toolbox(interpreter))
        final = Harness(held_out, score, executor, plan.reward)
        head: _Row = {"search": identity, "interpreter": interpreter, "reward": plan.reward}
        head |= {"before": write_core(begin), "begin_report": final.score(begin), "optimum_report": optimum}
        for method in plan.methods:
            for seed in plan.seeds:
                harness = Harness(select, score, executor, plan.reward, plan.calls)
                found = improve(method, planning_set.bank(), draft_of(begin), harness, seed).searched()
                own = {"method": method, "seed": seed}
                searches.append(head | own | _found(found, harness, final))
                points = [{"call": call, "best": best} for call, best in found.curve]
                curves += [{"search": identity, "interpreter": interpreter} | own | point for point in points]
                last = searches[-1]
                report(f"{interpreter}, {method}, seed {seed}: {found.begin:.3f} to {found.reward:.3f}")
                if not last["has_signal"]:
                    report(f"the reward {plan.reward} was the same for all programs: nothing could be learnt")
    return Experiment(identity, searches, curves)


def _parts(plan: Plan) -> Iterable[Sequence[Any]]:
    return plan.methods, plan.interpreters, plan.seeds


def _found(found: Searched, harness: Harness, final: Harness) -> _Row:
    return {
        "calls": harness.calls,
        "begin_select": found.begin,
        "best_select": found.reward,
        "best_report": final.score(found.best),
        "valid_share": found.valid_share,
        "has_signal": found.has_signal,
        "after": write_core(found.best),
    }


def publish_experiment(lake: Lake, done: Experiment) -> None:
    """Writes the rows into the lake; the same experiment is written once. The caller holds the lock."""
    lake.ensure_empty()
    with lake.staging() as staged:
        for dataset, rows in ((PROGRAM_CURVES, done.curves), (PROGRAM_SEARCHES, done.searches)):
            final = lake.folder(dataset, search_key=done.id)
            write_table(dataset, table_of(dataset, rows), staged / dataset.view)
            final.parent.mkdir(parents=True, exist_ok=True)
            lake.publish(staged / dataset.view, final)


def log_curves(tracking: Tracking, plan: Plan, done: Experiment) -> None:
    """Logs every search as a run in MLflow: its parameters, its learning curve and its figures."""
    select = planning_set.split(planning_set.tasks())[0][: plan.most_tasks]
    data = [DataHash("planning tasks to select on", len(select), done.id)]
    for row in done.searches:
        parameters = {name: row[name] for name in ("search", "method", "interpreter", "seed", "reward", "calls")}
        points = [
            p["best"]
            for p in done.curves
            if (p["method"], p["interpreter"], p["seed"]) == (row["method"], row["interpreter"], row["seed"])
        ]
        with tracking.run("program", parameters, data) as run:
            run.log_curve("best_select", points)
            run.log_figures({name: row[name] for name in ("begin_report", "best_report", "valid_share")})


@dataclass(frozen=True)
class Summary:
    """The mean over seeds with its 95 % interval (normal approximation), and the mean share of the optimum."""

    method: str
    interpreter: str
    seeds: int
    calls: int
    before: float
    mean: float
    low: float
    high: float
    best_share: float
    valid_share: float

    @property
    def relative_gain(self) -> float | None:
        """The gain relative to the program at the beginning; None where that has no reward."""
        return None if self.before <= 0 else self.mean / self.before - 1


def summaries(rows: Sequence[_Row]) -> list[Summary]:
    """Returns one summary for each interpreter and method, in the order of the rows."""
    found = []
    for interpreter, method in dict.fromkeys((row["interpreter"], row["method"]) for row in rows):
        own = [row for row in rows if (row["interpreter"], row["method"]) == (interpreter, method)]
        values = [row["best_report"] for row in own]
        half = 1.96 * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
        mean = fmean(values)
        found.append(
            Summary(
                method,
                interpreter,
                len(own),
                max(row["calls"] for row in own),
                fmean(row["begin_report"] for row in own),
                mean,
                mean - half,
                mean + half,
                fmean(row["best_report"] / row["optimum_report"] for row in own),
                fmean(row["valid_share"] for row in own),
            )
        )
    return found

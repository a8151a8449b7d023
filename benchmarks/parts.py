#!/usr/bin/env python3
"""Measures what each part is worth: the whole system less each ablation of `opus evaluate`, on four kinds of sets.

    PYTHONPATH=. .venv/bin/python benchmarks/parts.py sample WORK
    PYTHONPATH=. .venv/bin/python benchmarks/parts.py clients WORK [--seeds 0,1] [--twins] [--apart]
    PYTHONPATH=. .venv/bin/python benchmarks/parts.py sopbench WORK INTAKES.jsonl SCORER.py DATA [--every N]
    PYTHONPATH=. .venv/bin/python benchmarks/parts.py plans WORK SCORER.py DATA [--by combination] [--every N]

Each takes --only NAME,NAME for some of the ablations, and --results benchmarks/results/parts.json for the figures.

- sample: WORK has a lake of `opus sample`, `opus rebuild` and, for trained models, `opus train`. The Reward is
  that of the truth which the sample was drawn from, as `opus best --truth` has it.
- clients: intakes of a client whose own history was taken away before the rebuild. For each seed a sample is written
  below WORK, and a lake for each client. With --twins every client that is alone in its industry gets a second client,
  so that each can be left out: it has the same processes, drawn anew, and names of its own for the tasks. With --apart
  the second client has only the other contracts of the first one, so that nobody did this kind of work. The intakes
  are generated without the constraints that name tasks, because only the client's own history has these names;
  how many are refused with them is printed.
- sopbench, plans: WORK is the folder of `benchmarks/sopbench.py --work WORK` or `benchmarks/plans.py --work WORK`, and
  SCORER the script that wrote their inputs. Intervals of sopbench are over goals, as there.

A snapshot is mined once; each ablation generates anew, in this process. A difference is paired: of the same intakes,
with its own 95 % bootstrap interval (an intake of several seeds is one unit); where that holds 0, the part does not
show. `changed` is the share of intakes whose rank-1 workflow is another. Look-ups stand beside the system: the nearest
case that succeeded, and the most frequent sequence of the ten nearest ones.
"""

import argparse
import gzip
import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from ablations import ABLATIONS, NO_ABLATION, Ablation, applies  # type: ignore[import-not-found]  # beside this file
from two_jobs import opus, script  # type: ignore[import-not-found]  # beside this file

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Settings, load
from opus_pipelines.generation.bulk.chunks import shown_index
from opus_pipelines.generation.flow import rank_workflows, read_requests
from opus_pipelines.generation.records import ContractTerms, GenerationContext, Ranked, Refused, Request
from opus_pipelines.intakes.contract_settings import prices
from opus_pipelines.intakes.intake import Intake, discover, read_intake
from opus_pipelines.intakes.requirements.intention import Intention
from opus_pipelines.intakes.stored import Inherited
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.interface import LargeWorkModel, SimilarCase, backend_of
from opus_pipelines.lwm.retrieval.case_memory import ContractCatalogue
from opus_pipelines.lwm.retrieval.intentions import intentions
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.quality.sample.cases import draw_cases
from opus_pipelines.quality.sample.reward_by_truth import PlannedStep, earned_usd
from opus_pipelines.quality.sample.sources import SOURCES, Source, snake
from opus_pipelines.quality.sample.write import WRITERS
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.metrics.plan_scores import f1, interval
from tests.quality.sample.optimum import best_steps
from tests.quality.sample.simulate import expected_reward

T, R = TypeVar("T"), TypeVar("R")
WHOLE = NO_ABLATION.name
TWIN, TWIN_SEED = "Northgate", 10_000
NAMING = ("must_contain", "must_not_contain", "before", "one_of", "exactly_one_of", "deadlines")
LOOKUPS = ("look-up: nearest success", "look-up: best of 10 nearest")


@dataclass(frozen=True)
class Asked:
    """One intake of a contract, with what its contract says of prices."""

    intake: Intake
    contract: Any
    kind: str | None = None


class Bench:
    """A lake that was mined before, and the intakes in the same folder that are answered from it."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.settings: Settings = load(work / "opus.toml") if (work / "opus.toml").is_file() else Settings()
        lake = Lake(work / "lake")
        self.snapshot = Snapshot.open(lake)
        self.encoder = CachedEncoder(Encoder(self.settings.encoder), lake.kept / "embeddings")
        self.index = SnapshotIndex(self.snapshot)
        self.asked = [
            Asked(read_intake(c, folder, self.settings), c) for c in discover(work / "intakes") for folder in c.intakes
        ]

    def model(self) -> LargeWorkModel:
        """The default backend with the trained models of the lake, where there are any."""
        paths = self.settings.paths.model_copy(update={"lake": self.work / "lake"})
        return backend_of(self.settings.model_copy(update={"paths": paths}))

    def context(self, asked: Asked, model: LargeWorkModel) -> GenerationContext:
        """What generation of the intake needs, with the terms of its contract."""
        cost = prices(self.settings, asked.contract.settings, asked.contract.folder)
        terms = ContractTerms(cost, asked.contract.settings.review)
        index = shown_index(self.index, self.settings, asked.contract.client)
        found = Inherited.of(asked.contract, None).catalogue
        catalogue = ContractCatalogue(index, "client", asked.contract.contract, found) if found else None
        return GenerationContext(index, self.encoder, model, self.settings, terms, catalogue=catalogue)

    def made(self, ablation: Ablation, asked: Sequence[Asked], model: LargeWorkModel) -> list[Ranked | None]:
        """What is generated under the ablation for the first Intention of each intake; None where it is refused."""
        contracts = {one.contract.folder: one for one in asked}
        changed = {folder: ablation.context(self.context(one, model)) for folder, one in contracts.items()}
        contexts = [changed[one.contract.folder] for one in asked]
        intakes = ablation.intakes([one.intake for one in asked])
        encoded = [_unless_refused(self._encoded, i, c) for i, c in zip(intakes, contexts, strict=True)]
        known = [request for request in encoded if request is not None]
        altered = iter(ablation.requests(known) if known else [])
        return [
            None if request is None else _unless_refused(rank_workflows, next(altered), context)
            for request, context in zip(encoded, contexts, strict=True)
        ]

    @staticmethod
    def _encoded(intake: Intake, context: GenerationContext) -> Request:
        return read_requests(intake, context)[0]

    def intention(self, intake: Intake) -> Intention:
        """The intake's first Intention."""
        return intentions(intake, self.index, self.encoder)[0]

    def looked_up(self, name: str, intake: Intake) -> SimilarCase | None:
        """The nearest case that succeeded; or of the ten nearest ones the most frequent sequence's."""
        near = self.index.cases.near(
            self.intention(intake).vector, intake.industry, self.settings.generation.near_cases
        )
        right = [c for c in near if c.success is not False and c.tasks]
        if name == LOOKUPS[0] or not right:
            return right[0] if right else None
        votes = [first_occurrences(c.tasks) for c in right[:10]]
        best = max(votes, key=lambda tasks: (votes.count(tasks), -votes.index(tasks)))
        return right[votes.index(best)]


def _unless_refused(stage: Callable[[T, GenerationContext], R], given: T, context: GenerationContext) -> R | None:
    try:
        return stage(given, context)
    except (Refused, SettingsError):
        return None


def systems_of(arguments: argparse.Namespace, model: LargeWorkModel) -> list[Ablation]:
    """The whole system and the ablations that were asked for; without a choice all that apply to the model."""
    names = list(filter(None, arguments.only.split(",")))
    return [NO_ABLATION, *(a for a in ABLATIONS.values() if a.name in names or (not names and applies(a.name, model)))]


@dataclass
class Table:
    """The values of each row by intake, and the rank-1 tasks that the systems chose; `groups` are drawn together."""

    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    chosen: dict[str, list[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(list))
    groups: list[Hashable] = field(default_factory=list)

    def add(self, other: "Table") -> None:
        """Adds the values of another table."""
        for name, values in other.values.items():
            self.values[name] += values
        for name, tasks in other.chosen.items():
            self.chosen[name] += tasks
        self.groups += other.groups

    def rows(self) -> dict[str, dict[str, Any]]:
        """Returns by row its mean with an interval, the whole system less it, and the share of changed workflows."""
        found: dict[str, dict[str, Any]] = {}
        for name, values in self.values.items():
            found[name] = {"mean": float(np.mean(values)), "interval": interval(values, self.groups)}
            if name != WHOLE and WHOLE in self.values:
                less = (np.array(self.values[WHOLE]) - np.array(values)).tolist()
                found[name] |= {"worth": float(np.mean(less)), "worth_interval": interval(less, self.groups)}
            if name != WHOLE and name in self.chosen:
                other = [a != b for a, b in zip(self.chosen[name], self.chosen[WHOLE], strict=True)]
                found[name]["changed"] = float(np.mean(other))
        return found

    def show(self, title: str, results: Path | None = None, key: str = "") -> None:
        """Prints a line for each row; with `results` also keeps them in that file, under `key`."""
        print(f"\n{title}, n = {len(self.groups)}")
        print(f"{'':34}{'mean':>9}{'interval':>22}{'whole less it':>15}{'interval':>22}{'changed':>9}")
        rows = self.rows()
        for name, row in rows.items():
            line = f"{name:34}{row['mean']:9.3f}{shown(row['interval']):>22}"
            line += f"{row['worth']:15.3f}{shown(row['worth_interval']):>22}" if "worth" in row else ""
            print(line + (f"{row['changed']:9.2f}" if "changed" in row else ""), flush=True)
        if results is not None:
            kept = json.loads(results.read_text()) if results.is_file() else {}
            rounded = json.loads(json.dumps(rows), parse_float=lambda text: round(float(text), 3))
            kept[key] = {"what": title, "intakes": len(self.groups), "rows": rounded}
            results.write_text(json.dumps(kept, indent=1) + "\n")


def shown(bounds: tuple[float, float]) -> str:
    """An interval in brackets."""
    return f"[{bounds[0]:.3f}, {bounds[1]:.3f}]"


def sample(arguments: argparse.Namespace) -> None:
    """Prints the Reward by the truth without each part, and how many rank-1 workflows are in no case of history."""
    bench, table = Bench(arguments.work), Table()
    truth, asked = with_kinds(arguments.work, bench.asked)
    table.groups += list(range(len(asked)))
    made = add_rewards(table, bench, asked, truth, arguments)
    table.show("sample: Reward by the truth, USD an intake", arguments.results, "sample")
    new = [n for n, m in enumerate(made) if m and not bench.index.is_known_variant(m.ranked[0][1].tasks)]
    whole = np.array(table.values[WHOLE])
    less = whole[new] - np.maximum(*(np.array(table.values[name]) for name in LOOKUPS))[new]
    print(
        f"rank-1 workflows in no case of history: {len(new)} of {len(asked)}; of these {int((less > 0).sum())} earn "
        f"more than the best look-up, on average {float(less.mean()) if new else 0.0:.3f} USD more"
    )


def with_kinds(folder: Path, asked: Sequence[Asked]) -> tuple[dict[str, Any], list[Asked]]:
    """The truth of a sample, and the intakes with the kind of case that each asks for."""
    truth = json.loads((folder / "truth.json").read_text())
    kinds = {(i["client"], i["contract"], i["intake"]): i["kind"] for i in truth["intakes"]}
    return truth, [replace(a, kind=kinds[a.contract.client, a.contract.contract, a.intake.folder]) for a in asked]


def add_rewards(
    table: Table,
    bench: Bench,
    asked: list[Asked],
    truth: dict[str, Any],
    arguments: argparse.Namespace,
) -> list[Ranked | None]:
    """Adds the rewards of the systems, the look-ups and the best; returns what the whole system made."""
    whole: list[Ranked | None] = []
    model = bench.model()
    for system in systems_of(arguments, model):
        made = bench.made(system, asked, model)
        whole = whole or made
        table.values[system.name] += [reward_by_truth(truth, a, m) for a, m in zip(asked, made, strict=True)]
        table.chosen[system.name] += [_ids(m) for m in made]
        print(f"{system.name}: done", file=sys.stderr, flush=True)
    for name in LOOKUPS:
        table.values[name] += [looked_up_reward(truth, a, bench.looked_up(name, a.intake), bench) for a in asked]
    table.values["the best that the truth allows"] += [
        best_steps(truth, str(a.intake.industry), str(a.kind), a.intake.gain_usd)[1] for a in asked
    ]
    return whole


def clients(arguments: argparse.Namespace) -> None:
    """The clients whose own history was taken away, each alone and all together."""
    tables, every = dict[str, Table](), Table()
    for seed in arguments.seeds.split(","):
        folder = arguments.work / f"seed{seed}"
        if not (folder / "truth.json").is_file():
            opus(arguments.work, "sample", folder.name, "--seed", seed)
        if arguments.twins or arguments.apart:
            write_twins(folder, int(seed))
        for name, left_out, lake in lakes_of(folder, arguments):
            found = measure(Bench(lake), left_out, arguments)
            for table in (tables.setdefault(name, Table()), every):
                table.add(found)
    for name, table in tables.items():
        table.show(f"{name} left out: USD an intake by the truth", arguments.results, f"clients: {name}")
    every.show("all of them: USD an intake by the truth", arguments.results, "clients: all")


def measure(bench: Bench, left_out: Sequence[Source], arguments: argparse.Namespace) -> Table:
    """The values of the intakes of some sources, whose history the lake does not have."""
    table = Table()
    contracts = {(contract.client, contract.name) for source in left_out for contract in source.contracts}
    truth, asked = with_kinds(bench.work, bench.asked)
    asked = [one for one in asked if (one.contract.client, one.contract.contract) in contracts]
    stated = bench.made(NO_ABLATION, asked, bench.model())
    print(f"{left_out[0].name}: refused as stated {sum(made is None for made in stated)} of {len(stated)}", flush=True)
    free = [a.intake.constraints.model_copy(update=dict.fromkeys(NAMING, ())) for a in asked]
    unbound = [replace(a, intake=replace(a.intake, constraints=f)) for a, f in zip(asked, free, strict=True)]
    table.groups += [one.intake.folder for one in asked]
    add_rewards(table, bench, unbound, truth, arguments)
    return table


def lakes_of(folder: Path, arguments: argparse.Namespace) -> list[tuple[str, list[Source], Path]]:
    """What is left out of each lake: its name, its sources, and the folder with the lake."""
    of_client: dict[str, list[Source]] = defaultdict(list)
    for source in SOURCES:
        of_client[source.contracts[0].client].append(source)
    found = []
    for client, own in sorted(of_client.items()):
        others = [s for s in SOURCES if s.industry is own[0].industry and s not in own]
        if arguments.apart and len(own) > 1:
            rest = {source.name: [s for s in own if s is not source] for source in own}
            found += [(s.name, [s], without(folder, s.name, own, rest[s.name])) for s in own]
        elif not arguments.apart and (others or arguments.twins):
            found.append((client, own, without(folder, client.split()[0].lower(), own, own)))
    return found


def without(folder: Path, name: str, own: Sequence[Source], twins: Sequence[Source]) -> Path:
    """The folder with a lake that was rebuilt without sources, and with the twins of some where there are any."""
    place, left_out = folder / "without" / name, {source.name for source in own}
    if (place / "lake").is_dir():
        return place
    left_out |= {twin_of(source) for source in SOURCES if source not in twins}
    for source_folder in sorted((folder / "history").iterdir()):
        if source_folder.name not in left_out:
            shutil.copytree(source_folder, place / "history" / source_folder.name)
    shutil.copytree(folder / "intakes", place / "intakes")
    shutil.copy(folder / "truth.json", place / "truth.json")
    opus(place, "rebuild")
    return place


def twin_of(source: Source) -> str:
    """The name of the second client's source."""
    return f"{TWIN.lower()}_{source.name}"


def write_twins(sample: Path, seed: int) -> None:
    """The history of a second client for every client that is alone in its industry."""
    of_industry: dict[str, set[str]] = defaultdict(set)
    for source in SOURCES:
        of_industry[source.industry.name] |= {contract.client for contract in source.contracts}
    for source in SOURCES:
        folder = sample / "history" / twin_of(source)
        if len(of_industry[source.industry.name]) == 1 and not folder.is_dir():
            (client,) = of_industry[source.industry.name]
            renamed = replace(source, style=snake, synonyms={})
            cases = [
                case
                for contract in source.contracts
                for kind in contract.kinds
                for case in draw_cases(seed + TWIN_SEED, source.industry, contract.name, kind)
            ]
            content = WRITERS[source.name](renamed, sorted(cases, key=lambda case: case.performed[0].ready_ms))
            folder.mkdir()
            (folder / source.file).write_bytes(gzip.compress(content) if source.file.endswith(".gz") else content)
            (folder / "source.toml").write_text(source.settings.replace(client, f"{TWIN} {client.split()[-1]}"))


def sopbench(arguments: argparse.Namespace) -> None:
    """F1, order and clean plans by the benchmark's own scorer, its intervals over goals."""
    tasks = script(arguments.scorer).load(arguments.data)
    keys = {json.loads(line)["task_key"] for line in arguments.intakes.read_text().splitlines() if line.strip()}
    bench = Bench(arguments.work)
    asked = [one for one in bench.asked[:: arguments.every] if one.intake.folder in keys]
    found = _steps_of_all(bench, asked, arguments)
    for measure_name in ("F1", "ordR", "clean"):
        table = Table(groups=[tasks[one.intake.folder]["goal"] for one in asked])
        for name, steps in found.items():
            scored = zip(asked, steps, strict=True)
            table.values[name] = [tasks[a.intake.folder]["gold"].score(s)[measure_name] for a, s in scored]
            table.chosen[name] = [tuple(s) for s in steps]
        table.show(f"sopbench, {measure_name}", arguments.results, f"sopbench: {measure_name}")


def plans(arguments: argparse.Namespace) -> None:
    """F1 of the tools and of the pairs of consecutive ones of rank 1."""
    bench, gold = Bench(arguments.work), list[dict[str, Any]]()
    held = argparse.Namespace(data=str(arguments.data), by=arguments.by, fold=arguments.fold, learn=None)
    asked_rows = script(arguments.scorer).parts(held)[1]
    asked = sorted(bench.asked, key=lambda one: one.intake.folder)
    gold = [asked_rows[int(one.intake.folder.removeprefix("request"))] for one in asked]
    asked, gold = asked[:: arguments.every], gold[:: arguments.every]
    found = _steps_of_all(bench, asked, arguments)
    pairs = lambda steps: set(pairwise(steps))
    for measure_name, of in (("tools", set), ("consecutive tools", pairs)):
        table = Table(groups=list(range(len(asked))))
        for name, steps in found.items():
            wanted = [list(dict.fromkeys(row["plan"])) for row in gold]
            table.values[name] = [f1(of(own), of(right)) for own, right in zip(steps, wanted, strict=True)]
            table.chosen[name] = [tuple(s) for s in steps]
        table.show(f"plans, F1 of {measure_name}", arguments.results, f"plans: {measure_name}")


def _steps_of_all(bench: Bench, asked: list[Asked], arguments: argparse.Namespace) -> dict[str, list[list[str]]]:
    """By system and look-up the raw keys of the steps of each intake."""
    model, found = bench.model(), dict[str, list[list[str]]]()
    for system in systems_of(arguments, model):
        made = bench.made(system, asked, model)
        found[system.name] = [_actions(bench, one) for one in made]
        print(f"{system.name}: done", file=sys.stderr, flush=True)
    return found | {name: [_keys(bench.looked_up(name, a.intake)) for a in asked] for name in LOOKUPS}


def reward_by_truth(truth: dict[str, Any], asked: Asked, made: Ranked | None) -> float:
    """The Reward of the rank-1 workflow by the sample's truth, in dollars; 0 where there is none."""
    if made is None:
        return 0.0
    best = made.ranked[0][1]
    starts = best.evaluation.start_ms
    return expected_reward(truth, str(asked.intake.industry), best.workflow, str(asked.kind), starts)


def looked_up_reward(truth: dict[str, Any], asked: Asked, case: SimilarCase | None, bench: Bench) -> float:
    """Its tasks in their usual way, as history mostly does them."""
    if case is None:
        return 0.0
    tasks = [bench.index.graph.tasks[t] for t in first_occurrences(case.tasks)]
    modes = [(str(t.execution_modes[0].actor_kind), t.execution_modes[0].model) for t in tasks]
    steps = [PlannedStep(t.title, mode, n, n + 1) for n, (t, mode) in enumerate(zip(tasks, modes, strict=True))]
    return earned_usd(truth, str(asked.intake.industry), str(asked.kind), asked.intake.gain_usd or 0.0, steps)


def _actions(bench: Bench, made: Ranked | None) -> list[str]:
    """Raw keys of the rank-1 workflow's tasks, in order."""
    if made is None:
        return []
    near: dict[str, list[str]] = {}
    for case in made.evidence.cases:
        for task, key in zip(case.tasks, case.task_keys, strict=True):
            near.setdefault(task, []).append(key)
    raw = bench.index.raw_keys
    named = lambda t: (
        max(sorted(set(near[t])), key=near[t].count)
        if t in near
        else raw.get(t, [made.drafted.graph.tasks[t].title])[0]
    )
    return [named(t) for t in _ids(made)]


def _ids(made: Ranked | None) -> tuple[str, ...]:
    if made is None:
        return ()
    workflow = made.ranked[0][1].workflow
    known = {t.id: t.task_id for t in workflow.tasks if t.kind != "review"}
    return tuple(known[n] for n in workflow.topological() if n in known)


def _keys(case: SimilarCase | None) -> list[str]:
    return list(dict.fromkeys(case.task_keys)) if case else []


def main() -> int:
    """One of the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    sets: dict[str, Callable[[argparse.Namespace], None]] = {
        "sample": sample,
        "clients": clients,
        "sopbench": sopbench,
        "plans": plans,
    }
    found = {name: kinds.add_parser(name) for name in sets}
    for name, one in found.items():
        one.add_argument("work", type=Path)
        one.add_argument("--only", default="", help="names of ablations, comma-separated; default: all that apply")
        one.add_argument("--results", type=Path, help="a JSON file that keeps the figures; `make run` shows some")
        one.set_defaults(run=sets[name])
    found["clients"].add_argument("--seeds", default="0")
    found["clients"].add_argument("--twins", action="store_true", help="a second client in industries with one")
    found["clients"].add_argument("--apart", action="store_true", help="a second client with other contracts")
    found["sopbench"].add_argument("intakes", type=Path)
    for name in ("sopbench", "plans"):
        found[name].add_argument("scorer", type=Path, help="the script that scores")
        found[name].add_argument("data", type=Path)
        found[name].add_argument("--every", type=int, default=1, help="only every n-th intake")
    found["plans"].add_argument("--by", default="combination")
    found["plans"].add_argument("--fold", type=int, default=0)
    arguments = parser.parse_args()
    run: Callable[[argparse.Namespace], None] = arguments.run
    run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())

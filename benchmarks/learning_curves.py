#!/usr/bin/env python3
"""Measures how much each part of the history is worth: a share of it is learnt from, and the same items are asked.

    PYTHONPATH=. .venv/bin/python benchmarks/learning_curves.py plans WORK SCORER DATA [--by request] [--fold 0]
    PYTHONPATH=. .venv/bin/python benchmarks/learning_curves.py log DIR SCORER
    PYTHONPATH=. .venv/bin/python benchmarks/learning_curves.py sopbench SCORER DATA [--by goal] [--fold 0]

`plans` is of the sequences of the pointer model alone: WORK is a folder of `benchmarks/plans.py --work`, whose cases
are thinned by the hash of their id; tools and edges that only the others have go, too. The Workflow Graph and the
search are not run; --perceptrons is as in [lwm] of opus.toml; with --seeds the mean over the trainings is printed with
its standard deviation. `log` is of the forecaster alone: DIR is the folder of the `split` of the scorer, whose training
cases are thinned. `sopbench` runs the whole pipeline for every share. SCORER scores the benchmark, DATA is its data.

--shares: of the history, default .125,.25,.5,1. --samples FILE: the items of the largest share with their scores and
features, for errors.py. Intervals are 95 %, by bootstrap over requests, over cases of the log and over goals.
"""

import argparse
import csv
import datetime as dt
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from two_jobs import read, script  # beside this file

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.forecasts.forecaster import Forecaster
from opus_pipelines.forecasts.traces import END, Trace
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.pointer.candidates import EncodedRequest
from opus_pipelines.lwm.pointer.learning import NEW_SETS, Learning, train_pointer
from opus_pipelines.lwm.pointer.memory import CaseMemory, IndustryGraph
from opus_pipelines.lwm.pointer.model import PointerModel
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory, encoded_requests, industry_memory
from opus_pipelines.lwm.retrieval.consensus import consensus
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.metrics.plan_scores import f1, interval

RARE, LONG_TEXT, LONG_PLAN = 5, 40, 5  # cases of a tool, words of a request, tools of a plan
DAY_S = 86_400


def main() -> int:
    """Print a row for each share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    for name, run in (("plans", plans), ("log", log), ("sopbench", sopbench)):
        one = kinds.add_parser(name)
        if name != "sopbench":
            one.add_argument("work", type=Path)
        one.add_argument("scorer", type=Path)
        if name != "log":
            one.add_argument("data", type=Path)
            one.add_argument("--by", default="goal" if name == "sopbench" else "request")
            one.add_argument("--fold", type=int, default=0)
        if name == "plans":
            one.add_argument("--perceptrons", type=int, default=1)
            one.add_argument("--seeds", type=int, default=1, help="trainings of each share; a row each, and their mean")
        one.add_argument("--shares", default=".125,.25,.5,1")
        one.add_argument("--samples", type=Path)
        one.set_defaults(run=run)
    arguments = parser.parse_args()
    arguments.run(arguments)
    return 0


def is_kept(name: str, share: float) -> bool:
    """Whether a case is in that share of the history; a smaller share is a part of a larger one."""
    return int(digest("share", name)[:8], 16) < share * 16**8


def shares(arguments: argparse.Namespace) -> list[float]:
    """The shares that are asked for, the smallest first."""
    return sorted(map(float, arguments.shares.split(",")))


def print_row(share: float, size: int, scores: Mapping[str, Sequence[float]], groups: Sequence[str]) -> None:
    """Print the mean of each score over the items that have it, with its interval."""
    cells = []
    for name, values in scores.items():
        known = [n for n, value in enumerate(values) if not np.isnan(value)]
        own = [values[n] for n in known]
        low, high = interval(own, [groups[n] for n in known])
        cells.append(f"{name} {np.mean(own):.3f} [{low:.3f}, {high:.3f}]")
    print(f"{share:6.3f} {size:7,} cases  " + "  ".join(cells), flush=True)


def write_samples(path: Path | None, rows: list[dict[str, Any]]) -> None:
    """Write the items for `benchmarks/errors.py`."""
    if path is not None:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


# Plans for requests


def plans(arguments: argparse.Namespace) -> None:
    """Node, link and first of the pointer model's sequences."""
    scorer = script(arguments.scorer)
    split = argparse.Namespace(data=str(arguments.data), by=arguments.by, fold=arguments.fold)
    _, asked = scorer.parts(split)
    lake = Lake(arguments.work / "lake")
    index = SnapshotIndex(Snapshot.open(lake))
    encoder = CachedEncoder(Encoder(Settings().encoder), lake.kept / "embeddings")
    whole = industry_memory(index, "plans")
    if whole is None:
        raise SystemExit(f"{arguments.work} has too few cases of the industry 'plans'")
    texts = ["\n".join(part for part in (row["request"], row.get("context")) if part) for row in asked]
    requests = encoded_requests(texts, encoder.encode(texts), encoder)
    for share in shares(arguments):
        memory = thinned(whole, share)
        own = encoded_requests(memory.texts, memory.memory.vectors, encoder)
        golds = [(list(row["plan"]), scorer.links_of(row)) for row in asked]
        by_seed: dict[str, list[float]] = defaultdict(list)
        for seed in range(arguments.seeds):
            model = learnt(memory, own, arguments, seed)
            answers = [answer(model, memory, request, index.raw_keys) for request in requests]
            pairs = list(zip(answers, golds, strict=True))
            scores = {
                "node": [f1(set(plan), set(gold)) for (plan, _), (gold, _) in pairs],
                "link": [f1(links, gold) for (_, links), (_, gold) in pairs],
                "first": [float(plan[:1] == gold[:1]) for (plan, _), (gold, _) in pairs],
            }
            print_row(share, len(memory.ids), scores, [row["id"] for row in asked])
            for name, values in scores.items():
                by_seed[name].append(float(np.mean(values)))
        if arguments.seeds > 1:
            cells = [f"{name} {np.mean(own):.3f} (sd {np.std(own, ddof=1):.3f})" for name, own in by_seed.items()]
            print(f"{share:6.3f} {arguments.seeds} seeds: " + "  ".join(cells), flush=True)
    features = plan_features(memory, index.raw_keys)
    write_samples(
        arguments.samples,
        [
            {
                "id": row["id"],
                "request": text,
                "scores": {name: values[n] for name, values in scores.items()},
                "gold": {"plan": list(dict.fromkeys(row["plan"])), "links": [list(pair) for pair in golds[n][1]]},
                "features": features(row, requests[n].vector),
                "answer": answers[n][0],
            }
            for n, (row, text) in enumerate(zip(asked, texts, strict=True))
        ],
    )


def learnt(
    memory: IndustryMemory, requests: Sequence[EncodedRequest], arguments: argparse.Namespace, seed: int
) -> PointerModel:
    """A model of the cases."""
    how = Learning(seed=seed, new_sets=NEW_SETS, perceptrons=arguments.perceptrons)
    return train_pointer([(memory.memory, requests)], how)


def thinned(whole: IndustryMemory, share: float) -> IndustryMemory:
    """The memory of a share of the cases; tasks that none of them did are no tasks."""
    memory = whole.without([n for n, name in enumerate(whole.ids) if not is_kept(name, share)])
    graph, traces = memory.memory.graph, memory.memory.traces
    done = sorted({task for trace in traces for task in trace})
    place = {task: n for n, task in enumerate(done)}
    smaller = IndustryGraph(
        tuple(graph.tasks[t] for t in done),
        tuple(graph.titles[t] for t in done),
        graph.vectors[done],
        graph.gamma[done][:, done],
        graph.transitions[done][:, done],
    )
    own = [[place[task] for task in trace] for trace in traces]
    cases = CaseMemory(smaller, memory.texts, memory.memory.vectors, own)
    return IndustryMemory(cases, memory.ids, memory.texts, memory.is_chain)


def answer(
    model: PointerModel, memory: IndustryMemory, request: Any, raw_keys: Mapping[str, list[str]]
) -> tuple[list[str], set[tuple[str, str]]]:
    """The plan and its links, by the names of the tools: the set with the highest expected F1, as in the pipeline."""
    tasks = memory.memory.graph.tasks
    written = model.sequences(request, memory.memory)
    agreed = consensus(
        [memory.trace([tasks[n] for n in one.tasks]) for one in written],
        np.array([one.probability for one in written]),
    ).with_likeliest_first()
    name = {task: raw_keys[task][0] for task in agreed.tasks}
    pairs = agreed.pairs_among(agreed.tasks) or dict.fromkeys(pairwise(agreed.tasks))
    return [name[task] for task in agreed.tasks], {(name[a], name[b]) for a, b in pairs}


def plan_features(memory: IndustryMemory, raw_keys: Mapping[str, list[str]]) -> Any:
    """What of an asked item may make it hard, given its row and the vector of its request."""
    tasks = memory.memory.graph.tasks
    counts = {raw_keys[task][0]: int(count) for task, count in zip(tasks, memory.memory.counts, strict=True)}
    sets = {frozenset(raw_keys[tasks[n]][0] for n in trace) for trace in memory.memory.traces}
    pairs = {frozenset(pair) for known in sets for pair in _pairs(sorted(known))}

    def features(row: Mapping[str, Any], vector: np.ndarray) -> dict[str, bool]:
        tools = list(dict.fromkeys(row["plan"]))
        seen = [counts.get(tool, 0) for tool in tools]
        nearest = float((memory.memory.vectors @ vector).max())
        return {
            "a tool that history lacks": min(seen) == 0,
            f"a tool of at most {RARE} cases": 0 < min(seen) <= RARE,
            "the set of tools is new": frozenset(tools) not in sets,
            "a pair of tools that no case had": any(frozenset(p) not in pairs for p in _pairs(sorted(tools))),
            f"a plan of more than {LONG_PLAN} tools": len(tools) > LONG_PLAN,
            "a plan of one tool": len(tools) == 1,
            f"a text of more than {LONG_TEXT} words": len(row["request"].split()) > LONG_TEXT,
            "nearest request below .6 cosine": nearest < 0.6,
            "nearest request above .8 cosine": nearest > 0.8,
        }

    return features


def _pairs(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((a, b) for n, a in enumerate(names) for b in names[n + 1 :])


# Running cases of a log


def log(arguments: argparse.Namespace) -> None:
    """Next activity, suffix, error and interval of the remaining time."""
    scorer = script(arguments.scorer)
    training = traces_of(arguments.work / "ask" / "train.csv")
    prefixes = list(read(arguments.work / "ask" / "prefixes.jsonl"))
    truth = {row["id"]: row for row in read(arguments.work / "gold" / "truth.jsonl")}
    running = [Trace(row["id"], *columns(row["events"])) for row in prefixes]
    for share in shares(arguments):
        known = [trace for trace in training if is_kept(trace.case_id, share)]
        found = Forecaster(known, calendar=False).forecast(running)
        rows = [scored(scorer, one, truth[one.case_id]) for one in found]
        scores = {name: [row[name] for row in rows] for name in rows[0]}
        print_row(share, len(known), scores, [one.case_id.rpartition("#")[0] for one in found])
    counts = Counter(activity for trace in training for activity in trace.activities)
    write_samples(
        arguments.samples,
        [
            {
                "id": one.case_id,
                "group": one.case_id.rpartition("#")[0],
                "scores": {name: value for name, value in row.items() if not np.isnan(value)}
                | {"minus error": -row["MAE"]},
                "features": log_features(trace, truth[one.case_id], counts),
            }
            for one, row, trace in zip(found, rows, running, strict=True)
        ],
    )


def log_features(trace: Trace, truth: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, bool]:
    """What of a running case may make it hard."""
    rest = truth["suffix"]
    return {
        "one event so far": len(trace.activities) == 1,
        "more than ten events so far": len(trace.activities) > 10,
        "more than ten activities to come": len(rest) > 10,
        "at most one activity to come": len(rest) <= 1,
        "an activity comes more than once": len(set(rest)) < len(rest),
        "an activity of under 1 % of events comes": any(counts.get(a, 0) < 0.01 * sum(counts.values()) for a in rest),
        "more than 20 days to come": truth["remaining_s"] > 20 * DAY_S,
        "the last activity was repeated": trace.activities[-1] in trace.activities[:-1],
    }


def traces_of(path: Path) -> list[Trace]:
    """The cases of a training part."""
    events: dict[str, list[tuple[str, float, str | None]]] = defaultdict(list)
    is_open = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            when = dt.datetime.fromisoformat(row["timestamp"]).timestamp()
            events[row["case_id"]].append((row["activity"], when, row["resource"] or None))
            is_open[row["case_id"]] = row["open"] == "1"
    return [Trace(case, *columns(own), is_open=is_open[case]) for case, own in events.items()]


def columns(events: Sequence[tuple[str, float, str | None]]) -> tuple[list[str], list[float], list[str | None]]:
    """The activities, seconds and resources of events."""
    return [name for name, _, _ in events], [when for _, when, _ in events], [who for _, _, who in events]


def scored(scorer: Any, forecast: Any, truth: Mapping[str, Any]) -> dict[str, float]:
    """The scores of one running case, by the rules of the scorer; days where they are of time."""
    left, said = truth["remaining_s"] / DAY_S, forecast.remaining_s
    longer = max(len(forecast.rest), len(truth["suffix"]))
    alike = 1 - scorer.distance(list(forecast.rest), truth["suffix"]) / longer if truth["suffix"] else float("nan")
    following = forecast.following[0].activity if forecast.following else END
    return {
        "next": float(following == truth["next"]),
        "suffix": alike,
        "MAE": abs(said.middle / DAY_S - left),
        "cover": float(said.low / DAY_S - 1e-9 <= left <= said.high / DAY_S + 1e-9),
        "width": (said.high - said.low) / DAY_S,
    }


# Tool sequences for service requests


def sopbench(arguments: argparse.Namespace) -> None:
    """F1 and clean of the whole pipeline."""
    scorer, here = script(arguments.scorer), Path(__file__).parent
    tasks = scorer.load(arguments.data)
    asked = ["--by", arguments.by, "--fold", str(arguments.fold)]
    written = lambda verb: (
        subprocess.run(
            [sys.executable, arguments.scorer, verb, arguments.data, *asked],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    )
    runs, intakes = written("history").splitlines(), written("intakes")
    for share in shares(arguments):
        with tempfile.TemporaryDirectory(prefix="opus-curve-") as folder:
            work = Path(folder)
            known = [run for run in runs if is_kept(json.loads(run)["trace_id"], share)]
            (work / "history.jsonl").write_text("\n".join(known) + "\n")
            (work / "intakes.jsonl").write_text(intakes)
            files = [work / name for name in ("history.jsonl", "intakes.jsonl", "predictions.jsonl")]
            subprocess.run([sys.executable, here / "sopbench.py", *files], check=True)
            given = {row["task_key"]: row["actions"] for row in read(files[-1])}
        rows = {key: tasks[key]["gold"].score(actions) for key, actions in given.items()}
        goals = [str(tasks[key]["goal"]) for key in rows]
        print_row(share, len(known), {name: [row[name] for row in rows.values()] for name in ("F1", "clean")}, goals)
    write_samples(
        arguments.samples,
        [
            {
                "id": key,
                "group": str(tasks[key]["goal"]),
                "request": tasks[key].get("request"),
                "scores": {name: float(row[name]) for name in ("F1", "clean")},
                "answer": given[key],
            }
            for key, row in rows.items()
        ],
    )


if __name__ == "__main__":
    sys.exit(main())

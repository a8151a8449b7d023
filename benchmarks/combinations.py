#!/usr/bin/env python3
"""Measure plans for combinations of work that no case of history has: one combination of task groups is left out.

    .venv/bin/python benchmarks/combinations.py LOG.xes.gz RUNS.jsonl.gz ROWS.jsonl [--folds 0,1] [--work DIR]
        [--system NAME] [--beside OTHER_ROWS.jsonl]

The histories are an event log, evaluated runs of agents, and the sample (`combination_pairs`). For every pair of task
groups, all cases that contain both are taken out before mining: the pairs are spread over five folds, with one rebuild
each. The intake asks for both groups as a client would: its text names one task of each (the rarest, which tells most),
and its constraints demand these two. It has no procedure, and no text of a case. A plan is compared with each of (at
most 20) removed cases that did not fail, and the scores of a pair are means over them:

    set       F1 of the sets of tasks
    order     F1 of the sets of ordered pairs (a anywhere before b): what a plan lacks is not in order either
    kept      share of the reference's ordered pairs of tasks, of those that the plan has too, in the same order; it is
              easy for a plan of few tasks, so it is shown and not compared

The real pipeline answers. Rows: the system, the system without edges and without composition, the nearest case, and a
baseline of counts (the nearest case of each group, joined, in the order of the mean position of tasks in history). The
gold row is the removed case most like the others. Intervals are bootstrap 95 % over pairs; differences are paired.
--beside compares with rows
that another version of the code wrote.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from ablations import ABLATIONS  # type: ignore[import-not-found]  # beside this file
from combination_pairs import Asked, Case, Fold, folds_of  # type: ignore[import-not-found]  # beside this file
from two_jobs import KEPT, opus, read, workplace  # type: ignore[import-not-found]

from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.settings import load
from opus_pipelines.generation.flow import rank_workflows, read_requests
from opus_pipelines.generation.records import ContractTerms, GenerationContext, Refused
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import encoder_of
from opus_pipelines.language.embedding.texts import unit
from opus_pipelines.lwm.interface import backend_of
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.constraints import Constraints
from opus_pipelines.workflow.metrics.plan_scores import interval

Tasks = tuple[str, ...]
SCORES = ("set", "order", "kept")
SYSTEM, GOLD = "system", "gold: removed case"
NEAREST, UNION = "nearest case", "union, mean position"
SOURCE = """\
format = "jsonl"
industry = { column = "industry" }

[record]
case = "id"
title = "title"
description = "text"
tasks = "steps"

[task]
activity = "task"

[success]
column = "success"
equals = true

[activities]
step = STEPS
"""
# Names are compared as they stand, and every activity is a step, so that plans and cases have the same names. Without
# prices and times, a token price keeps made-up wages out of the Reward.
SETTINGS = """\
[wkg]
merge = "normalised"

[cost]
default_cost_usd = { human = 0.001, code = 0.001, model = 0.001 }
"""


def main() -> int:
    """Rebuild and ask fold by fold; write the rows, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--folds", default="0,1,2,3,4")
    parser.add_argument("--work", type=Path, help=KEPT)
    parser.add_argument("--system", default=SYSTEM, help="name of this version's row")
    parser.add_argument("--beside", type=Path, action="append", default=[], help="rows of another version")
    arguments = parser.parse_args()
    folds = folds_of(arguments.log, arguments.runs)
    rows: list[dict[str, Any]] = []
    for number in map(int, arguments.folds.split(",")):
        with workplace(arguments.work and arguments.work / f"fold{number}", "combinations") as work:
            started = time.monotonic()
            context = mined(folds[number], work)
            rows += [{"fold": number, **row} for row in answered(folds[number], context, arguments.system)]
        print(f"fold {number}: {len(folds[number].asked)} pairs, {time.monotonic() - started:.0f} s", file=sys.stderr)
    with arguments.rows.open("w") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    asked = {row["pair"] for row in rows}
    beside = [row for path in arguments.beside for row in read(path) if row["pair"] in asked]
    known = {row["system"] for row in rows}
    print(table([*rows, *(row for row in beside if row["system"] not in known)], arguments.system))
    return 0


def mined(fold: Fold, work: Path) -> GenerationContext:
    """The context of generation over a lake that the fold's history was mined into; one that is there is kept."""
    if not (work / "lake" / "wkg" / "current.json").exists():
        for name in sorted({case.source for case in fold.history}):
            _write_source(work / "history" / name, [case for case in fold.history if case.source == name])
        (work / "opus.toml").write_text(SETTINGS)
        opus(work, "rebuild")
    settings = load(work / "opus.toml")
    lake = Lake(work / "lake")
    encoder = CachedEncoder(encoder_of(settings.encoder), lake.kept / "embeddings")
    index = SnapshotIndex(Snapshot.open(lake))
    return GenerationContext(index, encoder, backend_of(settings), settings, ContractTerms(settings.cost))


def _write_source(folder: Path, cases: Sequence[Case]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    known = any(case.success is not None for case in cases)
    names = sorted({task for case in cases for task in case.steps})
    settings = SOURCE.replace("STEPS", json.dumps(names))
    (folder / "source.toml").write_text(
        settings if known else settings.replace('[success]\ncolumn = "success"\nequals = true\n', "")
    )
    with (folder / "cases.jsonl").open("w") as file:
        for case in cases:
            texts = {name: text for name, text in (("title", case.title), ("text", case.text)) if text}
            outcome = {} if case.success is None else {"success": case.success}
            steps = [{"task": task} for task in case.steps]
            row = {"id": case.id, "industry": case.industry, **texts, **outcome, "steps": steps}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def answered(fold: Fold, context: GenerationContext, system: str) -> list[dict[str, Any]]:
    """A row for every pair and system: the plan and its scores."""
    contexts = {
        system: context,
        "no edges": ABLATIONS["no edges"].context(context),
        "no composition": ABLATIONS["no composition"].context(context),
    }
    rows = []
    for asked in fold.asked:
        own = [c for c in fold.history if c.industry == asked.pair.industry and c.success is not False]
        plans = {name: _planned(asked, used) for name, used in contexts.items()}
        plans |= {NEAREST: nearest(asked, own, context), UNION: union(asked, own, context), GOLD: _typical(asked.gold)}
        for name, plan in plans.items():
            head = {"pair": asked.pair.id, "source": asked.pair.source, "system": name, "demanded": asked.demanded}
            rows.append({**head, "plan": plan, **scored(plan, asked.gold)})
    return rows


def _typical(gold: Sequence[Tasks]) -> Tasks:
    return max(gold, key=lambda one: scored(one, gold)["set"])


def _planned(asked: Asked, context: GenerationContext) -> Tasks:
    """The rank-1 workflow of the intake that demands both groups; nothing where there is none."""
    try:
        made = rank_workflows(read_requests(intake_of(asked), context)[0], context)
    except Refused as error:
        print(f"{asked.pair.id}: {error}", file=sys.stderr)
        return ()
    raw, titles = context.index.raw_keys, made.drafted.graph.tasks
    return tuple(raw[task][0] if task in raw else titles[task].title for task in made.ranked[0][1].tasks)


def intake_of(asked: Asked) -> Intake:
    """The intake: a text that names both results, and the constraint that the workflow has both."""
    text = request_of(asked)
    element = Element("e", "input", "text", "r.txt", "text/plain", text, len(text), digest(text), None)
    return Intake(
        make_id("k", "combinations", asked.pair.id),
        asked.pair.id,
        None,
        [element],
        industry=asked.pair.industry,
        constraints=Constraints(must_contain=asked.demanded),
    )


def request_of(asked: Asked) -> str:
    """The request as a client would write it."""
    one, other = (task.replace("_", " ") for task in asked.demanded)
    return f"We ask for two results in one case: {one}, and {other}."


# --- controls


def nearest(asked: Asked, cases: Sequence[Case], context: GenerationContext) -> Tasks:
    """The case nearest to the request, of those with most of the demanded tasks; without texts the most frequent."""
    most = max(len(set(asked.demanded) & set(case.steps)) for case in cases)
    return _nearest(asked, [c for c in cases if len(set(asked.demanded) & set(c.steps)) == most], context)


def union(asked: Asked, cases: Sequence[Case], context: GenerationContext) -> Tasks:
    """The nearest case of each group, joined; tasks in the order of their mean relative position in history."""
    tasks = {t for d in asked.demanded for t in _nearest(asked, [c for c in cases if d in c.steps], context)}
    places: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        for place, task in enumerate(case.tasks):
            places[task].append((place + 0.5) / len(case.tasks))
    return tuple(sorted(tasks, key=lambda task: (fmean(places[task]), task)))


def _nearest(asked: Asked, cases: Sequence[Case], context: GenerationContext) -> Tasks:
    """The case whose text is nearest; among equally near ones the most frequent sequence, then the first by name."""
    request = unit(context.encoder.encode([request_of(asked)])[0])
    texts = sorted({case.text for case in cases})
    near = dict(zip(texts, (context.encoder.encode(texts) @ request).round(6).tolist(), strict=True))
    best = max(near.values())
    counts: dict[Tasks, int] = defaultdict(int)
    for case in cases:
        if near[case.text] == best:
            counts[case.tasks] += 1
    return min(counts.items(), key=lambda item: (-item[1], item[0]))[0]


# --- scores


def scored(plan: Tasks, gold: Sequence[Tasks]) -> dict[str, float]:
    """The mean scores of a plan over the cases of the gold; a plan without tasks has 0."""
    each = [_scores(plan, case) for case in gold]
    return {name: fmean(one[name] for one in each) for name in SCORES}


def _scores(plan: Tasks, case: Tasks) -> dict[str, float]:
    own, gold = set(combinations(plan, 2)), set(combinations(case, 2))
    common = {(a, b) for a, b in gold if a in plan and b in plan}
    return {
        "set": _f1(set(plan), set(case)),
        "order": _f1(own, gold) if own or gold else _f1(set(plan), set(case)),
        "kept": len(common & own) / len(common) if common else 0.0,
    }


def _f1(own: set[Any], gold: set[Any]) -> float:
    return 2 * len(own & gold) / (len(own) + len(gold))


def table(rows: Sequence[dict[str, Any]], system: str) -> str:
    """Means by system and source, and the system's paired differences with 95 % intervals over pairs."""
    by: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        by[row["system"]][row["pair"]] = row
    whole, lines = by[system], []
    for source in (*sorted({row["source"] for row in rows}), None):
        pairs = [pair for pair, row in whole.items() if source in (None, row["source"])]
        lines.append(f"\n{source or 'all'}, {len(pairs)} pairs: set / order / kept; system minus row, set, order")
        for name, own in by.items():
            means = " / ".join(f"{fmean(own[p][s] for p in pairs):.3f}" for s in SCORES)
            gaps = "  ".join(_gap(whole, own, pairs, s) for s in SCORES[:2]) if name != system else ""
            lines.append(f"  {name:24} {means}  {gaps}")
    return "\n".join(lines)


def _gap(whole: dict[str, Any], other: dict[str, Any], pairs: Sequence[str], score: str) -> str:
    values = [whole[p][score] - other[p][score] for p in pairs]
    low, high = interval(values, pairs)
    return f"{fmean(values):+.3f} [{low:+.3f}, {high:+.3f}]"


if __name__ == "__main__":
    sys.exit(main())

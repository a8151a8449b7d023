#!/usr/bin/env python3
"""Conformance checking beside pm4py: the same cases, the same model, the same net.

    .venv/bin/python benchmarks/conformance.py EVENT_LOGS --peer PYTHON [--logs helpdesk.xes.gz ...] [--noise 0.2]
        [--variants 300] [--results FILE]

For each log, pm4py discovers a model with the Inductive Miner (noise threshold) on the most frequent variants and
writes it as BPMN. Ours reads that file, as pm4py does; a second row of pm4py has the net that it makes of the miner's
tree. Each row has the mean fitness by alignments, the share of cases that conform, the fitness by token replay,
precision, generalisation, and CPU seconds of the alignments. The last two have our process map and the most frequent
variant as models, by our measures. pm4py's search for the steps that a marking allows keeps one marking for each
transition, so that it loses steps behind parallel branches, and which ones changes with its random names;
`precision_mended` is its precision with that one function replaced.
PYTHON is an interpreter that has pm4py, which is AGPL and no part of this project.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

LOGS = (
    "helpdesk.xes.gz",
    "receipt_wabo.xes.gz",
    "bpic2020_DomesticDeclarations.xes.gz",
    "eventdataR_hospital_billing.csv.gz",
)
PEER = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
import pandas as pd, pm4py
from pm4py.algo.evaluation.precision.variants import align_etconformance as etc
from pm4py.objects.petri_net import semantics
from pm4py.objects.petri_net.utils import align_utils
asked = json.load(sys.stdin)
rows = [(f"{i}-{j}", label, pd.Timestamp("2024-01-01") + pd.Timedelta(minutes=k))
        for i, (trace, n) in enumerate(asked["variants"]) for j in range(n) for k, label in enumerate(trace)]


def eventually(net, marking):
    seen, todo, found = {frozenset(marking.items())}, [marking], set()
    for now in todo:
        for t in semantics.enabled_transitions(net, now):
            if t.label is not None:
                found.add(t)
            elif (key := frozenset((after := semantics.execute(t, net, now)).items())) not in seen:
                seen.add(key)
                todo.append(after)
    return found


log = pd.DataFrame(rows, columns=["case:concept:name", "concept:name", "time:timestamp"])
tree = pm4py.discover_process_tree_inductive(log, noise_threshold=asked["noise"])
pm4py.write_bpmn(pm4py.convert_to_bpmn(tree), asked["bpmn"], auto_layout=False)
told = {}
for name, model in (("bpmn", pm4py.read_bpmn(asked["bpmn"])), ("tree", tree)):
    net = pm4py.convert_to_petri_net(model)
    start = time.process_time()
    aligned = pm4py.fitness_alignments(log, *net)
    told[name] = {
        "seconds": time.process_time() - start,
        "fitness": aligned["average_trace_fitness"],
        "conforming": aligned["percentage_of_fitting_traces"] / 100,
        "replay_fitness": pm4py.fitness_token_based_replay(log, *net)["log_fitness"],
        "precision": pm4py.precision_alignments(log, *net),
        "generalisation": pm4py.generalization_tbr(log, *net),
    }
    own = align_utils.get_visible_transitions_eventually_enabled_by_marking
    for module in (align_utils, etc):
        module.get_visible_transitions_eventually_enabled_by_marking = eventually
    told[name]["precision_mended"] = pm4py.precision_alignments(log, *net)
    for module in (align_utils, etc):
        module.get_visible_transitions_eventually_enabled_by_marking = own
print(json.dumps(told, default=float))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("event_logs", type=Path)
    parser.add_argument("--peer", type=Path, required=True)
    parser.add_argument("--logs", nargs="+", default=LOGS)
    parser.add_argument("--noise", type=float, default=0.2)
    parser.add_argument("--variants", type=int, default=300)
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    results = {}
    for name in arguments.logs:
        cases = Counter(dict(_variants(arguments.event_logs / name).most_common(arguments.variants)))
        results[name] = compared(cases, arguments.peer, arguments.noise)
        print(name, json.dumps(results[name]), flush=True)
    if arguments.results:
        arguments.results.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def compared(cases: Counter[tuple[str, ...]], peer: Path, noise: float) -> dict[str, Any]:
    """Returns the measures of both on the miner's model, and those of two simpler models by ours."""
    from opus_pipelines.workflow.conformance.net import net_of_bpmn

    variants = [(list(trace), number) for trace, number in cases.items()]
    with tempfile.TemporaryDirectory() as folder:
        bpmn = Path(folder) / "model.bpmn"
        theirs = _asked(peer, {"variants": variants, "noise": noise, "bpmn": str(bpmn)})
        net = net_of_bpmn(bpmn.read_bytes(), "model")
    return {
        "cases": cases.total(),
        "variants": len(cases),
        "ours": _measured(net, cases),
        "pm4py_same_bpmn": theirs["bpmn"],
        "pm4py_own_net": theirs["tree"],
        "process_map": _measured(_map_net(cases), cases),
        "most_frequent_variant": _measured(_chain(max(cases, key=lambda t: cases[t])), cases),
    }


def _asked(peer: Path, question: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run([peer, "-c", PEER], input=json.dumps(question), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _measured(net: Any, cases: Counter[tuple[str, ...]]) -> dict[str, Any]:
    from opus_pipelines.workflow.conformance.alignment import align, measures, shortest_run

    start = time.process_time()
    shortest = shortest_run(net)
    alignments = {trace: align(net, trace, shortest) for trace in cases}
    seconds = time.process_time() - start
    found = measures(net, cases, alignments)
    return {
        "fitness": found.fitness,
        "conforming": found.conforming / found.cases,
        "replay_fitness": found.replay_fitness,
        "precision": found.precision,
        "generalisation": found.generalisation,
        "not_aligned": found.not_aligned,
        "seconds": round(seconds, 2),
    }


def _map_net(cases: Counter[tuple[str, ...]]) -> Any:
    """Returns the process map as a net: a place behind each activity, a transition for each arc by its target."""
    from opus_pipelines.workflow.conformance.net import SINK, SOURCE, Net

    net = Net()
    behind = {label: net.place() for trace in cases for label in trace}
    for before, after in sorted({pair for trace in cases for pair in zip(("", *trace), (*trace, ""), strict=True)}):
        net.add(after or None, (behind.get(before, SOURCE),), (behind.get(after, SINK),))
    return net


def _chain(trace: tuple[str, ...]) -> Any:
    from opus_pipelines.workflow.conformance.net import SINK, SOURCE, Net

    net = Net()
    at = SOURCE
    for label in trace[:-1]:
        after = net.place()
        net.add(label, (at,), (after,))
        at = after
    net.add(trace[-1], (at,), (SINK,))
    return net


def _variants(file: Path) -> Counter[tuple[str, ...]]:
    if ".csv" in file.name:
        import csv

        rows: dict[str, list[tuple[str, str]]] = {}
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                rows.setdefault(row["case_id"], []).append((row["timestamp"], row["activity"]))
        return Counter(tuple(label for _, label in sorted(steps, key=lambda s: s[0])) for steps in rows.values())
    traces: Counter[tuple[str, ...]] = Counter()
    with gzip.open(file) as content:
        for _, element in ElementTree.iterparse(content):
            if element.tag.endswith("trace"):
                events = [{x.get("key"): x.get("value") for x in e} for e in element if e.tag.endswith("event")]
                done = [e for e in events if (e.get("lifecycle:transition") or "complete").casefold() == "complete"]
                traces[tuple(e["concept:name"] or "" for e in done)] += 1
                element.clear()
    return traces


if __name__ == "__main__":
    main()

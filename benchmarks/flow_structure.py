#!/usr/bin/env python3
"""Compare the readers of structure of new flows: the rules, a trained tagger, and a blend of both.

    .venv/bin/python -m benchmarks.flow_structure FOLDER [--without-tune] [--show]

FOLDER is the shared part of Flow-Bench. Its tests that ask for a new flow are asked in five folds; the new flows of the
parts `held`, `other` and `third` of `flow_utterances.jsonl` are asked with what all tests teach. The part `tune`
always teaches the tagger, unless --without-tune. Edits are left out: rules of their own read their wishes.
Columns: flows that match in the semantic reading with the 95 % bootstrap interval, flows whose structure is right, and
the F1 of the tags of the structure (step, user task, if, elif, else, for and while, each with its depth), matched in
order by their longest common parts. --show lists tests of Flow-Bench whose structure differs between readers.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from benchmarks.flow_encoders import parts
from benchmarks.flow_utterances import FILE, read_utterances
from opus_pipelines.flows.batches.scoring import alike_by
from opus_pipelines.flows.from_text.activity_features import FeatureTable
from opus_pipelines.flows.from_text.flow_folder import FlowTask, read_folder
from opus_pipelines.flows.from_text.generator import FlowWriter, learn
from opus_pipelines.flows.from_text.predictions import predict
from opus_pipelines.flows.from_text.scores import score
from opus_pipelines.flows.learning.structure_examples import structure_of
from opus_pipelines.flows.learning.structure_readers import (
    BLEND,
    RULES,
    TAGGER,
    blended,
    learnt_margin,
    reader_of,
    trained,
)
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.workflow.metrics.intervals import interval

Row = tuple[FlowTask, float, bool, float, float]  # task, flow right, structure right, F1 of its tags, CPU seconds


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--without-tune", action="store_true", help="the tagger learns from the tests alone")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args(given)
    found, encoder = read_folder(arguments.folder), Encoder()
    table, alike = FeatureTable(found.catalogue, encoder), alike_by(encoder)
    own = () if arguments.without_tune else read_utterances(FILE, "tune")
    rows: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    writers: dict[str, dict[str, FlowWriter]] = {}
    for part, asked, teaching in parts(found):
        key = " ".join(task.uid for task in teaching)
        if key not in writers:
            writers[key] = readers(learn(found.catalogue, teaching, encoder, table), [*teaching, *own])
        for task in asked:
            for name, writer in writers[key].items() if not task.is_update and task.expected else ():
                began = time.process_time()
                flow = predict(writer, task).flow
                seconds = time.process_time() - began
                expected = structure_of(task.expected) if task.expected else []
                made = structure_of(flow) if flow else []
                right = float(score(task, flow, found.catalogue, alike).exact_semantic)
                rows[part][name].append((task, right, made == expected, f1(expected, made), seconds))
    report(rows, arguments.show)
    return 0


def readers(writer: FlowWriter, teaching: Sequence[FlowTask]) -> dict[str, FlowWriter]:
    known = [task for task in teaching if task.expected is not None and not task.is_update]
    began = time.process_time()
    tagger = trained(writer, known)
    trained_in = time.process_time() - began
    margin = learnt_margin(writer, known)
    spent = time.process_time() - began - trained_in
    print(f"tagger {trained_in:.1f} CPU s; margin of the blend {margin:.2f}, {spent:.1f} CPU s", file=sys.stderr)
    return {
        RULES: writer,
        TAGGER: writer.with_reader(reader_of(writer, tagger)),
        BLEND: writer.with_reader(blended(writer, tagger, margin)),
    }


def f1(expected: Sequence[str], made: Sequence[str]) -> float:
    """F1 of two sequences of tags, matched in order."""
    blocks = SequenceMatcher(None, expected, made, autojunk=False).get_matching_blocks()
    return 2 * sum(block.size for block in blocks) / max(1, len(expected) + len(made))


def report(rows: dict[str, dict[str, list[Row]]], show: bool) -> None:
    for part, systems in rows.items():
        print(f"\n{part}: {len(systems[RULES])} new flows")
        print(f"{'reader':<10}{'flows right':<34}{'with a condition':<18}{'structure right':<17}{'tag F1':<26}CPU ms")
        for name, found in systems.items():
            uids = [task.uid for task, *_ in found]
            shown = []
            for column in (1, 3):
                values = [float(row[column]) for row in found]  # type: ignore[arg-type]
                low, high = interval(values, uids)
                shown.append(f"{np.mean(values):.3f} [{low:.3f}, {high:.3f}]")
            conditional = [row[1] for row in found if "conditional" in row[0].tags]
            right = f"{sum(row[1] for row in found):.0f} of {len(found)} = {shown[0]}"
            guarded = f"{sum(conditional):.0f} of {len(conditional)}"
            milliseconds = 1000 * np.mean([row[4] for row in found])
            structure = sum(row[2] for row in found)
            print(f"{name:<10}{right:<34}{guarded:<18}{structure:<17}{shown[1]:<26}{milliseconds:.0f}")
        for name in (TAGGER, BLEND):
            less = [a[3] - b[3] for a, b in zip(systems[name], systems[RULES], strict=True)]
            low, high = interval(less, [row[0].uid for row in systems[name]])
            print(f"  tag F1, {name} - {RULES}: {np.mean(less):+.3f} [{low:+.3f}, {high:+.3f}]")
        if show and part.startswith("42"):
            for one, other in zip(systems[RULES], systems[TAGGER], strict=True):
                if one[2] != other[2]:
                    print(f"  {one[0].uid} right by {'rules' if one[2] else 'tagger'}: {one[0].utterance}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

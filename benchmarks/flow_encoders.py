#!/usr/bin/env python3
"""Compare retrievers of activities: edit distance, plain encoder, fine-tuned encoder, ranker, and ranker over it.

    .venv/bin/python -m benchmarks.flow_encoders FOLDER [--keep FOLDER] [--layers N] [--epochs N] [--made N]

FOLDER is the shared part of Flow-Bench. Its tests are asked in five folds; the parts `held`, `other` and `third` of
`flow_utterances.jsonl` are asked with what all tests teach. The part `tune` and clauses made from the catalogue
always teach the encoder. A query is a clause aligned with an activity of the known flow, with the application that
is carried over. The table has recall at 1, 10 and 50 of 546 activities with 95 % bootstrap intervals over
utterances, the paired differences at 1, the flows that match in the semantic reading, and milliseconds of CPU a
query. --keep keeps the fine-tuned weights there, so that a second run need not train.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from benchmarks.flow_utterances import FILE, read_utterances
from opus_pipelines.core.ids import digest
from opus_pipelines.flows.batches.scoring import alike_by, folds_of
from opus_pipelines.flows.from_text.activity_features import FeatureTable, noun_phrase
from opus_pipelines.flows.from_text.activity_ranker import ActivityRanker
from opus_pipelines.flows.from_text.activity_retrieval import by_edit_distance
from opus_pipelines.flows.from_text.alignment import learning_examples
from opus_pipelines.flows.from_text.flow_folder import FlowFolder, FlowTask, read_folder
from opus_pipelines.flows.from_text.generator import FlowWriter, learn
from opus_pipelines.flows.from_text.predictions import predict
from opus_pipelines.flows.from_text.scores import score
from opus_pipelines.flows.from_text.synthesis import Example
from opus_pipelines.flows.learning.activity_encoder import (
    EncoderTraining,
    changed_encoder,
    fitted,
    plain_encoder,
    ranks,
)
from opus_pipelines.flows.learning.activity_pairs import texts_of
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.fine_tuning.text_pairs import PairTraining
from opus_pipelines.workflow.metrics.intervals import interval

COUNTS = (1, 10, 50)
EDIT, PLAIN, TUNED = "edit distance", "plain encoder", "fine-tuned encoder"
RANKER, BOTH, CARRIED = "ranker (plain encoder)", "ranker over fine-tuned", "same, weights of plain"
PAIRED = ((TUNED, PLAIN), (BOTH, RANKER), (CARRIED, RANKER), (RANKER, TUNED))
Rows = dict[str, list[tuple[str, int]]]


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path, help="folder for the fine-tuned weights")
    parser.add_argument("--layers", type=int, default=PairTraining.layers)
    parser.add_argument("--epochs", type=int, default=PairTraining.epochs)
    parser.add_argument("--made", type=int, default=800, help="clauses made from the catalogue")
    arguments = parser.parse_args(given)
    found, plain = read_folder(arguments.folder), FeatureTable(read_folder(arguments.folder).catalogue, Encoder())
    how = EncoderTraining(PairTraining(layers=arguments.layers, epochs=arguments.epochs), arguments.made)
    own = read_utterances(FILE, "tune")
    tables: dict[str, FeatureTable] = {}
    for part, groups in groupby(parts(found), key=lambda one: one[0]):
        rows: Rows = defaultdict(list)
        exact: dict[str, list[float]] = defaultdict(list)
        spent: dict[str, list[float]] = defaultdict(list)
        for _, asked, teaching in groups:
            key = digest([t.uid for t in teaching], [arguments.layers, arguments.epochs, arguments.made])[:12]
            if key not in tables:
                tables[key] = tuned_table(plain, [*teaching, *own], how, arguments.keep and arguments.keep / key)
            writers = {
                RANKER: learn(found.catalogue, teaching, plain.encoder, plain),
                BOTH: learn(found.catalogue, teaching, tables[key].encoder, tables[key]),
            }
            ask(asked, writers, rows, spent)
            for name, writer in writers.items():
                exact[name] += [right(task, writer, found, plain) for task in asked]
        report(part, rows, exact, spent)
    return 0


def tuned_table(
    plain: FeatureTable, tasks: Sequence[FlowTask], how: EncoderTraining, file: Path | None
) -> FeatureTable:
    """The table of the fine-tuned encoder, whose weights are read from the file where it is there, else written."""
    kept = file.with_suffix(".safetensors") if file else None
    if kept is not None and kept.is_file():
        weights = load_file(kept)
    else:
        began = time.process_time()
        weights = fitted(plain, tasks, how, lambda epoch, loss: print(f"epoch {epoch}: {loss:.3f}", file=sys.stderr))
        print(f"trained in {time.process_time() - began:.0f} CPU s", file=sys.stderr)
        if kept is not None:
            kept.parent.mkdir(exist_ok=True)
            save_file(weights, kept)
    return FeatureTable(plain.catalogue, changed_encoder(plain_encoder(plain).settings, weights))


def parts(found: FlowFolder) -> Iterator[tuple[str, list[FlowTask], list[FlowTask]]]:
    for part in ("held", "other", "third-tune", "third-held"):
        yield f"own utterances, {part}", read_utterances(FILE, part), list(found.tasks)
    for asked, teaching in folds_of(found.tasks):
        yield "42 tests, five folds", [task for task in asked if task.expected is not None], teaching


def ask(asked: Sequence[FlowTask], writers: dict[str, FlowWriter], rows: Rows, spent: dict[str, list[float]]) -> None:
    """Add the rank of the right activity of every clause by every system, 0 for the first place."""
    plain, tuned = writers[RANKER].ranker, writers[BOTH].ranker
    catalogue = plain.table.catalogue
    carried = ActivityRanker(tuned.table, plain.weights)
    for task in asked:
        for example in learning_examples([task], plain):
            if example.activity not in catalogue.by_id:
                continue
            for name in (EDIT, PLAIN, TUNED):
                began = time.process_time()
                if name == EDIT:
                    rank = by_edit_distance(catalogue, example.query.clause.text).index(example.activity)
                else:
                    rank = ranks(plain.table if name == PLAIN else tuned.table, [example])[0]
                rows[name].append((task.uid, rank))
                spent[name].append(time.process_time() - began)
            for name, ranker in ((RANKER, plain), (BOTH, tuned), (CARRIED, carried)):
                ranker.table.encode([example.query])
                began = time.process_time()
                ranker.table.encoder.encode(encoded(example, ranker.table))
                rows[name].append((task.uid, rank_of(ranker, example)))
                spent[name].append(time.process_time() - began)


def encoded(example: Example, table: FeatureTable) -> list[str]:
    """The texts that the ranker encodes for a query; the table knows them, and they are encoded again for the time."""
    clause = example.query.clause
    return [clause.text, texts_of(example, table)[-1], " ".join(noun_phrase(clause).words) or clause.text]


def rank_of(ranker: ActivityRanker, example: Example) -> int:
    names = [r.activity for r in ranker.ranked(example.query, len(ranker.table.catalogue.activities))]
    return names.index(example.activity)


def right(task: FlowTask, writer: FlowWriter, found: FlowFolder, plain: FeatureTable) -> float:
    return float(score(task, predict(writer, task).flow, found.catalogue, alike_by(plain.encoder)).exact_semantic)


def report(part: str, rows: Rows, exact: dict[str, list[float]], spent: dict[str, list[float]]) -> None:
    print(f"\n{part}: {len(rows[PLAIN])} clauses of {len({uid for uid, _ in rows[PLAIN]})} utterances")
    print(f"{'system':<26}" + "".join(f"{f'recall@{k}':<24}" for k in COUNTS) + "flows right  CPU ms")
    for name, found in rows.items():
        line = f"{name:<26}"
        for k in COUNTS:
            hits = [float(rank < k) for _, rank in found]
            low, high = interval(hits, [uid for uid, _ in found])
            line += f"{f'{np.mean(hits):.3f} [{low:.3f}, {high:.3f}]':<24}"
        flows = exact.get(name)
        line += f"{f'{sum(flows):.0f} of {len(flows)}' if flows else '':<13}{1000 * np.mean(spent[name]):.1f}"
        print(line)
    for one, other in PAIRED:
        less = [float(a[1] < 1) - float(b[1] < 1) for a, b in zip(rows[one], rows[other], strict=True)]
        low, high = interval(less, [uid for uid, _ in rows[one]])
        print(f"  {one} - {other}: {np.mean(less):+.3f} [{low:+.3f}, {high:+.3f}] at 1")
    flows = [a - b for a, b in zip(exact[BOTH], exact[RANKER], strict=True)]
    low, high = interval(flows, range(len(flows)))
    print(f"  flows right, {BOTH} - {RANKER}: {np.mean(flows):+.3f} [{low:+.3f}, {high:+.3f}]", flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Score the generator on the utterances of `flow_utterances.jsonl`, which were written for this project.

    .venv/bin/python -m benchmarks.flow_utterances FOLDER [--part PART] [--show] [--no-learning]

The utterances and flows were written for this benchmark in the manner of Flow-Bench, over its catalogue. FOLDER is the
shared part of Flow-Bench: its catalogue is used, and its tests are learnt from. The first 143 (own-1 to own-143) were
written before their author read the rules of the generator, and a hash of the utterance put 80 of them into the part
`held`, which was only ever looked at as a figure. The others, and own-144 to own-244, are `tune`: their errors were
read while the rules were mended, and `--show` lists errors of `tune` alone. A second author wrote the part `other`,
which nobody who mended the rules had seen until the last figure of it was taken; after that its errors were read, too.
A third author wrote 40 more before any rule of the generator was read and before any figure of them was taken: the
part `third`. The author of the rules for talk wrote the part `spoken`, half of it before a rule and all before its
errors were read. The SHA-256 of the utterance halves `third`: the errors of `third-tune` may be read, `third-held` is
only ever counted.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.flow_bench import fault
from opus_pipelines.flows.batches.scoring import alike_by
from opus_pipelines.flows.from_text.flow_folder import FlowTask, read_folder
from opus_pipelines.flows.from_text.generator import learn
from opus_pipelines.flows.from_text.predictions import predict
from opus_pipelines.flows.scores import TaskScore, task_score
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.metrics.plan_scores import interval

FILE = Path(__file__).with_suffix(".jsonl")
PARTS = ("tune", "held", "other", "third-tune", "third-held", "spoken")
READ = ("tune", "third-tune", "spoken")


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all")
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--show", action="store_true", help="list the errors of the part that may be read")
    parser.add_argument("--no-learning", action="store_true", help="learn from the catalogue alone")
    arguments = parser.parse_args(given)
    found, encoder = read_folder(arguments.folder), Encoder()
    writer = learn(found.catalogue, () if arguments.no_learning else found.tasks, encoder)
    alike = alike_by(encoder)
    for name in PARTS if arguments.part == "all" else (arguments.part,):
        asked = read_utterances(arguments.file, name)
        began = time.process_time()
        made = [predict(writer, task) for task in asked]
        seconds = (time.process_time() - began) / max(1, len(asked))
        scores = [task_score(task, p.flow, found.catalogue, alike) for task, p in zip(asked, made, strict=True)]
        print_scores(name, asked, scores)
        print(f"{seconds:.3f} CPU s a flow, {sum(p.reason is not None for p in made)} without an answer")
        for task, p, rating in zip(asked, made, scores, strict=True):
            if arguments.show and name in READ and not rating.exact_semantic:
                print(f"\n{task.uid} {task.utterance}\n  {p.reason or fault(task, p.flow)}\n{p.sequence}")
    return 0


def read_utterances(file: Path, part: str) -> list[FlowTask]:
    """The tasks of one of PARTS; a line has uid, part, utterance, tags, flow and, of an edit, prior."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    third = sorted((row["utterance"] for row in rows if row["part"] == "third"), key=_hash)
    read = set(third[: len(third) // 2])
    tasks = []
    for row in rows:
        half = ("-tune" if row["utterance"] in read else "-held") if row["part"] == "third" else ""
        if row["part"] + half == part:
            prior, expected = parse_ir(row["prior"]) if "prior" in row else None, parse_ir(row["flow"])
            tasks.append(FlowTask(row["uid"], row["utterance"], prior, None, expected, row["flow"], tuple(row["tags"])))
    return tasks


def _hash(utterance: str) -> str:
    return hashlib.sha256(utterance.encode()).hexdigest()


def print_scores(name: str, tasks: Sequence[FlowTask], scores: Sequence[TaskScore]) -> None:
    values = [rating.exact_semantic for rating in scores]
    low, high = interval(values, [task.uid for task in tasks])
    f1 = sum(rating.activity_f1 for rating in scores) / len(scores)
    share = sum(values) / len(values)
    right = f"{sum(values):.0f} of {len(values)} semantic = {share:.3f} ({low:.2f} to {high:.2f})"
    print(f"\n{name}: {right}, activity F1 {f1:.3f}")
    for tag in sorted({tag for task in tasks for tag in task.tags}):
        own = [value for task, value in zip(tasks, values, strict=True) if tag in task.tags]
        print(f"  {tag:<28} {sum(own):3.0f} of {len(own)}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

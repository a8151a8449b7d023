#!/usr/bin/env python3
"""Task resolution against the number of raw names: CPU seconds of each step, and the tasks that come out.

    .venv/bin/python benchmarks/resolution_scale.py 50000 200000 1000000 [--into RESULTS.json]

The names are made: half of them stand in one source, and in another source as another system writes them (the plural of
the last word), half stand in one source alone. Every third name has a description of its own; a tenth of the names that
stand twice have other words and the same description. The encoder is replaced by a hash of the letters, because the
time of the encoder is that of the texts it is given, which the benchmark counts instead.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
from measuring import own_peak_mib

from opus_pipelines.wkg.task_matching.duplicate_detection import DuplicateDetector
from opus_pipelines.wkg.task_matching.names import FOLLOWS, SAID, SCOPES, SourceNames, nodes_of
from opus_pipelines.wkg.task_matching.pins import Pins
from opus_pipelines.wkg.task_matching.resolve import identify, merges_of

SOURCES, INDUSTRY, DIMENSION = 20, "services", 64
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]


class LetterEncoder:
    """Hashes three letters at a time into a vector; counts the texts."""

    name, max_tokens, dimension, texts = "letters", 128, DIMENSION, 0

    def encode(self, texts: Sequence[str], progress: object = None) -> np.ndarray:
        """Unit vectors, float32, a row for each text."""
        self.texts += len(texts)
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for place in range(max(1, len(text) - 2)):
                row[crc32(text[place : place + 3].encode()) % DIMENSION] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def main() -> int:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", type=int, nargs="+", help="raw names")
    parser.add_argument("--into", type=Path, help="JSON file of the results")
    arguments = parser.parse_args()
    results = []
    for names in arguments.names:
        results.append(measured(names))
        print(json.dumps(results[-1]), flush=True)
        if arguments.into:
            arguments.into.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    return 0


def measured(count: int) -> dict[str, float]:
    """One size: made names, resolved."""
    counts, evidence = made(count)
    seconds: dict[str, float] = {}
    encoder, pins = LetterEncoder(), Pins()
    with cpu(seconds, "nodes"):
        nodes = nodes_of([SourceNames(s, True, c) for s, c in counts.items()], "embedding", pins, False)
    with cpu(seconds, "detector"):
        detector = DuplicateDetector(nodes, evidence, lambda: encoder, 0.85)
        candidates = len(detector.candidates)
    with cpu(seconds, "merges"):
        merges = merges_of(nodes, pins, False, detector)
    with cpu(seconds, "identify"):
        found = identify(nodes, merges, {})
    peak = own_peak_mib()
    return {
        "names": count,
        "tasks": len(found.titles),
        "candidates": candidates,
        "texts_encoded": encoder.texts,
        **{f"{step}_cpu_s": round(spent, 2) for step, spent in seconds.items()},
        "peak_mib": peak,
    }


@contextmanager
def cpu(seconds: dict[str, float], step: str) -> Iterator[None]:
    """Adds the CPU seconds of a step."""
    began = time.process_time()
    yield
    seconds[step] = time.process_time() - began


def made(
    count: int,
) -> tuple[dict[str, dict[tuple[str | None, str, str], int]], dict[str, dict[str, pa.Table]]]:
    """Returns the counted names of each source, and its evidence."""
    draw = random.Random(count)
    words = [draw.choice(SYLLABLES) + draw.choice(SYLLABLES) + draw.choice(SYLLABLES) for _ in range(20_000)]
    sources: dict[str, dict[str, str | None]] = {f"source-{i:02d}": {} for i in range(SOURCES)}
    names = list(sources)
    left = count
    while left > 0:
        base = [draw.choice(words) for _ in range(3)]
        said = f"{' '.join(draw.choice(words) for _ in range(8))} for the file" if draw.random() < 1 / 3 else None
        one, other = draw.sample(names, 2)
        sources[one][" ".join(base)] = said
        left -= 1
        if draw.random() < 1 / 3 and left > 0:
            if said and draw.random() < 0.3:
                base = [draw.choice(words) for _ in range(3)]
            sources[other][" ".join([*base[:2], base[2] + "s"])] = said
            left -= 1
    counts, evidence = {}, {}
    for source, keys in sources.items():
        counts[source] = {(INDUSTRY, key, key): 1 + crc32(key.encode()) % 50 for key in keys}
        listed = list(keys)
        told = {key: said for key, said in keys.items() if said}
        steps = Counter(zip([None, *listed], [*listed, None], strict=True))
        evidence[source] = {
            "said": pa.table(
                [
                    [INDUSTRY] * len(told),
                    list(told),
                    ["description"] * len(told),
                    list(told.values()),
                    [9] * len(told),
                ],
                schema=SAID,
            ),
            "follows": pa.table(
                [[INDUSTRY] * len(steps), [b for b, _ in steps], [a for _, a in steps], list(steps.values())],
                schema=FOLLOWS,
            ),
            "scopes": pa.table([[INDUSTRY] * len(keys), listed, [""] * len(keys)], schema=SCOPES),
        }
    return counts, evidence


if __name__ == "__main__":
    sys.exit(main())

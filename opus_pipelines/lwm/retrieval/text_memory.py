"""The cases of an industry as texts, where its history has no fixed catalogue: most steps are texts of one case."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.retrieval.similar_cases import latest
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.step_writing.memory import TextCase, TextMemory

_MOST_TEXT_CASES = 2_000  # the latest ones
OPEN = 0.5  # share of the names of steps that one case alone has, from which an industry has no fixed catalogue
_LEAST_NAME_WORDS = 2.5  # mean number of words of these names; shorter ones are codes
MOST_VECTORS = 60_000  # vectors that are remembered; beyond them all are forgotten


class RememberedVectors:
    """Encodes texts; the vector of a text that was asked for before is remembered."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the unit vectors [n, d] of n texts."""
        if not texts:
            return np.zeros((0, self.encoder.dimension), np.float32)
        if len(self._known) > MOST_VECTORS:
            self._known.clear()
        unknown = sorted({text for text in texts if text not in self._known})
        if unknown:
            self._known.update(zip(unknown, self.encoder.encode(unknown), strict=True))
        return np.stack([self._known[text] for text in texts])


def text_cases(index: SnapshotIndex, industry: str) -> list[TextCase]:
    """Return the cases of an industry with a request, as texts; none where its history has a fixed catalogue.

    Cases that failed teach nothing.
    """
    table, requests = index.cases.table, index.snapshot.requests
    ids = table["implementation_id"].to_pylist()
    failed = pc.equal(table["success"], False).fill_null(False).to_numpy()
    rows = [row for row in index.cases.rows_of(industry).tolist() if ids[row] in requests and not failed[row]]
    rows = latest(table, np.array(rows, np.int64), _MOST_TEXT_CASES).tolist()
    taken = table.select(["task_keys", "task_predecessors"]).take(pa.array(rows, pa.int64()))
    names = [list(dict.fromkeys(keys or ())) for keys in taken["task_keys"].to_pylist()]
    if not is_open(names):
        return []
    contexts = index.snapshot.contexts
    return [
        TextCase(requests[ids[row]], contexts.get(ids[row], ""), tuple(steps), _is_chain(predecessors))
        for row, steps, predecessors in zip(rows, names, taken["task_predecessors"].to_pylist(), strict=True)
        if steps
    ]


def is_open(cases: Sequence[Sequence[str]]) -> bool:
    """Return whether the steps of these cases, each a list of distinct names, come from no fixed catalogue."""
    times = Counter(name for names in cases for name in names)
    if len(cases) < 2 or not times:
        return False
    words = sum(len(name.split()) for name in times) / len(times)
    return words >= _LEAST_NAME_WORDS and sum(n == 1 for n in times.values()) >= OPEN * len(times)


def text_memory(index: SnapshotIndex, industry: str, rates: Mapping[str, Sequence[float]]) -> TextMemory | None:
    """Return the text memory of an industry, made once for each index; None where it has a fixed catalogue.

    `rates`: those of `TextMemory` as training computed them.
    """
    if industry not in index.text_memories:
        cases = text_cases(index, industry)
        index.text_memories[industry] = TextMemory(cases, rates) if cases else None
    return index.text_memories[industry]


def _is_chain(predecessors: Sequence[Sequence[int] | None] | None) -> bool:
    return all(places is None or list(places) == ([n - 1] if n else []) for n, places in enumerate(predecessors or ()))

"""Vectors of a snapshot: its tasks', with their FAISS index, and its cases'."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.embedding.compose import case_vector, mean_vector, passages, words_of
from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.embedding.index import VectorIndex
from opus_pipelines.ids import digest
from opus_pipelines.lake import read_table, write_table
from opus_pipelines.schemas import EMBEDDINGS, IMPLEMENTATION_VECTORS, TASKS
from opus_pipelines.wkg.tables import place

if TYPE_CHECKING:
    import numpy as np

Progress = Callable[[int, int], None]
CHUNK = 2_048  # passages encoded between two writes of the cache: what a killed run loses at most
RECALL_QUERIES = 200


def write_task_vectors(folder: Path, encoder: TextEncoder, progress: Progress | None = None) -> dict[str, float]:
    """Write `embeddings` and `index` of the tasks in `folder`; returns rows and recall@10 against exact search."""
    tasks = read_table(TASKS, place(folder, TASKS), columns=["task_id", "title", "description", "industries", "instructions"]).to_pylist()
    texts = [task_text(**{k: v for k, v in task.items() if k != "task_id"}) for task in tasks]
    vectors = _encoded(texts, encoder, progress)
    rows = {
        "task_id": [task["task_id"] for task in tasks],
        "content_hash": [digest(text) for text in texts],
        "model": pa.array([encoder.name] * len(tasks), pa.string()),
        "vector": _column(vectors),
    }
    write_table(EMBEDDINGS, pa.table(rows), place(folder, EMBEDDINGS))
    index = VectorIndex.build(rows["task_id"], vectors)
    index.save(folder / "index")
    return {EMBEDDINGS.name: len(tasks), "recall_at_10": recall(index, vectors)}


def write_case_vectors(sources: Iterable[Path], folder: Path, encoder: TextEncoder, progress: Progress | None = None) -> dict[str, int]:
    """Write `implementation_vectors` of the implementations in `sources`; a case without any text has no row."""
    requests: dict[str, int] = {}
    contexts: dict[str, int] = {}
    cases: list[tuple[str, int | None, int | None]] = []
    for case, title, description, context in _texts(sources):
        request = "\n\n".join(part for part in (title, description) if part and part.strip())
        asked = requests.setdefault(request, len(requests)) if request else None
        under = contexts.setdefault(context, len(contexts)) if context and context.strip() else None
        cases.append((case, asked, under))
    asked_vectors, under_vectors = _whole([*requests], [*contexts], encoder, progress)
    pairs = {(a, u) for _, a, u in cases}
    vector_of = {(a, u): case_vector(None if a is None else asked_vectors[a], None if u is None else under_vectors[u]) for a, u in pairs}
    found = [(case, vector) for case, a, u in cases if (vector := vector_of[a, u]) is not None]
    ids = pa.array([case for case, _ in found], pa.string())
    table = pa.table({"implementation_id": ids, "vector": _stacked([vector for _, vector in found], encoder)})
    write_table(IMPLEMENTATION_VECTORS, table, place(folder, IMPLEMENTATION_VECTORS))
    return {IMPLEMENTATION_VECTORS.name: len(found)}


def task_text(title: str, description: str | None, industries: Sequence[str] | None, instructions: Sequence[str] | None) -> str:
    """The text of a task that is embedded."""
    parts = [title, description, ", ".join(industries or ()), *(instructions or ())]
    return "\n".join(part for part in parts if part and part.strip())


def recall(index: VectorIndex, vectors: "np.ndarray", k: int = 10) -> float:
    """Share of the exact k nearest (by similarity, so that ties count) that the index finds, over at most 200 rows spread evenly."""
    import numpy as np

    queries = vectors[:: max(1, len(vectors) // RECALL_QUERIES)][:RECALL_QUERIES]
    hits = total = 0
    for query, found in zip(queries, index.search(queries, k), strict=True):
        exact = np.sort(vectors @ query)[::-1][:k]
        hits += sum(similarity >= exact[-1] - 1e-6 for _, similarity in found)
        total += len(exact)
    return float(hits / total) if total else 1.0


def _texts(sources: Iterable[Path]) -> Iterable[tuple[str, str | None, str | None, str | None]]:
    columns = ["implementation_id", "title", "description", "process_context"]
    for folder in sources:
        for file in sorted(folder.glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches(batch_size=4_096, columns=columns):
                yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)


def _whole(
    requests: list[str], contexts: list[str], encoder: TextEncoder, progress: Progress | None
) -> "tuple[list[np.ndarray | None], ...]":
    """The vectors of long texts: the mean over their passages, each distinct passage encoded once."""
    words = words_of(encoder.max_tokens)
    cut = [[passages(text, words) for text in texts] for texts in (requests, contexts)]
    distinct = list(dict.fromkeys(passage for texts in cut for text in texts for passage in text))
    vectors = dict(zip(distinct, _encoded(distinct, encoder, progress), strict=True))
    return tuple([mean_vector([vectors[passage] for passage in text]) for text in texts] for texts in cut)


def _encoded(texts: list[str], encoder: TextEncoder, progress: Progress | None) -> "np.ndarray":
    import numpy as np

    parts = []
    for start in range(0, len(texts), CHUNK):
        parts.append(encoder.encode(texts[start : start + CHUNK]))
        if progress:
            progress(min(start + CHUNK, len(texts)), len(texts))
    return np.concatenate(parts) if parts else np.zeros((0, encoder.dimension), np.float32)


def _stacked(vectors: "list[np.ndarray]", encoder: TextEncoder) -> pa.Array:
    import numpy as np

    return _column(np.stack(vectors) if vectors else np.zeros((0, encoder.dimension), np.float32))


def _column(vectors: "np.ndarray") -> pa.Array:
    import numpy as np

    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors, np.float32).ravel()), vectors.shape[1])

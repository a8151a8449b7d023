"""Writes the vectors of the tasks with their FAISS index, and those of the cases, with one where they are many."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import EMBEDDINGS, IMPLEMENTATION_VECTORS, TASKS
from opus_pipelines.lake.layout import dataset_folder, read_table, write_table
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.index import EXACT_UP_TO, VectorIndex, distinct
from opus_pipelines.language.embedding.texts import (
    case_texts,
    compose,
    passages,
    request_text,
    stretches,
    unit,
    words_of,
)
from opus_pipelines.wkg.snapshot import CASE_INDEX

if TYPE_CHECKING:
    import numpy as np

Progress = Callable[[int, int], None]
CHUNK = 2_048  # passages encoded between two writes of the cache: what a killed run loses at most
RECALL_QUERIES = 200


def write_task_vectors(folder: Path, encoder: TextEncoder, progress: Progress | None = None) -> dict[str, float]:
    """Writes `embeddings` and `index` of the tasks in `folder`.

    Returns the number of rows, and recall@10 against exact search.
    """
    tasks = read_table(
        TASKS, dataset_folder(folder, TASKS), columns=["task_id", "title", "description", "industries", "instructions"]
    ).to_pylist()
    texts = [task_text(**{k: v for k, v in task.items() if k != "task_id"}) for task in tasks]
    vectors = _encoded(texts, encoder, progress)
    rows = {
        "task_id": [task["task_id"] for task in tasks],
        "content_hash": [digest(text) for text in texts],
        "model": pa.array([encoder.name] * len(tasks), pa.string()),
        "vector": _column(vectors),
    }
    write_table(EMBEDDINGS, pa.table(rows), dataset_folder(folder, EMBEDDINGS))
    index = VectorIndex.build(rows["task_id"], vectors)
    index.save(folder / "index")
    return {EMBEDDINGS.name: len(tasks), "recall_at_10": recall(index, vectors)}


def write_case_vectors(
    sources: Iterable[Path], folder: Path, encoder: TextEncoder, progress: Progress | None = None
) -> dict[str, float]:
    """Writes `implementation_vectors` of the implementations in `sources`, and their index where they are many.

    A case without any text has no row. Returns the number of rows, and recall@10 against exact search.
    """
    cases = [
        (case, request_text(title, description), context or "")
        for case, title, description, context in case_texts(sources)
    ]
    vector_of = _vectors(
        sorted({(request, context) for _, request, context in cases if request or context.strip()}), encoder, progress
    )
    found = [(case, vector_of[request, context]) for case, request, context in cases if (request, context) in vector_of]
    found.sort(key=lambda one: one[0])
    ids = pa.array([case for case, _ in found], pa.string())
    table = pa.table({"implementation_id": ids, "vector": _stacked([v for _, v in found], encoder)})
    write_table(IMPLEMENTATION_VECTORS, table, dataset_folder(folder, IMPLEMENTATION_VECTORS))
    searched = write_case_index(folder, table) if len(found) > EXACT_UP_TO else 1.0
    return {IMPLEMENTATION_VECTORS.name: len(found), "recall_at_10_of_cases": searched}


def write_case_index(folder: Path, cases: pa.Table, exact_up_to: int = EXACT_UP_TO) -> float:
    """Writes the index of the distinct vectors of cases, in order of id, where they are more than `exact_up_to`.

    Returns recall@10 against exact search. An exact index is made when it is read, since its file would repeat the
    table.
    """
    import numpy as np

    column = cases["vector"].combine_chunks()
    vectors = np.asarray(column.flatten(), np.float32).reshape(len(column), column.type.list_size)
    first, _ = distinct(vectors)
    if len(first) <= exact_up_to:
        return 1.0
    index = VectorIndex.build(cases["implementation_id"].take(pa.array(first)).to_pylist(), vectors[first], exact_up_to)
    index.save(folder / CASE_INDEX)
    return recall(index, vectors[first])


def task_text(
    title: str, description: str | None, industries: Sequence[str] | None, instructions: Sequence[str] | None
) -> str:
    """Returns the text of a task that is embedded."""
    parts = [title, description, ", ".join(industries or ()), *(instructions or ())]
    return "\n".join(part for part in parts if part and part.strip())


def recall(index: VectorIndex, vectors: "np.ndarray", k: int = 10) -> float:
    """Returns the share of the exact k nearest vectors that the index finds, over at most 200 evenly spaced rows.

    A vector as near as the k-th nearest counts as found.
    """
    import numpy as np

    queries = vectors[:: max(1, len(vectors) // RECALL_QUERIES)][:RECALL_QUERIES]
    hits = total = 0
    for query, found in zip(queries, index.search(queries, k), strict=True):
        exact = np.sort(vectors @ query)[::-1][:k]
        hits += sum(similarity >= exact[-1] - 1e-6 for _, similarity in found)
        total += len(exact)
    return float(hits / total) if total else 1.0


def _vectors(
    pairs: list[tuple[str, str]], encoder: TextEncoder, progress: Progress | None
) -> "dict[tuple[str, str], np.ndarray]":
    """Returns the vector of every distinct (request, context); each distinct passage is encoded once.

    Without a request, the vector is that of the context.
    """
    import numpy as np

    words = words_of(encoder.max_tokens)
    asked = {request: stretches(request, words) for request, _ in pairs}
    under = {context: passages(context, words) for _, context in pairs}
    distinct = sorted({passage for cut in (asked, under) for found in cut.values() for passage in found})
    vectors = dict(zip(distinct, _encoded(distinct, encoder, progress), strict=True))
    rows = [
        {text: np.array([vectors[p] for p in found]) for text, found in cut.items() if found} for cut in (asked, under)
    ]
    requests, contexts = rows
    return {
        (r, c): compose(requests[r].mean(0), contexts.get(c)) if r in requests else unit(contexts[c].mean(0))
        for r, c in pairs
    }


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

    return pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(vectors, np.float32).ravel()), vectors.shape[1]
    )

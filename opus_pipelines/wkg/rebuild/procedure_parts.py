"""Cuts the procedures of history into parts, and assigns each case to the part that it followed.

Each distinct text is stored once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.schemas import PROCEDURE_VECTORS, PROCEDURES, TASKS
from opus_pipelines.lake.layout import dataset_folder, read_table, table_of, write_table
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.text_parts import Part, object_of, part_similarity, parts, plain

if TYPE_CHECKING:
    import numpy as np

Progress = Callable[[int, int], None]
Vectors = dict[str, "np.ndarray"]
REQUESTS = 24  # of a part: enough to know its like


@dataclass
class _Procedure:
    """One distinct text: its parts, and the cases by (title, description)."""

    parts: list[Part]
    asked: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))


def write_procedures(
    sources: Iterable[Path], folder: Path, encoder: TextEncoder, progress: Progress | None = None
) -> dict[str, int]:
    """Writes `procedures` and `procedure_vectors` of the implementations in `sources`.

    Both are empty when history has no procedure.
    """
    found = _read(sources)
    titles = (
        [row["title"] for row in read_table(TASKS, dataset_folder(folder, TASKS), columns=["title"]).to_pylist()]
        if found
        else []
    )
    vectors = _encoded(_texts(found, titles), encoder, progress)
    rows = [row for text in sorted(found) for row in _rows(text, found[text], vectors)]
    kept = {t for row in rows for t in (plain(row["head"] or ""), *row["sentences"], *row["requests"])}
    kept |= {plain(t) for t in titles} | {object_of(plain(row["head"] or "")) for row in rows}
    write_table(PROCEDURES, table_of(PROCEDURES, rows), dataset_folder(folder, PROCEDURES))
    write_table(
        PROCEDURE_VECTORS,
        _table({t: vectors[t] for t in sorted(kept - {""})}, encoder),
        dataset_folder(folder, PROCEDURE_VECTORS),
    )
    return {PROCEDURES.name: len(rows), PROCEDURE_VECTORS.name: len(kept - {""})}


def _read(sources: Iterable[Path]) -> dict[str, _Procedure]:
    found: dict[str, _Procedure] = {}
    columns = ["implementation_id", "title", "description", "process_context"]
    for folder in sources:
        for file in sorted(folder.glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches(batch_size=4_096, columns=columns):
                for case, title, description, text in zip(*(batch[name].to_pylist() for name in columns), strict=True):
                    if text and text.strip():
                        procedure = found.get(text) or found.setdefault(text, _Procedure(parts(text)))
                        procedure.asked[title or "", description or title or ""].append(case)
    return found


def _texts(found: dict[str, _Procedure], titles: list[str]) -> list[str]:
    """Returns the texts that need a vector."""
    texts = {plain(title) for title in titles}
    for procedure in found.values():
        texts.update(request for _, request in procedure.asked)
        texts.update(object_of(part.name) for part in procedure.parts)
        for part in procedure.parts:
            texts.update((part.name, part.text, *(s.text for s in part.sentences)))
    return sorted(texts - {""})


def _rows(text: str, procedure: _Procedure, vectors: Vectors) -> list[dict[str, Any]]:
    cases: dict[int, list[str]] = defaultdict(list)
    requests: dict[int, set[str]] = defaultdict(set)
    for (title, request), asked in procedure.asked.items():
        number = followed(procedure.parts, title, request, vectors)
        cases[number] += asked
        requests[number] |= {request} - {""}
    return [
        {
            "procedure_id": make_id("o", text),
            "part": number,
            "head": part.head,
            "is_title": part.is_title,
            "sentences": [s.text for s in part.sentences],
            "either": [s.either for s in part.sentences],
            "implementations": sorted(cases[number]),
            "requests": sorted(requests[number])[:REQUESTS],
        }
        for number, part in enumerate(procedure.parts)
    ]


def followed(found: list[Part], title: str, request: str, vectors: Vectors) -> int:
    """Returns the number of the part that a case followed.

    It is the part with the title of the case, else the one most similar to its request; ties go to the first.
    """
    headed = [n for n, part in enumerate(found) if part.name]
    if not headed:
        return 0
    named = [n for n in headed if found[n].name == plain(title)]
    if named or request not in vectors:
        return (named or headed)[0]
    import numpy as np

    heads, texts = (
        np.stack([vectors[t] for t in said])
        for said in ([found[n].name for n in headed], [found[n].text for n in headed])
    )
    return headed[int(part_similarity(vectors[request], heads, texts).round(6).argmax())]


def _encoded(texts: list[str], encoder: TextEncoder, progress: Progress | None) -> Vectors:
    return dict(zip(texts, encoder.encode(texts, progress), strict=True)) if texts else {}


def _table(vectors: Vectors, encoder: TextEncoder) -> pa.Table:
    import numpy as np

    rows = np.stack(list(vectors.values())) if vectors else np.zeros((0, encoder.dimension), np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows, np.float32).ravel()), rows.shape[1])
    return pa.table({"text": pa.array(list(vectors), pa.string()), "vector": column})

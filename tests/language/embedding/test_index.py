"""The index on disk: what was saved is found again, and a damaged file is named before FAISS takes memory for it."""

import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.language.embedding.index import IDS_FILE, INDEX_FILE, LISTS_FILE, RowSearch, VectorIndex
from opus_pipelines.wkg.rebuild.vectors import recall, write_case_index
from opus_pipelines.wkg.snapshot import CASE_INDEX

VECTORS = np.eye(4, dtype=np.float32)
IDS = ["a", "b", "c", "d"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    VectorIndex.build(IDS, VECTORS).save(tmp_path)
    return tmp_path


def test_what_was_saved_is_found(folder: Path) -> None:
    assert VectorIndex.load(folder).search(VECTORS[2:3], 1) == [[("c", 1.0)]]


def test_an_empty_index_is_sound(tmp_path: Path) -> None:
    VectorIndex.build([], np.zeros((0, 4), np.float32)).save(tmp_path)
    assert VectorIndex.load(tmp_path).search(VECTORS, 3) == [[], [], [], []]


def clusters(size: int) -> np.ndarray:
    """Unit vectors around forty centres, seeded."""
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(40, 16))
    vectors = centres[draw.integers(40, size=size)] + draw.normal(scale=0.4, size=(size, 16))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_an_index_above_the_size_is_one_of_lists_that_finds_what_the_exact_one_finds(tmp_path: Path) -> None:
    vectors = clusters(4_000)
    ids = [str(n) for n in range(4_000)]
    VectorIndex.build(ids, vectors, exact_up_to=3_999).save(tmp_path)
    lists = VectorIndex.load(tmp_path)
    exact = VectorIndex.build(ids, vectors, exact_up_to=4_000)
    assert (lists.is_exact, exact.is_exact) == (False, True)
    assert recall(exact, vectors) == 1.0
    assert 0.985 <= recall(lists, vectors) <= 1.0
    assert lists.search(vectors[:1], 1)[0][0][0] == "0"


def test_the_recall_of_too_few_lists_is_told(tmp_path: Path) -> None:
    import faiss

    vectors = clusters(4_000)
    ids = [str(n) for n in range(4_000)]
    VectorIndex.build(ids, vectors, exact_up_to=0).save(tmp_path)
    index: Any = faiss.read_index(str(tmp_path / INDEX_FILE))
    index.nprobe = 1
    assert recall(VectorIndex(ids, index), vectors) < 0.9


@pytest.mark.long
def test_vectors_without_any_order_are_searched_exactly() -> None:
    draw = np.random.default_rng(1)
    vectors = draw.normal(size=(3_000, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert VectorIndex.build([str(n) for n in range(3_000)], vectors, exact_up_to=0).is_exact


@pytest.mark.long
@pytest.mark.parametrize("damaged", [INDEX_FILE, LISTS_FILE])
def test_a_damaged_index_of_lists_is_named(tmp_path: Path, damaged: str) -> None:
    VectorIndex.build([str(n) for n in range(4_000)], clusters(4_000), exact_up_to=0).save(tmp_path)
    content = bytearray((tmp_path / damaged).read_bytes())
    content[15] ^= 1
    (tmp_path / damaged).write_bytes(content)
    with pytest.raises(LakeError, match=r"hash in lists\.json"):
        VectorIndex.load(tmp_path)


@pytest.mark.parametrize("size", [2**20, 2**36, 2**62, -1])
@pytest.mark.parametrize(("place", "form"), [(4, "<i"), (8, "<q"), (37, "<q")], ids=["dimension", "vectors", "floats"])
def test_a_header_that_states_other_sizes_takes_no_memory(folder: Path, place: int, form: str, size: int) -> None:
    content = bytearray((folder / INDEX_FILE).read_bytes())
    struct.pack_into(form, content, place, min(size, 2**31 - 1) if form == "<i" else size)
    (folder / INDEX_FILE).write_bytes(content)
    with pytest.raises(LakeError, match=r"index\.faiss is damaged"):
        VectorIndex.load(folder)


def test_no_damaged_header_is_met_with_another_exception(folder: Path) -> None:
    """A flipped bit of a vector cannot be told from a vector here; the list of the snapshot's files has its hash."""
    sound, draw, refused = (folder / INDEX_FILE).read_bytes(), random.Random(15), 0
    for _ in range(300):
        content = bytearray(sound)
        for _ in range(draw.choice((1, 3))):
            content[draw.randrange(45)] = draw.randrange(256)
        (folder / INDEX_FILE).write_bytes(bytes(content)[: draw.choice((len(sound), len(sound), draw.randrange(173)))])
        try:
            assert len(VectorIndex.load(folder)) == 4
        except LakeError:
            refused += 1
    assert refused > 150


@pytest.mark.parametrize("content", ["{}", "[1, 2, 3, 4]", "nothing", "[" * 100_000, json.dumps(IDS[:3])])
def test_ids_that_do_not_fit_are_refused(folder: Path, content: str) -> None:
    (folder / IDS_FILE).write_text(content)
    with pytest.raises(LakeError):
        VectorIndex.load(folder)


def test_no_index_is_named(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="holds no index"):
        VectorIndex.load(tmp_path)


def by_numpy(vectors: np.ndarray, rows: np.ndarray, mask: np.ndarray, vector: np.ndarray, top: int) -> Any:
    """The rows in order of cosine, then of row, with all that are as similar as the last one."""
    cosines = (vectors @ vector).round(6)
    order = [n for n in np.lexsort((rows, -cosines)) if mask[rows[n]]]
    last = cosines[order[min(top, len(order)) - 1]] if order else 0.0
    return [(int(rows[n]), float(cosines[n])) for n in order if cosines[n] >= last]


@pytest.mark.parametrize("lists", [False, True])
def test_rows_are_found_as_by_a_product_with_all_vectors(lists: bool, tmp_path: Path) -> None:
    """A third of the rows has no vector, and most have one that other rows have, too; a few rows are selected."""
    draw = np.random.default_rng(2)
    first = clusters(900)
    rows = np.sort(draw.choice(6_000, 4_000, replace=False))
    vectors = first[draw.integers(len(first), size=4_000)]
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 16)
    cases = pa.table({"implementation_id": [f"{n:04}" for n in range(4_000)], "vector": column})
    assert write_case_index(tmp_path, cases, 0 if lists else 4_000) > 0.98
    assert (tmp_path / CASE_INDEX).is_dir() == lists
    search = RowSearch(vectors, rows, 6_000, VectorIndex.load(tmp_path / CASE_INDEX) if lists else None)
    for share, top in ((1.0, 1), (1.0, 60), (0.05, 25), (0.002, 500), (0.0, 5)):
        mask = draw.random(6_000) < share
        found, cosines = search.nearest(first[3], top, search.among(mask))
        wanted = by_numpy(vectors, rows, mask, first[3], top)
        assert found.tolist() == [row for row, _ in wanted]
        assert cosines.tolist() == pytest.approx([cosine for _, cosine in wanted], abs=2e-6)

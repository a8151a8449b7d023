"""The index on disk: what was saved is found again, and a damaged file is named before FAISS takes memory for it."""

import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.embedding.index import IDS_FILE, INDEX_FILE, VectorIndex

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

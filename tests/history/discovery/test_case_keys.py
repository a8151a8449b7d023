"""Tests of the numbers of cases: equal ids have equal numbers, different ids different ones."""

import pyarrow as pa
import pytest

from opus_pipelines.history.discovery.edge_log import case_keys

IDS = ["", "a", "b", "ab", "ba", "\0", "\0a", "a\0", "a\0\0", "1234567", "12345678", "12345679", "ä" * 20, "ä" * 21]


@pytest.mark.parametrize("ids", [IDS, IDS[:10], IDS[10:]], ids=["mixed", "short", "long"])
def test_different_ids_have_different_numbers(ids: list[str]) -> None:
    assert len(set(case_keys(pa.array(ids)).tolist())) == len(ids)


def test_the_number_of_an_id_depends_on_neither_its_place_nor_its_encoding() -> None:
    plain = case_keys(pa.array(IDS))
    assert case_keys(pa.array(["x", *IDS]).slice(1)).tolist() == plain.tolist()
    assert case_keys(pa.array(IDS[::-1])).tolist() == plain[::-1].tolist()
    assert case_keys(pa.array(IDS).dictionary_encode()).tolist() == plain.tolist()


def test_numbers_of_similar_ids_fall_into_many_parts() -> None:
    first_bytes = {key >> 56 for key in case_keys(pa.array([str(n) for n in range(2_000)])).tolist()}
    assert len(first_bytes) == 256


def test_no_ids_and_missing_ids_have_a_place() -> None:
    assert case_keys(pa.array([], pa.string())).tolist() == []
    assert len(case_keys(pa.array([None, "a"], pa.string()).dictionary_encode())) == 2
    assert len(case_keys(pa.array([None], pa.string()).dictionary_encode())) == 1

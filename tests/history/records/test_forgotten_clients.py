"""Forgotten clients: what is kept of them, and what readers leave out."""

import stat
from pathlib import Path

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.history.ingestion.plan import plan_history
from opus_pipelines.history.records.forgotten_clients import WITHHELD, Forgotten, private_key
from opus_pipelines.lake.layout import Lake
from tests.history_fixtures import Bench

TWO = (
    "case,activity,time,client\n1,A,2026-01-01T00:00:00Z,Acme\n2,A,2026-01-01T00:00:00Z,Bolt\n2,B,2026-01-02T00:00:00Z,Bolt\n"
    "3,,never,Bolt\n"
)
COLUMNS = '[columns]\ncase = "case"\nactivity = "activity"\ntime = "time"\nclient = "client"\n'


def forget(lake: Lake, client: str, *sources: str) -> Forgotten:
    private_key(lake)
    Forgotten.of(lake).with_client(client, sources).save(lake)
    return Forgotten.of(lake)


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    key = private_key(lake)
    assert len(key) == 32
    assert private_key(lake) == key != private_key(Lake(tmp_path / "other"))
    assert stat.S_IMODE((lake.kept / "private.key").stat().st_mode) == 0o600


def test_names_are_kept_as_keyed_hashes_only(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    forgotten = forget(lake, "Acme Bank", "acme_claims")
    kept = (lake.kept / "forgotten.json").read_text().lower()
    assert "acme" not in kept
    assert (forgotten.holds("Acme Bank"), forgotten.holds("Acme"), forgotten.holds(None)) == (True, False, False)
    assert not Forgotten(b"another key", forgotten.clients).holds("Acme Bank")


def test_without_the_key_nobody_can_tell_and_that_is_said(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    forget(lake, "Acme")
    (lake.kept / "private.key").unlink()
    with pytest.raises(LakeError, match=r"private\.key is missing"):
        Forgotten.of(lake)


def test_only_the_sources_that_hold_a_forgotten_client_are_read_again(bench: Bench) -> None:
    bench.put("two/log.csv", TWO)
    bench.put("two/source.toml", COLUMNS)
    bench.put("one/log.csv", TWO.replace("Bolt", "Cray").replace("Acme", "Cray"))
    bench.put("one/source.toml", COLUMNS)
    before = {s.source: s.content for s in bench.read().sources}
    forget(bench.lake, "Acme", "two")
    state = bench.read()
    after = {s.source: (s.content, s.status) for s in state.sources}
    assert after["one"] == (before["one"], "unchanged")
    assert after["two"][1] == "loaded"
    assert after["two"][0] != before["two"]
    row = next(row for row in state.files if row["source"] == "two")
    counts = ("records", "records_used", "records_not_work", "records_rejected", "implementations")
    assert [row[name] for name in counts] == [4, 2, 1, 1, 1]
    assert list(bench.cases("two")) == ["2"]
    assert [s.status for s in bench.read().sources] == ["unchanged", "unchanged"]


def test_a_source_that_is_found_to_hold_one_later_has_the_same_content_every_night(bench: Bench) -> None:
    forget(bench.lake, "Acme")
    bench.put("two/log.csv", TWO)
    bench.put("two/source.toml", COLUMNS)
    first, second = bench.read(), bench.read()
    assert [s.content for s in first.sources] == [s.content for s in second.sources]
    assert [s.status for s in second.sources] == ["unchanged"]
    rejects = bench.rejects()
    assert {(r["reason"], r["record"]) for r in rejects} == {(WITHHELD, WITHHELD)}
    assert {r["reason_code"] for r in rejects} == {"no_activity"}


def test_a_client_whose_every_record_is_rejected_leaves_no_text(bench: Bench) -> None:
    forget(bench.lake, "Acme")
    bench.put("two/log.csv", TWO.replace("1,A,2026", "1,A,x2026"))
    bench.put("two/source.toml", COLUMNS)
    bench.read()
    assert {r["record"] for r in bench.rejects()} == {WITHHELD}


def test_a_source_that_is_the_clients_alone_is_not_read(bench: Bench) -> None:
    bench.put("acme/log.csv", TWO)
    bench.put("acme/source.toml", 'client = "Acme"\n' + COLUMNS.replace('client = "client"\n', ""))
    bench.read()
    assert len(bench.cases("acme")) == 2
    forget(bench.lake, "Acme")
    state = bench.read()
    assert (state.sources, [row["status"] for row in state.files], state.failed) == ([], ["gone"], [])


def test_undone_it_is_read_again(bench: Bench) -> None:
    bench.put("two/log.csv", TWO)
    bench.put("two/source.toml", COLUMNS)
    before = bench.read().sources[0].content
    forget(bench.lake, "Acme", "two")
    bench.read()
    Forgotten.of(bench.lake).without_client("Acme").save(bench.lake)
    assert bench.read().sources[0].content == before
    assert set(bench.cases("two")) == {"1", "2"}


def test_a_file_named_by_an_address_stands_under_its_keyed_hash(bench: Bench) -> None:
    bench.put("two/jan@x.nl/log.csv", TWO)
    bench.put("two/source.toml", COLUMNS)
    assert "jan" not in plan_history(bench.history)[0].files[0].path
    paths = {bench.read().files[0]["path"] for _ in range(2)}
    assert len(paths) == 1
    assert next(iter(paths)).startswith("h")


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ('{"a":{"b":["Smith, Jones & Co"]}}', {"Smith, Jones & Co"}),
        ('{"a":"Smith"}', set()),
        ('1;"Acme";x\n', {"Acme"}),
        ("", set()),
    ],
)
def test_a_rejected_record_tells_whose_it_is_by_its_values(tmp_path: Path, record: str, found: set[str]) -> None:
    forget(Lake(tmp_path), "Acme")
    assert forget(Lake(tmp_path), "Smith, Jones & Co").names_in(record) == found

"""One file of a source: how far it is read, and what is left of it when it breaks off."""

import gzip
import re
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from opus_pipelines.history.ingestion import read_file as module
from opus_pipelines.history.ingestion.plan import FilePlan
from opus_pipelines.history.ingestion.read_file import SourceFile, read_file
from opus_pipelines.history.records.assembler import OtherFiles
from opus_pipelines.history.records.source_settings import SourceSettings
from tests.distributions import Install

LETTERS = bytes(97 + n % 26 for n in range(256))


def read(path: Path, said: list[str]) -> module.FileResult:
    file = FilePlan(path.name, path, "x", path.stat().st_size, "csv")
    return read_file(SourceFile("s", SourceSettings(), file), OtherFiles(), path.parent / "staged", said.append)


@pytest.mark.long
def test_progress_says_rate_and_time_left(tmp_path: Path) -> None:
    notes = Random(1)  # so that the compressed file is not read at once
    rows = "".join(
        f"c{n},A,2020-01-01T00:00:00Z,{notes.randbytes(500).translate(LETTERS).decode()}\n" for n in range(50_000)
    )
    log = f"case_id,activity,timestamp,note\n{rows}".encode()  # 26 MB: more than one block of columns
    (tmp_path / "log.csv").write_bytes(log)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(log, 1))
    for name in ("log.csv", "log.csv.gz"):
        said: list[str] = []
        seconds = iter(range(0, 1000, 100))
        with patch.object(module, "monotonic", lambda clock=seconds: next(clock)):
            read(tmp_path / name, said)
        found = re.fullmatch(rf"s/{name}: ([0-9,]+) records, [0-9]+ a second, .* left", said[0])
        assert found is not None
        assert 10_000 < int(found[1].replace(",", "")) < 50_000


@pytest.mark.long
def test_rows_that_outgrow_memory_wait_in_the_folder_and_go_with_a_broken_file(tmp_path: Path) -> None:
    note = "n" * 1000  # so that the rows are more than the 16 MiB that are kept in memory
    rows = "".join(f"c{n},A,2020-01-01T00:00:00Z,{note}{n}\n" for n in range(20_000))
    (tmp_path / "log.csv").write_text(f"case_id,activity,timestamp,note\n{rows}")
    result = read(tmp_path / "log.csv", [])
    assert result.implementations is not None
    assert (
        sum(b.num_rows for b in result.implementations.batches()),
        len(list((tmp_path / "staged").iterdir())),
    ) == (20_000, 1)
    assert len(result.case_ids) == 20_000
    result.drop()
    assert list((tmp_path / "staged").iterdir()) == []
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes())[:-100])
    broken = read(tmp_path / "cut.csv.gz", [])
    assert (broken.implementations, broken.counts.records) == (None, 0)
    assert "broken or cut off" in str(broken.reason)
    assert list((tmp_path / "staged").iterdir()) == []


FAILING = """
from opus_pipelines.history.records.formats import Format

FORMAT = Format("failing", (".fail",), "failing", "line", False)


def read(open_file, settings, sink):
    with open_file() as file:
        raise {"key": KeyError("b"), "sum": ZeroDivisionError("x"), "name": AttributeError()}[file.read().decode()]
"""


@pytest.mark.parametrize(
    ("content", "error"), [("key", "KeyError"), ("sum", "ZeroDivisionError"), ("name", "AttributeError")]
)
def test_whatever_a_reader_fails_with_costs_its_own_file(
    bench: Any, install: Install, content: str, error: str
) -> None:
    install("failing", "[opus_pipelines.log_formats]\nfailing = failing:FORMAT\n", FAILING)
    bench.put("bad/log.fail", content)
    bench.put("good/log.csv", "case_id,activity,timestamp\n1,A,2020-01-01T00:00:00Z\n")
    state = bench.read()
    assert [(row["source"], row["status"]) for row in state.files] == [("bad", "rejected"), ("good", "loaded")]
    reason = state.files[0]["reason"]
    assert error in reason
    assert "failing" in reason
    assert [source.source for source in state.sources] == ["good"]

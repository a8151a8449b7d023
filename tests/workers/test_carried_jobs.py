"""Jobs whose files travel with them: what they read is laid out, what they write comes back."""

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.ingestion.file_jobs import NoSetup
from opus_pipelines.workers.carried_jobs import Carried, carry
from opus_pipelines.workers.jobs import Report

LONG = bytes(range(256)) * 40_000  # more than one piece of a made file


@dataclass(frozen=True)
class Turned:
    """Writes what it reads backwards, and answers with the number of bytes; dies or fails where it is told to."""

    what: str = ""
    read: Path = Path()
    made: Path = Path()

    def at(self, read: Path, made: Path) -> "Turned":
        return replace(self, read=read, made=made)

    def run(self, _state: None, report: Report) -> int:
        if self.what == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.what == "fails":
            raise OpusError("it was told to fail")
        content = (self.read / "one").read_bytes()
        (self.made / "turned").write_bytes(content[::-1])
        return len(content)


@pytest.mark.spark
def test_contents_travel_to_the_job_and_back(spark: Any, tmp_path: Path) -> None:
    contents = {"": LONG, "dies": b"x", "fails": b"x", "short": b"abc"}
    jobs = [Carried.of(Turned(what), one=content) for what, content in contents.items()]
    folders = [tmp_path / str(number) for number in range(4)]
    long, dead, failed, short = carry(spark, NoSetup, jobs, folders)
    assert (long, short) == ((True, len(LONG)), (True, 3))
    assert (tmp_path / "0" / "turned").read_bytes() == LONG[::-1]
    assert (tmp_path / "3" / "turned").read_bytes() == b"cba"
    assert dead[0] is False
    assert "signal 9" in dead[1]
    assert failed == (False, "it was told to fail")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "3"]


def test_no_jobs_need_no_session(tmp_path: Path) -> None:
    assert carry(None, NoSetup, [], []) == []  # type: ignore[arg-type]


def test_what_travels_is_packed() -> None:
    carried = Carried.of(Turned(), one=bytes(1_000_000), other=b"abc")
    assert carried.size == 1_000_003
    assert carried.packed_size < 1_000

"""Jobs whose files travel with them: what they read is laid out, what they write comes back."""

import os
import pickle
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.carried_jobs import CODEC, Carried, carry
from opus_pipelines.core.workers.pool import NoSetup, Report
from opus_pipelines.core.workers.record_json import RecordError

LONG = bytes(range(256)) * 40_000  # more than one piece of a made file


@dataclass(frozen=True)
class Turned:
    """Writes what it reads backwards, and answers with the number of bytes; dies or fails where it is told to."""

    ANSWER: ClassVar[type] = int
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
    long, dead, failed, short = carry(spark, NoSetup(), jobs, folders)
    assert (long, short) == ((True, len(LONG)), (True, 3))
    assert (tmp_path / "0" / "turned").read_bytes() == LONG[::-1]
    assert (tmp_path / "3" / "turned").read_bytes() == b"cba"
    assert dead[0] is False
    assert "signal 9" in dead[1]
    assert failed == (False, "it was told to fail")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "3"]


def test_no_jobs_need_no_session(tmp_path: Path) -> None:
    assert carry(None, NoSetup(), [], []) == []  # type: ignore[arg-type]


def test_what_travels_is_packed() -> None:
    carried = Carried.of(Turned(), one=bytes(1_000_000), other=b"abc")
    assert carried.size == 1_000_003
    assert carried.packed_size < 1_000


def answering(name: str | None, content: bytes, sent: list[pa.Table] | None = None) -> Any:
    """In place of a session: its executors answer this row. What is sent to them is added to `sent`."""
    row = {"number": 0, "succeeded": True, "name": name, "size": len(content)}
    row["content"] = pa.compress(content, CODEC, asbytes=True)

    def create(rows: pa.Table) -> Any:
        (sent if sent is not None else []).append(rows)
        made = SimpleNamespace(toArrow=lambda: pa.Table.from_pylist([row]))
        return SimpleNamespace(mapInArrow=lambda function, columns: made)

    return SimpleNamespace(createDataFrame=create, sparkContext=SimpleNamespace(statusTracker=lambda: None))


class Bomb:
    """A pickle of it leaves a file where it is read."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return Path.touch, (self.place,)


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside", ".."])
def test_an_executor_writes_no_file_outside_of_the_folder_of_its_job(tmp_path: Path, name: str) -> None:
    with pytest.raises(OpusError, match="outside"):
        carry(answering(name, b"x"), NoSetup(), [Carried.of(Turned(), one=b"abc")], [tmp_path / "made"])
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_is_a_pickle_is_not_run(tmp_path: Path) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "ran"))
    with pytest.raises(RecordError):
        carry(answering(None, bomb), NoSetup(), [Carried.of(Turned(), one=b"abc")], [tmp_path / "made"])
    assert not (tmp_path / "ran").exists()
    pickle.loads(bomb)
    assert (tmp_path / "ran").exists()


def test_a_job_without_an_answer_is_an_error(tmp_path: Path) -> None:
    jobs = [Carried.of(Turned(), one=b"abc")] * 2
    with pytest.raises(OpusError, match="1 of 2"):
        carry(answering(None, b"7"), NoSetup(), jobs, [tmp_path, tmp_path])


def test_a_job_travels_as_json(tmp_path: Path) -> None:
    sent: list[pa.Table] = []
    jobs = [Carried.of(Turned("short"), one=b"abc")]
    assert carry(answering(None, b"7", sent), NoSetup(), jobs, [tmp_path]) == [(True, 7)]
    (row,) = sent[0].to_pylist()
    text = pa.decompress(row["job"]["content"], row["job"]["size"], CODEC, asbytes=True)
    assert (row["job"]["name"], text) == ("Turned", b'{"what":"short","read":".","made":"."}')

"""An S3 server for the tests of a process, a bucket for each test, and a lake of each kind."""

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.settings import ObjectStore
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.folders import local_root
from tests.object_store_server import KEY_ID, SECRET, Server, serving

_numbers = itertools.count()
_RUN = uuid.uuid4().hex[:8]  # another server may have the buckets of earlier runs


@pytest.fixture(scope="session")
def store() -> Iterator[Server]:
    with serving() as server:
        yield server


class Machine:
    """A machine that works on the lake of a test: it has a cache of its own."""

    def __init__(self, server: Server, bucket: str, cache: Path, **options: Any) -> None:
        self.url = f"s3://{bucket}/a lake/of ours"
        stated = {"lease_seconds": 30.0, "retry_seconds": 12.0} | options
        self.settings = ObjectStore(endpoint=server.endpoint, working_folder=cache, **stated)

    def lake(self) -> Lake:
        """The lake for a writer."""
        return Lake(local_root(self.url, self.settings))

    def reader(self) -> Lake:
        """The lake as a reader that begins now sees it."""
        return Lake(local_root(self.url, self.settings, reads_only=True))


class Place:
    """A bucket of a test and the machines that use it."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.bucket, self._folder = server, f"bucket-{_RUN}-{next(_numbers)}", folder
        server.make_bucket(self.bucket)

    def machine(self, name: str = "one", by: Server | None = None, **options: Any) -> Machine:
        """A machine that reaches the store by its main address, or by another way."""
        return Machine(by or self.server, self.bucket, self._folder / name, **options)


@pytest.fixture(scope="session")
def line(store: Server) -> Iterator[Server]:
    """A second way to the store, which can be cut for the machines that use it alone."""
    with serving(store) as server:
        yield server


@pytest.fixture
def place(store: Server, line: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    yield Place(store, tmp_path)
    for server in (store, line):
        server.fault = lambda method, path: None


@pytest.fixture(params=["folder", "object store"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of an empty lake: one that lies there alone, and a working folder of one in an object store."""
    if request.param == "folder":
        (tmp_path / "lake").mkdir()
        return tmp_path / "lake"
    place: Place = request.getfixturevalue("place")
    return place.machine().lake().root

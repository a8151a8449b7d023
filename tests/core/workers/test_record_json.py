"""Declared records as JSON: what was written is read again, and what is something else is refused."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.core.workers.record_json import RecordError, record_json, record_of
from opus_pipelines.generation.bulk.chunks import ChunkResult, GenerationSetup, ReadChunk, WorkChunk
from opus_pipelines.intakes.contract_settings import ContractSettings
from opus_pipelines.intakes.decisions.record import DecidedStep, Decision, Decisions
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.results import ResultKey
from opus_pipelines.lwm.interface import Usage


class Point(NamedTuple):
    x: int
    name: str | None = None


@dataclass(frozen=True)
class Record:
    """Each kind of field that travels."""

    number: float
    place: Path
    at: datetime
    key: bytes
    points: tuple[Point, ...]
    pair: tuple[str, int] | None
    names: set[str]
    by_name: Mapping[str, frozenset[str]]
    counts: Counter[str] = field(default_factory=Counter)
    anything: list[Any] = field(default_factory=list)


RECORD = Record(
    0.1 + 0.2,
    Path("/lake/\udcff"),  # a byte that is no UTF-8
    datetime(2026, 1, 31, 9, 0, 0, 5, UTC),
    b"\x00\xff",
    (Point(1), Point(2, "zwei \u2028")),
    ("a", 1),
    {"b", "a"},
    {"k": frozenset({"s"})},
    Counter({"rows": 3}),
)
DECISION = Decision(
    client="Acme",
    contract="Retail",
    decision="edit",
    intake_id="k1",
    intake="one",
    intention_id="i1",
    workflow_id="f1",
    result=None,
    rank=2,
    steps=(DecidedStep("t1", "Pay", False, "human", None, "clerk", (0, 2)),),
    decided_at=datetime(2026, 1, 1, tzinfo=UTC),
    vector=(0.25, -1.5),
)
CONTRACT = ContractFolder(
    "Acme",
    "Retail",
    Path("/intakes/Acme/Retail"),
    ContractSettings.model_validate(
        {"gain_usd": float("inf"), "prices": {"CLERK": 60}, "constraints": {"before": [["a", "b"]]}}
    ),
    (),
    decisions=Decisions((DECISION,), {"t0": ("t1",)}),
)


@pytest.mark.parametrize(
    "record",
    [
        RECORD,
        GenerationSetup(Path("lake"), "s1", Settings(paths=Paths(lake=Path("lake"))), archive="a"),
        ReadChunk(CONTRACT, (Path("/intakes/Acme/Retail/one"),)),
        WorkChunk(CONTRACT, ResultKey("Acme", "Retail", "r1"), "part-00000.parquet", 1, 125),
        ChunkResult(Counter({"a/b": 2}), [("failed", "one", "why")], 3, 1.5, [Usage(1, None, 0.25)]),
    ],
    ids=lambda record: type(record).__name__,
)
def test_what_was_written_is_read_again(record: Any) -> None:
    text = record_json(record, type(record))
    assert text.isascii()
    read = record_of(text, type(record))
    assert read == record
    assert type(read) is type(record)
    assert record_json(read, type(record)) == text


def test_what_is_written_is_json_by_the_names_of_fields() -> None:
    stated = json.loads(record_json(RECORD, Record))
    assert stated["names"] == ["a", "b"]
    assert stated["points"] == [{"x": 1, "name": None}, {"x": 2, "name": "zwei \u2028"}]
    assert stated["key"] == "AP8="
    assert stated["number"] == 0.30000000000000004


def test_settings_that_nobody_stated_stay_unstated() -> None:
    read = record_of(record_json(CONTRACT.settings, ContractSettings), ContractSettings)
    assert read.model_fields_set == {"gain_usd", "prices", "constraints"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("cos\nsystem\n(S'id'\ntR.", int),  # a pickle
        ("[1", list[int]),
        ('[1, "a"]', list[int]),
        ("[true]", list[int]),
        ('{"x": 1}', Point),
        ('{"x": 1, "name": null, "more": 1}', Point),
        ('{"x": "1", "name": null}', Point),
        ('"maybe"', bool),
        ('["a"]', tuple[str, int]),
        ('{"a": "b"}', Counter[str]),
        ('{"unknown": 1}', ContractSettings),
        ('"no time"', datetime),
        ('"no base64"', bytes),
        ("[" * 100_000, list[int]),
    ],
)
def test_what_is_something_else_is_refused(text: str, kind: Any) -> None:
    with pytest.raises(RecordError):
        record_of(text, kind)


@pytest.mark.parametrize(("value", "kind"), [({1: "a"}, dict[int, str]), (1, Point), ([object()], list[Any])])
def test_what_has_no_form_is_a_mistake_of_the_program(value: Any, kind: Any) -> None:
    with pytest.raises(TypeError):
        record_json(value, kind)

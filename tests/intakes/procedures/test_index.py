"""What the procedures of history say of cases: the successes under one part."""

from typing import Any

import pyarrow as pa
import pytest

from opus_pipelines.intakes.procedures.models import ProcedureIndex
from opus_pipelines.language.embedding.texts import Part, Sentence
from opus_pipelines.wkg.graph import WorkGraph

PART = Part("Renew vehicle", (Sentence("The vehicle is registered."), Sentence("The fee is paid.")))


def row(procedure: str, sentences: list[str], cases: list[str]) -> dict[str, Any]:
    common = {"part": 0, "head": "renew_vehicle", "is_title": False, "requests": []}
    return common | {
        "procedure_id": procedure,
        "sentences": sentences,
        "either": [None] * len(sentences),
        "implementations": cases,
    }


def case(name: str, success: bool | None = True, expected: bool | None = None, industry: str = "dmv") -> dict[str, Any]:
    return {
        "implementation_id": name,
        "industry": industry,
        "success": success,
        "expected_outcome": expected,
        "tasks": ["check", "renew"],
    }


@pytest.fixture
def history() -> ProcedureIndex:
    rows = [
        row("o1", ["The fee is paid.", "The vehicle is registered."], ["i1", "i2", "i3", "i4", "i5", "gone"]),
        row("o2", ["The vehicle is registered."], ["i6"]),  # another part with this heading
    ]
    cases = [case("i1"), case("i2", success=False), case("i3", expected=False), case("i4", success=None)]
    cases += [case("i5", industry="bank"), case("i6")]
    return ProcedureIndex(
        pa.Table.from_pylist(rows), pa.table({}), pa.Table.from_pylist(cases), WorkGraph(), lambda name: frozenset()
    )


def test_successes_are_those_under_the_very_part(history: ProcedureIndex) -> None:
    assert history.successes(PART, "dmv") == [("check", "renew")]
    assert len(history.successes(PART, None)) == 2, "of all industries"
    assert history.successes(Part("Renew vehicle", ()), "dmv") == []

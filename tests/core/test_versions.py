"""Which algorithm version makes what anew."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.core.versions import ALGORITHM_VERSIONS, difference, versions_of
from opus_pipelines.generation.results.ids import result_id
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake, write_json
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.wkg.rebuild.unchanged import versions_since
from opus_pipelines.wkg.task_matching.resolve import NightlyResolution
from tests.rebuilding import resolved_history

WKG = ALGORITHM_VERSIONS["wkg"]
NOW = datetime(2026, 1, 31, tzinfo=UTC)
LOG = """case,activity,start,end
1,Register,2025-01-01T09:00:00Z,2025-01-01T09:10:00Z
1,Pay,2025-01-02T09:00:00Z,2025-01-02T09:10:00Z
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    for place, text in (("history/claims/log.csv", LOG), ("intakes/Acme/Retail/i-7/input/order.txt", "Ten chairs.")):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(text)
    paths = Paths(lake=tmp_path / "lake", history=tmp_path / "history", intakes=tmp_path / "intakes")
    return Settings(paths=paths, wkg={"merge": "normalised"})


def names_of(settings: Settings) -> dict[str, object]:
    """What each stage calls what it makes for this input, and whether it had to be made."""
    lake = Lake(settings.paths.lake)
    state = read_history(lake, settings.paths.history, NOW)
    (source,) = state.sources
    known = NightlyResolution(lake, settings, state.sources).is_known
    resolved = resolved_history(lake, settings, state)
    (contract,) = discover(settings.paths.intakes)
    return {
        "history": source.content,
        "history is read": source.status == "loaded",
        "aggregates": resolved.parts[0].key,
        "names are resolved": not known,
        "snapshot": resolved.snapshot.snapshot_id,
        "model": HistoryBackend().version,
        "result": result_id(contract, "w1", settings),
    }


EXPECTED = {
    "history": {"history", "history is read", "aggregates", "names are resolved", "snapshot"},
    "embedding": {"names are resolved", "snapshot", "result"},
    "mining": {"aggregates", "snapshot"},
    "resolution": {"names are resolved"},  # a snapshot follows where the outcome is another one
    "wkg": {"snapshot"},
    "requirements": {"result"},
    "retrieval": {"result"},
    "lwm": {"model", "result"},
    "planning": {"result"},
    "generation": {"result"},
    "reporting": {"result"},
}


@pytest.mark.parametrize("stage", ALGORITHM_VERSIONS)
def test_a_raised_version_makes_anew_what_depends_on_it_and_nothing_else(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    names_of(settings)
    before = names_of(settings)
    assert (before["history is read"], before["names are resolved"]) == (False, False)
    monkeypatch.setitem(ALGORITHM_VERSIONS, stage, ALGORITHM_VERSIONS[stage] + 1)
    after = names_of(settings)
    assert {name for name in before if after[name] != before[name]} == EXPECTED[stage]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("wkg=1 embedding=1", None),
        ("wkg=0 embedding=1", "wkg 0 → 1"),
        ("wkg=1", "embedding none → 1"),
        ("wkg=1 embedding=1 former=3", "former 3 → none"),
        ("0123456789abcdef0123456789abcdef", "made before algorithm versions were declared"),
        (None, "made before algorithm versions were declared"),
    ],
)
def test_what_differs_is_named(before: str | None, expected: str | None) -> None:
    assert difference(before, "wkg=1 embedding=1") == expected


def test_an_unknown_thing_has_no_versions() -> None:
    with pytest.raises(KeyError, match="reports"):
        versions_of("reports")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (versions_of("manifest"), None),
        (versions_of("manifest").replace(f"wkg={WKG}", "wkg=0"), f"wkg 0 → {WKG}"),
        ("0123456789abcdef0123456789abcdef", "made before algorithm versions were declared"),
    ],
)
def test_a_rebuild_says_why_it_makes_a_snapshot_anew(tmp_path: Path, code: str, expected: str | None) -> None:
    lake = Lake(tmp_path / "lake")
    write_json(lake.root / "wkg" / "current.json", {"snapshot": "w1"})
    write_json(lake.snapshot_folder("w1") / "manifest.json", {"snapshot": "w1", "code_version": code})
    said = versions_since(Settings(paths=Paths(lake=lake.root, history=tmp_path, intakes=tmp_path)))
    assert (said is None) == (expected is None)
    assert expected is None or f"({expected})" in (said or "")


def test_a_lake_without_a_snapshot_has_no_other_versions(tmp_path: Path) -> None:
    assert versions_since(Settings(paths=Paths(lake=tmp_path / "lake", history=tmp_path, intakes=tmp_path))) is None

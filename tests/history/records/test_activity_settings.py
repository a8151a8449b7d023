"""`[activities]` of source.toml: what a person states of activities, and names that the source does not have."""

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import parse
from opus_pipelines.history.records.source_settings import SourceSettings
from tests.history_fixtures import Bench

LOG = "case_id,activity,timestamp\n1,Submit,2024-01-01T09:00:01Z\n1,End trip,2024-01-02T00:00:00Z\n"


def test_stated_kinds() -> None:
    settings = parse(
        SourceSettings, {"activities": {"event": "End trip", "outcome": ["Rejected"], "step": ["Wait"]}}, "source.toml"
    )
    assert settings.activities.stated == {"Wait": "step", "End trip": "event", "Rejected": "outcome"}
    assert SourceSettings().activities.stated == {}


def test_one_activity_has_one_kind() -> None:
    with pytest.raises(SettingsError, match="'End trip': stated as two kinds"):
        parse(SourceSettings, {"activities": {"event": ["End trip"], "step": ["End trip"]}}, "source.toml")


def test_a_misspelled_activity_is_reported_and_other_sources_are_read(bench: Bench) -> None:
    bench.put("a/source.toml", '[activities]\nevent = ["End tripp", "Submit"]\n')
    bench.put("a/log.csv", LOG)
    bench.put("b/source.toml", '[activities]\nevent = ["End trip"]\n')
    bench.put("b/log.csv", LOG)
    expected = [
        "a/source.toml: [activities] event: 'End tripp' is no activity of this source; the nearest are 'End trip'"
    ]
    state = bench.read()
    assert state.failed == expected
    stated = {s.source: dict(s.stated) for s in state.sources}
    assert stated == {"a": {"End tripp": "event", "Submit": "event"}, "b": {"End trip": "event"}}
    assert bench.read().failed == expected  # also on a night when nothing changed

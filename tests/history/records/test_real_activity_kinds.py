"""On real logs no work step is taken for an event, and every rejection is an outcome. Judged activity by activity by a
person.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.history.records.activity_kinds import by_activity, classify_source, evidence_of, read_name
from opus_pipelines.quality.sample.industries import read_industry

DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data")) / "event_logs"
real = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}; OPUS_TEST_DATA says where it is")
REJECTED = ("ADMINISTRATION", "BUDGET OWNER", "EMPLOYEE", "MISSING", "PRE_APPROVER", "SUPERVISOR")


@pytest.mark.data
@real
@pytest.mark.parametrize(
    ("name", "events", "outcomes"),
    [
        ("helpdesk.xes.gz", {"Wait"}, set()),
        ("receipt_wabo.xes.gz", set(), set()),
        ("bpic2013_incidents.xes.gz", {"Queued"}, set()),
        ("eventdataR_hospital_billing.csv.gz", set(), {"CODE NOK", "REJECT", "STORNO"}),
        ("eventdataR_traffic_fines.csv.gz", set(), set()),
        ("bpic2020_DomesticDeclarations.xes.gz", set(), {f"Declaration REJECTED by {who}" for who in REJECTED}),
        ("bpic2020_RequestForPayment.xes.gz", set(), {f"Request For Payment REJECTED by {who}" for who in REJECTED}),
        pytest.param(
            "bpic2012.xes.gz",
            set(),
            {"A_CANCELLED", "A_DECLINED", "O_CANCELLED", "O_DECLINED"},
            marks=pytest.mark.nightly,
        ),
        pytest.param("real_start_end_BPIC_2017_W.csv.gz", set(), set(), marks=pytest.mark.nightly),
    ],
)
def test_the_shared_logs(bench: Any, name: str, events: set[str], outcomes: set[str]) -> None:
    bench.put("s/source.toml", 'timezone = "Europe/Amsterdam"')
    (bench.history / "s" / name).write_bytes((DATA / name).read_bytes())
    kinds = classify_source(*by_activity(evidence_of(bench.read().sources[0].folder)))
    found = {kind: {name for name, c in kinds.items() if c.kind == kind} for kind in ("event", "outcome")}
    assert found == {"event": events, "outcome": outcomes}


def test_every_task_of_the_sample_is_work() -> None:
    names = [task for name in ("coding", "insurance", "payables") for task in read_industry(name).industry.tasks]
    assert len(names) == 60
    assert [name for name in names if read_name(name)] == []

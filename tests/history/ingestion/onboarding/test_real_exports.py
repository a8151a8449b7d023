"""The proposal for each shared log reads all of it untouched, and so does the one for a German export of one
of them.
"""

import os
from pathlib import Path

import pytest

from opus_pipelines.history.ingestion.onboarding.propose import propose_settings
from opus_pipelines.history.ingestion.onboarding.report import Stated
from tests import ugly

DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[5] / "shared" / "data")) / "event_logs"
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}; OPUS_TEST_DATA says where it is"),
]


@pytest.mark.parametrize(
    ("name", "cases", "rejected", "attributes"),
    [
        ("helpdesk.xes.gz", 4_580, 0, 9),
        ("receipt_wabo.xes.gz", 1_434, 0, 8),
        ("bpic2020_DomesticDeclarations.xes.gz", 10_357, 0, 7),
        ("bpic2020_RequestForPayment.xes.gz", 6_760, 0, 11),
        ("eventdataR_traffic_fines.csv.gz", 10_000, 0, 4),
        ("eventdataR_hospital_billing.csv.gz", 9_999, 1, 6),
        ("bpic2013_incidents.xes.gz", 7_554, 0, 3),
        pytest.param("bpic2012.xes.gz", 13_087, 0, 2, marks=pytest.mark.nightly),
        pytest.param("real_start_end_BPIC_2017_W.csv.gz", 30_276, 0, 3, marks=pytest.mark.nightly),
    ],
)
def test_the_shared_logs(name: str, cases: int, rejected: int, attributes: int) -> None:
    with propose_settings("s", [DATA / name], Stated()) as proposal:
        assert proposal.trial.failed == []
        assert (proposal.findings.cases, proposal.trial.total("records_rejected")) == (cases, rejected)
        assert len(proposal.findings.case_attributes) == attributes
        assert proposal.draft.outcome is None


def test_a_german_export_of_a_real_log(tmp_path: Path) -> None:
    export = ugly.write(tmp_path / "export.csv", ugly.of_log(DATA / "bpic2020_DomesticDeclarations.xes.gz", 300))
    with propose_settings("s", [export], Stated()) as proposal:
        assert (proposal.findings.cases, proposal.trial.rejects, proposal.trial.failed) == (300, {}, [])
        assert proposal.draft.tables["columns"] == {
            "case": "Vorgangsnummer",
            "activity": "Aktivität",
            "time": "Zeitpunkt",
            "actor": "Bearbeiter",
            "actor_group": "Rolle",
            "cost": "Kosten",
            "attributes": ["Betrag"],
        }

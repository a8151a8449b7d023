"""The limits of contracts as limits of running cases."""

from pathlib import Path

from opus_pipelines.forecasts.limits import COST, LEAD_TIME, SERVICE_LEVEL, Limit, contract_limits

CONTRACT = """[constraints]
max_lead_time_hours = 2
max_cost_usd = 40
deadlines = [
    { step = "Pay", within = 1, unit = "days", after = "Approve" },
    { step = "Reply", within = 3, unit = "working_days" },
]
"""


def test_limits_of_each_contract(tmp_path: Path) -> None:
    for contract, text in (("Claims", CONTRACT), ("Letters", "gain_usd = 5\n"), ("Broken", "no toml")):
        folder = tmp_path / "Northwind" / contract
        folder.mkdir(parents=True)
        (folder / "contract.toml").write_text(text)

    assert contract_limits(tmp_path) == {
        ("Northwind", "Claims"): (
            Limit(LEAD_TIME, 7200.0),
            Limit(COST, 40.0),
            Limit(SERVICE_LEVEL, 86400.0, "Pay", "Approve"),
        )
    }


def test_no_folder_of_intakes(tmp_path: Path) -> None:
    assert contract_limits(tmp_path / "none") == {}

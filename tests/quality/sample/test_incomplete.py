"""Incomplete and mixed intakes of the sample: letters alone, and two letters in one folder."""

import tomllib

import pytest

from opus_pipelines.quality.sample.sources import ContractFiles, all_contracts, by_mail


@pytest.fixture(scope="module")
def home() -> ContractFiles:
    return by_mail(next(c for c in all_contracts() if c.contract.name == "Home Claims"))


def test_only_letters_and_the_contracts_gain_are_left(home: ContractFiles) -> None:
    assert {path.split("/")[1] for path in home.texts if "/" in path} == {"input", "intake.toml"}
    assert tomllib.loads(home.texts["contract.toml"]) == {
        "contract": "Home Claims, by mail",
        "client": "Harbourline Mutual",
        "industry": "insurance claims",
        "gain_usd": 280.0,
    }
    own = tomllib.loads(home.texts["2025-09-11-leaking-machine/intake.toml"])
    assert list(own) == ["received_at"], "neither a title nor constraints"


def test_neighbours_of_different_kinds_make_mixed_intakes(home: ContractFiles) -> None:
    assert {name: kinds for name, kinds in home.kinds.items() if len(kinds) > 1} == {
        "2025-09-03-burst-pipe-and-2025-09-05-back-door-burglary": ["Water damage claim", "Burglary claim"],
        "2025-09-05-back-door-burglary-and-2025-09-11-leaking-machine": ["Burglary claim", "Water damage claim"],
        "2025-09-11-leaking-machine-and-2025-09-18-pipes-stolen": ["Water damage claim", "Burglary with water damage"],
    }
    letters = [path for path in home.texts if path.startswith("2025-09-11-leaking-machine-and") and "/input/" in path]
    assert {path.split("/input/")[1].split("_")[0] for path in letters} == {"first", "second"}


def test_the_intakes_of_all_contracts() -> None:
    kinds = [kinds for contract in all_contracts() for kinds in by_mail(contract).kinds.values()]
    assert (sum(len(k) == 1 for k in kinds), sum(len(k) == 2 for k in kinds)) == (24, 15)

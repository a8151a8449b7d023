"""Answers under a scenario beside today's, on the sample."""

import json
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import SettingsError
from opus_pipelines.quality.what_if import Scenario

CLIENT, CONTRACT, INTAKE = "Harbourline Mutual", "Motor Claims", "2025-09-04-roundabout-collision"


def test_keys_go_where_they_belong() -> None:
    scenario = Scenario.of({"gain_usd": 5, "reward": {"quantum_usd": 1}, "tasks": {"Pay": {"p": 0.5, "cost": 2}}}, "x")
    assert (scenario.contract, scenario.settings) == ({"gain_usd": 5}, {"reward": {"quantum_usd": 1}})
    assert scenario.tasks == {"Pay": {"p": 0.5, "cost": 2}}


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({}, "states nothing"),
        ({"gain": 5}, "did you mean 'gain_usd'"),
        ({"client": "Acme"}, "'client' is no key"),
        ({"tasks": {"Pay": {"speed": 2}}}, "has the keys cost, p, q"),
        ({"tasks": {"Pay": {"p": 1.5}}}, "a probability"),
        ({"tasks": {"Pay": {"cost": -1}}}, "from 0 on"),
        ({"tasks": {"Pay": 3}}, "has the keys"),
    ],
)
def test_a_scenario_that_says_nothing_usable_is_refused(stated: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Scenario.of(stated, "scenario.toml")


@pytest.mark.model
def test_what_changes_is_told_and_nothing_is_published(
    sample_lake: Any, sample_files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked(*pairs: str) -> dict[str, Any]:
        capsys.readouterr()
        stated = [word for pair in pairs for word in ("--set", pair)]
        chosen = ["--client", CLIENT, "--contract", CONTRACT, "--intake", INTAKE, "--format", "json"]
        where = ["--lake", str(sample_lake.root), "whatif", "--intakes", str(sample_files.directory / "intakes")]
        assert main([*where, *chosen, *stated]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        return dict(row)

    before = {path for path in sample_lake.root.rglob("*") if "generation" in path.parts}
    same = asked("reward.default_gain_usd=1.0")  # which counts where nobody states a gain
    assert (same["change"], same["reward_usd"]) == ("none", same["reward_usd_today"])

    dearer = asked('tasks."Review Settlement".cost=100')
    assert dearer["cost_usd"] > dearer["cost_usd_today"] == same["cost_usd"]
    worth = [asked(f"gain_usd={gain}")["reward_usd"] for gain in (150.0, 160.0)]
    assert worth[1] - worth[0] == pytest.approx(10 * same["success_today"], abs=0.5), "EVAL (7)"

    survey = asked('constraints.must_contain=["Send Satisfaction Survey"]', "constraints.max_lead_time_hours=0.1")
    assert (survey["change"], survey["steps_added"]) == ("other steps", "Send Satisfaction Survey")
    assert "max_lead_time_hours" in survey["broken"]
    assert {path for path in sample_lake.root.rglob("*") if "generation" in path.parts} == before


@pytest.mark.model
def test_an_unknown_task_and_a_broken_pair_are_named(
    sample_lake: Any, sample_files: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--lake", str(sample_lake.root), "whatif", "--intakes", str(sample_files.directory / "intakes")]
    assert main([*where, "--set", 'tasks."Revew Settlement".p=0.2']) == 1
    assert "the nearest is 'Review Settlement'" in capsys.readouterr().err
    assert main([*where, "--set", "gain_usd"]) == 2
    assert "KEY=VALUE" in capsys.readouterr().err
    assert main([*where, "--intake", "nowhere", "--set", "gain_usd=1"]) == 1
    assert "no such intake" in capsys.readouterr().err

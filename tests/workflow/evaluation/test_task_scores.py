"""What the settings may put in a rule's place, and what they are refused."""

from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import ScoreRules, Settings, load, parse
from opus_pipelines.workflow.evaluation.penalty import RULES, Scores, TaskFacts, measure
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

FACTS = TaskFacts(("pay invoices", "file orders"), (), ("payment",), leaving=0.25, outcomes=1.0, figures=1.0)
PAY = Workflow.of(
    [InputNode("in", "In"), TaskNode("t", "t", "Pay-out"), OutputNode("out", "Out", 1.0)], [("in", "t"), ("t", "out")]
)


def measured(**rules: Any) -> Scores:
    return measure(PAY, {"t": FACTS}, parse(ScoreRules, rules, "settings"))["t"]


def test_the_rules_by_default() -> None:
    assert measured() == Scores(cohesion=1.0, coupling=0.25, observability=0.25, hygiene=0.0)
    assert set(RULES) == {getattr(ScoreRules(), name) for name in ("cohesion", "coupling", "observability", "hygiene")}


@pytest.mark.parametrize(
    ("rules", "scores"),
    [
        ({"cohesion": "complement"}, Scores(0.75, 0.25, 0.25, 0.0)),
        ({"coupling": "complement", "hygiene": "complement"}, Scores(1.0, 0.0, 0.25, 0.75)),
        ({"coupling": 0.4, "observability": 0}, Scores(1.0, 0.4, 0.0, 0.0)),
        ({"tasks": {"Pay out": {"coupling": 0.1}}}, Scores(1.0, 0.1, 0.25, 0.0)),
        (
            {"cohesion": "complement", "tasks": {"pay out": {"coupling": 0.1, "hygiene": 1}}},
            Scores(0.9, 0.1, 0.25, 1.0),
        ),
        ({"tasks": {"Another": {"coupling": 0.1}}}, Scores(1.0, 0.25, 0.25, 0.0)),
    ],
)
def test_what_the_settings_put_in_their_place(rules: dict[str, Any], scores: Scores) -> None:
    assert measured(**rules) == scores


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ({"cohesion": "encoder"}, "cohesion: .*'encoder' is none of: 'words' .measured., 'complement'"),
        ({"hygiene": "words"}, "'words' is none of: 'signals'"),
        ({"coupling": 1.5}, "1.5 is none of"),
        ({"coupling": "complement", "cohesion": "complement"}, "cohesion and coupling cannot both be the complement"),
        ({"cohesio": 0.5}, "unknown key cohesio; did you mean cohesion"),
        ({"tasks": {"Pay": {"hygeine": 0.5}}}, "unknown key tasks.Pay.hygeine; did you mean"),
        ({"tasks": {"Pay": {"hygiene": -1}}}, "tasks.Pay.hygiene: Input should be greater than or equal to 0"),
    ],
)
def test_refusals(rules: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        measured(**rules)


def test_settings_come_from_a_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "opus.toml"
    file.write_text('[scores]\ncoupling = "complement"\n[scores.tasks."Pay out"]\nhygiene = 0.25\n')
    found = load(file, {"OPUS_SCORES_HYGIENE": "0.5"}).scores
    assert (found.coupling, found.hygiene, found.tasks["Pay out"].hygiene, found.cohesion) == (
        "complement",
        0.5,
        0.25,
        "words",
    )
    assert Settings().scores == ScoreRules()

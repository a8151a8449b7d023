"""The error analysis: a planted effect is found and a null effect is not; bad files."""

import json
import random
from pathlib import Path

import pytest

from benchmarks.errors import ERROR_FEATURES, Sample, analyse, main, matrix, read_samples, sample_of
from opus_pipelines.core.errors import InputError

LOGIC = {"category": "flowlogic", "definition": "foreach", "order": 2}
FLOW = {
    "trigger": {"type": "service_catalog", "inputs": [{"name": "condition", "value": "a=1"}]},
    "components": [
        {"definition": "get_catalog_variables", "order": 1},
        LOGIC,
        {"definition": "IF", "category": "flowlogic", "order": 3, "block": 2},
        {
            "definition": "send_email",
            "order": 4,
            "block": 3,
            "inputs": [{"name": "to", "value": "{{service_catalog.requested_item.requested_for}}"}],
        },
    ],
}


def planted(count: int = 120) -> list[Sample]:
    """Scores are lower where a step is `hard`; the flag `noise` has no effect."""
    draw = random.Random(3)
    found = []
    for n in range(count):
        is_hard, noise = n % 3 == 0, draw.random() < 0.5
        score = 0.8 - 0.3 * is_hard + draw.uniform(-0.1, 0.1)
        found.append(
            Sample(f"s{n}", "do it", ("a", "b"), {"node_f1": score}, features={"hard": is_hard, "noise": noise})
        )
    return found


def test_a_planted_effect_is_found_and_noise_is_not() -> None:
    samples = planted()
    analysis = analyse(samples, "node_f1")
    effects = {e.feature: e for e in analysis.effects}
    hard, noise = effects["hard"], effects["noise"]
    assert (hard.n, hard.theme, hard.is_clear, analysis.effects[0]) == (40, "stated", True, hard)
    assert hard.difference == pytest.approx(-0.3, abs=0.03)
    assert hard.low < hard.difference < hard.high < -0.2
    assert not noise.is_clear
    assert noise.low < 0 < noise.high
    assert analysis.themes["stated"][0] == sum(any(s.features.values()) for s in samples)
    assert "log" in analysis.too_few
    assert set(hard.worst) <= {f"s{n}" for n in range(0, 120, 3)}
    assert analyse(planted(), "node_f1") == analysis


def test_alike_samples_count_as_one() -> None:
    many = [
        Sample(
            f"s{n}",
            None,
            ("a",),
            {"x": 0.2 if n < 30 else 0.9},
            features={"f": n < 30},
            group="one" if n < 30 else str(n),
        )
        for n in range(60)
    ]
    assert analyse(many, "x").effects[0].p > 0.01
    alone = [Sample(s.id, None, s.steps, s.scores, features=s.features) for s in many]
    assert analyse(alone, "x").effects[0].q < 0.01


def test_the_features_of_a_flow() -> None:
    sample = sample_of({"id": 1, "request": "Do not order anything", "gold": FLOW, "scores": {"flowsim": 1}})
    assert sample.steps == ("get_catalog_variables", "FOREACH", "IF", "send_email")
    holds = {name for name, column in matrix([sample]).items() if column[0]}
    assert holds == {
        "trigger service catalog",
        "get catalog variables",
        "trigger conditional",
        "requestor input",
        "FOREACH",
        "e-mail",
        "implicit actions",
        "misleading",
        "nested",
        "conditional steps",
        "short request",
    }
    unknown = {name for name, column in matrix([Sample("a", None, (), {})]).items() if column[0] is not None}
    assert unknown == set()
    assert len(ERROR_FEATURES) == 34


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 1"),
        ('{"scores": {}}', "id"),
        ('{"id": "a", "scores": {"x": "high"}}', "scores"),
        ('{"id": "a", "scores": {"x": NaN}}', "scores"),
        ('{"id": "a", "scores": {"x": 1}, "gold": []}'.replace("[]", '"p"'), "gold"),
        ('{"id": "a", "scores": {"x": 1}, "features": {"f": 1}}', "features"),
        ('{"id": "a", "scores": {"x": 1}, "tools": "many"}', "tools"),
        ("", "empty"),
    ],
)
def test_a_file_without_a_sample_is_an_error(tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text(line)
    with pytest.raises(InputError, match=words):
        read_samples(file)


def test_one_sample_or_an_unknown_score_is_an_error() -> None:
    with pytest.raises(InputError, match="node_f1"):
        analyse(planted(), "flowsim")


def test_the_program_prints_the_features_and_leaves_broken_lines_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": s.id, "request": "do", "scores": dict(s.scores), "features": dict(s.features)} for s in planted(30)]
    file = tmp_path / "samples.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\nbroken\n")
    assert main([str(file)]) == 0
    assert "hard *" in capsys.readouterr().out
    assert len(read_samples(file)[1]) == 1

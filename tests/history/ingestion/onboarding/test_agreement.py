"""A reading that does not agree with itself is not written with --yes, and the reason is named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.history.ingestion.onboarding.propose import propose_settings
from opus_pipelines.history.ingestion.onboarding.report import Stated

STEPS = ("Register", "Examine", "Decide", "Pay")


def _export(folder: Path, row: Callable[[int, int], str], head: str = "case,activity,timestamp,user,more") -> Path:
    """Writes 40 cases of four steps. `row` returns the cells from the time on, of a case and a step."""
    lines = [f"C{c},{name},{row(c, s)}" for c in range(40) for s, name in enumerate(STEPS)]
    file = folder / "export.csv"
    file.write_text("\n".join([head, *lines]) + "\n", "utf-8")
    return file


def _doubts(file: Path) -> list[str]:
    with propose_settings("s", [file], Stated()) as proposal:
        return list(proposal.doubts)


def _time(case: int, step: int, hour: int = 9) -> str:
    return f"2023-0{1 + case // 28}-{1 + case % 28:02d} {hour + step:02d}:1{case % 10}"


def test_a_log_that_agrees_has_no_doubt_and_is_written(tmp_path: Path) -> None:
    file = _export(tmp_path, lambda c, s: f"{_time(c, s, 10)},u{(c + s) % 5},x")
    assert _doubts(file) == []
    assert main(["init", str(file), "--to", str(tmp_path / "h" / "s"), "--yes"]) == 0


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (lambda c, s: f"{_time(c, s).replace('2023', '2099' if c == 7 else '2023')},u{(c + s) % 5},x", "future"),
        (lambda c, s: f"{_time(c, s, 1 + 3 * (c % 3))},u{(c + s) % 5},x", "twelve hours"),
        (lambda c, s: f"{_time(c, s, 10)},Customer {c},x", "customer"),
        (lambda c, s: f"{_time(c, s, 10)},u{(c + s) % 5},{'cancelled' if c % 9 == s else 'done'}", "done"),
    ],
)  # fmt: skip
def test_traces_of_a_wrong_reading_are_doubts(row: Callable[[int, int], str], told: str, tmp_path: Path) -> None:
    doubts = _doubts(_export(tmp_path, row))
    assert any(told in doubt for doubt in doubts), doubts


def test_a_doubtful_reading_is_written_with_the_consent_of_a_person_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, source = _export(tmp_path, lambda c, s: f"{_time(c, s, 10)},Customer {c},x"), tmp_path / "h" / "s"
    assert main(["init", str(file), "--to", str(source), "--yes"]) == 1
    assert "'Customer 0'" in capsys.readouterr().err
    assert not source.exists()
    assert main(["init", str(file), "--to", str(source), "--yes", "--accept-doubts"]) == 0
    assert (source / "source.toml").exists()


def test_sums_of_costs_parts_of_cases_and_spellings_are_doubts(tmp_path: Path) -> None:
    head = "case,activity,timestamp,user,cost"
    sums = _export(tmp_path, lambda c, s: f"{_time(c, s, 10)},u{(c + s) % 5},{(10 + c) * (s + 1)}.00", head)
    sums.write_text(sums.read_text("utf-8").replace(",Pay,", ",Decide,"), "utf-8")
    assert "'cost' never falls" in _doubts(sums)[0]
    text = _export(tmp_path, lambda c, s: f"{_time(c, s, 10)},u{(c + s) % 5},x").read_text("utf-8")
    (tmp_path / "parts.csv").write_text(text.replace("C12,", "C11-1,"), "utf-8")
    assert "'C11-1' and 'C11'" in _doubts(tmp_path / "parts.csv")[0]
    (tmp_path / "spelled.csv").write_text(text.replace("C3,Pay,", "C3,PAY,"), "utf-8")
    assert "'Pay' and 'PAY'" in _doubts(tmp_path / "spelled.csv")[0]


def test_nobody_is_read_where_a_column_of_signs_may_tell_it(tmp_path: Path) -> None:
    head = "case,activity,timestamp,kz,more"
    doubts = _doubts(
        _export(tmp_path, lambda c, s: f"{_time(c, s, 10)},{['MUE', 'SCH', 'KRA', 'BAU', 'WOL'][(c + s) % 5]},x", head)
    )
    assert [doubt for doubt in doubts if "'kz'" in doubt and "--actor" in doubt]


def test_names_of_codes_are_read_from_lines_below_the_table(tmp_path: Path) -> None:
    file = _export(tmp_path, lambda c, s: f"{_time(c, s, 10)},u{(c + s) % 5},x")
    text = file.read_text("utf-8")
    for place, name in enumerate(STEPS):
        text = text.replace(f",{name},", f",{10 + place},")
    file.write_text(text + "".join(f"* {10 + place} = {name}\n" for place, name in enumerate(STEPS)), "utf-8")
    with propose_settings("s", [file], Stated()) as proposal:
        assert proposal.trial.evidence.keys() == set(STEPS)
        assert proposal.doubts == ()

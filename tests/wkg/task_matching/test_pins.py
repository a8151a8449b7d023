"""pins.toml: what it says, what it must not say, and what it names in vain."""

from pathlib import Path

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.wkg.task_matching.pins import Pins, read_pins


def read(tmp_path: Path, text: str) -> Pins:
    (tmp_path / "pins.toml").write_text(text, "utf-8")
    return read_pins(tmp_path / "history")


def test_without_a_file_nothing_is_pinned(tmp_path: Path) -> None:
    assert read_pins(tmp_path / "history") == Pins()


def test_pins_are_read(tmp_path: Path) -> None:
    pins = read(
        tmp_path, '[[same]]\ntasks = ["a/Check", "b/verify it/now"]\n[[apart]]\ntasks = ["a/x", "b/y", "c/z"]\n'
    )
    assert pins.same[0].tasks == ("a/Check", "b/verify it/now")
    assert len(pins.pairs_apart) == 3
    assert pins.kept_apart == {"a/x", "b/y", "c/z"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[sam]]\ntasks = ["a/x", "b/y"]', r"pins.toml: unknown key sam; did you mean same\?"),
        ('[[same]]\ntasks = ["a/x"]', "at least 2 items"),
        ('[[same]]\ntasks = ["a/x", "verify"]', "'verify' is not source/task key"),
        (
            '[[same]]\ntasks = ["a/x", "b/y"]\n[[same]]\ntasks = ["b/y", "c/z"]\n[[apart]]\ntasks = ["c/z", "a/x"]',
            "'c/z' and 'a/x' are pinned as the same and as apart",
        ),
        ("[[same]", "pins.toml: "),
    ],
)
def test_what_cannot_be_followed_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read(tmp_path, text)


def test_a_pin_that_names_nothing_known_says_so(tmp_path: Path) -> None:
    pins = read(tmp_path, '[[same]]\ntasks = ["claims/Chekc", "gone/verify", "claims/Pay"]')
    misspelt, waiting = pins.unknown(["claims/Check", "claims/Pay", "other/Check"])
    assert misspelt.startswith("pins.toml names 'claims/Chekc'")
    assert misspelt.endswith("did you mean 'claims/Check'?")
    assert waiting.startswith("pins.toml names 'gone/verify'")

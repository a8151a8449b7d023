import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_readme_holds_the_current_settings_and_data_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "scripts"), *sys.path])
    import reference

    readme = (ROOT / "README.md").read_text("utf-8")
    assert reference.written(readme) == readme, "run `make docs`"


def test_readme_starts_with_the_two_commands() -> None:
    first = (ROOT / "README.md").read_text("utf-8").splitlines()[:4]
    assert [line.split("#")[0].strip() for line in first] == ["```sh", "make run", "make test", "```"]

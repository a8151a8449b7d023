import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["settings", "datasets"])
def test_docs_hold_the_current_settings_and_data_dictionary(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "scripts"), *sys.path])
    import reference

    before, after = reference.written(name)
    assert after == before, "run `make docs`"


def test_readme_starts_with_the_two_commands() -> None:
    first = (ROOT / "README.md").read_text("utf-8").splitlines()[:4]
    assert [line.split("#")[0].strip() for line in first] == ["```sh", "make run", "make test", "```"]

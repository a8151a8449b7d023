"""The pages of docs/reference are made from the code, and are current."""

import shlex
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from opus_pipelines.cli.main import opus
from tests.docs.pages import ROOT, blocks

PAGES = ["checks", "cli", "datasets", "settings"]


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return import_module("reference")


@pytest.mark.parametrize("name", [*PAGES, "packages"])
def test_a_page_is_current(name: str, reference: ModuleType) -> None:
    before, after = reference.written(name)
    assert after == before, "run `make docs`"


def test_every_page_is_made_from_code(reference: ModuleType) -> None:
    assert sorted(set(reference.MADE) - set(reference.ELSEWHERE)) == PAGES
    assert sorted(path.stem for path in (ROOT / "docs" / "reference").glob("*.md")) == PAGES


def test_a_page_that_is_changed_by_hand_is_noticed(reference: ModuleType, tmp_path: Path) -> None:
    text = (ROOT / "docs/reference/checks.md").read_text("utf-8")
    (tmp_path / "checks.md").write_text(text.replace("| `keys_are_unique` |", "| `keys` |"), "utf-8")
    before, after = reference.written("checks", tmp_path)
    assert before != after == text


def test_the_command_reference_has_every_command_with_an_option_and_an_example(reference: ModuleType) -> None:
    text = reference.command_reference()
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## opus",
        *(f"## opus {n}" for n in sorted(opus.commands)),
    ]
    best, discover = [line for line in text.splitlines() if line.startswith("| `--top INTEGER RANGE` | ")]
    assert best.endswith(" [default: 3; x&gt;=1] |")
    assert discover.endswith(" [default: 30; x&gt;=1] |")
    assert '```console\nopus best --client "Northwind Insurance" --top 1\n```' in text


def test_the_check_reference_has_every_check_of_dagster(reference: ModuleType) -> None:
    text = reference.check_reference()
    assert "| `ranks_without_gaps` | workflows/optimized | " in text
    assert all(spec.description for specs in reference.CHECKS.values() for spec in specs)
    assert all(f"| `{spec.name}` | " in text for specs in reference.CHECKS.values() for spec in specs)


def test_the_examples_of_help_texts_are_commands_that_click_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of files and workflows in them are invented; options, choices and numbers are not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "history" / "claims").mkdir(parents=True)
    for name in ("export.csv", "first.yaml", "second.yaml", "claim.yaml", "scenario.toml"):
        (tmp_path / name).touch()
    lines = [line for block in blocks("docs/reference/cli.md") if block.info == "console" for line in block.lines]
    commands = [part.split(" > ")[0] for line in lines for part in line.split(" && ")]
    assert len(commands) > 30
    for command in commands:
        called, *words = shlex.split(command)
        assert called == "opus"
        if words[0] == "--lake":
            words = words[2:]
        opus.commands[words[0]].make_context(words[0], words[1:])  # raises what a user would be told

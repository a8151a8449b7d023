"""Writes the pages of docs/reference that are made from code: settings, datasets, commands and checks.

It also writes the table of packages in docs/architecture.md. `make docs` runs it.

With --check it changes nothing and exits 1 when a page is out of date.
"""

import ast
import configparser
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import dagster as dg
from pydantic import BaseModel

from assets import checks
from assets.flows import FAILED_FLOWS
from opus_pipelines.cli.main import opus
from opus_pipelines.core.schemas import DATASETS, TASK_IMPLEMENTATION, Column
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.intakes.contract_settings import ContractSettings, IntakeSettings

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
ELSEWHERE = {"packages": "../architecture.md"}  # the parts that stand in a page of another folder
CHECKS: dict[str, list[dg.AssetCheckSpec]] = {  # by the stage after which they run
    "Before history is mined": checks.HISTORY_CHECKS,
    "Before a snapshot is published: mined datasets": checks.MINED_CHECKS,
    "Before a snapshot is published: embeddings and index": checks.EMBEDDED_CHECKS,
    "Before a result of a contract is published": checks.RESULT_CHECKS,
    "Warnings": [
        checks.REJECTED_WHOLE,
        checks.HELD_BACK,
        checks.NOT_MINED,
        checks.NOT_EMBEDDED,
        checks.DAMAGED,
        checks.FAILED_INTAKES,
        FAILED_FLOWS,
    ],
}


def settings_reference() -> str:
    """Return one table for each settings file: every key, its default, its meaning."""
    files: dict[str, type[BaseModel]] = {
        "opus.toml": Settings,
        "source.toml": SourceSettings,
        "contract.toml": ContractSettings,
        "intake.toml": IntakeSettings,
    }
    return "\n\n".join(
        f"## {name}\n\n{_table(('key', 'default', 'meaning'), _keys(model))}" for name, model in files.items()
    )


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    for name, field in model.model_fields.items():
        key, inner = f"{prefix}{field.alias or name}", field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _keys(inner, f"{key}.")
        else:
            meaning = _cell(field.description or "") + _reach(field.json_schema_extra)
            yield f"`{key}`", _default(field.get_default(call_default_factory=True)), meaning


def _reach(extra: object) -> str:
    """Return the mark of a key that a working directory's opus.toml may not set."""
    return f" **guarded**: {extra['reach']}" if isinstance(extra, dict) and "reach" in extra else ""


def _default(value: Any) -> str:
    if value is None or value == "" or value == () or value == {} or value == []:
        return ""
    if isinstance(value, dict):
        return _cell(", ".join(f"`{k}` {v}" for k, v in value.items()))
    return f"`{_cell(str(value).lower() if isinstance(value, bool) else str(value))}`"


def data_dictionary() -> str:
    """Return one table for each dataset: its columns, their types and meanings; then the tasks of an implementation."""
    parts = [
        f"## {d.name}\n\n{d.about}; view `{d.view}`, rows by {', '.join(f'`{k}`' for k in d.key)}"
        + (f", partitions {', '.join(f'`{p}`' for p in d.partitions)}" if d.partitions else "")
        + f"\n\n{_columns(d.columns)}"
        for d in DATASETS.values()
    ]
    inner = (
        f"## task_implementation\n\nan element of `tasks` in history/implementations\n\n{_columns(TASK_IMPLEMENTATION)}"
    )
    return "\n\n".join([*parts, inner])


def _columns(columns: tuple[Column, ...]) -> str:
    return _table(
        ("column", "type", "meaning"), ((f"`{c.name}`", _cell(c.type_name), _cell(c.meaning)) for c in columns)
    )


def command_reference() -> str:
    """Return one section for each command of `opus`: usage, what it does, its options, and the examples of its help."""
    context = click.Context(opus)
    names = opus.list_commands(context)
    commands = [(name, command) for name in names if (command := opus.get_command(context, name)) is not None]
    parts = [_command("opus", opus), *(_command(f"opus {name}", command) for name, command in commands)]
    return "\n\n".join(parts)


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name, help_option_names=opus.context_settings["help_option_names"])
    about, examples = _about_and_examples(command)
    options = [_option(context, p) for p in command.get_params(context) if isinstance(p, click.Option)]
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"## {name}", f"```text\n{usage}\n```", about, _table(("option", "meaning"), options)]
    if examples:
        parts.append("```console\n" + "\n".join(examples) + "\n```")
    return "\n\n".join(parts)


def _about_and_examples(command: click.Command) -> tuple[str, list[str]]:
    """Return the paragraphs of a command's help, and its examples.

    The examples are the lines of the paragraph that begins with 'Example:'.
    """
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    kept = [p.removeprefix("\b\n") for p in paragraphs]
    about = "\n\n".join(_cell(" ".join(p.split())) for p in kept if not p.startswith("Example:"))
    return about, [line.strip() for p in kept if p.startswith("Example:") for line in p.splitlines()[1:]]


def _option(context: click.Context, option: click.Option) -> tuple[str, str]:
    written, meaning = option.get_help_record(context) or ("", "")
    return _code(written), _cell(" ".join(meaning.split()))


def check_reference() -> str:
    """Return one table for each stage: every check, the datasets it looks at, and what must hold."""
    return "\n\n".join(f"## {stage}\n\n{_checks(specs)}" for stage, specs in CHECKS.items())


def _checks(specs: list[dg.AssetCheckSpec]) -> str:
    datasets: dict[tuple[str, str], list[str]] = {}
    for spec in specs:
        datasets.setdefault((spec.name, spec.description or ""), []).append("/".join(spec.asset_key.path))
    rows = ((f"`{name}`", ", ".join(of), _cell(about)) for (name, about), of in datasets.items())
    return _table(("check", "datasets", "what must hold"), rows)


def package_reference() -> str:
    """Return the table of packages: one row for each layer of the import contract, from the top to the bottom."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:orchestration"]["layers"].split()
    rows = ((str(n), _code(layer.removeprefix("opus_pipelines.")), _about(layer)) for n, layer in enumerate(layers, 1))
    return _table(("layer", "package", "what it does"), rows)


def _about(package: str) -> str:
    """Return the first part of a package's docstring, before it says what comes in."""
    place = ROOT.joinpath(*package.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split())
    return _cell(text.split(" In: ")[0])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


MADE: dict[str, Callable[[], str]] = {  # by page
    "settings": settings_reference,
    "datasets": data_dictionary,
    "cli": command_reference,
    "checks": check_reference,
    "packages": package_reference,
}


def page(name: str, pages: Path = PAGES) -> Path:
    """Return the page in which a part that is made from code stands."""
    return pages / ELSEWHERE.get(name, f"{name}.md")


def written(name: str, pages: Path = PAGES) -> tuple[str, str]:
    """Return the text of a page as it stands, and the same with its part that is made from code made anew."""
    text = page(name, pages).read_text("utf-8")
    start, end = f"<!-- {name}: made by `make docs` -->\n", f"<!-- end of {name} -->"
    head, rest = text.split(start)
    return text, head + start + "\n" + MADE[name]() + "\n\n" + end + rest.split(end, 1)[1]


if __name__ == "__main__":
    stale = {name: after for name in MADE for before, after in [written(name)] if after != before}
    if "--check" in sys.argv[1:]:
        sys.exit(bool(stale))
    for name, after in stale.items():
        page(name).write_text(after, "utf-8")

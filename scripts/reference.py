"""Writes the parts of docs/ that are made from code: the settings reference and the data dictionary. `make docs` runs it.

With --check it changes nothing and exits 1 when one of them is out of date.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from opus_pipelines.generation.contract_settings import ContractSettings, IntakeSettings
from opus_pipelines.history.source_settings import SourceSettings
from opus_pipelines.schemas import DATASETS, TASK_IMPLEMENTATION, Column
from opus_pipelines.settings import Settings

DOCS = Path(__file__).resolve().parents[1] / "docs"


def settings_reference() -> str:
    """A table a file: every key, its default, its meaning."""
    files = {"opus.toml": Settings, "source.toml": SourceSettings, "contract.toml": ContractSettings, "intake.toml": IntakeSettings}
    head = ["", "| key | default | meaning |", "| --- | --- | --- |"]
    return "\n\n".join("\n".join([f"## {name}", *head, *_keys(model)]) for name, model in files.items())


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        key, inner = f"{prefix}{field.alias or name}", field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _keys(inner, f"{key}.")
        else:
            yield f"| `{key}` | {_default(field.get_default(call_default_factory=True))} | {_cell(field.description or '')} |"


def _default(value: Any) -> str:
    if value is None or value == "" or value == () or value == {} or value == []:
        return ""
    if isinstance(value, dict):
        return _cell(", ".join(f"`{k}` {v}" for k, v in value.items()))
    return f"`{_cell(str(value).lower() if isinstance(value, bool) else str(value))}`"


def data_dictionary() -> str:
    """A table a dataset: every column, its type, its meaning; then the tasks inside an implementation."""
    parts = [
        f"## {d.name}\n\n{d.about}; view `{d.view}`, rows by {', '.join(f'`{k}`' for k in d.key)}"
        + (f", partitions {', '.join(f'`{p}`' for p in d.partitions)}" if d.partitions else "")
        + f"\n\n{_columns(d.columns)}"
        for d in DATASETS.values()
    ]
    inner = f"## task_implementation\n\nan element of `tasks` in history/implementations\n\n{_columns(TASK_IMPLEMENTATION)}"
    return "\n\n".join([*parts, inner])


def _columns(columns: tuple[Column, ...]) -> str:
    rows = [f"| `{c.name}` | {_cell(c.type_name)} | {_cell(c.meaning)} |" for c in columns]
    return "\n".join(["| column | type | meaning |", "| --- | --- | --- |", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


MADE = {"settings": settings_reference, "datasets": data_dictionary}  # by file of docs/


def written(name: str) -> tuple[str, str]:
    """The text of a file of docs/ as it stands, and with its part that is made from code made anew."""
    text = (DOCS / f"{name}.md").read_text("utf-8")
    start, end = f"<!-- {name}: made by `make docs` -->\n", f"<!-- end of {name} -->"
    head, rest = text.split(start)
    return text, head + start + "\n" + MADE[name]() + "\n\n" + end + rest.split(end, 1)[1]


if __name__ == "__main__":
    stale = {name: after for name in MADE for before, after in [written(name)] if after != before}
    if "--check" in sys.argv[1:]:
        sys.exit(bool(stale))
    for name, after in stale.items():
        (DOCS / f"{name}.md").write_text(after, "utf-8")

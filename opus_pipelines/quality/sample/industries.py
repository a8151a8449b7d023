"""Reads the sample's industries: `industries/*.toml` in this package hold their tasks and kinds of case.

`kinds` are those of history. `unseen` occur in intakes only: each combines the work of two known kinds in one case with
one outcome. No case of history holds their tasks, so no case can be looked up. What damages the cases of either kind
damages these too.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from opus_pipelines.quality.sample.model import (
    Check,
    Do,
    Element,
    ExecutionMode,
    Industry,
    Kind,
    Maybe,
    Needed,
    Ordered,
    Task,
    Together,
    code,
    human,
    large,
    small,
)

_MODES: dict[str, Callable[..., ExecutionMode]] = {"human": human, "code": code, "small": small, "large": large}
_STEPS: dict[str, Callable[..., Element]] = {
    "do": Do,
    "maybe": Maybe,
    "together": Together,
    "check": Check,
    "needed": Needed,
    "ordered": lambda tasks, **more: Ordered(tuple(tasks), **more),
}


@dataclass(frozen=True)
class IndustryKinds:
    """An industry, and the kinds of case of each of its contracts, by the resource of the contract."""

    industry: Industry
    kinds: Mapping[str, tuple[Kind, ...]]
    unseen: Mapping[str, tuple[Kind, ...]]


def read_industry(name: str) -> IndustryKinds:
    """Returns the industry of a file of this package."""
    resource = files("opus_pipelines.quality.sample") / "industries" / f"{name}.toml"
    data: dict[str, Any] = tomllib.loads(resource.read_text("utf-8"))
    tasks = {stated["name"]: _task(stated) for stated in data["tasks"]}
    industry = Industry(data["name"], data["usd_per_hour"], tasks)
    return IndustryKinds(industry, _by_contract(data.get("kinds", [])), _by_contract(data["unseen"]))


def _task(stated: dict[str, Any]) -> Task:
    modes = tuple(_MODES[mode["by"]](**{k: v for k, v in mode.items() if k != "by"}) for mode in stated["modes"])
    lists = {name: tuple(stated[name]) for name in ("inputs", "outputs")}
    return Task(**{**stated, **lists, "modes": modes})


def _by_contract(stated: list[dict[str, Any]]) -> dict[str, tuple[Kind, ...]]:
    contracts = dict.fromkeys(kind["contract"] for kind in stated)
    return {name: tuple(_kind(kind) for kind in stated if kind["contract"] == name) for name in contracts}


def _kind(stated: dict[str, Any]) -> Kind:
    return Kind(
        stated["title"],
        stated.get("description", ""),
        {name: tuple(choices) for name, choices in stated.get("details", {}).items()},
        stated.get("procedure", ""),
        tuple(map(_element, stated["flow"])),
        stated.get("cases", 0),
    )


def _element(stated: dict[str, Any]) -> Element:
    """Returns an element of a flow: its first key is the word for it, with the task or the weights of the tasks."""
    (word, first), *further = stated.items()
    return _STEPS[word](first, **dict(further))

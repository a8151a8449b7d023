"""Defines the settings of a contract (`contract.toml`) and of one intake (`intake.toml`).

Where both state a value, the intake's own value wins.
"""

import difflib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Cost, FlowBackendName, Section, Settings, fields_of, parse
from opus_pipelines.core.settings_files import stated_toml
from opus_pipelines.intakes.visibility.unseen import Aside
from opus_pipelines.workflow.constraints import Constraints
from opus_pipelines.workflow.evaluation.calendar_settings import CalendarSettings


class DocumentReading(Section):
    """What is read of the documents beside what a person sees at once. Hidden text never is."""

    also_read: list[Aside] = Field(
        [],
        description="texts of outputs, procedures and contract documents that a person must open, and that then "
        "count: notes (of slides), subject (head of an e-mail), details (closed blocks), scan_text (the invisible "
        "text layer of scanned pages), split_words (words with characters without width inside)",
    )


class Review(Section):
    """Who reviews under a contract, and how reliably.

    Where nothing is stated, no review is placed. Without p or q, those of the reviews of history apply.
    """

    actor_kind: str | None = Field(None, description="human, model or code")
    model: str | None = Field(None, description="AI model that reviews")
    p: float | None = Field(None, ge=0, le=1, description="P(right after the review | right before)")
    q: float | None = Field(None, ge=0, le=1, description="P(right after the review | wrong before)")
    cost_usd: float | None = Field(None, ge=0, description="of one review; unstated: the settings' price")
    duration_ms: float | None = Field(None, ge=0, description="of one review; unstated: the settings' default")
    allowed: bool = Field(True, description="may reviews be placed")


class ContractSettings(Section):
    """The settings of contract.toml."""

    client: str | None = Field(None, description="when the folder's name is not the name")
    contract: str | None = Field(None, description="when the folder's name is not the name")
    industry: str | None = Field(None, description="industry of its intakes")
    gain_usd: float | None = Field(None, description="worth of a right output")
    constraints: Constraints = Constraints()
    answers: dict[str, str] = Field(
        {},
        description="the activity that a phrase of the procedures means, where `opus explain` asks; `none` for none",
    )
    prices: dict[str, Any] = Field(
        {}, description="as [cost] in opus.toml, for this contract; NAME = 60 is a price an hour"
    )
    review: Review = Review()
    documents: DocumentReading = DocumentReading()
    flow_backend: FlowBackendName | None = Field(None, description="what writes its flows; unstated: flows.backend")
    calendar: CalendarSettings | None = Field(None, description="when its people work; without it, around the clock")
    regenerate: Literal["nightly", "on_change", "never"] = Field(
        "on_change",
        description="what renews stale results: nightly (and a watched change), on_change (a watched change), or never",
    )


class IntakeSettings(Section):
    """The settings of intake.toml."""

    title: str | None = Field(None, description="what the client calls it")
    received_at: datetime | None = Field(None, description="when it came in")
    industry: str | None = Field(None, description="where it is not the contract's")
    gain_usd: float | None = Field(None, description="worth of a right output")
    attributes: dict[str, str | int | float | bool] = Field(
        {},
        description="known attributes of the case, named as in history; similar cases are retrieved by them",
    )
    constraints: Constraints = Constraints()
    documents: DocumentReading | None = Field(None, description="as in contract.toml, for this intake's documents")
    answers: dict[str, str] = Field({}, description="as in contract.toml, for this intake")


def load_contract(folder: Path) -> ContractSettings:
    """Loads contract.toml of a folder, or the defaults where there is none. Raises SettingsError on a defect."""
    return _load(ContractSettings, folder / "contract.toml")


def load_intake(folder: Path) -> IntakeSettings:
    """Loads intake.toml of a folder, or the defaults where there is none.

    Raises SettingsError on a defect, and for a time without a time zone.
    """
    settings = _load(IntakeSettings, folder / "intake.toml")
    if settings.received_at is None:
        return settings
    if settings.received_at.tzinfo is None:
        raise SettingsError(f"{folder / 'intake.toml'}: received_at has no time zone; write it as 2026-01-31T09:00:00Z")
    return settings.model_copy(update={"received_at": settings.received_at.astimezone(UTC)})


def prices(settings: Settings, contract: ContractSettings, where: Path) -> Cost:
    """Returns the cost settings in force: the contract's prices over those of opus.toml, tables merged key by key.

    A number under a name that is no key of `[cost]`, nor spelled like one, is a price per hour: `SUPERVISOR = 60` is
    short for `usd_per_hour = { SUPERVISOR = 60 }`. Whether history knows the name is checked when work begins
    (`lwm.retrieval.task_names`).
    """
    merged = settings.cost.model_dump()
    stated = dict(contract.prices)
    for name in [key for key, value in stated.items() if _is_price(key, value)]:
        stated["usd_per_hour"] = {**stated.get("usd_per_hour", {}), name: stated.pop(name)}
    for key, value in stated.items():
        merged[key] = (
            {**merged[key], **value} if isinstance(merged.get(key), dict) and isinstance(value, dict) else value
        )
    return parse(Cost, merged, f"{where / 'contract.toml'} [prices]")


def _is_price(key: str, value: object) -> bool:
    known = fields_of(Cost)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and key not in known and not difflib.get_close_matches(key, known, n=1, cutoff=0.75)


T = TypeVar("T", bound=Section)


def _load(model: type[T], path: Path) -> T:
    stated = stated_toml(path, path.parent)
    return model() if stated is None else parse(model, stated, str(path))

"""What a proposed source.toml is written from."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from opus_pipelines.history.activity_kinds import Classified
from opus_pipelines.history.values import FALSE, TRUE
from opus_pipelines.proposal.findings import Outcome


@dataclass(frozen=True)
class Stated:
    """What the person said on the command line."""

    industry: str | None = None
    client: str | None = None
    contract: str | None = None
    timezone: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)  # dollars a unit of a currency, of opus.toml


@dataclass(frozen=True)
class OutcomeColumn:
    """A column or attribute that plainly is an outcome: its good and its bad values."""

    name: str
    good: tuple[str, ...]
    bad: tuple[str, ...]

    @property
    def is_boolean(self) -> bool:
        """Do its values need no rule?"""
        return {value.lower() for value in self.good} <= TRUE and {value.lower() for value in self.bad} <= FALSE


@dataclass(frozen=True)
class Draft:
    """What source.toml is written from. `plain`: top-level keys; `tables`: [columns], [record], [task]; `notes`: key → why it is so."""

    plain: dict[str, str | list[str]] = field(default_factory=dict)
    tables: dict[str, dict[str, str | list[str]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    outcome: OutcomeColumn | None = None
    kinds: dict[str, Classified] = field(default_factory=dict)
    candidates: tuple[Outcome, ...] = ()
    unclear: tuple[tuple[str, Counter[str]], ...] = ()  # columns that are called outcomes, but whose values do not say which are good

"""Defines the typed settings of `opus.toml` and reads every TOML file that a person writes.

An unknown key is refused, and the message names the nearest known one. Order of precedence: the command line, then
`OPUS_<SECTION>_<KEY>` variables, then the file, then the defaults below. `event_logs.source_settings` defines the
settings of a source, `intakes.contract_settings` those of a contract and an intake.
"""

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.model_settings import CausalLm, MLflow, OpenaiCompatible
from opus_pipelines.core.settings_sections import (
    Checks,
    Cost,
    Currency,
    Disk,
    Encoder,
    Forecasts,
    Generation,
    Graph,
    History,
    Paths,
    Priors,
    Rates,
    Retention,
    Reward,
    Schedule,
    ScoreRules,
    Section,
    Spark,
    TaskScores,
    Wkg,
)

__all__ = [
    "FILE_NAME",
    "SHORTHANDS",
    "CausalLm",
    "Checks",
    "Cost",
    "Currency",
    "Disk",
    "Encoder",
    "Forecasts",
    "Generation",
    "Graph",
    "History",
    "MLflow",
    "OpenaiCompatible",
    "Paths",
    "Priors",
    "Rates",
    "Retention",
    "Reward",
    "Schedule",
    "ScoreRules",
    "Section",
    "Settings",
    "Spark",
    "TaskScores",
    "Wkg",
    "fields_of",
    "load",
    "parse",
    "read_toml",
]


class Settings(Section):
    """The whole of `opus.toml`."""

    paths: Paths = Paths()
    history: History = History()
    spark: Spark = Spark()
    graph: Graph = Graph()
    wkg: Wkg = Wkg()
    encoder: Encoder = Encoder()
    generation: Generation = Generation()
    cost: Cost = Cost()
    currency: Currency = Currency()
    reward: Reward = Reward()
    scores: ScoreRules = ScoreRules()
    priors: Priors = Priors()
    checks: Checks = Checks()
    retention: Retention = Retention()
    disk: Disk = Disk()
    schedule: Schedule = Schedule()
    forecasts: Forecasts = Forecasts()
    mlflow: MLflow = MLflow()
    causal_lm: CausalLm = CausalLm()
    openai_compatible: OpenaiCompatible = OpenaiCompatible()


T = TypeVar("T", bound=BaseModel)
SHORTHANDS = {
    "OPUS_LAKE": ("paths", "lake"),
    "OPUS_HISTORY": ("paths", "history"),
    "OPUS_INTAKES": ("paths", "intakes"),
}
FILE_NAME = "opus.toml"


def read_toml(path: Path) -> dict[str, Any]:
    """Reads the tables of a TOML file. Raises SettingsError that names the file and the place of the error."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path}: {error}") from None


def parse(model: type[T], data: Mapping[str, Any], where: str) -> T:
    """Validates `data` as `model`.

    Raises SettingsError that lists every defect with its key, and the nearest known key for an unknown one.
    """
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        raise SettingsError(f"{where}: " + "; ".join(_defect(model, e) for e in error.errors())) from None


def load(file: Path | None = None, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Loads settings from `file` (or ./opus.toml if it exists), the environment, and `section__key=value` overrides.

    Raises SettingsError where the file is missing or a value is not allowed.
    """
    environ = os.environ if environ is None else environ
    if file is not None and not file.is_file():
        raise SettingsError(f"{file}: no such settings file")
    path = file or Path(FILE_NAME)
    data: dict[str, Any] = read_toml(path) if path.is_file() else {}
    for (section, key), value in _from_environment(environ).items():
        data.setdefault(section, {})[key] = value
    for name, value in overrides.items():
        if value is not None:
            section, key = name.split("__")
            data.setdefault(section, {})[key] = value
    return parse(Settings, data, str(path) if path.is_file() else "settings")


def fields_of(model: type[BaseModel]) -> dict[str, str]:
    """Returns the field name for each key as it is written in TOML."""
    return {(f.alias or name): name for name, f in model.model_fields.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[tuple[str, str], Any]:
    known = {
        f"OPUS_{section}_{key}".upper(): (section, key)
        for section, field in Settings.model_fields.items()
        for key in fields_of(field.annotation)  # type: ignore[arg-type]
    } | SHORTHANDS
    return {
        known[name]: value if known[name][0] == "paths" else _plain(value)
        for name, value in sorted(environ.items())
        if name in known
    }


def _plain(value: str) -> Any:
    """Parses a variable's text: numbers and tables as JSON, everything else as text."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def _defect(model: type[BaseModel], error: Any) -> str:
    place = [str(part) for part in error["loc"]]
    if error["type"] != "extra_forbidden":
        return f"{'.'.join(place)}: {error['msg']}"
    for part in place[:-1]:
        inner = model.model_fields.get(fields_of(model).get(part, ""))
        if inner is not None and isinstance(inner.annotation, type) and issubclass(inner.annotation, BaseModel):
            model = inner.annotation
    near = difflib.get_close_matches(place[-1], fields_of(model), n=1, cutoff=0.0)
    return f"unknown key {'.'.join(place)}" + (f"; did you mean {near[0]}?" if near else "")

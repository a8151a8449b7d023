"""Defines the typed settings of `opus.toml` and reads every TOML file that a person writes.

An unknown key is refused, and the message names the nearest known one; one that an earlier version had is ignored with
a warning (`settings_files.REMOVED`). Order of precedence: the command line, then `OPUS_<SECTION>_<KEY>` variables, then
the file, then the defaults below. `history.records.source_settings` defines the settings of a source,
`intakes.contract_settings` those of a contract and an intake.
"""

import difflib
import json
import os
import re
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.formatting import clean
from opus_pipelines.core.registry import declared
from opus_pipelines.core.settings_files import stated_toml, warn_of_removed_variables, without_removed
from opus_pipelines.core.settings_sections import (
    Alerts,
    CausalLm,
    Checks,
    Cost,
    Currency,
    Disk,
    Encoder,
    FlowBackendName,
    Flows,
    ForecastLimits,
    Forecasts,
    Generation,
    Graph,
    History,
    Lwm,
    MLflow,
    ObjectStore,
    OpenaiCompatible,
    Ops,
    Paths,
    Priors,
    Query,
    Rates,
    Reading,
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
    "Alerts",
    "CausalLm",
    "Checks",
    "Cost",
    "Currency",
    "Disk",
    "Encoder",
    "FlowBackendName",
    "Flows",
    "ForecastLimits",
    "Forecasts",
    "Generation",
    "Graph",
    "History",
    "Lwm",
    "MLflow",
    "ObjectStore",
    "OpenaiCompatible",
    "Ops",
    "Paths",
    "Priors",
    "Query",
    "Rates",
    "Reading",
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
    "reach_of",
    "user_file",
]


class Settings(Section):
    """The whole of `opus.toml`."""

    paths: Paths = Paths()
    history: History = History()
    spark: Spark = Spark()
    graph: Graph = Graph()
    wkg: Wkg = Wkg()
    encoder: Encoder = Encoder()
    reading: Reading = Reading()
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
    flows: Flows = Flows()
    query: Query = Query()
    ops: Ops = Ops()
    alerts: Alerts = Alerts()
    mlflow: MLflow = MLflow()
    object_store: ObjectStore = ObjectStore()
    lwm: Lwm = Lwm()
    causal_lm: CausalLm = CausalLm()
    openai_compatible: OpenaiCompatible = OpenaiCompatible()


_T = TypeVar("_T", bound=BaseModel)
SHORTHANDS = {
    "OPUS_LAKE": ("paths", "lake"),
    "OPUS_HISTORY": ("paths", "history"),
    "OPUS_INTAKES": ("paths", "intakes"),
}
FILE_NAME = "opus.toml"
MOST_DEFECTS = 20  # of a file, in one message


def parse(model: type[_T], data: Mapping[str, Any], where: str) -> _T:
    """Validates `data` as `model`.

    Raises SettingsError that lists every defect with its key, and the nearest known key for an unknown one.
    """
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        defects = [_defect(model, e) for e in islice(error.errors(), MOST_DEFECTS)]
        more = error.error_count() - len(defects)
        raise SettingsError(f"{where}: " + "; ".join(defects) + (f"; and {more:,} more" if more else "")) from None


def load(
    file: Path | None = None, environ: Mapping[str, str] | None = None, folder: Path | None = None, **overrides: Any
) -> Settings:
    """Loads settings: the user's own file, then `file` (or opus.toml in `folder`, the working directory), then the
    environment, then `section__key=value` overrides. Each wins over those before it.

    Keys that run code or reach beyond the folder may not stand in the working directory's opus.toml, which may have
    come with somebody's files. Raises SettingsError where the file is missing, and where a key or value is not allowed.
    """
    environ = os.environ if environ is None else environ
    own = user_file()
    data = without_removed(_own_tables(own), str(own))
    path = file or (folder or Path()) / FILE_NAME
    stated = stated_toml(path)
    if stated is None and file is not None:
        raise SettingsError(f"{file}: no such settings file")
    stated = stated and without_removed(stated, str(path))
    warn_of_removed_variables(environ)
    if file is None:
        _refuse_reaching(stated or {}, path, own)
    for name, table in (stated or {}).items():
        known = data.get(name)
        data[name] = {**known, **table} if isinstance(known, dict) and isinstance(table, dict) else table
    for (section, key), value in _from_environment(environ).items():
        _put(data, section, key, value)
    for name, value in overrides.items():
        if value is not None:
            section, key = name.split("__")
            _put(data, section, key, value)
    return parse(Settings, data, str(path if stated is not None else own if own.is_file() else "settings"))


def user_file() -> Path:
    """Returns the path of the user's own settings file, whether it exists or not: ~/.config/opus/opus.toml."""
    stated = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    home = stated if stated.is_absolute() else Path("~").expanduser() / ".config"
    return home / "opus" / FILE_NAME


def reach_of(section: str, key: str) -> str | None:
    """Returns why a key of opus.toml may not stand in a working directory's file, None for one that may."""
    field = _field(section, key)
    extra = field.json_schema_extra if field is not None else None
    return str(extra["reach"]) if isinstance(extra, dict) and "reach" in extra else None


def _field(section: str, key: str) -> FieldInfo | None:
    field = Settings.model_fields.get(section)
    inner = field.annotation if field is not None else None
    if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
        return None
    return inner.model_fields.get(fields_of(inner).get(key, ""))


def _own_tables(path: Path) -> dict[str, Any]:
    """Reads the user's own file. Raises SettingsError where somebody else could have written it."""
    tables = stated_toml(path)
    if tables is None:
        return {}
    facts = path.stat()
    if facts.st_uid not in (0, os.getuid()) or facts.st_mode & stat.S_IWOTH:
        raise SettingsError(f"{path}: others may have written it; make it your own, with `chmod o-w` and `chown`")
    return tables


def _put(data: dict[str, Any], section: str, key: str, value: Any) -> None:
    table = data.setdefault(section, {})
    if isinstance(table, dict):  # what is no table is refused with its name later
        table[key] = value


def _refuse_reaching(tables: Mapping[str, Any], path: Path, own: Path) -> None:
    """Raises SettingsError for a key of a working directory's opus.toml that runs code or reaches beyond its folder."""
    for section, table in tables.items():
        for key, value in table.items() if isinstance(table, dict) else ():
            reach = reach_of(section, key)
            if reach and not _is_harmless(section, key, value, path.parent):
                raise SettingsError(
                    f"{path}: {section}.{key} may not be set by a file of the working directory, because {reach}. Set "
                    f"it in {own}, in a file that you name with --settings, or in OPUS_{section.upper()}_{key.upper()}"
                )


def _is_harmless(section: str, key: str, value: object, folder: Path) -> bool:
    """Tells whether a value stays on this machine and in the folder, so that any file may state it."""
    field = _field(section, key)
    if field is not None and value == field.default:
        return True
    if section == "paths" and str(value).startswith("s3:"):
        return False
    if section == "paths" or (section, key) == ("causal_lm", "path"):
        root = folder.resolve()
        return isinstance(value, str) and not value.startswith("~") and (root / value).resolve().is_relative_to(root)
    if (section, key) == ("spark", "master"):
        return isinstance(value, str) and re.fullmatch(r"local(\[(\*|\d+)(,\d+)?\])?", value) is not None
    return (section, key) == ("encoder", "model") and value in declared("encoders")


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
    place = [clean(str(part)[:100]) for part in error["loc"]]
    if error["type"] != "extra_forbidden":
        return f"{'.'.join(place)}: {clean(error['msg'][:1000])}"
    if model is not Settings and len(place) == 1 and place[0] in Settings.model_fields:
        return f"{place[0]} may not stand here: it is a table of opus.toml, the settings of the program"
    for part in place[:-1]:
        inner = model.model_fields.get(fields_of(model).get(part, ""))
        if inner is not None and isinstance(inner.annotation, type) and issubclass(inner.annotation, BaseModel):
            model = inner.annotation
    near = difflib.get_close_matches(place[-1], fields_of(model), n=1, cutoff=0.0)
    return f"unknown key {'.'.join(place)}" + (f"; did you mean {near[0]}?" if near else "")

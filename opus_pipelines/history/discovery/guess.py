"""Guesses the settings of a single log file that nobody prepared, from its first rows."""

import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import parse
from opus_pipelines.history.formats.csv_columns import tell_columns
from opus_pipelines.history.ingestion.onboarding.draft import ASSUMED_ZONE, Stated, source_text
from opus_pipelines.history.records.formats import TABLES, format_of
from opus_pipelines.history.records.source_settings import Columns, SourceSettings

_NO_ZONE = f"timezone {ASSUMED_ZONE}: assumed; the times state no zone"


def settings_of_file(file: Path, stated: Stated) -> tuple[SourceSettings, list[str]]:
    """Returns the settings with which a file can be read, and a line for each that is assumed.

    Raises InputError if it cannot be told which column is what.
    """
    named = format_of(file.name)
    if named is not None and named.name == "parquet" and (found := _of_usual_names(file, stated)) is not None:
        return found
    from opus_pipelines.history.ingestion.onboarding.propose import first_draft, kind_of
    from opus_pipelines.history.ingestion.onboarding.table_sample import read_sample

    kind = kind_of(file)
    sample = read_sample(file, kind) if kind in TABLES else None
    draft = first_draft([file], [kind], sample, stated)
    settings = parse(SourceSettings, tomllib.loads(source_text(draft)), file.name)
    notes = [f"{key} {draft.plain.get(key, '')}: {why}" for key, why in draft.notes.items() if "assumed" in why]
    zone = settings.timezone or stated.timezone or ASSUMED_ZONE
    return settings.model_copy(update={"timezone": zone, "format": kind}), notes


def _of_usual_names(file: Path, stated: Stated) -> tuple[SourceSettings, list[str]] | None:
    """Returns the settings of a Parquet file whose columns have usual names, and whose times are typed."""
    schema = pq.read_schema(file)
    columns = parse(Columns, dict(stated.columns), "the options")
    try:
        names = tell_columns(schema.names, columns)
    except InputError:
        return None
    times = [schema.field(names[role]).type for role in ("time", "start", "end") if role in names]
    if not times or not all(pa.types.is_timestamp(kind) for kind in times):
        return None
    settings = SourceSettings(columns=columns, timezone=stated.timezone or ASSUMED_ZONE, format="parquet")
    is_assumed = stated.timezone is None and any(kind.tz is None for kind in times)
    return settings, [_NO_ZONE] if is_assumed else []

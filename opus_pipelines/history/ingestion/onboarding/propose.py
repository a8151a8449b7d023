"""Proposes a source.toml for a client's export and tries it. `opus init` shows and writes the result.

Of a table, the columns are found (`columns`); of a JSON Lines file, the paths of the case id, the tasks and the name of
a task.
"""

import gzip
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.json_lines import parsed
from opus_pipelines.core.settings import parse
from opus_pipelines.history.formats.encoding_detection import detect_file_delimiter, detect_file_encoding
from opus_pipelines.history.formats.table_log import USUAL, _plain
from opus_pipelines.history.ingestion.onboarding.agreement import disagreements
from opus_pipelines.history.ingestion.onboarding.columns import FOLLOWS, MOST_OUTCOMES, ColumnsFound, find_columns
from opus_pipelines.history.ingestion.onboarding.layouts import arranged
from opus_pipelines.history.ingestion.onboarding.life_cycles import refuse_unknown_words, transitions_in
from opus_pipelines.history.ingestion.onboarding.report import (
    ASSUMED_ZONE,
    Draft,
    OutcomeColumn,
    Stated,
    rejects_by_cause,
    source_text,
)
from opus_pipelines.history.ingestion.onboarding.table_sample import (
    BAD,
    GOOD,
    MOSTLY,
    NUMBERING,
    ROLES,
    Column,
    TableSample,
    json_sample,
    names_role,
    time_values,
    with_joined_times,
)
from opus_pipelines.history.ingestion.onboarding.trial import (
    Findings,
    Trial,
    attribute_values,
    findings_of,
    outcome_candidates,
    trial_lake,
)
from opus_pipelines.history.records.activity_kinds import classify_source, words_of
from opus_pipelines.history.records.column_mapping import CASE_PREFIXES
from opus_pipelines.history.records.files import BUFFER, open_data
from opus_pipelines.history.records.formats import TABLES, format_of, what_it_is
from opus_pipelines.history.records.source_settings import Transitions
from opus_pipelines.history.records.values import FALSE, TRUE, at_path

RECORDS = 1_000
_ID_USUAL = ("case_id", "case", "id", "trace_id")
_TASKS_USUAL = ("tasks", "steps", "events", "activities")
_NAME_USUAL = ("activity", "task", "name", "tool", "task_key")
_MOST_DEPTH = 3
LEAST_CASES = 5  # for each client, where a column is told to name clients
EVENTS_OF_CASES = 0.8  # cases for each record at most, where a record is an event
WORDS = 3  # that a request has at least, on average


def find_records(file: Path) -> dict[str, dict[str, str | list[str]]]:
    """Returns the tables [record] and [task], empty if the usual names exist.

    Raises InputError without a list of tasks.
    """
    records = list(_records(file))
    if not records:
        raise InputError(f"{file}: none of its first lines is a JSON object")
    record: dict[str, str | list[str]] = {}
    task: dict[str, str | list[str]] = {}
    tasks = next((name for name in _TASKS_USUAL if any(isinstance(r.get(name), list) for r in records)), None)
    if tasks is None:
        tasks = record["tasks"] = _list_of_tasks(file, records)
    if not any(name in r for r in records for name in _ID_USUAL):
        record["case"] = _id(file, records)
    if (description := _record_description(records)) is not None:
        record["description"] = description
    elements = [e for r in records for e in at_path(r, tasks) or [] if isinstance(e, dict)]
    if elements and not any(name in e for e in elements for name in _NAME_USUAL):
        task["activity"] = _name(file, elements)
    return {name: table for name, table in (("record", record), ("task", task)) if table}


def find_moments(
    file: Path, tables: Mapping[str, Mapping[str, str | list[str]]]
) -> tuple[dict[str, str | list[str]], tuple[str, ...]]:
    """Returns the paths of start, end, time and actor in a task's object that the reader does not know by their names.

    The second value has the formats that `time_format` must state. `tables` is what `find_records` returned.
    """
    records = list(_records(file))
    stated = tables.get("record", {}).get("tasks")
    tasks = stated if isinstance(stated, str) else next(n for n in _TASKS_USUAL if any(n in r for r in records))
    elements = [e for r in records for e in at_path(r, tasks) or [] if isinstance(e, dict)]
    values: dict[str, list[str]] = defaultdict(list)
    for element in elements:
        for path, value in _paths(element):
            if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
                values[path].append(str(value))
    usual = {name for role in ("start", "end", "time") for name in USUAL[role]}
    roles: dict[str, str | list[str]] = {}
    formats: list[str] = []
    for path, told in values.items() if not usual & set(values) else ():
        seen = time_values(Column(path, tuple(told)))
        role = _moment(path)
        if seen.readable >= MOSTLY and role not in roles:
            roles[role] = path
            formats += seen.formats
    if {"start", "end"} & roles.keys():
        roles.pop("time", None)
    if not set(USUAL["actor"]) & set(values):
        actors = [path for path in values if names_role(path.rpartition(".")[2], "actor")]
        roles |= {"actor": actors[0]} if actors else {}
    return roles, tuple(dict.fromkeys(formats))


def _moment(path: str) -> str:
    words = set(words_of(path.rpartition(".")[2]))
    return next((role for role in ("start", "end") if words & ROLES[role]), "time")


def _record_description(records: list[dict[str, Any]]) -> str | None:
    """Returns the name of a field that contains the request of the case in words."""
    for name, _ in _paths(records[0]):
        texts = [text for r in records if isinstance(text := at_path(r, name), str)]
        words = sum(len(text.split()) for text in texts)
        if names_role(name, "description") and words >= WORDS * max(1, len(texts)) and name != "description":
            return name
    return None


def _records(file: Path) -> Iterator[dict[str, Any]]:
    with open_data(file) as opened:
        yield from (record for _, record, _ in parsed(islice(opened, RECORDS)) if isinstance(record, dict))


def _list_of_tasks(file: Path, records: list[dict[str, Any]]) -> str:
    """Returns the path of the lists that contain most objects.

    If there are none, it is the list of names that repeat most, because tasks repeat and sentences do not.
    """
    objects: Counter[str] = Counter()
    names: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for path, value in _paths(record):
            if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
                objects[path] += len(value)
            elif isinstance(value, list) and value and all(isinstance(v, str) for v in value):
                names[path].update(value)
    if objects:
        return max(sorted(objects), key=lambda path: objects[path])
    if names:
        return max(sorted(names), key=lambda path: names[path].total() / len(names[path]))
    raise InputError(f"{file}: no record holds a list of tasks; the names found are {', '.join(records[0])}")


def _paths(value: dict[str, Any], prefix: str = "", depth: int = _MOST_DEPTH) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        yield f"{prefix}{key}", inner
        if isinstance(inner, dict) and depth:
            yield from _paths(inner, f"{prefix}{key}.", depth - 1)


def _id(file: Path, records: list[dict[str, Any]]) -> str:
    """Returns a path whose values are all present and all different.

    A path that is named as an id is preferred, then short values.
    """
    names = [path for path, _ in _paths(records[0]) if all(isinstance(at_path(r, path), str | int) for r in records)]
    unique = [name for name in names if len({str(at_path(r, name)) for r in records}) == len(records)]
    if not unique:
        raise InputError(
            f"{file}: no name of a record has a different value in each; the names are {', '.join(records[0])}"
        )
    named = [name for name in unique if names_role(name, "case") or NUMBERING & set(words_of(name))]
    return min(named or unique, key=lambda name: max(len(str(at_path(r, name))) for r in records))


def _name(file: Path, elements: list[dict[str, Any]]) -> str:
    """Returns the name of a field with short texts that repeat: how a step ended ("success", "error") is none."""
    names = [name for name in elements[0] if all(isinstance(e.get(name), str) and e[name] for e in elements)]
    if not names:
        raise InputError(
            f"{file}: no name of a task's object holds a text everywhere; the names are {', '.join(elements[0])}"
        )
    values = {name: {e[name] for e in elements} for name in names}
    ended = {
        name for name in names if names_role(name, "outcome") or {v.casefold() for v in values[name]} <= GOOD | BAD
    }
    named = [name for name in names if names_role(name, "activity")]
    rest = [name for name in names if name not in ended] or names
    return next(iter(named), min(rest, key=lambda name: len(values[name])))


CLEAR_OUTCOMES = 0.95  # share of the cases whose value is known to be good or bad
_HEAD = 1 << 20
SEE_QUERY = ", see `opus query rejects_by_reason`"  # of the rebuild; a trial leaves no lake to ask


@dataclass(frozen=True)
class Proposal:
    """The proposed text, the result of a reading with it, and what remains to be stated.

    `source` is the temporary folder of the files and source.toml, and `files` are those that the source needs. `doubts`
    are sentences on what does not agree with the reading, and a person has to look at each.
    """

    draft: Draft
    toml: str
    trial: Trial
    findings: Findings
    source: Path
    files: tuple[Path, ...]
    doubts: tuple[str, ...] = ()


@contextmanager
def propose_settings(name: str, files: Sequence[Path], stated: Stated) -> Iterator[Proposal]:
    """Yields a tried proposal for a source `name` with these files.

    The proposal is valid as long as the context lasts. Raises InputError if the files cannot be read.
    """
    kinds = [_readable_kind(file) for file in files]
    files, kinds, sample, stated = arranged(files, kinds, stated)
    with trial_lake(name, files, stated.rates) as trials:
        draft = _for_all(first_draft(files, kinds, sample, stated), files, kinds, sample)
        _refuse_unknown_words(files[0], kinds[0], sample, draft)
        trial = trials.read(source_text(draft))
        if any(code == "no_timezone" for code, _ in trial.rejects):
            zone = stated.timezone or ASSUMED_ZONE
            draft = _with_zone(draft, zone, None, stated)
            trial = trials.read(source_text(draft))
        if trial.folder is None:
            raise InputError(
                "\n".join([*trial.failed, *rejects_by_cause(trial)]).replace(SEE_QUERY, "")
                or f"{files[0]}: nothing in it is a case"
            )
        if refused := [row for row in trial.files if row["status"] == "rejected"]:
            raise InputError(
                f"{len(refused):,} of {len(trial.files):,} files cannot be read like the others: {refused[0]['path']}: "
                f"{refused[0]['reason']}; leave them out, or make a source of their own of them"
            )
        second = _second_draft(draft, files, kinds[0], trial)
        if source_text(second) != source_text(draft):
            draft, trial = second, trials.read(source_text(second))
        findings = findings_of(trial)
        if findings.alike_by_decimals and kinds[0] in TABLES and "scope" not in draft.tables["columns"]:
            columns = draft.tables["columns"] | {"strip_zeros": True}
            why = "ids of cases are written as 1 and as 1.0"
            draft = replace(draft, tables=draft.tables | {"columns": columns}, notes=draft.notes | {"strip_zeros": why})
            trial = trials.read(source_text(draft))
            findings = findings_of(trial)
        kinds_found = classify_source(trial.evidence, trial.whole)
        special = {name: kind for name, kind in kinds_found.items() if kind.kind != "step"}
        draft = replace(draft, kinds=special, candidates=tuple(outcome_candidates(findings, kinds_found, trial)))
        toml = source_text(draft)
        (trials.source / "source.toml").write_text(toml, "utf-8")
        doubts = disagreements(sample, draft.tables.get("columns", {}), trial, findings)
        yield Proposal(draft, toml, trial, findings, trials.source, tuple(files), tuple(doubts))


def _refuse_unknown_words(file: Path, kind: str, sample: TableSample | None, draft: Draft) -> None:
    words = transitions_in(file, kind, sample, draft.tables.get("columns", {}))
    stated = parse(Transitions, draft.tables.get("transitions", {}), "--transition")
    refuse_unknown_words(words, stated.meanings)


def _readable_kind(file: Path) -> str:
    """Returns the format of a file whose whole content can be unpacked. Raises InputError where it cannot."""
    try:
        kind = kind_of(file)
        if file.name.lower().endswith(".gz"):
            with open_data(file) as opened:
                while opened.read(BUFFER):
                    pass
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{file}: the gzip file is broken or cut off ({error}); fetch it again") from None
    return kind


def kind_of(file: Path) -> str:
    """Returns the format of a file: by its name, else by its first character."""
    named = format_of(file.name)
    if named is not None and named.name in ("jsonl", "n8n") and _has_events(file, named.name):
        return "json_events"
    if named is not None and named.name != "csv":
        return named.name
    with open_data(file) as opened:
        head = opened.read(4096)
    if (what := what_it_is(head)) is not None:
        raise InputError(f"{file}: it is {what}")
    if named is not None:
        return named.name
    head = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"<"):
        return "bpmn" if b"bpmn" in head.lower() else "xes"
    return "jsonl" if head.startswith(b"{") else "csv"


def _has_events(file: Path, kind: str) -> bool:
    """Tells whether each record of a JSON file is an event: none has tasks of its own, and several are of one case.

    Raises InputError where a record has tasks, and yet several records are of one case.
    """
    try:
        sample = json_sample(file, RECORDS)
        log = find_columns(with_joined_times(sample)[0])
    except (InputError, RecursionError):
        return False
    case = log.roles["case"]
    is_repeated = case in sample.columns and len(sample.columns[case].counts) < EVENTS_OF_CASES * sample.rows
    listed = (
        [] if kind == "n8n" else [r for r in _records(file) if any(isinstance(r.get(n), list) for n in _TASKS_USUAL)]
    )
    if is_repeated and listed:
        raise InputError(
            f"{file}: it cannot be told whether a record is a case, since it has a list of tasks, or an event of one, "
            f"since {case!r} repeats; write an event a record"
        )
    return is_repeated


def first_draft(files: Sequence[Path], kinds: Sequence[str], sample: TableSample | None, stated: Stated) -> Draft:
    """Returns what the first rows of the files show, before anything is read with it."""
    plain: dict[str, str | list[str]] = {k: v for k in ("industry", "client", "contract") if (v := getattr(stated, k))}
    draft = Draft(plain)
    if (named := format_of(files[0].name)) is None or named.name != kinds[0]:
        draft.plain["format"] = kinds[0]
    if stated.transitions:
        draft.tables["transitions"] = dict(stated.transitions)
    if stated.timezone:
        draft.plain["timezone"] = stated.timezone
    if sample is not None:
        return _of_table(draft, sample, stated)
    if kinds[0] == "jsonl":
        tables = find_records(files[0])
        roles, formats = find_moments(files[0], tables)
        if roles:
            tables = tables | {"task": tables.get("task", {}) | roles}
        return replace(
            draft, tables=draft.tables | tables, plain=draft.plain | ({"time_format": list(formats)} if formats else {})
        )
    return draft


def _for_all(draft: Draft, files: Sequence[Path], kinds: Sequence[str], sample: TableSample | None) -> Draft:
    """Removes an encoding or a delimiter that not all files have. The reader then detects them for each file."""
    if sample is None or sample.encoding is None:
        return draft
    others = [file for file, kind in zip(files[1:], kinds[1:], strict=True) if kind == "csv"]
    plain = dict(draft.plain)
    for file in others:
        encoding = detect_file_encoding(file)
        if encoding.name != sample.encoding.name:
            plain.pop("encoding", None)
        if detect_file_delimiter(file, encoding.name) != sample.delimiter:
            plain.pop("delimiter", None)
    return replace(draft, plain=plain)


def _of_table(draft: Draft, sample: TableSample, stated: Stated) -> Draft:
    """Adds to the draft what the columns of a table show."""
    sample, joined = with_joined_times(sample, stated.columns.values())
    table_columns = find_columns(sample, stated.columns, stated.rows)
    if sheet := sample.also.get(table_columns.roles["case"]):
        raise InputError(
            f"the sheet {sheet!r} has the column {table_columns.roles['case']!r} of the cases, too; only one is read; "
            "save each sheet as a file of its own and give both, or name the one that counts with --sheet"
        )
    plain, notes = dict(draft.plain), draft.notes | sample.notes
    if sample.encoding is not None and sample.encoding.name not in ("utf-8", "utf-8-sig", "utf-16"):
        plain["encoding"] = sample.encoding.name
        notes["encoding"] = "detected" if sample.encoding.certain else "the best guess: look at the names below"
    if sample.encoding is not None and sample.encoding.mixed and sample.encoding.legacy:
        plain["encoding"] = ["utf-8", sample.encoding.legacy]
        notes["encoding"] = "the file mixes encodings; each line is read in the first that fits"
    if sample.delimiter not in (None, ","):
        plain["delimiter"] = str(sample.delimiter)
    formats = list(dict.fromkeys(form for seen in table_columns.times.values() for form in seen.formats))
    if formats:
        plain["time_format"] = formats
        guessed = [form for seen in table_columns.times.values() for form in seen.guessed]
        notes["time_format"] = "times that are written in another form are read as well" + (
            "; that the day comes first is assumed, no date shows it" if guessed else ""
        )
    if table_columns.decimal:
        plain["decimal"] = table_columns.decimal
    if table_columns.currency:
        plain["currency"] = table_columns.currency
    outcome, unclear = _outcome_column(
        ((name, sample.columns[name].counts) for name in table_columns.later if name not in table_columns.times),
        only_offered=[name for name, reason in table_columns.later.items() if reason == FOLLOWS],
    )
    notes |= dict(table_columns.guessed) | ({"left out": table_columns.left_out} if table_columns.left_out else {})
    if table_columns.later:
        why = ", ".join(f"{name!r} ({reason})" for name, reason in table_columns.later.items())
        notes["known later"] = f"no attributes of a case, because they are known at its end alone: {why}"
    columns: dict[str, str | list[str]] = {
        role: list(joined[name]) if name in joined else name for role, name in table_columns.roles.items()
    }
    if client := _client(sample, table_columns):
        columns.setdefault("client", client)
    notes |= {"order": "it orders the events of a case that have the same time"} if "order" in columns else {}
    if scope := table_columns.roles.get("scope"):
        notes["scope"] = f"assumed: the same id under two of {scope!r} is two cases"
    codes = sample.codes.get(table_columns.roles["activity"], {})
    if description := _table_description(sample, table_columns, outcome):
        columns["description"] = description
    if title := _title(table_columns, description):
        columns["title"] = title
    # An outcome is not known when a case starts, even if every row of the case repeats it.
    others = {description, title, outcome.name if outcome else None, client}
    attributes = [name for name in table_columns.attributes if name not in others]
    if outcome is not None and outcome.is_boolean:
        columns["success"] = outcome.name
    if attributes:
        columns["attributes"] = attributes
        notes["attributes"] = "the same in all events of a case, and known at its first event"
    tables = draft.tables | {"table": sample.table, "table.names": dict(codes), "columns": columns}
    if table_columns.meanings:
        tables["transitions"] = dict(table_columns.meanings)
        notes["start"] = notes["complete"] = "assumed: the one follows the other for each step"
    draft = replace(draft, plain=plain, notes=notes, tables=tables, rows=table_columns.rows)
    draft = replace(draft, outcome=outcome, unclear=unclear)
    if any(not seen.states_zone for seen in table_columns.times.values()):
        return _with_zone(draft, stated.timezone or table_columns.zone or ASSUMED_ZONE, table_columns, stated)
    return draft


def _with_zone(draft: Draft, zone: str, columns: ColumnsFound | None, stated: Stated) -> Draft:
    if stated.timezone:
        why = "as stated"
    elif columns is not None and columns.zone:
        why = "assumed by the language of the columns; the times state no zone"
    else:
        why = "assumed; the times state no zone"
    return replace(draft, plain=draft.plain | {"timezone": zone}, notes=draft.notes | {"timezone": why})


def _second_draft(draft: Draft, files: Sequence[Path], kind: str, trial: Trial) -> Draft:
    """Adds to the draft what only a reading shows: attributes and outcomes of logs that are no tables."""
    if kind in TABLES or trial.folder is None:
        return draft
    findings = findings_of(trial)
    tables = {name: dict(table) for name, table in draft.tables.items()}
    notes = dict(draft.notes)
    if kind == "xes" and findings.constant_attributes:
        names = [*findings.constant_attributes, *findings.case_attributes]
        tables.setdefault("columns", {})["attributes"] = sorted(set(_written(files[0], names)))
        notes["attributes"] = "the same in all events of a case, and known at its first event"
    outcome, unclear = _outcome_column(
        (name, attribute_values(trial.folder, name))
        for name in sorted(findings.case_attributes)
        if names_role(name, "outcome")
    )
    if outcome is not None and findings.succeeded + findings.failed:
        outcome = None  # the source tells it already
    if outcome is not None and kind == "jsonl" and "." in outcome.name:
        # Attributes next to an outcome became known with it, and not when the case started.
        siblings = outcome.name.rpartition(".")[0] + "."
        named = {value for value in tables.get("record", {}).values() if isinstance(value, str)}
        names = sorted(name for name in findings.case_attributes if not name.startswith(siblings) and name not in named)
        tables.setdefault("record", {})["attributes"] = names
        notes["attributes"] = f"all but those under {siblings}"
    if outcome is not None and outcome.is_boolean:
        tables.setdefault("record" if kind == "jsonl" else "columns", {})["success"] = outcome.name
    return replace(draft, tables=tables, notes=notes, outcome=outcome, unclear=unclear)


def _written(file: Path, names: Sequence[str]) -> list[str]:
    """Returns the names as the log writes them, because the readers remove prefixes such as `case:`."""
    with open_data(file) as opened:
        keys = set(re.findall(r'key="([^"]*)"', opened.read(_HEAD).decode("utf-8", "replace")))
    return [f"{prefix}{name}" for name in names for prefix in ("", *CASE_PREFIXES) if f"{prefix}{name}" in keys]


def _outcome_column(
    columns: Iterable[tuple[str, Counter[str]]], only_offered: Collection[str] = ()
) -> tuple[OutcomeColumn | None, tuple[tuple[str, Counter[str]], ...]]:
    """Returns the one column that clearly is an outcome, and those that may be one."""
    plain, unclear = [], []
    for name, values in columns:
        if not 2 <= len(values) <= MOST_OUTCOMES:
            continue
        good = tuple(sorted(value for value in values if _word(value) in GOOD | TRUE))
        bad = tuple(sorted(value for value in values if _word(value) in BAD | FALSE))
        known = sum(values[value] for value in (*good, *bad))
        if name not in only_offered and good and bad and known >= CLEAR_OUTCOMES * values.total():
            plain.append(OutcomeColumn(name, good, bad))
        else:
            unclear.append((name, values))
    if len(plain) == 1:
        return plain[0], tuple(unclear)
    return None, tuple(unclear)


def _word(value: str) -> str:
    """Returns a value as one word. A value of several words is never a known word."""
    return value.strip().lower() if value.strip() in "10" else " ".join(words_of(value)) or value.strip().lower()


def _client(sample: TableSample, columns: ColumnsFound) -> str | None:
    """Returns the column of the client: a folder's, the one that ids are given within, or one so named with few values.

    A column with nearly as many values as cases has the customers of one client.
    """
    told = (*sample.folders, columns.roles.get("scope", ""))
    few = len(sample.cases(columns.roles["case"])) / LEAST_CASES
    named = [n for n in columns.attributes if _plain(n) in USUAL["client"] and len(sample.columns[n].counts) <= few]
    return next((name for name in (*told, *named) if names_role(name, "client")), None)


def _table_description(sample: TableSample, columns: ColumnsFound, outcome: OutcomeColumn | None) -> str | None:
    """Returns the column of the case that describes the request in words."""
    for name in columns.attributes:
        column = sample.columns[name]
        words = sum(len(value.split()) for value in column.counts) / max(1, len(column.counts))
        if names_role(name, "description") and words >= 3 and (outcome is None or name != outcome.name):
            return name
    return None


def _title(columns: ColumnsFound, description: str | None) -> str | None:
    """Returns the column of the case that is named as its title."""
    return next(
        (name for name in columns.attributes if words_of(name) in (["title"], ["titel"]) and name != description), None
    )

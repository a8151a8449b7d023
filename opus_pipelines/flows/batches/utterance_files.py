"""Reads utterances from CSV and JSON Lines: uid, utterance, and where stated a prior flow, a reference and tags.

A row that cannot be used is kept with a reason, and costs no other row. Nothing in a text is followed: a path to a BPMN
file must lead to a file of the same folder.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.safe_text import xml_text
from opus_pipelines.core.settings_files import hard_link_reason
from opus_pipelines.flows.from_text.flow_folder import FlowTask, FolderError, inside
from opus_pipelines.flows.text.clauses import MAX_UTTERANCE, UtteranceError, words_of
from opus_pipelines.intakes.documents.encoding import decode
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir, write_ir
from opus_pipelines.workflow.blocks.model import Flow

CSV, LINES = ".csv", ".jsonl"
MAX_FILE_BYTES = 64 << 20
MAX_FLOW_BYTES = 4 << 20  # of a BPMN file
MAX_CELL = 2_000_000  # characters of a cell of a CSV file; a longer one is an error of the file
MAX_UID = 200
MAX_ROWS = 100_000
_TEXTS = ("uid", "utterance", "prior", "prior_bpmn", "gold")


@dataclass(frozen=True)
class UtteranceRow:
    """One row of a file, `line` from 1. `task` is None where the row cannot be used; code and reason say why."""

    file: str
    line: int
    uid: str | None
    utterance: str
    task: FlowTask | None
    code: str | None = None
    reason: str | None = None


class _Defect(Exception):
    """Why a row cannot be used: a code in one word and a sentence."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def read(path: Path, folder: Path) -> list[UtteranceRow]:
    """Returns the rows of a file; BPMN files that it names lie in `folder`.

    Raises InputError where the whole file cannot be read: another ending, no such column, too large, out of the folder.
    """
    text, _ = decode(content_of(path, folder, MAX_FILE_BYTES))
    text = text.removeprefix("\ufeff")
    if path.suffix.casefold() not in (CSV, LINES):
        raise InputError(f"{path.name}: utterances are read from {CSV} and {LINES}; rename or convert the file")
    raw = _of_csv(path.name, text) if path.suffix.casefold() == CSV else _of_lines(text)
    rows: list[UtteranceRow] = []
    known: dict[str, int] = {}
    for line, value in raw:
        if len(rows) >= MAX_ROWS:
            raise InputError(f"{path.name}: it has more than {MAX_ROWS:,} rows; split it")
        row = _row(path.name, line, value, folder)
        first = known.setdefault(row.uid, line) if row.uid is not None else line
        if first != line:
            reason = f"the uid {row.uid!r} stands in line {first}, too; give each utterance its own"
            row = replace(row, task=None, code="duplicate_uid", reason=reason)
        rows.append(row)
    return rows


def content_of(path: Path, folder: Path, most: int) -> bytes:
    """Returns the bytes of a file of a folder. Raises InputError for a link out of it and for a file too large."""
    try:
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{path.name}: it points outside its folder; copy the file instead of linking it")
        if not path.is_file():
            raise InputError(f"{path.name}: there is no such file in {folder.name}")
        if reason := hard_link_reason(path.stat()):
            raise InputError(f"{path.name}: {reason}")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path.name}: it cannot be opened: {error.strerror}") from None
    if len(data) > most:
        raise InputError(f"{path.name}: it has more than {most:,} bytes; split it")
    return data


def _of_csv(name: str, text: str) -> Iterator[tuple[int, object]]:
    csv.field_size_limit(MAX_CELL)
    head = text.split("\n", 1)[0]
    rows = csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=head.count), restkey="", restval="")
    try:
        columns = [(column or "").strip().casefold() for column in rows.fieldnames or ()]
        if not {"uid", "utterance"} <= set(columns):
            raise InputError(f"{name}: its first line must name the columns uid and utterance")
        rows.fieldnames = columns
        for row in rows:
            if any(isinstance(value, str) and value.strip() for value in row.values()):
                yield rows.line_num, {key: value for key, value in row.items() if value}
    except csv.Error as error:
        raise InputError(f"{name}, line {rows.line_num}: it is no CSV: {error}") from None


def _of_lines(text: str) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, _Defect("not_json", f"the line is not JSON: {error}")


def _row(file: str, line: int, value: object, folder: Path) -> UtteranceRow:
    if isinstance(value, _Defect):
        return UtteranceRow(file, line, None, "", None, value.code, str(value))
    if not isinstance(value, dict):
        return UtteranceRow(file, line, None, "", None, "no_object", 'the line is no object with "uid" and "utterance"')
    uid, utterance = _uid(value), value.get("utterance")
    shown = xml_text(utterance) if isinstance(utterance, str) else ""
    try:
        return UtteranceRow(file, line, uid, shown, _task(value, uid, shown, folder))
    except _Defect as defect:
        return UtteranceRow(file, line, uid, shown, None, defect.code, str(defect))


def _uid(value: Mapping[str, Any]) -> str | None:
    uid = value.get("uid", value.get("id"))
    if isinstance(uid, bool) or not isinstance(uid, str | int):
        return None
    return xml_text(str(uid).strip())[:MAX_UID] or None


def _task(value: Mapping[str, Any], uid: str | None, utterance: str, folder: Path) -> FlowTask:
    for name in _TEXTS[1:]:
        if value.get(name) is not None and not isinstance(value[name], str):
            raise _Defect("no_text", f"its {name} is no text")
    if uid is None:
        raise _Defect("no_uid", "it has no uid; give each utterance a name of its own")
    if not utterance.strip():
        raise _Defect("no_utterance", "it has no utterance; say what the flow should do")
    if len(utterance) > MAX_UTTERANCE:
        reason = f"the utterance has {len(utterance):,} characters, and {MAX_UTTERANCE:,} are the most; shorten it"
        raise _Defect("too_long", reason)
    try:
        words_of(utterance)
    except UtteranceError as error:
        raise _Defect("no_utterance", str(error)) from None
    prior, file = _flow(value.get("prior"), folder, "prior")
    if value.get("prior_bpmn") is not None:
        drawn, file = _flow(value["prior_bpmn"], folder, "prior_bpmn")
        prior = prior or drawn  # the IR has the names of variables, which a BPMN file may lack
    gold, _ = _flow(value.get("gold"), folder, "gold")
    try:
        sequence = write_ir(gold) if gold is not None else None
    except FlowError as error:
        raise _Defect("bad_gold", f"its gold cannot be compared: {error}") from None
    return FlowTask(uid, utterance, prior, file, gold, sequence, _tags(value.get("tags")))


def _flow(text: str | None, folder: Path, what: str) -> tuple[Flow | None, Path | None]:
    """The flow of a cell, Python IR or the path of a BPMN file, and that file."""
    if text is None or not text.strip():
        return None, None
    try:
        if not text.strip().casefold().endswith(".bpmn"):
            return parse_ir(text.strip("\n")), None
        path = inside(folder, text.strip())
        return read_bpmn(content_of(path, folder, MAX_FLOW_BYTES)).flow, path
    except FolderError as error:
        raise _Defect("outside_folder", f"its {what}: {error}") from None
    except (OpusError, RecursionError, ValueError) as error:
        raise _Defect(f"bad_{what}", f"its {what} is no flow: {error}") from None


def _tags(value: object) -> tuple[str, ...]:
    parts = value.replace(";", ",").split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
    return tuple(xml_text(str(part).strip())[:MAX_UID] for part in parts if str(part).strip())

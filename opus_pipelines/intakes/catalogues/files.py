"""Finds and reads the files of a contract's catalogue. A defect costs the file or the entry, never the contract.

A file's content tells its format: an OpenAPI document names its version under `openapi`, a tool list of the Model
Context Protocol has `tools`. Every other file must be called `catalogue`.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.json_lines import parsed
from opus_pipelines.core.settings_files import hard_link_reason
from opus_pipelines.intakes.catalogues.entries import (
    Catalogue,
    CatalogueFile,
    FileEntries,
    LeftOut,
    RawEntry,
    declared_tasks,
)
from opus_pipelines.intakes.catalogues.file_names import LINES, NAME, TABLES, catalogue_files
from opus_pipelines.intakes.catalogues.openapi import VERSION_KEYS, openapi_entries
from opus_pipelines.intakes.documents.document import MIB, decode
from opus_pipelines.intakes.elements import shown_name

MAX_NODES = 2_000_000  # scalars, lists and mappings of a document, each alias counted with all that it stands for
MAX_YAML_DEPTH = 64
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> Any:
    """Returns the plain data of a YAML document.

    Raises InputError where it is no YAML, and where its aliases stand for more than MAX_NODES nodes or for themselves.
    """
    try:
        _count(text)
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise InputError(f"it is no YAML: {' '.join(str(error).split())[:300]}") from None
    except (ValueError, TypeError, OverflowError) as error:  # an impossible date, a key that cannot be one
        raise InputError(f"it is no YAML that can be read: {error}") from None


def _count(text: str) -> None:
    """Counts the nodes that the document stands for. Raises InputError where they are too many or too deep."""
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []  # anchor, and nodes inside so far
    total = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise InputError(f"its alias {event.anchor!r} stands for itself or for nothing")
            size = sizes[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, total))
            if len(open_nodes) > MAX_YAML_DEPTH:
                raise InputError(f"it is nested more than {MAX_YAML_DEPTH} levels deep")
            size = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor is not None:
                sizes[anchor] = total - before
            size = 0
        elif isinstance(event, yaml.ScalarEvent):
            size = 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        else:
            size = 0
        total += size
        if total > MAX_NODES:
            raise InputError(f"its aliases stand for more than {MAX_NODES:,} values; write them out, or split it")


MAX_FILE_BYTES = 32 * MIB  # of one file; 10,000 tools with descriptions of 300 characters have 4 MiB
MAX_FILES = 50  # of one contract
MAX_CELL = 1_000_000  # characters of a cell of a CSV file
# the keys of an entry, in lower case without separators, by what they say
_KEYS = {
    "name": ("name", "tool", "task", "operation", "function", "title"),
    "description": ("description", "summary", "text"),
    "inputs": ("inputs", "input", "inputschema", "parameters", "arguments"),
    "outputs": ("outputs", "output", "outputschema", "returns", "result"),
    "price": ("priceusd", "price", "costusd", "cost"),
}
_LISTS = ("tools", "tasks", "catalogue", "catalog", "operations", "functions")


def read_catalogue(folder: Path) -> Catalogue:
    """Reads the catalogue of a contract's folder; it is empty where there are no files. Raises nothing on a defect."""
    found: list[tuple[str, FileEntries]] = []
    files: list[CatalogueFile] = []
    left_out: list[LeftOut] = []
    for number, path in enumerate(catalogue_files(folder)):
        name = shown_name(path.name)
        try:
            if number >= MAX_FILES:
                raise InputError(f"there are more than the {MAX_FILES} files that are read of one catalogue")
            data = _content(path, folder)
            entries = _entries(path, data)
        except (InputError, OSError, RecursionError) as error:
            left_out.append(LeftOut(name, None, None, _reason(error)))
            files.append(CatalogueFile(name, "unread", 0, ""))
            continue
        files.append(CatalogueFile(name, entries.format, len(data), hashlib.sha256(data).hexdigest()))
        found.append((name, entries))
        if not entries.entries and not entries.broken:
            left_out.append(LeftOut(name, None, None, f"it holds no tools ({entries.format})"))
    tasks, defects = declared_tasks(found)
    return Catalogue(tuple(tasks), tuple(files), (*left_out, *defects))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, InputError):
        return f"it cannot be opened: {error.strerror}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _content(path: Path, folder: Path) -> bytes:
    """Returns the bytes of a file of the folder. Raises InputError for a link out of it and for a file too large."""
    if path.is_symlink() and path.resolve().parent != folder.resolve():
        raise InputError("it points outside its folder; copy the file instead of linking it")
    if not path.is_file():
        raise InputError("it is no regular file")
    if reason := hard_link_reason(path.stat()):
        raise InputError(reason)
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"it has more than the {MAX_FILE_BYTES // MIB} MiB that are read of a catalogue; split it")
    return data


def _entries(path: Path, data: bytes) -> FileEntries:
    suffix = path.suffix.casefold()
    text, _ = decode(data)
    text = text.removeprefix("\ufeff")
    if suffix in TABLES:
        return _of_table(text)
    if suffix in LINES:
        return _of_lines(text)
    value = _json(text) if suffix == ".json" else parse_yaml(text)
    return _of_document(value, path.stem.casefold().startswith(NAME))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"it is no JSON: {error}") from None


def _of_document(value: Any, is_named: bool) -> FileEntries:
    """Returns the entries of a JSON or YAML document. Raises InputError where it is of no known format."""
    if isinstance(value, Mapping) and any(key in value for key in VERSION_KEYS):
        return openapi_entries(value)
    listed = _tool_list(value)
    if listed is not None and (is_named or _is_mcp(listed)):
        return _of_list(listed, "MCP tool list" if _is_mcp(listed) else "catalogue")
    if is_named and isinstance(value, Mapping) and value and all(isinstance(v, Mapping) for v in value.values()):
        return _of_list([{"name": name, **own} for name, own in value.items()], "catalogue")
    raise InputError(
        "it is no catalogue: neither an OpenAPI 3 document nor an MCP tool list, and a list of tools of one's own "
        f"is read from a file called {NAME}"
    )


def _tool_list(value: Any) -> list[Any] | None:
    """Returns the list of tools in a document, None where there is none."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("result"), Mapping):  # the whole answer of a JSON-RPC call
        value = value["result"]
    return next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)


def _is_mcp(listed: list[Any]) -> bool:
    return bool(listed) and any(isinstance(one, Mapping) and "inputSchema" in one for one in listed)


def _of_list(listed: list[Any], form: str) -> FileEntries:
    found = FileEntries(form, "code" if _is_mcp(listed) else None)
    for place, one in enumerate(listed, start=1):
        if isinstance(one, Mapping):
            found.entries.append(_raw(place, one))
        elif isinstance(one, str):
            found.entries.append(RawEntry(place, one))
        else:
            found.broken[place] = "it is neither an object nor a name"
    return found


def _raw(place: int, one: Mapping[Any, Any]) -> RawEntry:
    """Returns an entry of an object; `function` of a tool holds its keys, and `_meta` may hold more of them."""
    function, meta = _object(one.get("function")), _object(one.get("_meta"))
    levels = [meta, {key: value for key, value in one.items() if value is not function}, function]
    whole = {_key(key): value for level in levels for key, value in level.items()}
    return RawEntry(place, *(_first(whole, names) for names in _KEYS.values()))


def _object(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(whole: Mapping[str, Any], names: tuple[str, ...]) -> object:
    return next((whole[name] for name in names if whole.get(name) not in (None, "")), None)


def _key(key: object) -> str:
    return "".join(c for c in str(key).casefold() if c.isalnum())


def _of_lines(text: str) -> FileEntries:
    found = FileEntries("JSON Lines")
    for place, value, error in parsed(text.split("\n")):
        if error is not None:
            found.broken[place] = f"it is no JSON: {error}"
        elif isinstance(value, Mapping):
            found.entries.append(_raw(place, value))
        else:
            found.broken[place] = "it is no object"
    return found


def _of_table(text: str) -> FileEntries:
    csv.field_size_limit(MAX_CELL)
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=head.count)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    found = FileEntries("CSV")
    names = [_key(cell) for cell in next(_rows(rows, found), (0, []))[1]]
    if not any(name in _KEYS["name"] for name in names):
        raise InputError(f"its first line names no column for the name of a tool ({', '.join(_KEYS['name'])})")
    for place, row in _rows(rows, found):
        if any(cell.strip() for cell in row):
            found.entries.append(_raw(place, dict(zip(names, row, strict=False))))
    return found


def _rows(rows: "Iterator[list[str]]", found: FileEntries) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows with their line; a row that is no CSV is named and passed over."""
    while True:
        line = getattr(rows, "line_num", 0) + 1
        try:
            yield line, next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            found.broken[line] = f"it is no row of a CSV file: {error}"

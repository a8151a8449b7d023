"""Reads the TOML files that people write: plain files only, and limits on size and nesting before they are parsed.

Settings of sources, contracts and intakes come from others. Python's TOML parser takes a stack frame for each level of
nesting, and memory that grows with the square of a dotted key, so a small file could end or fill the process.

Keys that a version took away are listed in `REMOVED`: whoever still states one is told so once, and it is ignored.
"""

import json
import logging
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.formatting import clean

logger = logging.getLogger("opus_pipelines.core.settings")

# Keys of opus.toml that are gone, by the version that took them away: "section.key", or a whole "section", and why, in
# words that end a sentence. A file or variable that names one still works: a night must not fail for it.
Removed = Mapping[str, Mapping[str, str]]
REMOVED: Removed = {
    "0.1.0": {
        "flows.encoder": "the fine-tuned encoder gave no better flows than the plain one",
        "flows.structure": "the trained reader of structure read no more flows rightly than the rules",
        "lwm.network": "a transformer was not better on held-out requests than perceptrons (F1 +.004, -.014 to +.023)",
        "lwm.size": "there is no transformer any more",
        "lwm.links": "a model told the links between steps worse than history does (F1 -.051, -.087 to -.017)",
        "lwm.decoding": "a beam search wrote worse plans than a sample does (F1 -.036, -.059 to -.012)",
        "lwm.hide": "hiding more than the case was worse where history is small (clean -.222, -.444 to -.033)",
    }
}

MAX_BYTES = 1 << 20  # settings of a real source or contract have a few kilobytes
MAX_DEPTH = 16  # brackets inside each other
MAX_PARTS = 16  # names of a dotted key
MAX_KEYS = 10_000  # keys and tables
# strings and comments hold no structure; one that does not end reaches to the end of the text
_TOKENS = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^"\\]|\\.|"(?!""))*(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\[^\n])*"?'
    r"|'[^'\n]*'?"
    r"|[\[\]{}.=,\n]",
    re.S,
)


def stated_toml(path: Path, folder: Path | None = None) -> dict[str, Any] | None:
    """Reads the tables of a TOML file, or returns None where nothing has that name.

    What has the name and cannot be read (a pipe, a folder, a link to nothing) raises SettingsError: it is not absent.
    The error names the file and the place. `folder`: a link that leads out of it is refused, and so is a hard link.
    Without it, links are followed.
    """
    try:
        data = _content(path, folder)
        if data is None:
            return None
        text = data.decode("utf-8-sig")
        _check_structure(text.replace("\r\n", "\n"))
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}: line {line} is not UTF-8 text; save the file as UTF-8") from None
    except RecursionError:
        raise SettingsError(f"{path}: its values are nested too deeply") from None
    except MemoryError:
        raise SettingsError(f"{path}: memory is not enough to read it") from None
    except OSError as error:
        raise SettingsError(f"{path}: it cannot be read ({error.strerror or type(error).__name__})") from None
    except ValueError as error:  # TOMLDecodeError, a limit above, and a number of thousands of digits
        raise SettingsError(f"{path}: {clean(str(error))[:300]}") from None


def without_removed(tables: Mapping[str, Any], where: str, removed: Removed = REMOVED) -> dict[str, Any]:
    """Returns the tables without the keys that are gone, and warns of each that is stated in `where`."""
    left: dict[str, Any] = {}
    for section, table in tables.items():
        if _is_removed(section, where, removed):
            continue
        left[section] = table
        if isinstance(table, dict):
            left[section] = {k: v for k, v in table.items() if not _is_removed(f"{section}.{k}", where, removed)}
    return left


def warn_of_removed_variables(environ: Mapping[str, str], removed: Removed = REMOVED) -> None:
    """Warns of each variable OPUS_<SECTION>_<KEY> of a key that is gone; nothing reads such a variable."""
    for key in (key for keys in removed.values() for key in keys):
        variable = f"OPUS_{key.replace('.', '_')}".upper()
        if variable in environ:
            _is_removed(key, variable, removed)


def _is_removed(key: str, where: str, removed: Removed) -> bool:
    """Tells whether a key is gone, and warns of it."""
    for version, keys in removed.items():
        if key in keys:
            _warn_once(
                f"{where}: {key} is gone since version {version} and is ignored, because {keys[key]}; take it out"
            )
            return True
    return False


@cache
def _warn_once(text: str) -> None:
    """Warns in the log; a process says the same thing once, however often it reads its settings."""
    logger.warning("%s", text)


def hard_link_reason(facts: os.stat_result) -> str | None:
    """Returns why a file with further names must not be read, or None for one with a single name.

    A hard link cannot be told from the file itself, and may lead to a file anywhere on the disk.
    """
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink < 2:
        return None
    return f"it is a hard link; copy the file instead of linking it (it has {facts.st_nlink} names)"


def _content(path: Path, folder: Path | None) -> bytes | None:
    try:
        facts = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(facts.st_mode):
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):
            raise ValueError("it is a link to nothing; put the file itself there") from None
        if folder is not None and not real.is_relative_to(folder.resolve()):
            raise ValueError("it points outside its folder; put the file itself there")
        facts = path.stat()
    if not stat.S_ISREG(facts.st_mode):
        raise ValueError("it is not a regular file; put a text file there")
    if folder is not None and (reason := hard_link_reason(facts)):
        raise ValueError(reason)
    # without waiting: a pipe may have taken the file's place since
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES:,} bytes, and no settings need as many")
    return data


def _check_structure(text: str) -> None:
    """Raises ValueError where the text has more nesting or more keys than any settings have."""
    depth = parts = keys = 0
    line = 1
    for match in _TOKENS.finditer(text):
        token = match[0]
        if token == ".":
            parts += 1
            if parts > MAX_PARTS:
                raise ValueError(f"line {line}: a key has more than {MAX_PARTS} parts with dots between them")
            continue
        if token[0] in "\"'":
            line += token.count("\n")
            continue
        parts = 0
        if token in "[{":
            depth += 1
            keys += depth == 1  # a table's header
        elif token in "]}":
            depth = max(0, depth - 1)
        elif token == "=":
            keys += 1
        elif token == "\n":
            line += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"line {line}: more than {MAX_DEPTH} brackets stand inside each other")
        if keys > MAX_KEYS:
            raise ValueError(f"line {line}: there are more than {MAX_KEYS:,} keys and tables")


def toml_quoted(value: str) -> str:
    """Returns a text as a TOML string."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_listed(values: Iterable[str]) -> str:
    """Returns texts as a TOML list on one line."""
    return "[" + ", ".join(map(toml_quoted, values)) + "]"


def toml_lines(values: Mapping[str, str | list[str] | bool]) -> list[str]:
    """Returns one `key = value` line for each item."""

    def written(value: str | list[str] | bool) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        return toml_quoted(value) if isinstance(value, str) else toml_listed(value)

    return [f"{key} = {written(value)}" for key, value in values.items()]

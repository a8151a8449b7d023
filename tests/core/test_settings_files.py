"""TOML files of others: what is refused before it is parsed, and files that are no plain files."""

import logging
import os
import re
import threading
from pathlib import Path

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings_files import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_KEYS,
    MAX_PARTS,
    stated_toml,
    warn_of_removed_variables,
    without_removed,
)

HOSTILE = {
    "arrays": ("a = " + "[" * 5_000 + "]" * 5_000, "brackets"),
    "inline tables": ("a = " + "{a = " * 5_000 + "1" + "}" * 5_000, "brackets"),
    "dotted key": ("a" + ".a" * 40_000 + " = 1", "dots"),
    "dotted table": ("[a" + ".a" * 40_000 + "]", "dots"),
    "quoted dotted key": ('"a"' + "." + '."a"' * 40_000 + " = 1", "dots"),
    "keys": ("\n".join(f"k{i} = 1" for i in range(MAX_KEYS + 1)), "keys"),
    "tables": ("[[a]]\n" * (MAX_KEYS + 1), "keys"),
    "size": ("#" * (MAX_BYTES + 1), "bytes"),
    "digits": ("a = " + "9" * 5_000, "digits"),
    "text without end": ('a = """' + '\\"""b' * 10_000, "string"),
    "no UTF-8": (b"# \n a = '\xff'", "line 2"),
    "no TOML": ("x = ", "Invalid value"),
}


@pytest.mark.parametrize(("content", "word"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_one_line_that_names_it(tmp_path: Path, content: str | bytes, word: str) -> None:
    path = tmp_path / "contract.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SettingsError, match=re.escape(str(path))) as refusal:
        stated_toml(path)
    assert word in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_stands_in_strings_and_comments_is_no_structure(tmp_path: Path) -> None:
    path = tmp_path / "contract.toml"
    deep = "[" * (MAX_DEPTH + 1) + "a" + ".a" * (MAX_PARTS + 1)
    path.write_text(f"# {deep}\na = '{deep}'\nb = \"{deep}\\\"{deep}\"\nc = '''\n{deep}\n'''\nd = [1.5, 2.5]\n")
    assert (stated_toml(path) or {})["a"] == deep
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n")  # as Windows' editor writes it
    assert stated_toml(path) == {"a": 1}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def hard_link(path: Path) -> None:
    path.parent.with_name("secret.toml").write_text("a = 1")
    path.hardlink_to(path.parent.with_name("secret.toml"))


def link_out(path: Path) -> None:
    path.parent.with_name("secret.toml").write_text("a = 1")
    path.symlink_to(path.parent.with_name("secret.toml"))


UNREADABLE = {
    "pipe": (pipe, "regular"),
    "folder": (Path.mkdir, "regular"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "outside"),
    "hard link": (hard_link, "hard link"),
    "link out of the folder": (link_out, "outside"),
    "link to nothing": (lambda path: path.symlink_to("absent"), "nothing"),
    "link to itself": (lambda path: path.symlink_to(path.name), "nothing"),
}


@pytest.mark.parametrize(("make", "word"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_refused_at_once_and_never_counts_as_absent(
    tmp_path: Path, make: object, word: str
) -> None:
    path = tmp_path / "contract" / "contract.toml"
    path.parent.mkdir()
    assert callable(make)
    make(path)
    said: list[str] = []

    def read() -> None:
        try:
            said.append(str(stated_toml(path, path.parent)))
        except SettingsError as error:
            said.append(str(error))

    reader = threading.Thread(target=read, daemon=True)  # a pipe that is opened waits for its writer for ever
    reader.start()
    reader.join(10)
    assert said
    assert said[0].startswith(f"{path}: ")
    assert word in said[0]


def test_a_missing_file_is_absent_and_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "contract.toml"
    assert stated_toml(path, tmp_path) is None
    (tmp_path / "..data").mkdir()  # as Kubernetes mounts settings
    (tmp_path / "..data" / "contract.toml").write_text("a = 1")
    path.symlink_to("..data/contract.toml")
    assert stated_toml(path, tmp_path) == {"a": 1}


def test_a_key_that_is_gone_is_told_once_with_its_version_and_reason_and_ignored(tmp_path: Path) -> None:
    class Told(logging.Handler):
        def __init__(self) -> None:
            super().__init__()
            self.lines: list[str] = []

        def emit(self, record: logging.LogRecord) -> None:
            self.lines.append(record.getMessage())

    gone = {"0.7.0": {"graph.layout": "nobody drew with it"}, "0.8.0": {"sundial": "there are clocks"}}
    file, told, logger = str(tmp_path / "opus.toml"), Told(), logging.getLogger("opus_pipelines.core.settings")
    stated = {"graph": {"layout": "tree", "picture_edges": 7}, "sundial": {"x": 1}, "wkg": {"layout": 3}}
    logger.addHandler(told)
    try:
        for _ in range(2):
            assert without_removed(stated, file, gone) == {"graph": {"picture_edges": 7}, "wkg": {"layout": 3}}
            warn_of_removed_variables({"OPUS_GRAPH_LAYOUT": "tree", "OPUS_WKG_LAYOUT": "3"}, gone)
    finally:
        logger.removeHandler(told)
    facts = [(file, "graph.layout", "0.7.0", "nobody drew with it"), (file, "sundial", "0.8.0", "there are clocks")]
    facts.append(("OPUS_GRAPH_LAYOUT", "graph.layout", "0.7.0", "nobody drew with it"))
    assert [[part in line for part in of] for line, of in zip(told.lines, facts, strict=True)] == [[True] * 4] * 3

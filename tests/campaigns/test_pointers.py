"""A campaign of odd pointers: every JSON file of a lake gets contents that no version of the program wrote.

The lake is one of this version, whose lists find every change, or one of an older version, which has no lists. Each
reading command must answer, or say in lines for a person what is wrong; nothing may be raised. The table of counts is
printed (`pytest -s`).
"""

import json
import random
from collections import Counter

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.lake.layout import Lake
from tests.published_lake import as_older_version, published_files
from tests.published_lake import publish as publish_lake

SEED = 15
SMALL = 16  # attacks of the small form; the nightly one puts every content into every file of both lakes
COMMANDS = (["status"], ["best"], ["query", "SELECT count(*) FROM workflows_optimized"], ["rollback"], ["verify"])
VALUES: dict[str, object] = {
    "no object": [],
    "a number": 7,
    "a text": "w1111111111111111",
    "null": None,
    "true": True,
    "no keys": {},
    "keys of null": {"snapshot": None, "client": None, "contract": None, "result": None, "files": None, "inputs": None},
    "keys of numbers": {
        "snapshot": 5,
        "client": 1,
        "contract": 2,
        "result": 3.5,
        "files": 1,
        "inputs": 1,
        "format": [],
    },
    "keys of lists": {"snapshot": ["w1"], "client": ["a"], "contract": [], "result": [[]], "files": [], "inputs": []},
    "keys of objects": {
        "snapshot": {},
        "client": {},
        "contract": {},
        "result": {"a": 1},
        "files": {"a": 1},
        "inputs": {},
    },
    "a path upwards": {"snapshot": "../../etc", "client": "..", "contract": "../x", "result": "../../etc"},
    "an absolute path": {"snapshot": "/etc", "client": "/etc", "contract": "/etc", "result": "/etc/passwd"},
    "an unknown name": {"snapshot": "w0000000000000000", "client": "A", "contract": "B", "result": "r0"},
    "a name of 100,000 signs": {"snapshot": "w" * 100_000, "client": "c", "contract": "d", "result": "r" * 100_000},
    "signs of control": {"snapshot": "w\u001b[31m\n\u202e", "client": "\u001b", "contract": "\n", "result": "\u202e"},
    "SQL": {"snapshot": "' || (SELECT 1) || '", "client": "'; DROP VIEW x; --", "contract": "$1", "result": "'"},
    "files that lead out": {
        "client": "A",
        "contract": "B",
        "result": "r1",
        "files": {"../../etc/passwd": {"bytes": 1}},
    },
    "sources that lead out": {"snapshot": "w1", "inputs": {"sources": [{"source": "s", "folder": "../../../etc"}]}},
}
TEXTS: dict[str, bytes] = {
    "nothing": b"",
    "zeros": b"\0" * 4096,
    "no UTF-8": b'{"snapshot": "\xff\xfe"}',
    "a byte order mark": b'\xef\xbb\xbf{"snapshot": "w1111111111111111"}',
    "half a surrogate": b'{"snapshot": "\\ud800", "client": "\\ud800", "contract": "\\udfff", "result": "\\ud800"}',
    "nested": b"[" * 100_000,
    "nested and closed": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "a number without end": b'{"snapshot": ' + b"9" * 50_000 + b"}",
    "not a number": b'{"snapshot": NaN, "result": Infinity}',
    "two objects": b"{}{}",
    "XML": b"<a/>",
}
CONTENTS = {name: json.dumps(value).encode() for name, value in VALUES.items()} | TEXTS


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lake]:
    made = {age: Lake(tmp_path_factory.mktemp(age)) for age in ("listed", "older")}
    for lake in made.values():
        publish_lake(lake)
    as_older_version(made["older"])
    return made


def json_files(lake: Lake) -> list[str]:
    files = [*published_files(lake), lake.root / "lake.json", lake.root / "folders.json"]
    names = [f.relative_to(lake.root).as_posix() for f in files if f.suffix == ".json"]
    return [name for name in names if not name.endswith("_files.json") or name.startswith(("wkg/_", "workflows/"))]


def attacks(lakes: dict[str, Lake], count: int | None) -> list[tuple[str, str, str]]:
    """Seeded triples of the lake, a file and a content; all of them where no count is given."""
    every = [(age, name, content) for age, lake in lakes.items() for name in json_files(lake) for content in CONTENTS]
    return every if count is None else random.Random(SEED).sample(every, count)


def fault(code: int, said: str) -> str | None:
    """What is wrong with how a command ended, or None."""
    if code not in (0, 1):
        return f"exit code {code}"
    if "Traceback" in said or "unexpected:" in said:
        return said
    if code == 1 and not said.strip():
        return "it says nothing"
    return None if all(line.isprintable() for line in said.splitlines()) else f"not printable: {said!r}"


@pytest.mark.long
@pytest.mark.parametrize("count", [SMALL, pytest.param(None, marks=pytest.mark.nightly)], ids=["small", "all"])
def test_no_pointer_is_met_with_an_exception(
    count: int | None, lakes: dict[str, Lake], capsys: pytest.CaptureFixture[str]
) -> None:
    told, faults = Counter[tuple[str, str]](), list[str]()
    chosen = attacks(lakes, count)
    for age, name, content in chosen:
        root, file = lakes[age].root, lakes[age].root / name
        before = file.read_bytes() if file.exists() else None
        file.write_bytes(CONTENTS[content])
        for command in COMMANDS:
            code = main(["--lake", str(root), *command])
            wrong = fault(code, capsys.readouterr().err)
            told[age, "answered" if code == 0 else "refused in a line"] += 1
            faults += [f"{age}, {name}, {content}, {command[0]}: {wrong}"] if wrong else []
        file.unlink() if before is None else file.write_bytes(before)
    with capsys.disabled():
        print(f"\n{len(chosen)} odd contents, {len(COMMANDS)} commands each: {len(faults)} faults")
        for (age, outcome), times in sorted(told.items()):
            print(f"  {age:<8} {outcome:<18} {times:>6}")
        print("\n".join(faults))
    assert faults == []


def test_the_campaign_would_find_an_exception() -> None:
    assert fault(1, "opus: unexpected: a record lacks what it should have (KeyError: 'snapshot')\n") is not None
    assert fault(1, "opus: a\u202eb\n") is not None
    assert fault(1, "") is not None
    assert fault(1, "opus: wkg/current.json is damaged\n") is None

"""A campaign against settings files: seeded damage to good files, and tables of the program where they do not belong.

Each file is read as the settings of a source, a contract, an intake or a working directory. It must be read, or refused
in one line that names it, within a second.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import load
from opus_pipelines.history.records.source_settings import load_source
from opus_pipelines.intakes.contract_settings import load_contract, load_intake

SEED = 15
SMALL, LARGE = 160, 8_000
READERS: dict[str, Callable[[Path], object]] = {
    "source.toml": load_source,
    "contract.toml": load_contract,
    "intake.toml": load_intake,
    "opus.toml": lambda folder: load(environ={}, folder=folder),
}
GOOD = {
    "source.toml": 'industry = "claims"\ntimezone = "UTC"\n[columns]\ncase = "id"\n[rates]\nCLERK = 40\n',
    "contract.toml": 'client = "A"\ngain_usd = 3\n[prices]\nCLERK = 40\n[answers]\n"the clerk" = "none"\n',
    "intake.toml": 'title = "A"\nreceived_at = 2026-01-31T09:00:00Z\n[attributes]\namount = 3\n',
    "opus.toml": "[generation]\nk = 2\n[retention]\nsnapshots = 3\n[cost]\nusd_per_hour = { CLERK = 40 }\n",
}
FOREIGN = [  # tables of the program that run code or reach another machine
    '[spark.conf]\n"spark.driver.extraJavaOptions" = "-javaagent:x.jar"\n',
    '[spark]\nmaster = "spark://example.org:7077"\n',
    '[graph]\ngraphframes_package = "org.example:x:1"\n',
    '[encoder]\nmodel = "/tmp/model"\n',
    '[mlflow]\ntracking_uri = "https://example.org"\n',
    '[openai_compatible]\nurl = "https://example.org"\n',
    '[causal_lm]\npath = "/tmp/model"\n',
    '[paths]\nlake = "/tmp/lake"\n',
]
VALUES = [
    "[" * 3_000,
    "[" * 15 + "]" * 15,
    "{a=" * 15 + "1" + "}" * 15,
    "9" * 5_000,
    "0x" + "f" * 3_000,
    "-inf",
    "nan",
    "1e400",
    '"\\u0000\\u001b[31m\\u202e"',
    '"' + "x" * 100_000 + '"',
    "1979-05-27T07:32:00",
    "[1, [2, [3]]]",
    "{ a = { b = { c = 1 } } }",
    "true",
    '""',
]


def damaged(text: str, draw: random.Random) -> tuple[str, bytes]:
    """One kind of damage to a good file, and the file."""
    kind = draw.choice(["bytes", "value", "key", "repeated", "cut", "nested"])
    data = text.encode()
    place = draw.randrange(len(data))
    if kind == "bytes":
        return kind, data[:place] + draw.randbytes(draw.choice([1, 4, 200])) + data[place:]
    if kind == "value":
        lines = text.splitlines()
        at = draw.choice([i for i, line in enumerate(lines) if " = " in line])
        lines[at] = lines[at].split(" = ")[0] + " = " + draw.choice(VALUES)
        return kind, "\n".join(lines).encode()
    if kind == "key":
        key = draw.choice(["a" + ".a" * 5_000, '"' + "k" * 5_000 + '"', '"a\\nb\\u001b"', "a.a.a.a", '"__class__"'])
        return kind, f"{key} = 1\n{text}".encode()
    if kind == "repeated":
        return kind, data * draw.choice([2, 50])
    if kind == "cut":
        return kind, data[:place]
    return kind, data + b"\n[" + b".".join([b"a"] * draw.choice([3, 15, 3_000])) + b"]\nb = 1\n"


def said_of(name: str, content: bytes, folder: Path) -> str:
    """What is said of the file: nothing where it is read."""
    (folder / name).write_bytes(content)
    began = time.monotonic()
    try:
        READERS[name](folder)
        said = ""
    except SettingsError as error:
        said = str(error)
        assert said.startswith(str(folder / name))
        assert said.isprintable()
        assert len(said) < 20_000
    assert time.monotonic() - began < 5
    return said


@pytest.mark.parametrize("count", [SMALL, pytest.param(LARGE, marks=pytest.mark.nightly)], ids=["small", "large"])
def test_a_damaged_file_is_read_or_refused_in_a_line(count: int, tmp_path: Path) -> None:
    draw = random.Random(SEED)
    read, refused = Counter[str](), Counter[str]()
    for _ in range(count):
        name = draw.choice(sorted(GOOD))
        kind, content = damaged(GOOD[name], draw)
        (refused if said_of(name, content, tmp_path) else read)[kind] += 1
        (tmp_path / name).unlink()
    print("\ndamage      read  refused")
    for kind in sorted(read | refused):
        print(f"{kind:10}{read[kind]:6}{refused[kind]:9}")
    assert read.total() + refused.total() == count


@pytest.mark.parametrize("name", READERS)
def test_what_runs_code_is_refused_in_every_file_that_comes_with_others(name: str, tmp_path: Path) -> None:
    assert said_of(name, GOOD[name].encode(), tmp_path) == ""
    for table in FOREIGN:
        said = said_of(name, GOOD[name].encode() + table.encode(), tmp_path)
        assert ("--settings" if name == "opus.toml" else "opus.toml") in said

"""A campaign of file names: folders and files of sources, clients, contracts and intakes with hostile names.

Every place that the lake would use lies inside the lake, and every message can be printed on one line.
"""

import os
import random
from pathlib import Path

import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.plan import plan_history
from opus_pipelines.intakes.intake import discover, read_intake
from opus_pipelines.lake.layout import Lake

SEED = 15
SMALL, LARGE = 40, 2_000
PARTS = [b"..", b".", b"~", b"\\", b"\n", b"\r", b"\t", b"\x1b[31m", b"\x7f", b"\xff", "\u202e".encode(), "é".encode()]
PARTS += ["e\u0301".encode(), b"'", b'"', b"$(x)", b"`x`", b"%2e%2e%2f", b"=1+1", b"|", b";", b"*", b"?", b" ", b"-rf"]
PARTS += [b"a", b"con", b"nul", "\u0000".encode().replace(b"\0", b"_"), "😀".encode(), b"__", b"_2f", b"client_key=x"]


def name(draw: random.Random) -> bytes:
    """A name that the file system takes."""
    made = b"".join(draw.choice(PARTS) for _ in range(draw.randint(1, 6)))[:200]
    return made if made not in (b".", b"..") else made + b"_"


@pytest.mark.parametrize("count", [SMALL, pytest.param(LARGE, marks=pytest.mark.nightly)], ids=["small", "large"])
def test_hostile_names_stay_names(count: int, tmp_path: Path) -> None:
    draw, lake = random.Random(SEED), Lake(tmp_path / "lake")
    intakes, history = tmp_path / "intakes", tmp_path / "history"
    for _ in range(count):
        client, contract, intake, source = (Path(os.fsdecode(name(draw))) for _ in range(4))
        document = intakes / client / contract / intake / "input"
        document.mkdir(parents=True, exist_ok=True)
        (document / os.fsdecode(name(draw) + b".txt")).write_text("A claim.")
        (history / source).mkdir(parents=True, exist_ok=True)
        (history / source / os.fsdecode(name(draw) + b".csv")).write_text("case_id,activity\n1,A\n")
    said, read = [], 0
    for folder in discover(intakes):
        place = lake.pointer_path(folder.client, folder.contract)
        assert place.parent == lake.root / "workflows" / "current"
        assert place.name.isascii()
        said.append(folder.problem or "")
        for one in folder.intakes:
            try:
                elements = read_intake(folder, one, Settings()).elements
                said += [text for e in elements for text in (e.name, e.left_out or "")]
                read += 1
            except OpusError as error:
                said.append(str(error))
    for plan in plan_history(history):
        said += [plan.name, plan.refused or "", *(f.path for f in plan.files), *(f.refused or "" for f in plan.files)]
    print(f"\n{count} names of each kind: {read} intakes read, {sum(map(bool, said)):,} texts")
    assert [text for text in said if not text.isprintable()] == []
    assert read > count / 2

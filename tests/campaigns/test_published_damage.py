"""A campaign against what is published: seeded faults in every file of a lake, and what readers and `verify` say.

After each fault, `verify` must name the file; a reader must refuse, or leave out the contract whose file it is and say
so; and after a repair nothing may be damaged but what a rebuild makes again. The table of counts is printed
(`pytest -s`).
"""

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect
from opus_pipelines.wkg.upkeep.verify import repair, verify
from tests.published_lake import CONTRACTS, NOW, published_files
from tests.published_lake import publish as publish_lake

SEED = 15
SMALL = 24  # faults of the small form; the nightly one does every fault to every file
Fault = Callable[[Path, random.Random], None]


def cut(file: Path, draw: random.Random) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: draw.randrange(len(content))])


def flip(file: Path, draw: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    file.write_bytes(content)


def delete(file: Path, draw: random.Random) -> None:
    file.unlink()


def empty(file: Path, draw: random.Random) -> None:
    file.write_bytes(b"")


def replace(file: Path, draw: random.Random) -> None:
    size = file.stat().st_size
    file.write_bytes(draw.randbytes(size))


FAULTS: dict[str, Fault] = {"cut": cut, "bit flipped": flip, "deleted": delete, "emptied": empty, "replaced": replace}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("published"))
    publish_lake(lake)
    return lake


def read(lake: Lake) -> str:
    """What a reader meets: refused, without a contract that is named, or nothing wrong."""
    try:
        connection = connect(lake)
    except LakeError as error:
        return "refused" if "`opus verify --repair`" in str(error) else f"refused without advice: {error}"
    named = connection.sql("SELECT client, contract FROM damaged_results").fetchall()
    current = connection.sql("SELECT client, contract FROM current_results").fetchall()
    assert connection.sql("SELECT count(*) FROM workflows_optimized").fetchall() == [(0,)]
    assert set(named) | set(current) == set(CONTRACTS)
    return "contract named" if named else "answered"


def group(place: Path) -> str:
    return place.parts[0] if place.parts[0] in ("aggregates", "decisions", ".empty") else "/".join(place.parts[:2])[:16]


def attacks(lake: Lake, count: int | None) -> list[tuple[str, str]]:
    """Seeded pairs of a file and a fault; all pairs where no count is given."""
    pairs = [(path.relative_to(lake.root).as_posix(), name) for path in published_files(lake) for name in FAULTS]
    return pairs if count is None else random.Random(SEED).sample(pairs, count)


# What readers do not read: the parts of a rebuild and the kept files. Damaged empty files are not used, with a line. A
# damaged list does not hide sound rows.
UNREAD = ("aggregates", "wkg/kept", ".empty")
LIST = "_files.json"


@pytest.mark.long
@pytest.mark.parametrize("count", [SMALL, pytest.param(None, marks=pytest.mark.nightly)], ids=["small", "all"])
def test_no_damage_is_answered_from(count: int | None, sound: Lake, tmp_path: Path) -> None:
    draw, told = random.Random(SEED), Counter[tuple[str, str]]()
    pairs = attacks(sound, count)
    for number, (name, fault) in enumerate(pairs):
        lake = Lake(tmp_path / str(number))
        shutil.copytree(sound.root, lake.root)
        FAULTS[fault](lake.root / name, draw)
        checked = verify(lake)
        found = {one.file for one in checked.damage} | {folder / LIST for folder in checked.unlisted}
        assert lake.root / name in found, (name, fault)
        outcome = read(lake)
        assert not outcome.startswith("refused without"), (name, fault, outcome)
        if not name.startswith(UNREAD) and not name.endswith(LIST):
            assert outcome != "answered", (name, fault)
        with lake.lock():
            repair(lake, verify(lake).damage, NOW)
        left = [one for one in verify(lake).damage if not one.is_folder]
        assert left == [], (name, fault)
        told[group(Path(name)), outcome] += 1
        shutil.rmtree(lake.root)
    print(f"\n{len(pairs)} faults of {len(FAULTS)} kinds in {len(published_files(sound))} files")
    for (where, outcome), times in sorted(told.items()):
        print(f"  {where:<18} {outcome:<16} {times:>5}")


def test_the_campaign_would_find_a_reader_that_answers(sound: Lake) -> None:
    assert read(sound) == "answered"
    assert verify(sound).damage == []
    assert len(published_files(sound)) > 100

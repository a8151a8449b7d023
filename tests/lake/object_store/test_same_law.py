"""Any sequence of publications gives readers the same lake, in a folder and in an object store."""

import random
from pathlib import Path

import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.folders import origin_in
from tests.lake.conftest import Place
from tests.lake.object_store.test_publication import put

KEPT = ("a.json", "b.json")


def seen(root: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """What a reader that begins now sees of folders and kept files; of a store on another machine."""
    if origin_in(root) is not None:
        place: Place = request.getfixturevalue("place")
        root = place.machine("reader").reader().root
    lake = Lake(root)
    folders = {f.name: (f / "x").read_text() for f in (lake.root / "wkg").glob("w*")}
    return folders | {f.name: f.read_text().strip() for f in lake.kept.glob("*.json") if f.name in KEPT}


def change(lake: Lake, chance: random.Random, truth: dict[str, str]) -> None:
    """Publishes, replaces, withdraws or removes something, in the lake and in the record of what must be seen."""
    name = chance.choice(KEPT)
    match chance.choice(("publish", "replace", "withdraw", "remove")):
        case "publish":
            name = f"w{chance.randrange(4)}"
            text = str(chance.random())
            put(lake, name, text)
            truth.setdefault(name, text)  # nothing published is ever changed
        case "replace":
            text = str(chance.random())
            lake.replace(lake.kept / name, lambda path: path.write_text(text))
            truth[name] = text
        case "withdraw" if name in truth:
            lake.withdraw(lake.kept / name)
            del truth[name]
        case "remove" if folders := sorted(set(truth) - set(KEPT)):
            lake.remove(lake.root / "wkg" / folders[0])
            del truth[folders[0]]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_reader_sees_what_was_published(root: Path, seed: int, request: pytest.FixtureRequest) -> None:
    chance, truth = random.Random(seed), dict[str, str]()
    for _ in range(8):
        with Lake(root).lock():
            for _ in range(chance.randrange(1, 4)):
                change(Lake(root), chance, truth)
        assert seen(root, request) == truth

"""A source whose new version fails after it was read is put back, and the other changed sources are published."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.schemas import CASES, IMPLEMENTATIONS
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.lake.layout import PART, Lake, dataset_folder, read_table
from opus_pipelines.wkg.rebuild import steps
from opus_pipelines.wkg.rebuild.failing_sources import without_failing_sources
from opus_pipelines.wkg.rebuild.records import Rebuild, Staged
from tests.rebuilding import no_spark

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ENGINES = steps.Engines(lambda bytes_: no_spark(), no_spark)


class Encoder:
    """Vectors of letters; a text with the word "poison" is an error of the kind that only data brings about."""

    name, max_tokens, dimension = "letters", 256, 26

    def encode(self, texts: list[str], progress: Any = None) -> np.ndarray:
        if any("poison" in text.casefold() for text in texts):
            raise ZeroDivisionError("a vector without length")
        rows = np.array([[text.casefold().count(chr(97 + i)) + 0.01 for i in range(26)] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass
class Nights:
    """A history folder with its lake."""

    folder: Path

    @property
    def lake(self) -> Lake:
        return Lake(self.folder / "lake")

    @property
    def settings(self) -> Settings:
        return Settings(paths=Paths(lake=self.lake.root, history=self.folder / "history"))

    def write(self, source: str, *cases: tuple[str, ...]) -> None:
        place = self.folder / "history" / source
        place.mkdir(parents=True, exist_ok=True)
        (place / "source.toml").write_text('industry = "retail"\nclient = "Acme"\n')
        rows = [f"{c},{a},2025-01-0{n + 1}T0{c}:00:00Z" for c, case in enumerate(cases) for n, a in enumerate(case)]
        (place / "log.csv").write_text("\n".join(["case,activity,time", *rows]) + "\n")

    def night(self, before_mining: Callable[[], None] = lambda: None) -> tuple[str, list[str], list[str]]:
        """One rebuild: its snapshot, the lines of sources that were put back, and those of the reading."""
        state, _ = steps.read(self.settings, self.lake, NOW)
        before_mining()

        def mining() -> Rebuild:
            rebuild = steps.begun(self.settings, self.lake, lambda lake: Encoder())
            steps.mine(rebuild, ENGINES)
            return rebuild

        def embedding() -> Rebuild:
            rebuild = steps.opened(self.settings, self.lake)
            steps.embed(rebuild, lambda lake: Encoder())
            return rebuild

        def again() -> Rebuild:
            mining()
            return embedding()

        _, not_mined = without_failing_sources(self.settings, self.lake, "mining", mining, mining)
        rebuild, not_embedded = without_failing_sources(self.settings, self.lake, "embedding", embedding, again)
        if not rebuild.snapshot.is_current:
            steps.publish(rebuild, NOW)
        return rebuild.snapshot.snapshot_id, not_mined + not_embedded, state.held

    def cases(self) -> dict[str, int]:
        """The cases of each source in the current snapshot."""
        folder = self.lake.snapshot_folder(self.lake.required_snapshot())
        names = read_table(CASES, dataset_folder(folder, CASES), columns=["source"])["source"].to_pylist()
        return {name: names.count(name) for name in sorted(set(names))}

    def damage(self, source: str) -> None:
        """Leaves the cases of a source without their tasks, as an error of the program might have."""
        content = next(one.content for one in Staged(self.lake).required_history().sources if one.source == source)
        file = self.lake.folder(IMPLEMENTATIONS, source_key=source, content=content) / PART
        pq.write_table(pq.read_table(file).drop_columns(["tasks"]), file)


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    one = Nights(tmp_path)
    with one.lake.lock():
        for source in ("a", "b", "c"):
            one.write(source, ("Register", "Check"))
        one.night()
        yield one


@pytest.mark.long
def test_what_fails_while_mining_keeps_its_last_good_version(nights: Nights) -> None:
    for source in ("a", "b", "c"):
        nights.write(source, ("Register", "Check"), ("Register", "Pay"))
    snapshot, lines, _ = nights.night(lambda: nights.damage("b"))
    assert nights.cases() == {"a": 2, "b": 1, "c": 2}
    assert [line.partition(":")[0] for line in lines] == ["b"]
    later, lines, held = nights.night()  # the same files again: it is not tried again, and still named
    assert (later, lines, [line.partition(":")[0] for line in held]) == (snapshot, [], ["b"])
    nights.write("b", ("Register", "Check"), ("Register", "Pay"), ("Register", "Close"))
    assert nights.night()[1:] == ([], [])
    assert nights.cases() == {"a": 2, "b": 3, "c": 2}


@pytest.mark.long
def test_what_fails_while_embedding_is_put_back_and_a_new_source_is_left_out(nights: Nights) -> None:
    nights.write("a", ("Register", "Poison the well"))
    nights.write("d", ("Register", "Poison the tree"))
    nights.write("c", ("Register", "Pay"), ("Register", "Check"))
    _, lines, _ = nights.night()
    assert nights.cases() == {"a": 1, "b": 1, "c": 2}
    assert [line.partition(":")[0] for line in lines] == ["a", "d"]


@pytest.mark.long
def test_where_every_source_fails_alone_the_night_fails_and_nothing_is_held_against_them(nights: Nights) -> None:
    before = nights.lake.required_snapshot()
    for source in ("a", "b"):
        nights.write(source, ("Register", f"Poison {source}"))
    with pytest.raises(ZeroDivisionError):
        nights.night()
    assert nights.lake.required_snapshot() == before
    state, _ = steps.read(nights.settings, nights.lake, NOW)
    assert state.held == []


@pytest.mark.long
def test_a_first_night_publishes_nothing_where_its_only_source_fails(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.write("a", ("Register", "Poison the well"))
    with nights.lake.lock(), pytest.raises(ZeroDivisionError):
        nights.night()
    assert nights.lake.current_snapshot() is None

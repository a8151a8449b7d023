"""The command `opus verify`: checks every published file, and repairs what can be repaired."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options, history_option, intakes_option
from opus_pipelines.cli.show import note
from opus_pipelines.core.errors import LakeError, OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.folders import origin_in

if TYPE_CHECKING:
    from opus_pipelines.wkg.upkeep.verify import Repair, Verification


@click.command()
@click.option("--repair", is_flag=True, help="Restore what has a copy, and make the rest again.")
@history_option("Folder of history, for --repair")
@intakes_option("Folder of intakes, for --repair")
@click.pass_obj
def verify(options: Options, repair: bool, history: Path | None, intakes: Path | None) -> None:
    """Check every published file by its size and hash; exit with 1 where one is damaged.

    With --repair, files of which a copy is kept are restored. Other damaged files are moved to the folder `damaged` of
    the lake, and a rebuild and a generation make their content again. Without --history and --intakes, these read the
    folders that the lake was made from last.

    \b
    Example:
      opus verify
      opus verify --repair
    """
    settings = options.settings(paths__history=history, paths__intakes=intakes)
    lake = Lake(settings.paths.lake)
    if not lake.root.is_dir():
        raise LakeError(f"{lake.root} is not a lake yet; `opus rebuild` makes one")
    found, lacking = _check(lake), _lacking(lake)
    _show(lake, found)
    if repair and (found.damage or lacking) and origin_in(lake.root):
        _fetch(lake, found, lacking)
        found, lacking = _check(lake), _lacking(lake)
        _show(lake, found)
    if repair and found.damage:
        _repair(lake, settings, found)
        found, lacking = _check(lake), _lacking(lake)
        _show(lake, found)
    if count := len(found.damage) + len(lacking):
        left = "are damaged still" if repair else "are damaged; `opus verify --repair` mends what can be mended"
        raise LakeError(f"{count} files {left}")


def _check(lake: Lake) -> "Verification":
    from opus_pipelines.core.formatting import Ticker
    from opus_pipelines.wkg.upkeep.verify import freshen_lists, verify

    began, progress = time.monotonic(), Ticker("files checked", note)
    found = verify(lake, lambda files: progress(files, None))
    size, seconds = found.bytes / 1e6, time.monotonic() - began
    note(f"{found.files:,} files, {size:,.1f} MB, checked in {seconds:.1f} s: {len(found.damage) or 'none'} damaged")
    if found.unlisted:
        note(f"{len(found.unlisted):,} folders have no list of files (older version, or lost): not checked")
    if not found.damage:
        with lake.lock():
            freshen_lists(lake)
    return found


def _lacking(lake: Lake) -> list[tuple[str, str]]:
    """Returns what the object store of a lake lacks, with a reason each, and shows it; nothing for other lakes."""
    if (origin := origin_in(lake.root)) is None:
        return []
    from opus_pipelines.lake.object_store.trees import missing

    if found := missing(lake.root):
        show.table(("file", "damage"), found, f"Damaged objects of {origin.url}")
    return found


def _fetch(lake: Lake, found: "Verification", lacking: list[tuple[str, str]]) -> None:
    """Fetches damaged files from the object store, and sends those that the store lacks."""
    from opus_pipelines.lake.object_store.trees import mend

    names = [one.file.relative_to(lake.root).as_posix() for one in found.damage if not one.is_folder]
    fetched = mend(lake.root, names, [path for path, _ in lacking])
    with lake.lock():
        pass  # its end publishes
    rows = [(path, "fetched from the store") for path in fetched]
    rows += [(path, "sent to the store") for path, _ in lacking if path not in names]
    show.table(("file", "what was done"), rows, "Repair")


def _show(lake: Lake, found: "Verification") -> None:
    rows = [(one.file.relative_to(lake.root).as_posix(), one.reason) for one in found.damage]
    if rows:
        show.table(("file", "damage"), rows, f"Damaged files of {lake.root}")


def _repair(lake: Lake, settings: Settings, found: "Verification") -> None:
    from opus_pipelines.wkg.upkeep.verify import repair

    with lake.lock():
        work = repair(lake, found.damage, datetime.now(UTC))
    show.table(("file", "what was done"), work.done, "Repair")
    _make_again(settings, work)


def _make_again(settings: Settings, work: "Repair") -> None:
    """Rebuilds, then generates; what fails is said, and the rest goes on."""
    from opus_pipelines.cli import runs

    if work.rebuild:
        _tried("rebuild", lambda: runs.rebuild(settings, full=False, reset_lambda=False))
    if work.contracts:
        _tried("generate", lambda: runs.generate(settings, _of(settings, work.contracts)))


def _of(settings: Settings, contracts: set[tuple[str, str]]) -> list[ContractFolder]:
    from opus_pipelines.cli.current import split_stale

    return [one for one in split_stale(settings, None, None, None)[0] if (one.client, one.contract) in contracts]


def _tried(what: str, action: Callable[[], None]) -> None:
    try:
        action()
    except OpusError as error:
        note(f"{what}: {error}")

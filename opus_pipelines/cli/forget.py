"""The command `opus forget`: removes a client from everything that the lake keeps, and proves it by a search.

Dagster's record (partitions, runs, events, states of sensors, logs) is changed by the API of Dagster's instance, so it
works on any storage that Dagster has. The API can delete runs and wipe whole assets, but no single partition of an
asset (`wipe_asset_partitions` is not implemented for SQL storages). So the runs of the client are deleted, an asset
whose rows still name the client is wiped, and what these two steps also took from other contracts is reported again,
without a run.
"""

import shutil
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options, history_option, intakes_option
from opus_pipelines.cli.show import note
from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake import run_storage
from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.lake.search import Finding, Word, search, unpacked

if TYPE_CHECKING:
    import dagster as dg

    from opus_pipelines.wkg.upkeep.erasure import ErasureWork, Removed


@click.command()
@click.option("--client", required=True, help="The client, as it is written in history and intakes.")
@history_option("Folder of history, with one folder for each source")
@intakes_option("Folder of intakes, to report which are the client's")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--undo",
    is_flag=True,
    help="Let the client's files be read again from the next rebuild on. What was removed stays removed.",
)
@click.pass_obj
def forget(
    options: Options, client: str, history: Path | None, intakes: Path | None, dry_run: bool, yes: bool, undo: bool
) -> None:
    """Remove a client from everything that the lake keeps, and prove it by a search.

    History, results and older snapshots are cleaned. The files in history and intakes are yours and stay; the lake
    leaves out their cases of this client from now on. Where a run was interrupted, run the command again to finish.

    \b
    Example:
      opus --lake demo/lake forget --client "Northwind Insurance" --history demo/history
    """
    from opus_pipelines.wkg.upkeep import erasure

    settings = options.settings(paths__history=history, paths__intakes=intakes)
    lake = Lake(settings.paths.lake)
    if undo:
        erasure.undo(lake, client)
        note(f"{client} is read again from the next `opus rebuild` on")
        return
    work = erasure.look(lake, settings.paths.history, client)
    show.table(("what", "how much"), work.planned(), f"Of {client} in {lake.root}")
    for twin in work.look_alikes:
        note(f"{twin!a} looks like {client!a}, and it stays; is it the same client? Then forget it, too")
    if dry_run:
        return
    if not yes:
        twins = f", and keep {', '.join(map(ascii, work.look_alikes))}" if work.look_alikes else ""
        click.confirm(f"Remove {client} from {lake.root} for good{twins}?", abort=True, err=True)
    _carry_out(lake, settings, work)


def _carry_out(lake: Lake, settings: Settings, work: "ErasureWork") -> None:
    """Erases and reports. In the rebuild without the client, drift and loss are not checked: they are meant."""
    from opus_pipelines.cli import runs
    from opus_pipelines.lwm.training.tracking import Tracking
    from opus_pipelines.wkg.upkeep import erasure

    client = work.traces.client
    quiet = settings.model_copy(update={"checks": settings.checks.model_copy(update={"drift": "off"})})
    report = erasure.carry_out(
        lake,
        work,
        lambda: runs.rebuild(quiet, False, False, publish=True, allow_loss=True),
        lambda words: [
            *clean_record(lake, client, words),
            ("trainings at MLflow's server", Tracking(lake, settings.mlflow).forget()),
        ],
    )
    if report.rebuild_problem:
        note(f"the rebuild said: {report.rebuild_problem}")
    verdict = "is not forgotten yet" if report.left else "is forgotten"
    show.table(("removed", "how much"), report.removed, f"{client} {verdict}")
    for name, contract in report.undecided:
        note(f"{name} / {contract}: decisions on workflows with tasks of {client} alone are removed")
    for name, contract in sorted({(result.client, result.contract) for result in report.resting}):
        note(f"{name} / {contract}: rested on cases of {client}; `opus generate` makes it again")
    for place in sorted({f"{found.file} {found.place}" for found in report.shared}):
        note(f"the name {client} stands in what other clients gave: {place}")
    intakes = settings.paths.intakes
    contracts = [c.folder for c in discover(intakes) if c.client == client] if intakes.is_dir() else []
    sources = [settings.paths.history / source for source in sorted(work.traces.sources)]
    for folder in (folder for folder in (*sources, *contracts) if folder.is_dir()):
        note(f"yours, and not touched: {folder} still holds {client}")
    if report.left:
        lines = [f"still there: {f.word.kind} {f.word.text!r} in {f.file} {f.place}".rstrip() for f in report.left[:20]]
        raise LakeError("\nopus: ".join(lines))


_Event: TypeAlias = "dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation"
_PAGE = 1_000  # evaluations of one check that are asked for at once
_FOREVER = 10 * 365 * 86_400.0


def clean_record(lake: Lake, client: str, words: list[Word]) -> "Removed":
    """Removes from Dagster's record the partitions of the client, and what names one of the words.

    Returns what was removed, and how much of it. The caller holds the lake's lock.
    """
    if not (lake.dagster_home / "dagster.yaml").is_file():
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's notices are not for the person at the terminal
        import dagster as dg

        with dg.DagsterInstance.from_config(str(lake.dagster_home)) as instance:
            removed = _Record(lake, instance, client, words).clean()
    _overwrite_free_space(lake)
    run_storage.overwrite_free_space(lake)
    return [*removed, ("logs", _remove_logs(lake, words))]


class _Record:
    """Dagster's record of one lake, and what is looked for in it."""

    def __init__(self, lake: Lake, instance: "dg.DagsterInstance", client: str, words: list[Word]) -> None:
        self.lake, self.instance, self.words = lake, instance, words
        self.prefix = f"{slug(client)}__"

    def clean(self) -> list[tuple[str, int]]:
        from assets.specs import CONTRACT

        partitions = [key for key in self.instance.get_dynamic_partitions(CONTRACT) if key.startswith(self.prefix)]
        for key in partitions:
            self.instance.delete_dynamic_partition(CONTRACT, key)
        runs = self._runs()
        wiped = self._assets_with_checks_that_name_it()
        kept = [*self._kept_events(set(runs), wiped), *self._kept_evaluations(wiped)]
        for run in runs:
            self.instance.delete_run(run)
            self.instance.compute_log_manager.delete_logs(prefix=[run])
            shutil.rmtree(self.lake.dagster_home / "storage" / run, ignore_errors=True)  # the logs of a run's steps
        if wiped:
            self.instance.wipe_assets(wiped)
        for event in kept:
            self.instance.report_runless_asset_event(event)
        assets = self._renew_assets()
        states = self._clean_sensors() + self._clean_backfills()
        counted: dict[str, list[Any]] = {
            "partitions": partitions,
            "runs in Dagster's record": runs,
            "assets reported again": kept,
        }
        return [*((what, len(items)) for what, items in counted.items()), ("other rows of it", assets + states)]

    def _names_it(self, what: object) -> bool:
        content = unpacked(str(what))
        return any(form in content for word in self.words for form in word.forms)

    def _runs(self) -> list[str]:
        """Returns the runs whose tags, configuration, events or output name one of the words."""
        return [run.run_id for run in self.instance.get_runs() if self._run_names_it(run)]

    def _run_names_it(self, run: "dg.DagsterRun") -> bool:
        if self._names_it(f"{run.tags}{run.run_config}"):
            return True
        if any(self._names_it(event.to_json()) for event in self.instance.all_logs(run.run_id)):
            return True
        return any(search(self.lake, self.words, below=self.lake.dagster_home / "storage" / run.run_id))

    def _assets_with_checks_that_name_it(self) -> "list[dg.AssetKey]":
        """Returns the assets one of whose checks has an evaluation that names a word."""
        return sorted({key.asset_key for key in self._checks() if any(map(self._is_named, self._evaluations(key)))})

    def _is_named(self, evaluation: Any) -> bool:
        """Returns whether an evaluation is of a partition of the client, or names a word."""
        return (evaluation.partition or "").startswith(self.prefix) or self._names_it(evaluation.event)

    def _checks(self) -> "list[dg.AssetCheckKey]":
        """Returns the checks that were evaluated at some time."""
        from opus_pipelines.core.settings import Settings
        from opus_pipelines.definitions import build_defs

        declared = sorted(build_defs(Settings()).resolve_asset_graph().asset_check_keys)
        return list(self.instance.event_log_storage.get_asset_check_summary_records(declared))

    def _evaluations(self, key: "dg.AssetCheckKey") -> Iterator[Any]:
        """Yields the records of a check's evaluations, the latest first."""
        cursor: int | None = None
        while page := self.instance.event_log_storage.get_asset_check_execution_history(key, _PAGE, cursor):
            yield from page
            cursor = page[-1].id

    def _kept_evaluations(self, wiped: "list[dg.AssetKey]") -> list[_Event]:
        """Returns the latest evaluation of each check of these assets, for each partition but those of the client."""
        import dagster as dg

        kept: list[_Event] = []
        for key in (key for key in self._checks() if key.asset_key in wiped):
            latest: dict[str | None, dg.AssetCheckEvaluation] = {}
            for one in self._evaluations(key):
                told = one.event and one.event.dagster_event and one.event.dagster_event.event_specific_data
                # a check that was planned, in a run that failed before it, has no evaluation
                if isinstance(told, dg.AssetCheckEvaluation) and not self._is_named(one):
                    latest.setdefault(one.partition, told)
            kept += [_evaluated_again(evaluation) for evaluation in latest.values()]
        return kept

    def _kept_events(self, runs: set[str], wiped: "list[dg.AssetKey]") -> list[_Event]:
        """Returns the latest events of other contracts that the deletion of these runs and assets takes away."""
        fetchers = (self.instance.fetch_materializations, self.instance.fetch_observations)
        latest = [
            one for fetch in fetchers for key in self.instance.all_asset_keys() for one in self._latest(key, fetch)
        ]
        lost = [record for record in latest if record.run_id in runs or record.asset_key in wiped]
        return [self._again(record) for record in sorted(lost, key=lambda record: record.storage_id)]

    def _latest(self, key: "dg.AssetKey", fetch: Callable[..., Any]) -> "list[dg.EventLogRecord]":
        """Returns the latest event of the asset, or of each of its partitions but those of the client."""
        import dagster as dg

        from assets.specs import CONTRACT

        partitions = [[key] for key in self.instance.get_dynamic_partitions(CONTRACT)]  # without the client's by now
        found = []
        for only in (None, *partitions):
            records = fetch(dg.AssetRecordsFilter(key, asset_partitions=only), limit=1).records
            found += [record for record in records if only is not None or record.partition_key is None]
        return found

    def _again(self, record: "dg.EventLogRecord") -> _Event:
        """Returns the event of this record with its versions, and its metadata where they name no word."""
        event: Any = record.asset_materialization or record.event_log_entry.asset_observation
        metadata = {} if self._names_it(event.metadata) else event.metadata
        return type(event)(event.asset_key, metadata=metadata, partition=event.partition, tags=dict(event.tags or {}))

    def _renew_assets(self) -> int:
        """Reports another latest event for assets whose latest one is the client's, or wipes them. Returns how many."""
        cleaned = 0
        for record in self.instance.get_asset_records():
            key = record.asset_entry.asset_key
            self.instance.wipe_asset_cached_status([key])  # it names all partitions; Dagster works it out again
            if not self._names_it(record.asset_entry.last_materialization_record):
                continue
            if events := self._latest(key, self.instance.fetch_materializations):
                self.instance.report_runless_asset_event(self._again(max(events, key=lambda event: event.storage_id)))
            else:
                self.instance.wipe_assets([key])
            cleaned += 1
        return cleaned

    def _clean_sensors(self) -> int:
        """Removes ticks, evaluations and cursors that name a word; a sensor begins anew without its cursor."""
        cleaned, now = 0, time.time()
        for state in self.instance.all_instigator_state():
            where = (state.instigator_origin_id, state.selector_id)
            if any(self._names_it(tick) for tick in self.instance.get_ticks(*where)):
                self.instance.purge_ticks(*where, before=now + _FOREVER)
                cleaned += 1
            data = state.sensor_instigator_data
            if data is not None and data.cursor is not None and self._cursor_names_it(data.cursor):
                self.instance.update_instigator_state(state.with_data(data._replace(cursor=None)))
                cleaned += 1
        if (storage := self.instance.schedule_storage) is not None:
            storage.purge_asset_evaluations(before=now + _FOREVER)
        return cleaned

    def _cursor_names_it(self, cursor: str) -> bool:
        """Returns whether a cursor names a word; that of automation conditions is packed, and counts as naming it."""
        return self._names_it(cursor) or not cursor.startswith("{")

    def _clean_backfills(self) -> int:
        """Empties the backfills that name a word, since no API deletes one. Returns how many."""
        named = [backfill for backfill in self.instance.get_backfills() if self._names_it(backfill)]
        for backfill in named:
            empty: dict[str, Any] = dict.fromkeys(("title", "description", "error", "partition_names"))
            empty |= {"tags": {}, "submitting_run_requests": []}
            empty |= dict.fromkeys(("serialized_asset_backfill_data", "asset_backfill_data"))
            self.instance.update_backfill(backfill._replace(**empty))
        return len(named)


def _evaluated_again(evaluation: "dg.AssetCheckEvaluation") -> "dg.AssetCheckEvaluation":
    """Returns the evaluation without the materialization that it is about, which has another place in the record."""
    import dagster as dg

    return dg.AssetCheckEvaluation(
        evaluation.asset_key,
        evaluation.check_name,
        evaluation.passed,
        evaluation.metadata,
        severity=evaluation.severity,
        description=evaluation.description,
        blocking=evaluation.blocking,
        partition=evaluation.partition,
    )


def _overwrite_free_space(lake: Lake) -> None:
    """Lets SQLite overwrite the space of deleted rows, which otherwise stay readable in the file. No row is changed."""
    for file in sorted(lake.dagster_home.rglob("*.db")):
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            database.execute("PRAGMA secure_delete = ON")
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _findings(lake: Lake, words: Iterable[Word]) -> Iterator[Finding]:
    return search(lake, words, below=lake.dagster_home)


def _remove_logs(lake: Lake, words: list[Word]) -> int:
    """Removes the log files that name one of the words. Returns their number."""
    files = {
        lake.root / finding.file
        for finding in _findings(lake, words)
        if finding.file.endswith((".log", ".err", ".out"))
    }
    for file in files:
        file.unlink()
    return len(files)

"""Commands that write: sample, rebuild, generate, flow batch, rollback, ui.

They load heavy libraries only where there is work to do.
"""

import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options, history_option, intakes_option
from opus_pipelines.cli.read import scoped
from opus_pipelines.cli.show import note
from opus_pipelines.core.errors import InputError
from opus_pipelines.lake.layout import Lake, slug

if TYPE_CHECKING:
    import duckdb


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Another seed gives other cases of the same processes."
)
@click.option(
    "--incomplete",
    is_flag=True,
    help="Write incomplete intakes (letters alone) and mixed ones (two letters) as well, in contracts of their own.",
)
def sample(directory: Path, seed: int, incomplete: bool) -> None:
    """Write the sample into DIRECTORY: history in several formats, intakes of several clients, truth.json.

    \b
    Example:
      opus sample demo
    """
    from opus_pipelines.quality.sample import write_sample

    if directory.is_dir() and any(directory.iterdir()):
        raise InputError(f"{directory} is not empty; name a new folder")
    write_sample(directory, seed, incomplete, harder=True)
    note(f"sample written: {directory}/history, {directory}/intakes, {directory}/truth.json")


@click.command()
@history_option("Folder of history, with one folder for each source")
@click.option(
    "--full", is_flag=True, help="Read, mine and embed everything again, and compare it with what is published."
)
@click.option(
    "--reset-lambda", is_flag=True, help="Choose the lambda of gamma again, so that the median edge has gamma 0.5."
)
@click.option("--publish", is_flag=True, help="Publish also a snapshot that was rolled back from.")
@click.option(
    "--allow-loss", is_flag=True, help="Publish also where history lost more cases than checks.max_lost_share."
)
@click.pass_obj
def rebuild(
    options: Options, history: Path | None, full: bool, reset_lambda: bool, publish: bool, allow_loss: bool
) -> None:
    """Run the nightly job: read what changed, mine, embed, check, and publish a snapshot of the Work Knowledge Graph.

    \b
    Example:
      opus --lake demo/lake rebuild --history demo/history
    """
    from opus_pipelines.cli import runs
    from opus_pipelines.wkg.rebuild.unchanged import unchanged_history, versions_since

    settings = options.settings(paths__history=history)
    if not settings.paths.history.is_dir():
        raise InputError(
            f"{settings.paths.history}: no such history folder; say where it is with --history or OPUS_HISTORY"
        )
    with runs.recorded_where_damage_stops_it(settings, "rebuild"):
        runs.publish_what_is_left(settings)
        unchanged = None if full or reset_lambda or publish or allow_loss else unchanged_history(settings)
    if unchanged is None:
        if (line := versions_since(settings)) is not None:
            note(line)
        runs.rebuild(settings, full, reset_lambda, publish, allow_loss)
        return
    snapshot, state, damaged = unchanged
    runs.clean_up_dead_runs(settings)
    runs.record_unchanged(settings, snapshot.home.current_snapshot() or snapshot.snapshot_id)
    note(f"{snapshot.nothing_new} ({len(state.files)} files, settings and code are as they were)")
    if lines := [*(f"still rejected: {line}" for line in state.failed), *damaged]:
        raise InputError("\nopus: ".join(lines))


@click.command()
@scoped
@intakes_option("Folder of intakes, client/contract/intake")
@click.option("--intake", help="Only the contracts that have this intake (its folder's name).")
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Also generate contracts with failed intakes (time, memory), though nothing changed.",
)
@click.pass_obj
def generate(
    options: Options,
    client: str | None,
    contract: str | None,
    intakes: Path | None,
    intake: str | None,
    retry_failed: bool,
) -> None:
    """Generate ranked workflows for the named contracts, or for all, where the current result is not up to date.

    \b
    Example:
      opus --lake demo/lake generate --intakes demo/intakes --client "Northwind Insurance"
    """
    if contract and not client:
        raise click.UsageError("--contract needs --client: contracts are named within a client")
    from opus_pipelines.cli import runs
    from opus_pipelines.cli.current import damaged_lines, split_stale, still_failed

    settings = options.settings(paths__intakes=intakes)
    key = f"{slug(client)}__{slug(contract)}" if client and contract else None
    with runs.recorded_where_damage_stops_it(settings, "generate", key):
        runs.publish_what_is_left(settings)
        wanted, current = split_stale(settings, client, contract, intake, retry_failed)
    if current:
        note(f"up to date, skipped: {', '.join(f'{c.client} / {c.contract}' for c in current)}")
    if wanted:
        runs.generate(settings, wanted, retry_failed)
    else:
        runs.clean_up_dead_runs(settings)
        runs.record_intakes_folder(settings)
    lake = Lake(settings.paths.lake)
    if lines := [*still_failed(lake, current), *damaged_lines(lake)]:
        raise InputError("\nopus: ".join(lines))


@click.command()
@scoped
@intakes_option("Folder of intakes, client/contract")
@click.option(
    "--backend",
    type=click.Choice(["ranker", "causal_lm", "openai_compatible"]),
    help="What writes the flows. Default: flows.backend. A contract that states flow_backend keeps its own.",
)
@click.pass_obj
def batch(
    options: Options, client: str | None, contract: str | None, intakes: Path | None, backend: str | None
) -> None:
    """Write the flows of all utterances of the named contracts, or of all, where they are not up to date.

    A contract's folder `flows` holds CSV or JSON Lines files with uid, utterance, and where stated prior and gold (a
    flow as Python IR, or the path of a BPMN file) and tags. The activities are those of flows/catalogue.json, else the
    contract's catalogue, else the tasks of the current snapshot. Files whose names begin with "examples" are learnt
    from, and a language model sees them as examples. Rows go to the lake (views flows_catalogue, flows_flows,
    flows_scores); what has no flow has a reason. Utterances that a language model left without an answer are asked
    again by the next run.

    \b
    Example:
      opus flow batch --intakes demo/intakes --client "Northwind Insurance"
      opus query flow_refusals
    """
    if contract and not client:
        raise click.UsageError("--contract needs --client: contracts are named within a client")
    from opus_pipelines.cli import runs
    from opus_pipelines.flows.batches.batch import is_contract_current
    from opus_pipelines.flows.batches.inputs import utterance_files
    from opus_pipelines.generation.contracts import contracts_of
    from opus_pipelines.language.embedding.encoder import encoder_of
    from opus_pipelines.reporting import views

    settings = options.settings(paths__intakes=intakes, **({"flows__backend": backend} if backend else {}))
    lake = options.lake()
    runs.publish_what_is_left(settings)
    contracts = contracts_of(lake, settings.paths.intakes)
    named = [c for c in contracts if client in (None, c.client) and contract in (None, c.contract)]
    wanted = [c for c in named if utterance_files(c.flows)]
    if not wanted:
        raise InputError(
            f"no such contract in {settings.paths.intakes} has utterances; put them into CONTRACT/flows/asked.csv "
            "with the columns uid and utterance"
        )
    encoder = encoder_of(settings.encoder)
    stale = [c for c in wanted if c.problem or not is_contract_current(lake, c, encoder, settings)]
    if current := [f"{c.client} / {c.contract}" for c in wanted if c not in stale]:
        note(f"up to date, skipped: {', '.join(current)}")
    try:
        if stale:
            runs.flows(settings, stale)
    finally:  # where one contract fails, the table shows the others
        if (lake.root / ".empty").is_dir():
            show.table(*_batches(views.connect(lake), {(c.client, c.contract) for c in wanted}))


def _batches(connection: "duckdb.DuckDBPyConnection", wanted: set[tuple[str, str]]) -> tuple[Any, Any, str]:
    """The columns, the rows of the wanted contracts, and the title of the table of batches."""
    from opus_pipelines.reporting.views import run

    found = run(connection, "flow_batches")
    rows = [row for row in found.fetchall() if (row[0], row[1]) in wanted]
    return found.columns, rows, "Flows" if rows else "No flows"


@click.command()
@click.argument("snapshot", required=False)
@click.pass_obj
def rollback(options: Options, snapshot: str | None) -> None:
    """Make an earlier snapshot the current one again. Without SNAPSHOT, list the snapshots.

    SNAPSHOT is an id that the list shows, or the beginning of one. Nothing is removed. A rebuild publishes again only
    when history, settings or code have changed (`opus rebuild --publish` does so at once).

    \b
    Example:
      opus rollback w3f9
    """
    from opus_pipelines.wkg.upkeep import rollback as snapshots

    lake = options.lake()
    if snapshot is None:
        names = ("wkg/tasks", "wkg/edges", "wkg/cases")
        rows = [
            (c.snapshot, c.published_at, *map(c.counts.get, names), c.is_current, len(c.contracts))
            for c in snapshots.choices(lake)
        ]
        title = "Snapshots" if rows else "No snapshot yet; `opus rebuild` makes one"
        show.table(
            ("snapshot", "published", "tasks", "edges", "cases", "current", "contracts made from it"), rows, title
        )
        return
    snapshots.chosen(lake, snapshot)  # an unknown snapshot fails before the lake is made or its lock is taken
    with lake.lock():
        before, choice = snapshots.roll_back(lake, snapshot, datetime.now(UTC))
    note(
        f"snapshot {choice.snapshot} is current"
        + (" as it was" if before == choice.snapshot else f", and {before} no more")
    )
    if stale := snapshots.stale(lake):
        note(f"made from another snapshot: {', '.join(stale)}; `opus generate` makes them anew")


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help="Port of the web server.")
@click.pass_obj
def ui(options: Options, port: int) -> None:
    """Start the Dagster UI with its daemon, on this lake's runs, until it is stopped.

    Its jobs read the folders that the lake was made from last, unless settings or OPUS_HISTORY and OPUS_INTAKES state
    others.

    \b
    Example:
      opus --lake demo/lake ui
    """
    from opus_pipelines.cli.runs import prepare
    from opus_pipelines.core.checkout import ROOT

    settings = options.settings()
    home = prepare(settings)
    os.environ["OPUS_FOLDER"] = str(Path.cwd())
    if options.settings_file:
        os.environ["OPUS_SETTINGS"] = str(options.settings_file.absolute())
    os.environ |= {f"OPUS_{name.upper()}": str(path) for name, path in settings.paths}
    note(f"history: {settings.paths.history}, intakes: {settings.paths.intakes}")
    dagster = Path(sys.executable).with_name("dagster")
    note(f"http://127.0.0.1:{port}")
    # Dagster reads .env and imports modules of the folder in which it starts, which may hold somebody's files
    os.chdir(home)
    os.environ["PYTHONSAFEPATH"] = "1"
    # Dagster's server asks nobody who they are, so only this machine reaches it (docs/security.md: behind a proxy)
    where = ["-h", "127.0.0.1", "-p", str(port)]
    # A shell ignores SIGINT for what a script starts in the background; Dagster stops its daemon by that signal
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(dagster, [str(dagster), "dev", "-w", str(ROOT / "workspace.yaml"), *where])

"""The commands `opus train` and `opus models`: models learnt from the history of the current snapshot."""

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import InputError


@click.command()
@click.option("--industry", multiple=True, help="Learn from this industry only; may be repeated. Default: all.")
@click.pass_obj
def train(options: Options, industry: tuple[str, ...]) -> None:
    """Train the pointer model on the cases of the current snapshot, and let it serve where it beats history.

    The model learns which task comes next for a request, from cases with a text. A quarter of the cases is held out
    first: the model serves an industry only where its F1 on them is better than that of the most similar cases, beyond
    the 95 % interval of the paired difference. Elsewhere the history backend serves. Contracts of these industries are
    then out of date: `opus generate` makes them again.

    \b
    Example:
      opus train
      opus models
      opus generate --intakes intakes
    """
    from opus_pipelines.embedding.cache import CachedEncoder
    from opus_pipelines.embedding.encoder import encoder_of
    from opus_pipelines.lake.layout import Lake
    from opus_pipelines.retrieval.snapshot_index import SnapshotIndex
    from opus_pipelines.training.train import train as run
    from opus_pipelines.wkg.snapshot import Snapshot

    settings = options.settings()
    lake = Lake(settings.paths.lake)
    if lake.current_snapshot() is None:
        raise InputError(f"{lake.root} has no snapshot yet; `opus rebuild` makes one")
    encoder = CachedEncoder(encoder_of(settings.encoder), lake.kept / "embeddings")
    trained = run(lake, SnapshotIndex(Snapshot.open(lake)), encoder, industry, lambda line: click.echo(line, err=True))
    _table(trained.model_id, {name: {**vars(one), "serves": one.serves} for name, one in trained.figures.items()})
    click.echo(f"model {trained.model_id}, loss {trained.loss[0]:.3f} to {trained.loss[-1]:.3f} nats", err=True)


@click.command()
@click.pass_obj
def models(options: Options) -> None:
    """List the trained models of the lake, and how they did on held-out cases. The newest usable one serves.

    \b
    Example:
      opus models
    """
    from opus_pipelines.lake.layout import Lake
    from opus_pipelines.lwm.pointer.store import opened

    found = opened(Lake(options.settings().paths.lake))
    if not found.stored:
        click.echo("no model yet; `opus train` makes one, and the history backend serves until then", err=True)
    for stored in found.stored:
        if stored.problem is not None:
            click.echo(f"model {stored.model_id} cannot be used: {stored.problem}", err=True)
            continue
        serves = found.champion is not None and found.champion.model_id == stored.model_id
        _table(stored.model_id + (", serves" if serves else ""), stored.card["industries"])


def _table(title: str, industries: "dict[str, dict[str, float]]") -> None:
    rows = [
        (
            name,
            f"{one['cases']:,}",
            f"{one['asked']:,}",
            f"{one['model']:.3f}",
            f"{one['similar_cases']:.3f}",
            f"{one['model'] - one['similar_cases']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]",
            "model" if one["serves"] else "history",
        )
        for name, one in sorted(industries.items())
    ]
    columns = ("industry", "cases", "asked", "F1 of the model", "F1 of similar cases", "difference", "serves")
    show.table(columns, rows, f"Model {title}: F1 of the tasks of held-out cases")

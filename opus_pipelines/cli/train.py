"""The commands `opus train` and `opus models`: models learnt from the history of the current snapshot."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import InputError

if TYPE_CHECKING:
    from opus_pipelines.lake.layout import Lake
    from opus_pipelines.lake.models import ModelKind
    from opus_pipelines.language.embedding.encoder import TextEncoder
    from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
    from opus_pipelines.lwm.training.train import TrainingOptions

_BACKEND = click.option(
    "--backend",
    type=click.Choice(["pointer", "intention", "causal_lm"]),
    default="pointer",
    help="Which model; intention: the Intention encoder alone, in seconds. Default: pointer.",
)


@click.command()
@click.option("--industry", multiple=True, help="Learn from this industry only; may be repeated. Default: all.")
@_BACKEND
@click.option(
    "--fine-tune/--no-fine-tune",
    default=None,
    help="Whether the upper layers of the sentence encoder learn, too; takes minutes. Default: [lwm] fine_tune (yes).",
)
@click.pass_obj
def train(options: Options, industry: tuple[str, ...], backend: str, fine_tune: bool | None) -> None:
    """Train the pointer model on the cases of the current snapshot, and let it serve where it beats history.

    The model learns which task comes next for a request, from cases with a text. A quarter of the cases is held out
    first: the model serves an industry only where its F1 on them is better than that of the most similar cases, beyond
    the 95 % interval of the paired difference. Elsewhere the history backend serves. It replaces the champion only
    where it is better than what serves now, beyond the interval; otherwise it is kept as a challenger. Contracts of the
    industries of a new champion are out of date: `opus generate` makes them again.

    With --backend causal_lm it trains an adapter (LoRA) for the language model at [causal_lm] path instead, which
    serves where it is better than the model without it.

    The upper half of the sentence encoder learns which tasks the words of a request ask for (a task reader). The
    sequences of the pointer model are weighted by it in the industries whose held-out cases are better so. That takes
    most of the time of a training: with --no-fine-tune it is left out.

    Where most steps of an industry are free words of one case, a step writer is trained, too: it composes steps from
    those of similar cases, from the request, and from what is listed beside it. It serves where its steps are more like
    those of held-out cases than the most similar case's are, beyond the interval.

    An Intention encoder is trained, too: it says which tasks a request leads to, without a look at cases. It serves an
    industry where it recalls the tasks of held-out goals better than the untrained Intention, beyond the interval. It
    decides where routing starts, and what a workflow must do where similar cases are too few to say so.

    Parameters, hashes of the cases, the loss of every epoch, figures and the model are recorded in MLflow: in the lake,
    or at [mlflow] tracking_uri of opus.toml.

    \b
    Example:
      opus train
      opus models
      opus generate --intakes intakes
    """
    from opus_pipelines.lake.layout import Lake
    from opus_pipelines.language.embedding.cache import CachedEncoder
    from opus_pipelines.language.embedding.encoder import encoder_of
    from opus_pipelines.lwm.language_models.adapters import ADAPTERS
    from opus_pipelines.lwm.pointer.model import POINTERS
    from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
    from opus_pipelines.lwm.training.tracking import Tracking
    from opus_pipelines.lwm.training.train import TrainingOptions
    from opus_pipelines.lwm.training.train import train as run
    from opus_pipelines.lwm.training.train_adapter import train_adapter
    from opus_pipelines.wkg.snapshot import Snapshot

    settings = options.settings()
    lake = Lake(settings.paths.lake)
    lake.required_snapshot()  # before the encoder is loaded
    encoder = CachedEncoder(encoder_of(settings.encoder), lake.kept / "embeddings")
    tracking = Tracking(lake, settings.mlflow)
    tell = lambda line: click.echo(line, err=True)
    lwm = settings.lwm if fine_tune is None else settings.lwm.model_copy(update={"fine_tune": fine_tune})
    how = TrainingOptions(industry, tell, tracking, lwm=lwm)
    index = SnapshotIndex(Snapshot.open(lake))
    if backend == "intention":
        _train_intention(lake, index, encoder, how)
        return
    if backend == "pointer":
        trained, kind = run(lake, index, encoder, how), cast("ModelKind[Any, Any]", POINTERS)
    else:
        trained, kind = train_adapter(lake, index, settings, how), ADAPTERS
    found = kind.open(lake)
    is_champion = found.champion is not None and found.champion.model_id == trained.model_id
    for stored in found.stored:  # the table is that of `opus models`: what the lake says of the model
        if stored.model_id == trained.model_id and stored.problem is None:
            _table(trained.model_id, _figures(stored.card), is_champion)
    click.echo(f"model {trained.model_id}, loss {trained.loss[0]:.3f} to {trained.loss[-1]:.3f} nats", err=True)
    verdict = trained.promotion
    role = "is the champion" if is_champion else "is a challenger"
    figures = (
        "" if verdict.difference is None else f": {verdict.difference:+.3f} [{verdict.low:+.3f}, {verdict.high:+.3f}]"
    )
    click.echo(f"it {role}: {verdict.reason}{figures}; recorded in {tracking.uri}", err=True)


def _train_intention(lake: "Lake", index: "SnapshotIndex", encoder: "TextEncoder", how: "TrainingOptions") -> None:
    """Trains, keeps and records an Intention encoder, and shows where it serves."""
    from opus_pipelines.intakes.requirements.intention_encoder import ENCODERS
    from opus_pipelines.lwm.training.train_intention import learn_encoder, publish_encoder, record_encoder

    learnt = learn_encoder(lake, index, encoder, how.industries or index.industries, how.report)
    if learnt is None:
        raise InputError("no industry has enough cases with a text to learn an Intention encoder from")
    with lake.lock():
        name = publish_encoder(lake, learnt)
    if how.tracking is not None:
        record_encoder(how.tracking, lake, index, learnt)
    champion = ENCODERS.open(lake).champion
    _recall_table(name, learnt.card, champion is not None and champion.model_id == name)


@click.command()
@click.option("--champion", metavar="MODEL", help="Let this model serve, whatever the figures say.")
@click.option(
    "--backend",
    type=click.Choice(["pointer", "intention", "step_writer", "causal_lm"]),
    default="pointer",
    help="Which models; intention: the Intention encoders. Default: pointer.",
)
@click.pass_obj
def models(options: Options, champion: str | None, backend: str) -> None:
    """List the trained models of the lake, and how they did on held-out cases. The champion serves.

    A model that cannot be used is named with its reason; the champion before it serves instead.

    \b
    Example:
      opus models
      opus models --champion m0123456789abcdef
      opus models --backend intention
    """
    from opus_pipelines.intakes.requirements.intention_encoder import ENCODERS
    from opus_pipelines.lake.layout import Lake
    from opus_pipelines.lwm.language_models.adapters import ADAPTERS
    from opus_pipelines.lwm.pointer.model import POINTERS
    from opus_pipelines.lwm.step_writing.model import WRITERS

    kinds: dict[str, ModelKind[Any, Any]] = {
        "pointer": POINTERS,
        "intention": ENCODERS,
        "step_writer": WRITERS,
        "causal_lm": ADAPTERS,
    }
    kind = kinds[backend]
    settings = options.settings()
    lake = Lake(settings.paths.lake)
    if champion is not None:
        from opus_pipelines.lwm.training.tracking import Tracking

        with lake.lock():
            kind.store(lake).promote(champion)
            recorded = Tracking(lake, settings.mlflow).set_champion(kind.name, champion)
        click.echo(f"{champion} is the champion{'' if recorded else '; MLflow has no such model'}", err=True)
    found = kind.open(lake)
    if not found.stored:
        click.echo("no model yet; `opus train` makes one, and the history backend serves until then", err=True)
    champions = kind.store(lake).champions()
    for stored in found.stored:
        if stored.problem is not None:
            click.echo(f"model {stored.model_id} cannot be used: {stored.problem}", err=True)
            continue
        serves = found.champion is not None and found.champion.model_id == stored.model_id
        role = "champion" if serves else "earlier champion" if stored.model_id in champions else "challenger"
        if backend == "intention":
            _recall_table(f"{stored.model_id}, {role}", stored.card, serves)
        else:
            _table(f"{stored.model_id}, {role}", _figures(stored.card), serves)
    if backend == "pointer":
        _encoder_table(lake)


def _encoder_table(lake: "Lake") -> None:
    """Show how the Intention encoder that serves recalls the tasks of held-out cases; nothing where none serves."""
    from opus_pipelines.intakes.requirements.intention_encoder import ENCODERS

    found = ENCODERS.open(lake)
    for stored in found.stored:
        if stored.problem is not None:
            click.echo(f"Intention encoder {stored.model_id} cannot be used: {stored.problem}", err=True)
        elif found.champion is not None and found.champion.model_id == stored.model_id:
            _recall_table(stored.model_id, stored.card)


def _recall_table(title: str, card: Mapping[str, Any], is_champion: bool = True) -> None:
    rows = [
        (
            name,
            f"{one['cases']:,}",
            f"{one['asked']:,} by {one['held_out']}",
            f"{one['model']:.3f}",
            f"{one['untrained']:.3f}",
            f"{one['model'] - one['untrained']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]",
            "encoder" if one["serves"] and is_champion else "untrained",
        )
        for name, one in sorted(card["industries"].items())
    ]
    columns = ("industry", "cases", "asked", "recall@10", "untrained", "difference", "serves")
    show.table(columns, rows, f"Intention encoder {title}: recall of the tasks of held-out cases")


def _figures(card: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Returns the figures by industry; those of a step writer are of all its industries together."""
    together = card.get("figures")
    if together is None:
        return dict(card["industries"])
    cases = sum(one["cases"] for one in card["industries"].values())
    name = ", ".join(sorted(card["industries"]))
    return {name: {**together, "cases": cases, "similar_cases": together["similar_case"]}}


def _table(title: str, industries: dict[str, dict[str, float]], is_champion: bool) -> None:
    """Shows the figures of a model. It serves an industry where it is the champion and better beyond the interval."""
    rows = [
        (
            name,
            f"{one['cases']:,}",
            f"{one['asked']:,}",
            f"{one['model']:.3f}",
            f"{one['similar_cases']:.3f}",
            f"{one['model'] - one['similar_cases']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]",
            "model" if one["serves"] and is_champion else "history",
        )
        for name, one in sorted(industries.items())
    ]
    columns = ("industry", "cases", "asked", "F1 of the model", "F1 of similar cases", "difference", "serves")
    show.table(columns, rows, f"Model {title}: F1 of the tasks of held-out cases")

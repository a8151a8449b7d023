"""The command `opus evaluate`: how good workflows, or flows from utterances, are on a task set beside controls."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.cli.show import note
from opus_pipelines.core.formatting import Ticker
from opus_pipelines.core.settings import Settings

if TYPE_CHECKING:
    from opus_pipelines.generation.records import GenerationContext
    from opus_pipelines.quality.score_rows import Evaluation, Mean
    from opus_pipelines.quality.task_set import TaskSet
    from opus_pipelines.quality.utterances import UtteranceSet


_MOST_REASONS = 5


@click.command()
@click.argument("task_set", type=click.Path(path_type=Path))
@click.option(
    "--backend",
    help="Backend of the Large Work Model. Default: generation.lwm_backend. Of utterances: a language model that is "
    "asked, too, causal_lm or openai_compatible.",
)
@click.option(
    "--catalogue",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSONL of {name, description}: all tools. For utterances a JSON list of {id, description}.",
)
@click.option(
    "--samples",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the scores of each item here, as JSONL.",
)
@click.option("--limit", type=click.IntRange(min=2), help="Only this many items, chosen by the hash of their ids.")
@click.option(
    "--learn", "learning", type=click.Path(path_type=Path), help="Utterances only: a folder or file to learn from."
)
@click.option("--cross-domain", is_flag=True, help="Utterances only: learn from flows of other applications only.")
@click.option("--no-learning", is_flag=True, help="Utterances only: learn from the catalogue alone.")
@click.pass_obj
def evaluate(
    options: Options,
    /,
    task_set: Path,
    backend: str | None,
    catalogue: Path | None,
    samples: Path | None,
    limit: int | None,
    **of_utterances: Any,
) -> None:
    """Score generated workflows on TASKSET against reference workflows, beside simple controls.

    TASKSET is a JSONL file, one item a line: {"id", "request", "context"?, "output"?, "industry"?, "group"?,
    "catalogue"?, "gold": {"plan": [step names], "links"?: [[step, step]]}}. Nothing of a gold workflow is shown to the
    pipeline. Rows by item go to the lake (view evaluations_items); the table has 95 % intervals, drawn over groups of
    items with the same steps.

    TASKSET may also hold utterances with flows: a folder of Flow-Bench's form, or a CSV or JSONL of {uid, utterance,
    prior?, gold, tags?} with --catalogue. Each fifth is then asked with what the other four teach, unless --learn,
    --cross-domain or --no-learning says otherwise, and rows go to the view evaluations_utterances.

    \b
    Example:
      opus evaluate requests.jsonl
      opus query evaluations
      opus evaluate utterances.jsonl --catalogue activities.json
      opus query utterance_scores
    """
    from opus_pipelines.quality.utterances import is_utterances

    if is_utterances(task_set):
        _refuse({"--samples": samples}, "are of workflows, not of flows")
        _evaluate_utterances(options, task_set, catalogue, limit, of_utterances | {"backend": backend})
        return
    given = {f"--{name.replace('_', '-')}": value for name, value in of_utterances.items()}
    _refuse(given, f"are of utterances, and {task_set} has none")
    from opus_pipelines.core.schemas import EVALUATION_ITEMS
    from opus_pipelines.quality.evaluate import evaluate as run
    from opus_pipelines.quality.score_rows import publish
    from opus_pipelines.quality.task_set import read_task_set

    items = _limited(read_task_set(task_set, catalogue), limit)
    show.left_out(items.rejected)
    settings = options.settings(**({"generation__lwm_backend": backend} if backend else {}))
    context = context_of(settings)
    evaluation = run(items, context, _progress())
    publish(options.lake(), EVALUATION_ITEMS, evaluation)
    if samples is not None:
        from opus_pipelines.quality.evaluate import item_samples

        samples.write_text("\n".join(item_samples(items, evaluation.rows)) + "\n", "utf-8")
        note(f"written: {samples}")
    _print(evaluation, items)


def _refuse(given: dict[str, Any], why: str) -> None:
    if stated := [name for name, value in given.items() if value]:
        raise click.UsageError(f"{', '.join(stated)} {why}")


def _evaluate_utterances(
    options: Options, path: Path, catalogue: Path | None, limit: int | None, how: dict[str, Any]
) -> None:
    from opus_pipelines.core.schemas import EVALUATION_UTTERANCES
    from opus_pipelines.flows.from_text.language_writers import RANKER, chosen
    from opus_pipelines.lake.layout import Lake
    from opus_pipelines.language.embedding.cache import CachedEncoder
    from opus_pipelines.language.embedding.encoder import encoder_of
    from opus_pipelines.lwm.language_models.chat_client import KeptAnswers
    from opus_pipelines.quality.score_rows import publish
    from opus_pipelines.quality.utterances import Asking, limited, read_set
    from opus_pipelines.quality.utterances import evaluate_utterances as run

    ways = {"examples": how["learning"], "cross domain": how["cross_domain"], "catalogue alone": how["no_learning"]}
    named = [name for name, value in ways.items() if value]
    if len(named) > 1:
        raise click.UsageError("--learn, --cross-domain and --no-learning exclude each other")
    given = limited(read_set(path, catalogue), limit)
    show.left_out(given.rejected)
    settings = options.settings()
    backend, lake = chosen(settings, how["backend"] or RANKER), Lake(settings.paths.lake)
    with lake.lock():
        lake.ensure_empty()  # before the encoder keeps vectors there: a lake without lake.json is of format 1
    learnt = read_set(how["learning"], catalogue).asked if how["learning"] else []
    encoder = CachedEncoder(encoder_of(settings.encoder), lake.kept / "embeddings")
    asking = Asking(named[0] if named else "folds", learnt, backend, KeptAnswers(lake))
    evaluation = run(given, encoder, asking, Ticker("flows", note))
    with lake.lock():
        publish(lake, EVALUATION_UTTERANCES, evaluation)
    _print_utterances(evaluation, given)


def _print_utterances(evaluation: "Evaluation", given: "UtteranceSet") -> None:
    from opus_pipelines.flows.batches.scoring import BASELINE
    from opus_pipelines.quality.score_rows import means
    from opus_pipelines.quality.utterances import SHOWN_OF_UTTERANCES, by_tag

    scores = {score: means(evaluation.rows, score, "item") for score in SHOWN_OF_UTTERANCES}
    systems = list(dict.fromkeys(row["system"] for row in evaluation.rows))
    first = systems[0]
    table = [(score, *(_cell(found.get(s)) for s in systems)) for score, found in scores.items() if found]
    protocol = evaluation.rows[0]["protocol"]
    show.table(("score", *systems), table, f"{given.name}: {len(given.asked):,} utterances, {protocol}")
    for system in (each for each in systems if each != BASELINE):
        if tags := by_tag(evaluation.rows, system):
            columns = ("tag", "utterances", "exact", "exact up to names", "activity F1")
            show.table(columns, tags, f"By tag: {system}" if len(systems) > 2 else "By tag")
    reasons = [f"{r['item']}: {r['reason']}" for r in evaluation.rows if r["system"] == first and r["reason"]]
    for reason in reasons[:_MOST_REASONS]:
        note(f"no flow: {reason}")
    note(f"rows by utterance: evaluation {evaluation.id} in the view evaluations_utterances")


def _progress() -> Callable[[str, int, int], None]:
    tickers: dict[str, Ticker] = {}

    def report(system: str, done: int, of: int) -> None:
        tickers.setdefault(system, Ticker(system, note))(done, of)

    return report


def _limited(task_set: "TaskSet", limit: int | None) -> "TaskSet":
    from dataclasses import replace

    from opus_pipelines.core.ids import digest

    chosen = {item.id for item in sorted(task_set.items, key=lambda item: digest(item.id))[:limit]}
    return replace(task_set, items=tuple(item for item in task_set.items if item.id in chosen))


def context_of(settings: Settings) -> "GenerationContext":
    """Returns what generation reads of the current snapshot, with the terms of no contract."""
    from opus_pipelines.generation.records import ContractTerms, GenerationContext
    from opus_pipelines.lake.layout import Lake
    from opus_pipelines.language.embedding.cache import CachedEncoder
    from opus_pipelines.language.embedding.encoder import encoder_of
    from opus_pipelines.lwm.interface import backend_of
    from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
    from opus_pipelines.wkg.snapshot import Snapshot

    lake = Lake(settings.paths.lake)
    lake.required_snapshot()  # before the encoder is loaded
    encoder = CachedEncoder(encoder_of(settings.encoder), lake.kept / "embeddings")
    index = SnapshotIndex(Snapshot.open(lake))
    return GenerationContext(index, encoder, backend_of(settings), settings, ContractTerms(settings.cost))


def _print(evaluation: "Evaluation", task_set: "TaskSet") -> None:
    from opus_pipelines.quality.evaluate import COMPARED, SHOWN_OF_ITEMS, areas, differences
    from opus_pipelines.quality.score_rows import means
    from opus_pipelines.workflow.metrics.opus_metrics import AXES

    rows = evaluation.rows
    scores = {score: means(rows, score) for score in SHOWN_OF_ITEMS}
    systems = list(dict.fromkeys(row["system"] for row in rows))
    answered = {s: [row["status"] == "generated" for row in rows if row["system"] == s] for s in systems}
    table = [
        (s, f"{sum(answered[s])} of {len(answered[s])}", *(_cell(scores[score].get(s)) for score in SHOWN_OF_ITEMS))
        for s in systems
    ]
    title = f"{task_set.name}: {len(task_set.items):,} items, {len({i.group for i in task_set.items}):,} groups"
    show.table(("system", "answered", *SHOWN_OF_ITEMS), table, title)
    opus, area = {axis: means(rows, axis) for axis in AXES}, areas(rows)
    table = [(s, *(_cell(opus[axis].get(s)) for axis in AXES), _cell(area[s])) for s in systems]
    show.table(
        ("system", *AXES, "area"),
        table,
        "The Opus paper's metrics; steps match by their texts, and the largest area is 1",
    )
    paired = {score: differences(rows, score) for score in COMPARED}
    table = [
        (s, *(_cell(paired[score].get(s), signed=True) for score in COMPARED))
        for s in systems[1:]
        if not s.startswith(("floor", "ceiling"))
    ]
    show.table(
        ("whole system minus", *COMPARED),
        table,
        "Paired differences; an interval that holds 0 shows nothing",
    )
    reasons = [f"{row['item']}: {row['reason']}" for row in rows if row["system"] == systems[0] and row["reason"]]
    for reason in reasons[:_MOST_REASONS]:
        note(f"no workflow: {reason}")
    if len(reasons) > _MOST_REASONS:
        note(f"no workflow: {len(reasons) - _MOST_REASONS:,} more items; the view evaluations_items has their reasons")
    note(f"rows by item: evaluation {evaluation.id} in the view evaluations_items")


def _cell(mean: "Mean | None", signed: bool = False) -> str:
    if mean is None:
        return "-"
    form = "+.3f" if signed else ".3f"
    return f"{mean.mean:{form}} [{mean.low:{form}}, {mean.high:{form}}]"

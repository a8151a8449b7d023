"""The command `opus score`: scores workflow files with every part of EVAL. It needs no lake and loads nothing heavy."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.workflow.evaluation.score import (
    GAINS_USD,
    TABLE_1,
    Score,
    case_study,
    ranked,
    score_file,
    table_figure,
    turning_gain_usd,
)
from opus_pipelines.workflow.files import schema
from opus_pipelines.workflow.formats.registry import read_file

PARTS = (
    ("reward_usd", "(7)"),
    ("expected_gain_usd", "(6)"),
    ("gain_usd", ""),
    ("success_probability", "(4)"),
    ("cost_usd", "(5)"),
    ("cost_compute_usd", "(1)"),
    ("cost_model_usd", "(1)"),
    ("cost_human_usd", "(1)"),
    ("cost_time_usd", "w_d (2)"),
    ("cost_held_usd", "w_r (3)"),
    ("duration_ms", "(2), (17)"),
    ("peak_memory_gb", "(3), (18)"),
    ("peak_threads", "(3), (18)"),
)
IN_PRODUCT_FORM = (("success_probability_product", "(4)"), ("reward_product_usd", "(7)"))
MAX_SHOWN = 200  # tasks of a workflow
PENALTIES = (("penalty", "(10)"), ("cip", "(8)"), ("sip", "(9)"))


@click.command()
@click.argument("files", type=click.Path(path_type=Path, dir_okay=False), nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Write JSON: every part, by workflow and by node.")
@click.option("--schema", "show_schema", is_flag=True, help="Print the JSON Schema of a workflow file.")
@click.option("--case-study", is_flag=True, help="The customer-support case: the paper's Table 1 and our figures.")
@click.pass_obj
def score(options: Options, files: tuple[Path, ...], as_json: bool, show_schema: bool, case_study: bool) -> None:
    """Score the workflows in FILES (YAML or JSON): Reward, Penalty and every part of EVAL. Several are ranked.

    \b
    Example:
      opus score first.yaml second.yaml
      opus score --case-study
      opus score --schema > workflow.schema.json
    """
    if show_schema:
        click.echo(json.dumps(schema(), indent=2, ensure_ascii=False))
    elif case_study:
        _case_study()
    elif not files:
        raise click.UsageError("name a workflow file, or use --case-study or --schema")
    else:
        _files(options, files, as_json)


def _files(options: Options, files: Sequence[Path], as_json: bool) -> None:
    settings = options.settings()
    read = [(path, read_file(path)) for path in files]
    scores = [score_file(file.title or path.stem, file, settings.cost, settings.reward) for path, file in read]
    if as_json:
        click.echo(json.dumps([_as_dict(score) for score in scores], indent=2, ensure_ascii=False))
        return
    _parts(scores)
    for score in scores:
        _tasks(score)
    if len(scores) > 1:
        places = ranked(scores, settings.reward.quantum_usd, settings.reward.success_step)
        rows = [(r.rank, r.score.title, r.score.parts.reward_usd, r.score.penalty, r.distance_usd) for r in places]
        title = (
            "Ranking"
            if all(s.workflow.states_gain for s in scores)
            else "Ranking by success, then Penalty: no gain is stated"
        )
        show.table(("rank (13)", "workflow", "reward_usd", "penalty", "to the next (14)"), rows, title)


def _parts(scores: Sequence[Score]) -> None:
    rows: list[tuple[Any, ...]] = [(name, number, *(getattr(s.parts, name) for s in scores)) for name, number in PARTS]
    if any(s.parts.success_inference != "exact" or s.differences for s in scores):
        rows[4:4] = [
            ("  inference", "", *(s.parts.success_inference for s in scores)),
            *((f"  {name}", number, *(getattr(s.parts, name) for s in scores)) for name, number in IN_PRODUCT_FORM),
        ]
    rows += [
        (name, number, *(getattr(s.penalties, name) if s.penalties else None for s in scores))
        for name, number in PENALTIES
    ]
    show.table(("part", "EVAL", *(s.title for s in scores)), rows)
    if any(s.penalties is None for s in scores):
        click.echo("no Penalty where tasks have no scores", err=True)
    for score in scores:
        if score.uncompared:
            click.echo(f"{score.title}: success was not inferred exactly: {score.uncompared}", err=True)


def _tasks(score: Score) -> None:
    parts = score.parts
    place = {node: i for i, node in enumerate(score.workflow.topological())}
    tasks = sorted(score.workflow.tasks, key=lambda t: place[t.id])
    rows = [
        (
            t.title,
            t.actor_kind,
            t.p,
            t.q,
            parts.success[t.id],
            t.known_cost_usd,
            t.known_duration_ms,
            parts.start_ms[t.id],
            parts.finish_ms[t.id],
        )
        for t in tasks[:MAX_SHOWN]
    ]
    show.table(
        ("task", "actor", "p", "q", "success", "cost_usd", "duration_ms", "start_ms", "finish_ms"), rows, score.title
    )
    if len(tasks) > MAX_SHOWN:
        click.echo(f"and {len(tasks) - MAX_SHOWN:,} more tasks: --json has them all")


def _as_dict(score: Score) -> dict[str, Any]:
    named = [name for name, _ in (*PARTS, *IN_PRODUCT_FORM)]
    whole = {name: getattr(score.parts, name) for name in [*named, "success_inference"]}
    whole |= {name: getattr(score.penalties, name) if score.penalties else None for name, _ in PENALTIES}
    nodes = {
        node: {
            "success": score.parts.success[node],
            "start_ms": score.parts.start_ms[node],
            "finish_ms": score.parts.finish_ms[node],
        }
        for node in score.workflow.topological()
    }
    exact = {d.node or "": {"product": d.product, "exact": d.exact} for d in score.differences}
    return {"title": score.title, **whole, "nodes": nodes, "differs_from_exact": exact, "uncompared": score.uncompared}


def _case_study() -> None:
    scores = case_study()
    rows = []
    for row in TABLE_1:
        printed = [None if p is None else round(p, row.digits) for p in row.printed]
        ours = [round(table_figure(s, row.name), row.digits) for s in scores]
        rows.append((row.name, row.formula, *(x for pair in zip(printed, ours, strict=True) for x in pair), row.label))
    columns = ("part", "EVAL", *(f"{s.title} {who}" for s in scores for who in ("paper", "ours")), "label")
    show.table(columns, [[_plain(value) for value in row] for row in rows], "Table 1, a small customer (gain $0.92)")
    gains = [(who, gain, *_order(gain)) for who, gain in GAINS_USD.items()]
    show.table(("customer", "gain_usd", "best", "then", "last", "best by $"), gains, "The order at other gains")
    turn = turning_gain_usd(scores[0], scores[1])
    click.echo(f"\nThe order turns at a gain of ${turn:.2f}: beyond it the dearer, more reliable W1 wins.")


def _order(gain: float) -> tuple[Any, ...]:
    places = ranked(case_study(gain), 0.0001, 0.01)
    return (*(p.score.title for p in places), places[0].distance_usd)


def _plain(value: Any) -> Any:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else value

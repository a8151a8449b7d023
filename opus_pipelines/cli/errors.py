"""The command `opus errors`: which features of requests go with bad results, with intervals, and a page of it."""

from pathlib import Path

import click

from opus_pipelines.core.errors import InputError

MOST_REASONS, MOST_ROWS = 5, 15
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("samples", type=_FILE)
@click.option("--gold", type=_FILE, help="SAMPLES are predicted plans; this task set has the plans that were wanted.")
@click.option("--history", type=_FILE, help="With --gold: a task set that the predictions were learnt from.")
@click.option("--score", "scores", multiple=True, help="A score to explain; may be repeated. Default: the first one")
@click.option("--html", type=_FILE, help="Write the page to this file, too.")
def errors(samples: Path, gold: Path | None, history: Path | None, scores: tuple[str, ...], html: Path | None) -> None:
    """Show where generation fails: the effect of each feature of SAMPLES on a score.

    SAMPLES is a JSONL file, one sample a line: {"id", "scores": {name: number}, "request"?, "gold"?: {"plan": [names],
    "links"?} or flow JSON, "tags"?, "features"?: {name: true or false}, "group"?}. `opus evaluate --samples` and
    `opus flow compare --samples` write such files. q is the p-value of a permutation test, corrected for all features
    (Benjamini and Hochberg).

    \b
    Example:
      opus errors samples.jsonl --score node_f1 --html errors.html
      opus errors predictions.jsonl --gold requests.jsonl.gz --score node_f1

    `opus evaluate requests.jsonl --samples samples.jsonl` writes the samples of an evaluation. With --gold, SAMPLES is
    a JSONL of predictions instead: {"id" or "task_key", "plan" or "actions": [names], "links"?}.
    """
    from opus_pipelines.cli import show
    from opus_pipelines.quality.error_analysis import analyse, prediction_samples, read_samples, scores_of
    from opus_pipelines.reporting.pages.errors import error_page

    if history is not None and gold is None:
        raise InputError("--history needs --gold, the plans that were wanted")
    found, rejected = prediction_samples(samples, gold, history) if gold else read_samples(samples)
    for line in rejected[:MOST_REASONS]:
        show.note(f"left out: {line}")
    if len(rejected) > MOST_REASONS:
        show.note(f"left out: {len(rejected) - MOST_REASONS:,} more lines")
    named = list(scores) or scores_of(found)[:1]
    if not named:
        raise InputError(f"{samples}: no sample has a score")
    analyses = [analyse(found, score) for score in named]
    for analysis in analyses:
        rows = [
            (
                e.feature + (" *" if e.is_clear else ""),
                e.theme,
                str(e.n),
                f"{e.mean:.3f}",
                f"{e.mean_without:.3f}",
                f"{e.difference:+.3f} [{e.low:+.3f}, {e.high:+.3f}]",
                f"{e.q:.3f}",
            )
            for e in analysis.effects[:MOST_ROWS]
        ]
        title = f"{analysis.score}: {analysis.mean:.3f} over {analysis.n:,} samples; * q < 0.05"
        show.table(("feature", "theme", "samples", "with", "without", "difference", "q"), rows, title)
    if html is not None:
        if not html.absolute().parent.is_dir():
            raise InputError(f"{html.absolute().parent}: no such folder for the page")
        html.write_text(error_page(samples.name, found, analyses), "utf-8")
        show.note(f"written: {html}")

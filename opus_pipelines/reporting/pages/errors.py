"""Renders the page that shows where generation fails: effects of features on scores, and the worst samples."""

from collections.abc import Sequence

from opus_pipelines.core.formatting import clean
from opus_pipelines.quality.error_analysis import LEAST, LEVEL, Analysis, Sample
from opus_pipelines.reporting.pages.render import environment, inline

_LONGEST = 400  # characters of a request
MOST_SHOWN = 40  # samples whose text is shown


def error_page(name: str, samples: Sequence[Sample], analyses: Sequence[Analysis]) -> str:
    """Returns the HTML of the page; equal samples give equal text. Texts are escaped, and nothing else is loaded."""
    worst = [i for a in analyses for e in a.effects if e.is_clear and e.difference < 0 for i in e.worst]
    first = analyses[0].score if analyses else ""
    scored = sorted((s.scores[first], s.id) for s in samples if first in s.scores)
    worst += [identity for _, identity in scored]
    texts = {sample.id: clean(sample.request or "")[:_LONGEST] for sample in samples}
    return (
        environment()
        .get_template("errors.html")
        .render(
            name=clean(name),
            samples=len(samples),
            analyses=analyses,
            texts=texts,
            shown=list(dict.fromkeys(worst))[:MOST_SHOWN],
            least=LEAST,
            level=LEVEL,
            style=inline()["style"],
        )
    )

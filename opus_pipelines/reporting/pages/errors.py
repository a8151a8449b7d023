"""Renders the page that shows where generation fails: effects of features on scores, and the worst samples."""

from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from opus_pipelines.core.formatting import clean
from opus_pipelines.quality.error_analysis import LEAST, LEVEL, Analysis, Sample

_LONGEST = 400  # characters of a request
MOST_SHOWN = 40  # samples whose text is shown


def error_page(name: str, samples: Sequence[Sample], analyses: Sequence[Analysis]) -> str:
    """Returns the HTML of the page; equal samples give equal text. Texts are escaped, and nothing else is loaded."""
    environment = Environment(
        loader=PackageLoader("opus_pipelines.reporting.pages", "."), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["clean"] = clean
    worst = [i for a in analyses for e in a.effects if e.is_clear and e.difference < 0 for i in e.worst]
    first = analyses[0].score if analyses else ""
    scored = sorted((s.scores[first], s.id) for s in samples if first in s.scores)
    worst += [identity for _, identity in scored]
    texts = {sample.id: clean(sample.request or "")[:_LONGEST] for sample in samples}
    return environment.get_template("errors.html").render(
        name=clean(name),
        samples=len(samples),
        analyses=analyses,
        texts=texts,
        shown=list(dict.fromkeys(worst))[:MOST_SHOWN],
        least=LEAST,
        level=LEVEL,
        css=Markup(files("opus_pipelines.reporting.pages").joinpath("page.css").read_text("utf-8")),
    )

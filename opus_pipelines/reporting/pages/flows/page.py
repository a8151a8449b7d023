"""A page about one flow: its picture, the flow before it, what changed, what was retrieved, and the IR side by side.

The page is one HTML file without a script; its policy forbids whatever is not in the file, and every text is escaped.
"""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from opus_pipelines.core.safe_text import clean
from opus_pipelines.reporting.pages.flows.picture import difference_svg, flow_svg
from opus_pipelines.workflow.blocks.difference import difference
from opus_pipelines.workflow.blocks.edits import described
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import write_steps
from opus_pipelines.workflow.blocks.formats.tree_files import json_data, write_yaml
from opus_pipelines.workflow.blocks.model import Flow
from opus_pipelines.workflow.blocks.traversal import activities, identified

_STYLE = """
body{font:15px/1.5 sans-serif;margin:2rem auto;max-width:1400px;padding:0 1rem;color:#101828;background:#fff}
pre{background:#f2f4f7;padding:.8rem;overflow:auto;border-radius:6px}.wide{overflow:auto;border:1px solid #d0d5dd}
.wide svg{max-width:100%;height:auto}
.two{display:grid;grid-template-columns:1fr 1fr;gap:1rem}table{border-collapse:collapse}
td,th{border-bottom:1px solid #d0d5dd;padding:.3rem .8rem;text-align:left}td.n{text-align:right}
blockquote{border-left:4px solid #98a2b3;margin:0;padding-left:1rem;white-space:pre-wrap}
"""


@dataclass(frozen=True)
class Retrieved:
    """An activity that was retrieved for a flow, with its description and its score (higher is nearer)."""

    activity: str
    description: str
    score: float


@dataclass(frozen=True)
class FlowPage:
    """What a page shows. `prior` is the flow before an edit; `utterance` is what a person asked for."""

    flow: Flow
    prior: Flow | None = None
    utterance: str = ""
    retrieved: tuple[Retrieved, ...] = ()


def read_retrieved(content: bytes) -> tuple[Retrieved, ...]:
    """Returns the rows of a JSON list of tables with activity, description and score; raises FlowError by row."""
    data = json_data(content)
    if not isinstance(data, list):
        raise FlowError("retrieved activities are a JSON list")
    rows = []
    for number, each in enumerate(data, start=1):
        try:
            rows.append(Retrieved(str(each["activity"]), str(each.get("description", "")), float(each["score"])))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise FlowError(f"retrieved activity {number}: it is a table with activity and score, a number") from None
    return tuple(rows)


def flow_page(page: FlowPage) -> str:
    """Returns the HTML of a page; equal pages give equal texts."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = escape(clean(page.flow.name)) if page.flow.name else "Flow"
    lines = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        *_sections(page),
        "</body></html>",
    ]
    return "\n".join(lines) + "\n"


def _sections(page: FlowPage) -> Iterator[str]:
    if page.utterance:
        yield f"<h2>Request</h2><blockquote>{_text(page.utterance)}</blockquote>"
    if page.prior is None:
        yield f'<h2>Flow</h2><div class="wide">{flow_svg(page.flow)}</div>'
        yield f"<h2>Text</h2><pre>{_text(flow_text(page.flow))}</pre>"
    else:
        yield f'<h2>Before and after</h2><div class="wide">{difference_svg(page.prior, page.flow)}</div>'
        yield "<h2>What changed</h2>"
        operations = difference(identified(page.prior), page.flow)
        if operations:
            yield "<ol>" + "".join(f"<li><code>{_text(described(each))}</code></li>" for each in operations) + "</ol>"
        else:
            yield "<p>Nothing: both flows are equal.</p>"
        yield '<h2>Text</h2><div class="two">'
        yield f"<div><h3>Before</h3><pre>{_text(flow_text(page.prior))}</pre></div>"
        yield f"<div><h3>After</h3><pre>{_text(flow_text(page.flow))}</pre></div></div>"
    if page.retrieved:
        yield from _retrieved(page)


def _retrieved(page: FlowPage) -> Iterator[str]:
    used = set(activities(page.flow))
    heads = "".join(f"<th>{name}</th>" for name in ("activity", "description", "score", "used"))
    yield f"<h2>Retrieved activities</h2><table><tr>{heads}</tr>"
    for each in page.retrieved:
        mark = "yes" if each.activity in used else ""
        cells = f"<td>{_text(each.activity)}</td><td>{_text(each.description)}</td>"
        yield f'<tr>{cells}<td class="n">{each.score:.3f}</td><td>{mark}</td></tr>'
    yield "</table>"


def flow_text(flow: Flow) -> str:
    """Returns the flow in the Python IR with arguments, and as YAML where it has a parallel."""
    try:
        return write_steps(flow.body)
    except FlowError:
        return write_yaml(identified(flow)).decode()


def _text(text: str) -> str:
    return escape("".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text))

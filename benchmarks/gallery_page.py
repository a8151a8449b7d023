"""The gallery as one HTML page that needs nothing else."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from opus_pipelines.core import formatting
from opus_pipelines.core.formatting import clean

if TYPE_CHECKING:
    from gallery import Ran

FIGURES = (
    ("Reward", "reward_usd", formatting.usd),
    ("success", "success_probability", formatting.share),
    ("conformity", "conformity", formatting.share),
    ("cost", "cost_usd", formatting.usd),
    ("touch time", "duration_ms", formatting.hours),
    ("same steps in history", "baseline_cost_usd", formatting.usd),
    ("cost assumed", "cost_assumed_share", formatting.share),
    ("saving", "saving_usd", formatting.usd),
    ("lead time", "lead_time_ms_p50", formatting.hours),
    ("similar cases that succeeded", "baseline_success", formatting.share),
    ("observed", "observed_share", formatting.share),
)
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Gallery of first plans</title><style>
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1d2733}
h1,h2,h3{line-height:1.2} h2{border-top:2px solid #cbd5df;padding-top:1rem;margin-top:2.5rem}
table{border-collapse:collapse} td,th{padding:.15rem .7rem .15rem 0;text-align:left;vertical-align:top}
.good{background:#d9f2df;color:#0c5a25} .bad{background:#fbdcdc;color:#8f1414} .open{background:#eceff2;color:#4c5965}
.good,.bad,.open{border-radius:.3rem;padding:0 .4rem;white-space:nowrap}
.request{white-space:pre-wrap;background:#f4f6f8;padding:.5rem .8rem;max-height:9rem;overflow:auto}
figure{margin:.5rem 0;overflow:auto;border:1px solid #dbe2e8;padding:.5rem} svg{max-width:100%;height:auto}
pre{background:#f4f6f8;padding:.6rem;overflow:auto;font-size:12px} .quiet{color:#5b6873}
</style></head><body>
<h1>Gallery of first plans</h1>
<p>Every source was run from its export with the settings that were proposed. A picture is the rank-1 workflow of one request: a lane for
each actor, time running down. Checks are told from the rows of the lake, not by the code that planned.</p>
<table><tr><th>source</th><th>cases</th><th>tasks</th><th>with outcome</th><th>plans</th><th>checks</th>
<th>export to plan</th><th>CPU</th><th>node F1, less the better control</th><th>link F1, likewise</th></tr>
{% for ran in all %}<tr><td><a href="#{{ ran.name }}">{{ ran.name }}</a></td><td>{{ ran.facts.get("cases", "–") }}</td>
<td>{{ ran.facts.get("tasks", "–") }}</td><td>{{ ran.facts.get("cases_with_outcome", "–") }}</td>
<td>{{ ran.shown|rejectattr("problem")|list|length }} of {{ ran.shown|length }}</td><td>{% for n, mark in tally(ran) %}
<span class="{{ mark }}">{{ n }} {{ {"good": "hold", "bad": "fail", "open": "open"}[mark] }}</span> {% endfor %}</td>
<td>{{ minutes(ran) }}</td><td>{{ "%.0f s"|format(ran.cpu_seconds) }}</td>
{% for part in ("node", "link") %}<td>{% for score in ran.scores.rows %}{{ said(score, part) }}<br>{% else %}–{% endfor %}</td>{% endfor %}
</tr>{% endfor %}
</table>
<p class="quiet">Scores are of all predictions for the log's held-out cases (everything that happened, and work steps alone), with the 95 %
interval of the paired difference to the better of two controls: the nearest case, and the most frequent plan.</p>
{% for ran in all %}<section id="{{ ran.name }}"><h2>{{ ran.name }}</h2>
<p>From the export to the plan: {{ minutes(ran) }} ({% for command, seconds in ran.seconds.items() %}{{ command }}
{{ "%.0f"|format(seconds) }} s{{ "" if loop.last else ", " }}{% endfor %}).{% if ran.note %} <b>{{ ran.note|line }}</b>{% endif %}</p>
{% if ran.scores.text %}<details><summary>Scores</summary><pre>{{ ran.scores.text }}</pre></details>{% endif %}
{% for s in ran.shown %}<h3>{{ s.request }}</h3><div class="request">{{ s.text }}</div>
{% if s.problem %}<p><span class="bad">no plan</span> {{ s.problem|line }}</p>{% else %}
<p>{{ s.head.title|line }} <code>{{ s.head.workflow_id }}</code>
<span class="open">{{ s.head.verdict or "no verdict" }}</span>
{% if s.head.feasible is false %}<span class="bad">breaks: {{ s.head.violations|join("; ")|line }}</span>{% endif %}</p>
<p>{% for name, value in figures(s.head) %}{{ name }} <b>{{ value }}</b>{{ "" if loop.last else " · " }}{% endfor %}
{% if s.node_f1 is not none %} · node F1 of this request <b>{{ "%.2f"|format(s.node_f1) }}</b>{% endif %}</p>
{% if s.head.verdict_reason %}<p class="quiet">Undecided: {{ s.head.verdict_reason|line }}</p>{% endif %}
{% if s.expected %}<p class="quiet">To be expected, events and outcomes too: {{ s.expected|join(" → ")|line }}</p>{% endif %}
{% if s.done %}<p class="quiet">What was really done: {{ s.done|join(" → ")|line }}</p>{% endif %}
<table>{% for check in s.checks %}<tr><td><span class="{{ mark(check) }}">{{ check.name }}</span></td><td>{{ check.said|line }}</td></tr>
{% endfor %}</table>
<figure>{{ svg(s) }}</figure>{% endif %}{% endfor %}
<details><summary>Log</summary><pre>{{ ran.log }}</pre></details></section>{% endfor %}
</body></html>
"""


def page(ran: "Sequence[Ran]") -> str:
    """The whole page; every text is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["line"] = lambda text: clean(str(text))
    return environment.from_string(_PAGE).render(
        all=ran,
        tally=_tally,
        mark=_mark,
        figures=_figures,
        said=_score,
        svg=lambda shown: Markup(shown.svg),
        minutes=lambda one: f"{sum(one.seconds.values()) / 60:.1f} min",
    )


def _mark(check: Any) -> str:
    return "open" if check.holds is None else "good" if check.holds else "bad"


def _tally(ran: "Ran") -> list[tuple[int, str]]:
    marks = [_mark(check) for shown in ran.shown for check in shown.checks]
    return [(marks.count(mark), mark) for mark in ("good", "bad", "open") if mark in marks]


def _score(score: Any, part: str) -> str:
    mean, (difference, low, high) = getattr(score, part), getattr(score, f"{part}_less")
    return f"{mean:.3f}, {difference:+.3f} [{low:+.3f}, {high:+.3f}] ({score.what}, n = {score.requests})"


def _figures(head: Any) -> list[tuple[str, str]]:
    return [(name, show(head.get(column))) for name, column, show in FIGURES]

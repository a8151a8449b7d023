"""Explains one workflow in text: its steps, its rank, its constraints, and the source of each figure."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import duckdb

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import (
    assumed,
    costs_of_unknown_kind,
    grid,
    hours,
    is_far,
    is_on_assumed_success,
    lead_time,
    number,
    share,
    usd,
    within,
)
from opus_pipelines.core.safe_text import clean
from opus_pipelines.intakes.decisions.text import decision_text
from opus_pipelines.reporting.explain_reasons import (
    LEAST_DIFFERENCE,
    before_lines,
    constraint_lines,
    criteria,
    rank_reason,
    success_figure,
    time_lines,
    why_lines,
)
from opus_pipelines.reporting.tasks import nearest, rows
from opus_pipelines.reporting.views import only_results_with

Row = dict[str, Any]
COMPARED = (
    ("Reward", "reward_usd", usd),
    ("cost", "cost_usd", usd),
    ("success", "success_probability", share),
    ("touch time", "duration_ms", hours),
    ("median lead time", "lead_time_ms_p50", hours),
    ("Penalty", "penalty", lambda x: number(x, 4)),
)
LEAST_GAMMA = 0.05  # below it the step before says too little to be shown
_BASES = ("wait_basis", "cost_basis", "duration_basis", "p_basis")
SCORES = ("cohesion", "coupling", "observability", "hygiene")


def find_workflow(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """Returns the id of the workflow whose id is or begins with `text`.

    Raises InputError where no workflow or several match.
    """
    matches = connection.execute(
        "SELECT workflow_id FROM workflows_optimized WHERE starts_with(workflow_id, $1) ORDER BY ALL LIMIT 6", [text]
    ).fetchall()
    ids = [i for (i,) in matches]
    if text in ids or len(ids) == 1:
        return text if text in ids else ids[0]
    if ids:
        raise InputError(f"{text!r} begins several workflows: {', '.join(ids[:5])}{', ...' if len(ids) > 5 else ''}")
    raise InputError(f"no current workflow is called {text!r}; {_near(connection, text)}")


def _near(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """Names the workflows whose ids or titles are most similar to the text."""
    titles = connection.execute(
        "SELECT workflow_id, title FROM workflows_optimized ORDER BY intake_id, intention_id, rank"
    ).fetchall()
    names = {name: workflow for workflow, title in titles for name in (title, workflow) if name}
    near = dict.fromkeys(names[name] for name in nearest(text, names))
    return f"the nearest: {', '.join(near)}" if near else "`opus best` lists them with their ids"


def explanation(connection: duckdb.DuckDBPyConnection, workflow: str) -> str:
    """Returns the whole explanation of a workflow."""
    with only_results_with(connection, workflow):
        return _explanation(connection, workflow)


def _explanation(connection: duckdb.DuckDBPyConnection, workflow: str) -> str:
    row = rows(connection, "workflow", workflow=workflow)[0]
    steps = rows(connection, "steps", workflow=workflow)
    rivals = rows(connection, "rivals", workflow=workflow)
    before = rows(connection, "before", workflow=workflow, least=LEAST_GAMMA, difference=LEAST_DIFFERENCE)
    near = rows(connection, "neighbours", intake_id=row["intake_id"], intention_id=row["intention_id"])[0]
    times = time_lines(rows(connection, "before_times", workflow=workflow, least=LEAST_GAMMA))
    parts = [
        _head(row),
        _figures(row, near),
        _steps(steps),
        _scores(steps),
        *([before_lines(before)] if before else []),
        *([times] if times else []),
        _ranking(row, rivals),
        _evidence(row),
        why_lines(row),
        constraint_lines(row),
        _sources(row, steps, near),
        _provenance(row),
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def _head(row: Row) -> list[str]:
    lines = [
        f"{row['workflow_id']}  {row['title'] or ''}".rstrip(),
        f"rank {row['rank']} of {row['ranks']} for intake {row['intake']} of {row['client']} / {row['contract']}",
    ]
    decided = decision_text(row)
    return lines + ([f"goal: {row['goal']}"] if row["goal"] else []) + ([f"decision: {decided}"] if decided else [])


def _figures(row: Row, near: Row) -> list[str]:
    consumed = ", ".join(
        f"{name} {usd(row[column])}"
        for name, column in (
            ("compute", "cost_compute_usd"),
            ("AI models", "cost_model_usd"),
            ("people", "cost_human_usd"),
            ("time", "cost_time_usd"),
            ("held", "cost_held_usd"),
        )
        if row[column]
    )
    return [
        "Figures",
        *grid(
            [
                ["Reward", _reward(row)],
                [
                    "cost",
                    f"{usd(row['cost_usd'])} "
                    f"({consumed or 'nothing known'}){_rests_on(row, 'cost')}{_case(usd, row['case_cost_usd'])}",
                ],
                ["saving", _saving(row)],
                [
                    "touch time",
                    f"{hours(row['duration_ms'])} of "
                    f"work{_rests_on(row, 'duration')}{_case(hours, row['baseline_duration_ms'])}",
                ],
                ["lead time", f"{_lead_time(row)}{_case(hours, row['baseline_lead_time_ms'])}"],
                *([["deadline", _deadline(row)]] if row["deadline_hours"] is not None else []),
                *([["step deadlines", "; ".join(row["step_deadlines"])]] if row["step_deadlines"] else []),
                ["success", success_figure(row, near)],
                [
                    "Penalty",
                    f"{number(row['penalty'], 4)} (CIP {number(row['cip'], 4)}, SIP {number(row['sip'], 4)}): "
                    f"decides where Rewards tie",
                ],
            ]
        ),
    ]


def _reward(row: Row) -> str:
    """Describes the Reward with its interval and its parts, or why there is none."""
    if row["gain_usd"] is None:
        return f"no gain stated: what a right output is worth is not known; ranked by {criteria(row)}"
    stated = " (a prior: the client states none)" if row["gain_basis"] == "prior" else ""
    gain = f"a right output is worth {usd(row['gain_usd'])}{stated}"
    interval = (
        ""
        if row["reward_usd_p05"] is None
        else f" (90 % within {within(row['reward_usd_p05'], row['reward_usd_p95'])})"
    )
    if is_on_assumed_success(row):
        return f"{usd(row['reward_usd'])}{interval}: {gain}; the chance of success is assumed, no outcome was observed"
    return f"{usd(row['reward_usd'])}{interval}: {gain}, succeeds with {share(row['success_probability'])}"


def _lead_time(row: Row) -> str:
    """Describes the lead time with waiting: median, 90th percentile and their basis."""
    if row["lead_time_ms_p50"] is None:
        return str(row["lead_time_basis"] or "unknown")
    return (
        f"{lead_time(row['lead_time_ms_p50'], row['lead_time_ms_p90'])}, waiting included (measured: "
        f"{row['lead_time_basis']})"
    )


def _deadline(row: Row) -> str:
    kept = "an unknown probability" if row["p_deadline"] is None else f"probability {number(row['p_deadline'], 3)}"
    return f"a lead time of at most {number(row['deadline_hours'])} hours is kept with {kept}"


def _rests_on(row: Row, figure: str) -> str:
    """Describes the assumed share of a total, and the steps that it leaves out."""
    note = assumed(row[f"{figure}_assumed_share"], row[f"{figure}_unknown_steps"])
    return "" if note == "-" else f"; {note}"


def _case(shown: Callable[[float | None], str], figure: float | None) -> str:
    """Describes the figure of a whole similar case, or that no similar case has it."""
    return "; no case of history tells" if figure is None else f"; a whole similar case: {shown(figure)} (median)"


def _saving(row: Row) -> str:
    """Describes the saving against history, and the number of steps that it covers."""
    if row["saving_usd"] is None:
        return "unknown: no step has a known cost both here and in the nearest cases"
    steps = row["tasks"] + (row["reviews"] or 0)
    return (
        f"{usd(row['saving_usd'])}: the nearest cases paid {usd(row['baseline_cost_usd'])} for the same steps"
        f" ({row['compared_steps']} of {steps} compared)"
    )


def _steps(steps: list[Row]) -> list[str]:
    head = [
        "#",
        "after",
        "step",
        "who",
        "starts",
        "waits",
        "takes",
        "cost",
        "p",
        "evidence",
        "basis of wait, cost, time, p",
    ]
    body = [
        [
            str(s["position"]),
            ",".join(map(str, s["follows"] or [])),
            _step(s),
            " ".join(filter(None, (s["actor_kind"], s["model"], s["actor_group"]))),
            hours(s["start_ms"]),
            hours(s["wait_ms_p50"]),
            hours(s["duration_ms"]),
            usd(s["cost_usd"]),
            number(None if s["p_basis"] == "prior" else s["p"], 3),
            "-" if s["evidence"] is None else str(s["evidence"]),
            ", ".join(str(s[b] or "-") for b in _BASES) if s["kind"] in ("task", "review") else "",
        ]
        for s in steps
    ]
    return ["Steps", *grid([head, *body])]


def _step(step: Row) -> str:
    """Returns a task's title; for another kind of node, its kind and title."""
    if step["kind"] == "task":
        name = str(step["title"] or step["task_id"] or "?")
        if step["origin"] == "declared":
            return f"{name} [declared in the contract's catalogue]"
        return name if step["origin"] != "new" else f"{name} [new; nearest known: {step['nearest'] or 'none'}]"
    return f"[{step['kind']}] {(step['title'] or '').removeprefix('Review: ')}".rstrip()


def _scores(steps: list[Row]) -> list[str]:
    """Lists the Penalty scores of each step."""
    known = [s for s in steps if s["cohesion"] is not None]
    body = [
        [str(s["position"]), s["title"] or s["task_id"] or "?", *(number(s[name]) for name in SCORES)] for s in known
    ]
    return [
        "Penalty scores (0 best, 1 worst)",
        *(grid([["#", "step", *SCORES], *body]) if body else ["  none are known"]),
    ]


def _ranking(row: Row, rivals: list[Row]) -> list[str]:
    lines = [f"Why rank {row['rank']}"]
    fewer = [f"  fewer are ranked than asked for: {row['fewer']}"] if row["fewer"] else []
    if not rivals:
        return [*lines, "  it is the only candidate", *fewer]
    around = [r for r in rivals if abs(r["rank"] - row["rank"]) == 1] or rivals[:1]
    for rival in around:
        lines += _against(row, rival)
    if row["beats_next"] is not None:
        best = "" if row["best_share"] is None else f"; it is the best of all ranked with {number(row['best_share'])}"
        lines.append(
            f"  it beats the next rank with probability {number(row['beats_next'])}: "
            f"{row['verdict'] or 'no verdict'}{best}"
        )
    return lines + fewer


def _evidence(row: Row) -> list[str]:
    """Describes the evidence: completeness, agreement of similar cases, expected events, and why it is undecided."""
    if row["completeness"] is None:
        return []
    cases = f"{number(row['similar_cases'], 1)} similar cases in effect"
    rule = f"outcomes of {cases} tell which steps are critical"
    if row["completeness"] == "support":
        rule = (
            f"history tells no outcomes, so the work that {cases} did is required; conformity "
            f"{number(row['conformity'], 3)}"
        )
    lines = ["Evidence", f"  {rule}", *_origins(row)]
    if row["expected_events"]:
        lines.append(f"  events and outcomes to expect, which are no work steps: {', '.join(row['expected_events'])}")
    lines += [f"  undecided: {row['verdict_reason']}"] if row["verdict_reason"] else []
    lacks = [clean(statement) for statement in row.get("lacks") or []]
    lines += [f"  the intake's procedure lists, and the workflow lacks: {statement}" for statement in lacks]
    planned = [clean(step) for step in row.get("conditional") or []]
    return lines + [
        f"  planned, although the intake does not state whether its condition holds: {step}" for step in planned
    ]


def _origins(row: Row) -> list[str]:
    """Describes which share of the steps came from where; results of before lack the columns."""
    wheres = {
        "share_similar_cases": "similar cases did",
        "share_procedure": "the intake's own procedure asks for",
        "share_model": "the trained work model expects",
    }
    told = [f"{where} {share(row[name])}" for name, where in wheres.items() if row.get(name) is not None]
    return [f"  of its steps, {', '.join(told)}"] if told else []


def _against(row: Row, rival: Row) -> list[str]:
    side = "ahead of" if row["rank"] < rival["rank"] else "behind"
    lines = [f"  {side} rank {rival['rank']} ({rival['workflow_id']}): {rank_reason(row, rival)}"]
    lines.append(
        "    " + ", ".join(f"{name} {show(row[key])} against {show(rival[key])}" for name, key, show in COMPARED)
    )
    lines.append(f"    they differ in {rival['swaps']} step{'s' if rival['swaps'] != 1 else ''}:")
    for words, titles in (("only here", rival["only_here"]), ("only there", rival["only_there"])):
        if titles:
            lines.append(f"      {words}: {', '.join(titles)}")
    for step in rival["other_way"] or []:
        lines.append(
            f"      {step['title']}: by {step['here'] or 'nobody known'} here, by {step['there'] or 'nobody known'} "
            f"there"
        )
    return lines


def _sources(row: Row, steps: list[Row], near: Row) -> list[str]:
    work = [s for s in steps if s["kind"] in ("task", "review")]
    lines = ["Where the figures come from"]
    for name, key in (("success", "p_basis"), ("cost", "cost_basis"), ("time", "duration_basis")):
        counts = Counter(s[key] or "unknown" for s in work)
        counts_text = (
            f"{n} of {len(work)} steps {basis}" for basis, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))
        )
        lines.append(f"  {name}: " + ", ".join(counts_text))
    bare = [s for s in work if s["cost_usd"] is None and s["duration_ms"] is not None and s["actor_kind"] is None]
    if bare:
        lines.append(f"  {costs_of_unknown_kind(len(bare))}")
    if near["decisions"]:
        counted = (
            f"{near['decisions']} workflow{'s' * (near['decisions'] > 1)} that people accepted or edited for "
            f"similar intakes"
        )
        lines.append(f"  {counted} of this contract counted as successful cases")
    if near["cases"]:
        lines.append(
            f"  history's way: the {near['cases']} nearest cases of {', '.join(near['sources'] or ['?'])},"
            f" similarity {number(near['least'], 3)} to {number(near['most'], 3)}{_compared(near)}"
        )
    if is_far(near["most"]):
        lines.append("  no case of history is really like this intake: these are the figures of another kind of work")
    carried = "was once" if row["in_history"] else "was never"
    lines.append(
        f"  {share(row['observed_share'])} of its figures were observed; this very sequence {carried} carried out"
    )
    return [*lines, f"  the cases behind a step: opus explain {row['workflow_id']} --evidence TASK"]


def _compared(near: Row) -> str:
    """Returns over how many of the nearest cases the figures of history are; results of before do not tell."""
    return f"; its costs and times are over the nearest {near['compared']}" if near["compared"] else ""


def _provenance(row: Row) -> list[str]:
    return [
        "Made from",
        f"  snapshot {row['snapshot']}, model {row['model_version']}, result {row['result']}, published "
        f"{row['published_at']}",
        f"  intake {row['intake_id']}, bytes {row['intake_hash']}; sequences {', '.join(row['sequence_ids'] or [])} "
        f"of {row['backend']}",
        *(f"  not read: {clean(reason)}" for reason in row["left_out"] or []),
    ]

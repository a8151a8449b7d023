"""Explains one workflow in text: steps, rank and its reasons, what changed the proposal, constraints, and sources."""

import json
from collections import Counter
from collections.abc import Callable

import duckdb

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import (
    assumed,
    clean,
    costs_of_unknown_kind,
    grid,
    hours,
    is_far,
    is_on_assumed_success,
    lead_time,
    left_out,
    number,
    share,
    success,
    usd,
    within,
)
from opus_pipelines.intakes.decisions.record import decision_text
from opus_pipelines.reporting.tasks import Row, nearest, rows
from opus_pipelines.reporting.views import only_results_with

LEAST_DIFFERENCE = 5e-4  # of two probabilities that are shown in tenths of a per cent


def success_figure(row: Row, near: Row) -> str:
    """Returns the success estimate with what it rests on, and how many similar cases succeeded."""
    return f"{_success(row)}{_succeeded(row, near)}"


def _success(row: Row) -> str:
    """Describes the success to expect, and for how many steps it is assumed."""
    if row["success_probability"] is None:
        return "unknown: of none of its steps was an outcome ever observed"
    if row.get("success_basis") in (None, "steps"):
        estimate = f"{success(row['success_probability'], row['success_unknown_steps'])}, estimated for this workflow"
        return estimate + _inference(row)
    if row["success_of_steps"] is None or row["success_of_steps"] <= row["success_probability"]:
        return share(row["success_probability"])
    return (
        f"{share(row['success_probability'])}; its steps alone would give {share(row['success_of_steps'])}, which is "
        "more than happened in such cases: some of its steps are done only where a case succeeds"
    )


def _inference(row: Row) -> str:
    """Describes how success was inferred where the branches of a workflow meet again."""
    method, product = row.get("success_inference"), row.get("success_probability_product")  # older results have neither
    if method == "simulated":
        estimate = " by simulation, because its branches cross too often for exact inference"
    elif method == "product":
        estimate = " in the product form, as the settings ask"
    else:
        estimate = ""
    if product is None or abs(product - row["success_probability"]) < LEAST_DIFFERENCE:
        return estimate
    return f"{estimate}; the paper's product form, which takes branches for independent, has {share(product)}"


def _succeeded(row: Row, near: Row) -> str:
    """Describes how many cases succeeded that are like the intake at the start: no estimate, but what happened."""
    if row.get("start_success") is not None:
        which = "all cases of the process" if row["similarity_basis"] == "all cases" else "cases like it at the start"
        low, high = share(row["start_success_low"]), share(row["start_success_high"])
        count = f"{number(row['start_cases'], 1)} in effect"
        return f"; of {which}, {share(row['start_success'])} succeeded (95 % within {low} and {high}, {count})"
    if near["known"] and near["known"] == near["succeeded"] and row["completeness"] == "support":
        return "; the similar cases were chosen among those that succeeded, so their share tells nothing"
    if near["known"]:
        return f"; of similar cases {near['succeeded']} of {near['known']} with a known outcome succeeded"
    return "; no similar case has a known outcome"


def why_lines(row: Row) -> list[str]:
    """Describes the edits of the proposal, what its reviews and more expensive execution modes earn, and its limits."""
    lines = ["Why done so"]
    for words, edits in (("changed", row["edits"]), ("worth it", row["choices"])):
        lines += [f"  {_changed(edit) or words}: {edit['what']}: {_earned(edit)}" for edit in edits or []]
    lines += [f"  bound by {limit}" for limit in row["binding"] or []]
    if row["decision"]:
        return [*lines, f"  it was {row['decision']} by a person: its steps, order and people are not changed"]
    has_gain = row["gain_usd"] is not None
    gap, more = (row["gap_usd"], "earn") if has_gain else (row["gap_success"], "succeed")
    if gap is None:
        lines.append(f"  whether another path {more}s more is not known")
    elif gap > 0:
        lines.append(
            f"  another path may {more} up to {usd(gap) if has_gain else share(gap)} more: the search was cut short"
        )
    if row["exact"] is not None and not any(map(_changed, row["edits"] or [])):
        sentence = f"no other ways and reviews of these steps {more} more"
        lines.append(
            f"  {sentence}" if row["exact"] else f"  {sentence}, as far as greedy changes tell: not all were tried"
        )
    return lines


def _changed(edit: Row) -> str | None:
    """Returns the text of a change that only sets a workflow apart; None for a change that was made to earn more."""
    return "done otherwise than in a better rank" if edit["kind"] == "swap" else None


def _earned(edit: Row) -> str:
    earned = edit["earned_usd"]
    if earned is None:
        return f"success {100 * edit['earned_success']:+.1f} %"
    return f"earned {usd(earned)}" if earned >= 0 else f"cost {usd(-earned)}"


def before_lines(pairs: list[Row]) -> list[str]:
    """Returns the steps whose success depends on the step directly before them."""
    return [
        "Success by the step before",
        *(
            f"  {clean(pair['dst'])} succeeds in {share(pair['p'])} of the cases directly behind {clean(pair['src'])}, "
            f"{share(pair['of_task'])} in all (γ {number(pair['gamma'], 2)}, {pair['n']:,} outcomes)"
            for pair in pairs
        ),
    ]


def time_lines(pairs: list[Row]) -> list[str]:
    """Returns the steps whose time or cost is that behind the step before them; nothing where there are none."""
    lines = []
    for pair in pairs:
        pair_figures = [("takes", hours(pair["duration_ms"]), hours(pair["of_task_ms"]), pair["duration_n"])]
        pair_figures += [("costs", usd(pair["cost_usd"]), usd(pair["of_task_usd"]), pair["cost_n"])]
        told = [
            f"{verb} {here} ({here_n:,} times), {all_} in all" for verb, here, all_, here_n in pair_figures if here_n
        ]
        if told:
            lines.append(f"  {clean(pair['dst'])} directly behind {clean(pair['src'])} {', '.join(told)}")
    return ["Means by the step before", *lines] if lines else []


def constraint_lines(row: Row) -> list[str]:
    """Returns the constraints that hold, those that were read and not applied, and those that are violated."""
    demands = row["demands"] or []
    held, idle = ([d for d in demands if (d["effect"] == "in force") is holds] for holds in (True, False))
    stated = row["constraints"] if row["constraints"] not in (None, "", "{}") else None
    lines = (
        ["Constraints", *(line for d in held for line in _demand(d))]
        if held
        else ["Constraints", f"  {stated or 'none stated'}"]
    )
    others = [d for d in idle if d["status"] == "other cases"]
    left = [d for d in idle if d["status"] != "other cases"]
    if left:
        lines += [
            "  read and not applied:",
            *(line for d in left for line in (*_demand(d), f"      {d['effect']}", *_question(d))),
        ]
    if others:
        lines += [
            "  read, about other cases:",
            *(line for d in others for line in (*_demand(d), f"      {d['effect']}")),
        ]
    limits = (
        ("cost", "max_cost_usd", row["cost_unknown_steps"]),
        ("time", "max_duration_hours", row["duration_unknown_steps"]),
    )
    for name, kind, unknown in limits:
        if unknown and any(d["kind"] == kind for d in held):
            lines.append(f"  {kind} is held against the known {name}s: {assumed(None, unknown)}")
    if row["feasible"]:
        return [*lines, "  all are met"]
    return [*lines, *(f"  violated: {violation}" for violation in row["violations"] or ["unnamed"])]


def _demand(demand: Row) -> list[str]:
    """Returns the text of a constraint, or of what was read as one, with its place and its sentence."""
    lines = [f"    {clean(demand['kind'])}: {clean(demand['value'])} ({clean(demand['place'])})"]
    lines += [f"      “{clean(demand['sentence'])}”"] if demand["sentence"] else []
    lines += [f"      {demand['why']}"] if demand.get("why") else []
    return lines + ([f"      differs from history: {clean(demand['differs'])}"] if demand.get("differs") else [])


def _question(demand: Row) -> list[str]:
    """Returns the question which activity a phrase means, and how to answer it."""
    if not demand["asks"]:
        return []
    phrase = clean(demand["asks"])
    nearest = "; ".join(clean(name) for name in demand["nearest"] or [])
    answer = f'[answers] {json.dumps(phrase, ensure_ascii=False)} = "ACTIVITY"'
    return [
        f"      which activity is meant? the nearest: {nearest}",
        f'      answer in contract.toml: {answer}, or "none"',
    ]


def rank_reason(row: Row, rival: Row) -> str:
    """Returns why one of two workflows of an intake ranks higher than the other."""
    if row["feasible"] != rival["feasible"]:
        which, loser = ("that one", rival) if row["feasible"] else ("this one", row)
        return f"feasible goes first, and {which} violates {'; '.join(loser['violations'] or ['a constraint'])}"
    if row["has_optional"] != rival["has_optional"]:
        return f"{'that' if rival['has_optional'] else 'this'} one has a step that nothing asks for"
    if row["gain_usd"] is None:
        return _without_gain(row, rival)
    if row["conformity"] is not None and rival["conformity"] is not None:
        return _agree(row, rival)
    if row["reward_usd"] is None or rival["reward_usd"] is None:
        return "one of the Rewards is unknown"
    gap = row["reward_usd"] - rival["reward_usd"]
    unknown = row["cost_unknown_steps"] or 0, rival["cost_unknown_steps"] or 0
    if any(unknown) and abs(gap) >= 5e-5 and (gap > 0) != (row["rank"] < rival["rank"]):
        return (
            f"the costs of {unknown[0]} steps here and {unknown[1]} there are unknown: each was compared as if it "
            f"cost what other steps"
            " cost, and the Rewards hold the known costs alone"
        )
    if abs(gap) < 5e-5:
        if row["penalty"] is not None and rival["penalty"] is not None and row["penalty"] != rival["penalty"]:
            return f"the Rewards tie, and its Penalty is {'lower' if row['penalty'] < rival['penalty'] else 'higher'}"
        return "the Rewards and Penalties tie; the more trodden transitions go first"
    return f"its Reward is {usd(abs(gap))} {'higher' if gap > 0 else 'lower'}"


def _without_gain(row: Row, rival: Row) -> str:
    """Returns why one of two workflows ranks higher where there is no Reward.

    The deciding criterion is recorded for adjacent ranks only.
    """
    first, second = sorted((row, rival), key=lambda r: int(r["rank"]))
    by = first["ahead_by"] if second["rank"] - first["rank"] == 1 else None
    if by is None:
        return f"ranked by {criteria(row)}; no gain is stated"
    texts = {
        "success": f"success {share(row['success_of_steps'])} against {share(rival['success_of_steps'])}",
        "conformity": _agree(row, rival),
        "lead time": f"median lead time {hours(row['lead_time_ms_p50'])} against {hours(rival['lead_time_ms_p50'])}",
        "Penalty": f"Penalty {number(row['penalty'], 4)} against {number(rival['penalty'], 4)}",
        "transitions": "all else ties; the more trodden transitions go first",
    }
    return texts.get(by, f"told apart by {by}")


def _agree(row: Row, rival: Row) -> str:
    return (
        f"similar cases agree to {number(row['conformity'], 3)} with this one and to "
        f"{number(rival['conformity'], 3)} with that one"
    )


def criteria(row: Row) -> str:
    """Returns what the workflows of an intake are ranked by, the first criterion first."""
    return ", ".join(row["ranked_by"] or ["unknown criteria"])


COMPARED = (
    ("Reward", "reward_usd", usd),
    ("cost", "cost_usd", usd),
    ("success of its steps", "success_of_steps", share),
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
    row = rows(connection, "workflow", workflows=[workflow])[0]
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
    decided, left = decision_text(row), left_out(row.get("unread"), row.get("rules_not_applied"))
    verdict = f"{row['verdict']}{f' ({left})' if left else ''}" if row["verdict"] else ""
    lines += [f"verdict: {verdict}"] if verdict else []
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
        f" ({row['compared_steps']} of {steps} compared). Fewer repetitions save {usd(row['repetition_usd'])}."
        f" Steps left out, less those added, save {usd(row['left_out_usd'])}. In all it is {usd(row['cheaper_usd'])}"
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
        lines.append(f"  it beats the next rank with probability {number(row['beats_next'])}{best}")
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
    if row["verdict"]:
        lines.append(f"  {row['verdict']}{': ' if row['verdict_reason'] else ''}{clean(row['verdict_reason'] or '')}")
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

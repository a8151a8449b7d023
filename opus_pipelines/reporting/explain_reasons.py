"""The part of an explanation that gives reasons: why it ranks so, what changed the proposal, which constraints hold."""

import json
from typing import Any

from opus_pipelines.core.formatting import assumed, hours, number, share, success, usd
from opus_pipelines.core.safe_text import clean

Row = dict[str, Any]
LEAST_DIFFERENCE = 5e-4  # of two probabilities that are shown in tenths of a per cent


def success_figure(row: Row, near: Row) -> str:
    """Returns the success estimate with what it rests on, and how many similar cases succeeded."""
    return f"{_success(row)}{_succeeded(row, near)}"


def _success(row: Row) -> str:
    """Describes the success estimate, and for how many steps it is assumed."""
    if row["success_probability"] is None:
        return "unknown: of none of its steps was an outcome ever observed"
    estimate = f"{success(row['success_probability'], row['success_unknown_steps'])}, estimated for this workflow"
    return estimate + _inference(row)


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
    """Describes how many of the most similar cases succeeded, which is a count of history and no estimate."""
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
    return [*lines, f"      “{clean(demand['sentence'])}”"] if demand["sentence"] else lines


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
        "success": f"success {share(row['success_probability'])} against {share(rival['success_probability'])}",
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

"""Selects and formats the ranked workflows for `opus best`."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import duckdb

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.formatting import (
    assumed,
    clean,
    deadline,
    hours,
    is_offered,
    is_on_assumed_success,
    lead_time,
    left_out,
    share,
    success,
    within,
)
from opus_pipelines.intakes.decisions.record import decision_text
from opus_pipelines.reporting.tasks import select
from opus_pipelines.reporting.views import only_results_of
from opus_pipelines.workflow.constraints import NOT_APPLIED

NO_GAIN = "no gain stated"
NO_FEASIBLE = "no feasible workflow"
INFEASIBLE_COLUMNS = ("intake", "workflow", "breaks", "would earn $", "success", "cost $", "steps")
_COLUMNS = (
    "intake",
    "rank",
    "workflow",
    "reward $",
    "90 % within",
    "holds",
    "not read or applied",
    "success",
    "cost $",
    "cost rests on",
    "touch time",
    "touch time rests on",
    "lead time",
    "same steps in history $",
    "saving $",
    "history touch time",
    "history lead time",
    "constraints",
    "steps",
)
SHORT_COLUMNS = (
    "intake",
    "rank",
    "workflow",
    "reward $",
    "holds",
    "not read or applied",
    "success",
    "cost $",
    "cost rests on",
    "saving $",
    "lead time",
    "steps",
)
_OVERRIDES = ("constraints", "steps that nothing asks for", "conformity", "decision")  # criteria before the Reward
_SHOWN_ID = 10  # characters of an id in the short table: commands take the beginning of one


def ranked(
    connection: duckdb.DuckDBPyConnection, client: str | None, contract: str | None, intake: str | None, top: int | None
) -> duckdb.DuckDBPyRelation:
    """Returns one row for each ranked workflow down to rank `top`.

    Raises LakeError naming the existing results where the filter leaves none.
    """
    with only_results_of(connection, client, contract):
        select(connection, "ranked", client=client, contract=contract, intake=intake, top=top).create(
            "ranked_workflows"
        )
    relation = connection.table("ranked_workflows")  # a relation over views would run the query again at each use
    if not relation.limit(1).fetchall():
        existing = connection.sql("SELECT client || ' / ' || contract FROM current_results ORDER BY ALL").fetchall()
        raise LakeError(
            "no ranked workflows for that; there are results of: " + ", ".join(clean(name) for (name,) in existing)
            if existing
            else "no ranked workflows yet; `opus generate` makes them"
        )
    return relation


def by_contract(
    relation: duckdb.DuckDBPyRelation, short: bool = False
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[Any, ...]]]]:
    """Yields title, columns and rows of each contract; infeasible workflows are in tables of their own.

    A short table has the columns that decide, with what costs rest on where one was not observed. Its title says how
    many rules of the documents are not applied.
    The steps of a lower rank are described by their difference from the first rank. The columns `ranked by` (where no
    gain is stated) and `decision` (where people decided) follow the others where they have content. A workflow that
    breaks a constraint or a limit is in no ranking: a second table has those of intakes with a feasible workflow, and a
    third one those of intakes that have none, each with what it breaks.
    """
    all_rows = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    for (client, contract), group in groupby(all_rows, key=lambda r: (r["client"], r["contract"])):
        intentions = [list(ranks) for _, ranks in groupby(group, key=lambda r: r["intention_id"])]
        title = f"{client} / {contract}"
        if feasible := [kept for ranks in intentions if (kept := [r for r in ranks if is_offered(r)])]:
            yield (title + _not_applied_of(feasible), *_short(feasible)) if short else (title, *_ranking(feasible))
        apart = [r for ranks in intentions if is_offered(ranks[0]) for r in ranks if not is_offered(r)]
        without = [r for ranks in intentions if not any(map(is_offered, ranks)) for r in ranks]
        for rows, heading in ((apart, "infeasible, outside the ranking"), (without, NO_FEASIBLE)):
            if rows:
                lines, decided = [_infeasible_line(r) for r in rows], [decision_text(r) or "" for r in rows]
                columns = (*INFEASIBLE_COLUMNS, "decision") if any(decided) else INFEASIBLE_COLUMNS
                yield (
                    f"{title}: {heading}",
                    columns,
                    [(*x, d)[: len(columns)] for x, d in zip(lines, decided, strict=True)],
                )


def _ranking(intentions: list[list[dict[str, Any]]]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    rows = [row for ranks in intentions for row in ranks]
    lines = [_line(row, ranks[0]) for ranks in intentions for row in ranks]
    more = {"ranked by": [_criteria(row) for row in rows], "decision": [decision_text(row) or "" for row in rows]}
    more = {name: cells for name, cells in more.items() if any(cells)}
    return (*_COLUMNS, *more), [(*line, *cells) for line, *cells in zip(lines, *more.values(), strict=True)]


def _short(intentions: list[list[dict[str, Any]]]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    columns, lines = _ranking(intentions)
    rows = [row for ranks in intentions for row in ranks]
    observed = not any(row["cost_assumed_share"] or row["cost_unknown_steps"] for row in rows)
    wanted = [name for name in SHORT_COLUMNS if not (observed and name == "cost rests on")]
    wanted += columns[len(_COLUMNS) :]
    short = {"workflow": [row["workflow_id"][:_SHOWN_ID] for row in rows]}
    short["lead time"] = [hours(row["lead_time_ms_p50"]) for row in rows]
    cells = [short.get(name) or [line[columns.index(name)] for line in lines] for name in wanted]
    return tuple(wanted), list(zip(*cells, strict=True))


def _not_applied_of(intentions: list[list[dict[str, Any]]]) -> str:
    """Returns how many rules of an intake's documents its best workflow does not apply, how many statements of the
    intake's own procedure no step of it stands for, and how many steps hold under a condition alone, for a title.
    """
    counts = {
        "rules of the documents not applied": {_rules_not_applied(ranks[0]) for ranks in intentions},
        "statements of the procedure without a step": {len(ranks[0]["lacks"] or []) for ranks in intentions},
        "steps under a condition that is not stated": {len(ranks[0].get("conditional") or []) for ranks in intentions},
    }
    parts = [f"{what}: {' to '.join(map(str, sorted({min(n), max(n)})))}" for what, n in counts.items() if any(n)]
    return f" ({'; '.join(parts)})" if parts else ""


def _infeasible_line(r: dict[str, Any]) -> tuple[Any, ...]:
    return (
        r["intake"],
        r["workflow_id"],
        "; ".join(filter(None, (*_constraints(r), left_out(r["unread"], _rules_not_applied(r))))),
        NO_GAIN if r["gain_usd"] is None else r["reward_usd"],
        _success(r),
        r["cost_usd"],
        r["tasks"],
    )


def _line(r: dict[str, Any], first: dict[str, Any]) -> tuple[Any, ...]:
    return (
        r["intake"] if r is first else "",
        r["rank"],
        r["workflow_id"],
        NO_GAIN if r["gain_usd"] is None else r["reward_usd"],
        within(r["reward_usd_p05"], r["reward_usd_p95"]),
        _holds(r),
        left_out(r["unread"], _rules_not_applied(r)) or "-",
        _success(r),
        r["cost_usd"],
        assumed(r["cost_assumed_share"], r["cost_unknown_steps"]),
        hours(r["duration_ms"]),
        assumed(r["duration_assumed_share"], r["duration_unknown_steps"]),
        _lead_time(r),
        r["baseline_cost_usd"],
        r["saving_usd"],
        hours(r["baseline_duration_ms"]),
        hours(r["baseline_lead_time_ms"]),
        "; ".join(_constraints(r)),
        f"{r['tasks']}" + ("" if r is first else _difference(_steps(r), _steps(first))),
    )


def _criteria(r: dict[str, Any]) -> str:
    """Returns the criteria of the ranking where there is no Reward, and the one that decides against the next rank.

    Where there is a Reward, it returns what overrides it.
    """
    if r["gain_usd"] is not None:
        is_overridden = r["ahead_by"] in _OVERRIDES
        return f"ahead by {r['ahead_by']}" if is_overridden else ""
    return ", ".join(r["ranked_by"] or []) + (f" (ahead by {r['ahead_by']})" if r["ahead_by"] else "")


def _lead_time(r: dict[str, Any]) -> str:
    """Formats median and 90th percentile of the lead time, and the probability that the deadline is kept."""
    parts = lead_time(r["lead_time_ms_p50"], r["lead_time_ms_p90"]), deadline(r["deadline_hours"], r["p_deadline"])
    return "; ".join((*filter(None, parts), *(r["step_deadlines"] or [])))


def _constraints(r: dict[str, Any]) -> list[str]:
    """Returns whether the constraints are met, how many statements of the intake's own procedure no step stands for,
    and how many steps it asks for under a condition that is not stated.
    """
    lacks = len(r["lacks"] or [])
    lacking = [f"{lacks} statement{'' if lacks == 1 else 's'} of the procedure without a step"] if lacks else []
    unstated = len(r.get("conditional") or [])
    lacking += (
        [f"{unstated} step{'' if unstated == 1 else 's'} under a condition that is not stated"] if unstated else []
    )
    return (["met"] if r["feasible"] else list(r["violations"] or ["violated"])) + lacking


def _rules_not_applied(r: dict[str, Any]) -> int:
    return (r["rules_not_applied"] or 0) + sum(NOT_APPLIED in due for due in r["step_deadlines"] or [])


def _holds(r: dict[str, Any]) -> str:
    """Returns the verdict with the probability that the first rank is the best; of others, that it beats the next."""
    if r["rank"] > 1:
        return share(r["beats_next"])
    is_compared = r["beats_next"] is not None and r["best_share"] is not None
    return " ".join(filter(None, (r["verdict"], f"({share(r['best_share'])})" if is_compared else ""))) or "-"


def _steps(r: dict[str, Any]) -> dict[str, str]:
    """Returns who carries out each step, by its name."""
    return dict(zip(r["steps"] or [], r["actors"] or [], strict=True))


def _success(row: dict[str, Any]) -> str:
    """Formats the success, "assumed" where a Reward rests on priors alone."""
    return (
        "assumed" if is_on_assumed_success(row) else success(row["success_probability"], row["success_unknown_steps"])
    )


def _difference(steps: dict[str, str], first: dict[str, str]) -> str:
    """Describes how a workflow's steps differ from those of the best one."""
    more, less = [s for s in steps if s not in first], [s for s in first if s not in steps]
    others = [f"{s} by {who or 'nobody known'}" for s, who in steps.items() if s in first and who != first[s]]
    parts = [f"with {', '.join(more)}" if more else "", f"without {', '.join(less)}" if less else "", ", ".join(others)]
    return f": {', '.join(part for part in parts if part) or 'in another order'}"

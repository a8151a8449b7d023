"""Computes truth.json: the exact values of the generative model that the pipeline should find, not counts of cases."""

from collections import defaultdict
from collections.abc import Sequence
from math import prod
from typing import Any

from opus_pipelines.quality.sample.model import (
    UNKNOWN_OUTCOMES,
    USD_PER_MILLION_TOKENS,
    VARIATION,
    Expected,
    Industry,
    Kind,
    Task,
    expected,
    mixed,
    normalise,
    variants,
)
from opus_pipelines.quality.sample.sources import SOURCES, Contract, Source

RULE = (
    "A case starts right. Doing a task in a way makes it right with probability p if it was right, else with q; the "
    "task's recorded "
    "success is that "
    "new state. A case that never did its kind's needed task is damaged with probability `damage`, independently of "
    "everything else and "
    "without "
    "a trace in its tasks. So is a case that did the second task of one of its kind's ordered pairs before the first. "
    "A case succeeds when it is right after its last task and not damaged. Ways are chosen by "
    "share, independently. "
    "Durations and tokens are gamma distributed with the stated mean and coefficient of variation; people and "
    "programs cost time, "
    "models cost tokens."
)


def truth(seed: int, sources: Sequence[Source] = SOURCES) -> dict[str, Any]:
    """Returns the whole of truth.json of these sources, without the intakes."""
    industries = {source.industry.name: source.industry for source in sources}
    return {
        "seed": seed,
        "rule": RULE,
        "variation": VARIATION,
        "unknown_outcomes": UNKNOWN_OUTCOMES,
        "usd_per_million_tokens": dict(USD_PER_MILLION_TOKENS),
        "industries": {
            name: _industry(industry, [s for s in sources if s.industry is industry])
            for name, industry in industries.items()
        },
        "contracts": [_contract(source, contract) for source in sources for contract in source.contracts],
        "sources": [
            {
                "source": s.name,
                "industry": s.industry.name,
                "file": s.file,
                "cases": sum(k.cases for c in s.contracts for k in c.kinds),
            }
            for s in sources
            if s.has_history
        ],
    }


def _industry(industry: Industry, sources: list[Source]) -> dict[str, Any]:
    kinds = [(s, c, k) for s in sources for c in s.contracts for k in c.kinds]
    per_kind = [
        (s, k, mixed([(share * k.cases, expected(chain, industry.tasks)) for share, chain, _ in variants(k)]))
        for s, _, k in kinds
    ]
    whole = mixed([(1.0, e) for _, _, e in per_kind])
    asked = [(s, c, k) for s in sources for c in s.contracts for k in c.unseen]
    return {
        "usd_per_hour": industry.usd_per_hour,
        "tasks": [_task(industry, task, sources, whole) for task in industry.tasks.values()],
        "synonyms": _synonyms(industry, sources),
        "edges": _edges([(e, str) for _, _, e in per_kind]),
        "normalised_edges": _edges([(e, lambda name, s=s: normalise(s.key(name))) for s, _, e in per_kind]),
        "kinds": [_kind(industry, source, contract, kind) for source, contract, kind in (*kinds, *asked)],
    }


def _done_by(source: Source) -> set[str]:
    return {t for c in source.contracts for k in c.kinds for _, chain, _ in variants(k) for t in chain.tasks}


def _task(industry: Industry, task: Task, sources: list[Source], whole: Expected) -> dict[str, Any]:
    keys = {s.name: s.key(task.name) for s in sources if task.name in _done_by(s)}
    return {
        "task": task.name,
        "description": task.description,
        "keys": keys,
        "nodes": sorted({normalise(key) for key in keys.values()}),
        "p": _rounded(task.p),
        "q": _rounded(task.q),
        "cost_usd_mean": _rounded(sum(w.share * industry.cost_usd(w) for w in task.modes)),
        "duration_ms_mean": _rounded(sum(w.share * w.duration_ms for w in task.modes)),
        **({"answer_hours_mean": task.answer_hours} if task.answer_hours else {}),
        "expected_implementations": _rounded(whole.visits.get(task.name, 0.0)),
        "expected_after_wrong": _rounded(whole.after_wrong.get(task.name, 0.0)),
        "ways": [
            {
                "actor_kind": w.actor_kind,
                "model": w.model,
                "share": w.share,
                "p": w.p,
                "q": w.q,
                "cost_usd_mean": _rounded(industry.cost_usd(w)),
                "duration_ms_mean": w.duration_ms,
                "tokens_in_mean": w.tokens_in,
                "tokens_out_mean": w.tokens_out,
            }
            for w in task.modes
        ],
    }


def _synonyms(industry: Industry, sources: list[Source]) -> list[dict[str, Any]]:
    """Returns keys of different sources that are one task: `trivial` where normalising joins them, else `true`."""
    rows = []
    for task in industry.tasks:
        keys = [(s.name, s.key(task)) for s in sources if task in _done_by(s)]
        if len({key for _, key in keys}) > 1:
            joined = len({normalise(key) for _, key in keys}) == 1
            rows.append(
                {
                    "task": task,
                    "keys": [f"{name}/{key}" for name, key in keys],
                    "difference": "trivial" if joined else "true",
                }
            )
    return rows


def _edges(parts: list[tuple[Expected, Any]]) -> list[dict[str, Any]]:
    """Returns expected transitions, and their probability as a share of all transitions out of src."""
    counts: dict[tuple[str, str], float] = defaultdict(float)
    for e, name in parts:
        for (src, dst), transitions in e.transitions.items():
            counts[name(src), name(dst)] += transitions
    out: dict[str, float] = defaultdict(float)
    for (src, _), transitions in counts.items():
        out[src] += transitions
    return [
        {"src": src, "dst": dst, "expected_transitions": _rounded(n), "probability": _rounded(n / out[src])}
        for (src, dst), n in sorted(counts.items())
    ]


def _kind(industry: Industry, source: Source, contract: Contract, kind: Kind) -> dict[str, Any]:
    parts = {shortcut: (share, expected(chain, industry.tasks)) for share, chain, shortcut in variants(kind)}
    whole, needed, full = mixed(list(parts.values())), kind.needed, parts[False][1]
    undamaged = prod(1 - pair.swapped * pair.damage for pair in kind.orders)
    regular = {"success": _rounded(full.right * undamaged), "cost_usd_mean": _cost(industry, full)}
    row: dict[str, Any] = {
        "kind": kind.title,
        "source": source.name,
        "client": contract.client,
        "contract": contract.name,
        "cases": kind.cases,
        "always": list(kind.always),
        "start": _shares(whole.starts),
        "end": _shares(whole.ends),
        "edges": _edges([(whole, str)]),
        "regular": {"share": parts[False][0], **regular},
        "needed": [{"task": n.task, "damage": n.damage, "skipped": n.skipped} for n in kind.every_needed],
        **({"orders": [vars(pair) for pair in kind.orders]} if kind.orders else {}),
        "shortcut": None,
        "success": _rounded(full.right * undamaged),
    }
    if needed:
        share, short = parts[True]
        success = short.right * undamaged * (1 - needed.damage)
        row |= {
            "shortcut": {
                "share": share,
                "success": _rounded(success),
                "cost_usd_mean": _cost(industry, short),
                "edges": [{"src": a, "dst": b} for a, b in sorted(short.transitions) if (a, b) not in full.transitions],
            },
            "success": _rounded((1 - share) * full.right * undamaged + share * success),
        }
    return row


def _cost(industry: Industry, e: Expected) -> float:
    return _rounded(
        sum(n * w.share * industry.cost_usd(w) for name, n in e.visits.items() for w in industry.tasks[name].modes)
    )


def _contract(source: Source, contract: Contract) -> dict[str, Any]:
    return {
        "client": contract.client,
        "contract": contract.name,
        "industry": source.industry.name,
        "source": source.name,
        "gain_usd": contract.gain_usd,
        "cases": sum(k.cases for k in contract.kinds),
        "kinds": [k.title for k in contract.kinds],
    }


def _shares(counts: dict[str, float]) -> dict[str, float]:
    return {name: _rounded(n) for name, n in sorted(counts.items()) if n}


def _rounded(value: float) -> float:
    return round(float(value), 9)

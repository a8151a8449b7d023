"""What must hold for every first plan of the gallery, told from the rows of the lake alone: no code of generation is asked."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

LEAST_SHARE = 0.02  # of history's cases that begin, or end, with a task, from which a plan may do so too
LEAST_SIMILAR = 10  # similar cases that did not fail, below which a verdict may not be "clear"
NEAR = 0.5          # similarity from which a case is similar
EXPLAINED = {"dependency", "review", "decision"}  # origins of an edge: a wait that no case has next to each other, a review, a person
_REFUSED = re.compile(
    r"\b(reject\w*|declin\w*|denied|refus\w*|cancel\w*|nok|abgelehnt|storniert|geweigerd|geannuleerd|afgewezen)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Check:
    """One invariant: `holds` None where it cannot be told, `said` why."""

    name: str
    holds: bool | None
    said: str


@dataclass(frozen=True)
class Plan:
    """A rank-1 workflow. `head`: its row of workflows/optimized; `steps` and `links`: its rows of workflows/tasks and workflows/edges;
    `kinds`: activity kind by task id; `history`: the tasks of every case; `near`: the near cases (tasks, success, similarity)."""

    head: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]
    links: Sequence[Mapping[str, Any]]
    kinds: Mapping[str, str | None]
    history: Sequence[Sequence[str]]
    near: Sequence[Mapping[str, Any]]
    is_share_printed: bool

    @property
    def tasks(self) -> list[Mapping[str, Any]]:
        """Its tasks, reviews not among them."""
        return [step for step in self.steps if step["kind"] == "task"]

    @property
    def titles(self) -> dict[str, str]:
        """Title by node."""
        return {step["node"]: step["title"] or step["task_id"] for step in self.tasks}


def checks(plan: Plan) -> list[Check]:
    """Every invariant."""
    work = [[t for t in case if plan.kinds.get(t) in (None, "step")] for case in plan.history]
    return [
        _ends("starts where history does", plan, [c[0] for c in work if c], lambda link: (link["dst"], link["src"])),
        _ends("ends where history does", plan, [c[-1] for c in work if c], lambda link: (link["src"], link["dst"])),
        _pairs(plan, [*plan.history, *work]), _no_outcome(plan), _no_idle(plan), _evidence(plan),
        _assumed(plan),
    ]


def _assumed(plan: Plan) -> Check:
    observed, name = plan.head["observed_share"], "assumed share shown"
    if observed is None:
        return Check(name, False, "its share of observed figures is unknown")
    silent = "" if plan.is_share_printed else "; `opus best` does not say so"
    return Check(name, plan.is_share_printed, f"{1 - observed:.0%} of its figures are assumed{silent}")


def _ends(name: str, plan: Plan, found: Sequence[str], sides: Callable[[Mapping[str, Any]], tuple[str, str]]) -> Check:
    """`sides`: of a link the step that has a neighbour on this side, and the neighbour."""
    inside = {node for link in plan.links for node, other in (sides(link),) if node in plan.titles and other in plan.titles}
    ids = {step["node"]: step["task_id"] for step in plan.tasks}
    ends = [node for node in plan.titles if node not in inside]
    if not found:
        return Check(name, None, "history has no case with steps")
    shares = {node: sum(task == ids[node] for task in found) / len(found) for node in ends}
    said = ", ".join(f"{plan.titles[node]} ({share:.0%} of cases)" for node, share in shares.items())
    return Check(name, bool(shares) and all(share >= LEAST_SHARE for share in shares.values()), said or "the plan has no step")


def _pairs(plan: Plan, history: Iterable[Sequence[str]]) -> Check:
    seen = {pair for case in history for pair in pairwise(case)}
    ids = {step["node"]: step["task_id"] for step in plan.tasks}
    pairs = [link for link in plan.links if link["src"] in ids and link["dst"] in ids]
    unseen = [link for link in pairs if (ids[link["src"]], ids[link["dst"]]) not in seen]
    odd = [link for link in unseen if link["origin"] not in EXPLAINED]
    words = [f"{plan.titles[a['src']]} → {plan.titles[a['dst']]} ({a['origin']})" for a in (odd or unseen)]
    told = f"; {'not ' if odd else ''}explained: {', '.join(words)}" if words else ""
    return Check("consecutive pairs seen or explained", not odd, f"{len(pairs) - len(unseen)} of {len(pairs)} pairs seen{told}")


def _no_outcome(plan: Plan) -> Check:
    kinds = {step["node"]: plan.kinds.get(step["task_id"]) for step in plan.tasks}
    wrong = [f"{title} ({kinds[node]})" for node, title in plan.titles.items() if kinds[node] not in (None, "step")]
    steps = [title for node, title in plan.titles.items() if kinds[node] in (None, "step")]
    wrong += [f"{title} (by its name)" for title in steps if _REFUSED.search(title)]
    return Check("no rejection, outcome or event among the steps", not wrong, ", ".join(wrong) or "none")


def _no_idle(plan: Plan) -> Check:
    done = {task for case in plan.near if case["success"] is not False for task in case["tasks"] or ()}
    idle = [plan.titles[step["node"]] for step in plan.tasks if step["task_id"] not in done and step["origin"] not in ("new", "decision")]
    if not plan.near:
        return Check("no idle step", None, "no case is near")
    said = f"no near case did: {', '.join(idle)}" if idle else f"near cases ({len(plan.near)}) did every step"
    return Check("no idle step", not idle, said)


def _evidence(plan: Plan) -> Check:
    similar = sum(case["success"] is not False and (case["similarity"] or 0.0) >= NEAR for case in plan.near)
    verdict = plan.head["verdict"]
    said = f"{verdict or 'no verdict'}, {similar} similar cases that did not fail"
    return Check('no "clear" on thin evidence', verdict != "clear" or similar >= LEAST_SIMILAR, said)


def node_f1(plan: Plan, done: Sequence[str], names: Callable[[str], Iterable[str]]) -> float | None:
    """F1 of the sets of activities against what was really done; `names`: the raw names of a task. None where that is not known."""
    if not done:
        return None
    wanted = set(done)
    given = {next((name for name in names(step["task_id"]) if name in wanted), step["title"]) for step in plan.tasks}
    return 2 * len(given & wanted) / (len(given) + len(wanted))

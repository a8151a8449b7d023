"""Checks what must hold for every first plan of the gallery, from the rows of the lake alone.

It calls no code of generation.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

LEAST_END = 0.1  # of the cases with a task, those that begin (or end) with it, from which a plan may begin (or end) so
LEAST_DONE = 0.1  # of the similar cases, those that did a step: below, the step is idle
# of the cases with two tasks, those that do them in the plan's order: below, the plan has them the wrong way round
LEAST_ORDER = 0.1
LEAST_SUCCESSES = 10  # similar cases that succeeded, below which a verdict may not be "clear"
FEW = 10  # similar cases below which the most similar ones count, however unlike they are
NEAR = 0.5  # similarity from which a case is similar
Pair = tuple[str, str]
_REFUSED = re.compile(
    r"\b(reject\w*|declin\w*|denied|refus\w*|cancel\w*|nok|abgelehnt|storniert|geweigerd|geannuleerd|afgewezen)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Check:
    """One invariant: `holds` None where it cannot be told, `said` why."""

    name: str
    holds: bool | None
    said: str


@dataclass(frozen=True)
class Case:
    """A case of history.

    `before`: the positions that each task directly follows, because a flow or a model need not be a sequence.
    """

    tasks: Sequence[str]
    before: Sequence[Sequence[int]]
    success: bool | None = None
    similarity: float = 0.0
    has_ended: bool = True

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Case":
        """A row of wkg/cases, with the similarity to an intake where it is near one."""
        tasks, known = row["tasks"] or [], row.get("task_predecessors") or []
        before = [known[n] if n < len(known) and known[n] is not None else [n - 1] * (n > 0) for n in range(len(tasks))]
        ended = row.get("p_ended")
        return cls(tasks, before, row.get("success"), row.get("similarity") or 0.0, ended is None or ended >= 0.5)

    @cached_property
    def pairs(self) -> set[Pair]:
        """What directly follows what."""
        return {(self.tasks[b], self.tasks[n]) for n, before in enumerate(self.before) for b in before}

    @cached_property
    def first(self) -> set[str]:
        """Tasks that follow none."""
        return {task for task, before in zip(self.tasks, self.before, strict=True) if not before}

    @cached_property
    def last(self) -> set[str]:
        """Tasks that none follows."""
        followed = {b for before in self.before for b in before}
        return {task for n, task in enumerate(self.tasks) if n not in followed}

    def only(self, is_kept: Callable[[str], bool]) -> "Case":
        """Without the other tasks: what follows one of them follows what that one followed."""
        kept = [n for n, task in enumerate(self.tasks) if is_kept(task)]
        place = {n: i for i, n in enumerate(kept)}
        reached: dict[int, set[int]] = {}
        for n, before in enumerate(self.before):
            reached[n] = {m for b in before for m in ([b] if b in place else reached.get(b, ()))}
        return replace(
            self, tasks=[self.tasks[n] for n in kept], before=[sorted(place[m] for m in reached[n]) for n in kept]
        )

    def has_in_order(self, one: str, other: str) -> bool | None:
        """Whether it first does the one before it first does the other; None where it lacks one."""
        return self.tasks.index(one) < self.tasks.index(other) if {one, other} <= set(self.tasks) else None


@dataclass(frozen=True)
class Plan:
    """A rank-1 workflow.

    `head`, `steps`, `links`, `flow`: its rows of workflows/optimized, tasks, edges and expected_flow; `kinds`: the
    activity kind by task id; `history`: every case; `near`: the similar cases; `printed`: the output of `opus best` and
    `opus explain`.
    """

    head: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]
    links: Sequence[Mapping[str, Any]]
    flow: Sequence[Mapping[str, Any]]
    kinds: Mapping[str, str | None]
    history: Sequence[Case]
    near: Sequence[Case]
    printed: Mapping[str, str] = field(default_factory=dict)

    @property
    def tasks(self) -> list[Mapping[str, Any]]:
        """Its tasks, reviews not among them."""
        return [step for step in self.steps if step["kind"] == "task"]

    @property
    def titles(self) -> dict[str, str]:
        """Title by task."""
        return {step["task_id"]: step["title"] or step["task_id"] for step in self.tasks}

    @property
    def similar(self) -> list[Case]:
        """The near cases that are really similar; where these are few, the nearest few."""
        ranked = sorted(self.near, key=lambda case: -case.similarity)
        return ranked[: max(FEW, sum(case.similarity >= NEAR for case in ranked))]

    @cached_property
    def work(self) -> dict[Pair, str]:
        """Which task directly follows which, with the origin of the link; a review between them is passed over."""
        ids = {step["node"]: step["task_id"] for step in self.tasks}
        onward: dict[str, list[Mapping[str, Any]]] = {}
        for link in self.links:
            onward.setdefault(link["src"], []).append(link)

        def reached(node: str) -> Iterable[str]:
            if node in ids:
                return [ids[node]]
            return [task for link in onward.get(node, []) for task in reached(link["dst"])]

        return {
            (ids[link["src"]], task): link["origin"]
            for link in self.links
            if link["src"] in ids
            for task in reached(link["dst"])
        }

    @cached_property
    def expected(self) -> list[str]:
        """Steps and events in the order in which they are expected."""
        places = {row[f"{side}"]: row[f"{side}_place"] for row in self.flow for side in ("src", "dst")}
        return sorted(places, key=lambda task: places[task])

    def is_step(self, task: str) -> bool:
        """Whether a task is work."""
        return self.kinds.get(task) in (None, "step")


def checks(plan: Plan) -> list[Check]:
    """Every invariant."""
    return [
        _ends("starts where history does", plan, lambda case: case.first, 0),
        _ends("ends where history does", plan, lambda case: case.last, 1),
        _pairs(plan),
        _no_outcome(plan),
        _no_idle(plan),
        _evidence(plan),
        _assumed(plan),
        _unfounded(plan),
    ]


def _ends(name: str, plan: Plan, ends: Callable[[Case], set[str]], side: int) -> Check:
    """Checks that similar cases begin and end with the steps at the two ends, and with the events expected there.

    A step from which a return to earlier work is expected is no end.
    """
    cases = [case for case in plan.similar if case.has_ended]
    steps = set(plan.titles) - {pair[1 - side] for pair in plan.work}
    returns = {row["src"] for row in plan.flow if row["dst_place"] < row["src_place"]} if side else set()
    whole = [case for case in plan.history if case.has_ended]

    def share(task: str, is_kept: Callable[[str], bool]) -> float | None:
        """Of the similar cases with a task; where they are few, of all; where these are few, it cannot be told."""
        of = next((of for of in (cases, whole) if sum(task in case.tasks for case in of) >= FEW), ())
        return _share(task, [case.only(is_kept) for case in of], ends)

    shares = {task: share(task, plan.is_step) for task in sorted(steps)}
    if plan.expected:
        outermost = plan.expected[-1 if side else 0]
        shares |= {outermost: share(outermost, lambda task: True)} if outermost not in steps else {}
    if not shares:
        return Check(name, False, "the plan has no step")
    titles = _names(plan)
    back = {task: ", and returns to earlier work are expected" if task in returns else "" for task in shares}
    unknown = f"fewer than {FEW} cases with it have ended"
    words = {
        t: unknown if part is None else f"{part:.0%} of the cases with it do{back[t]}" for t, part in shares.items()
    }
    said = ", ".join(f"{titles.get(task, task)} ({known})" for task, known in words.items())
    known = [part for task, part in shares.items() if part is not None and not back[task]]
    return Check(name, min(known) >= LEAST_END if known else True if returns & set(shares) else None, said)


def _share(task: str, cases: Iterable[Case], ends: Callable[[Case], set[str]]) -> float | None:
    """Of the cases with a task, the share of those that have it at an end."""
    found = [task in ends(case) for case in cases if task in case.tasks]
    return sum(found) / len(found) if found else None


def _pairs(plan: Plan) -> Check:
    """Checks that every pair of steps was observed, or is explained otherwise.

    Events may lie between. A person, a new step or a majority of cases explains a pair. What is expected to happen must
    have been observed, events included.
    """
    name = "consecutive pairs seen or explained"
    whole = {pair for case in plan.history for pair in case.pairs}
    seen = whole | {pair for case in plan.history for pair in case.only(plan.is_step).pairs}
    titles, new = _names(plan), {step["task_id"] for step in plan.tasks if step["origin"] in ("new", "decision")}
    odd, told = [], []
    for (a, b), origin in plan.work.items():
        words = f"{titles[a]} → {titles[b]}"
        orders = [found for case in plan.history if (found := case.has_in_order(a, b)) is not None]
        before = sum(orders) / len(orders) if orders else None
        if origin == "decision" or {a, b} & new:
            told.append(f"{words} (a person or the procedure)")
        elif before is not None and before < LEAST_ORDER:
            odd.append(f"{words} ({before:.0%} of the cases with both have this order)")
        elif (a, b) not in seen and (origin != "dependency" or before is None or before < 0.5):
            odd.append(f"{words} ({origin}, never seen)")
        elif (a, b) not in seen:
            told.append(f"{words} (a wait: {before:.0%} of the cases with both have this order)")
    for row in plan.flow:
        pair = row["src"], row["dst"]
        if pair not in whole and pair not in plan.work:
            odd.append(f"expected {titles.get(pair[0], pair[0])} → {titles.get(pair[1], pair[1])} (never seen)")
    counted = f"{sum(pair in seen for pair in plan.work)} of {len(plan.work)} pairs of steps seen"
    parts = [
        counted,
        *([f"not explained: {', '.join(odd)}"] if odd else []),
        *([f"explained: {', '.join(told)}"] if told else []),
    ]
    return Check(name, not odd, "; ".join(parts))


def _no_outcome(plan: Plan) -> Check:
    wrong = [f"{title} ({plan.kinds[task]})" for task, title in plan.titles.items() if not plan.is_step(task)]
    wrong += [
        f"{title} (by its name)" for task, title in plan.titles.items() if plan.is_step(task) and _REFUSED.search(title)
    ]
    titles, ids = _names(plan), set(plan.titles)
    wrong += [
        f"{titles.get(t, t)} (expected, an outcome)"
        for t in plan.expected
        if plan.kinds.get(t) == "outcome" and t not in ids
    ]
    return Check("no rejection, outcome or event among the steps", not wrong, ", ".join(wrong) or "none")


def _no_idle(plan: Plan) -> Check:
    """Checks that enough of the similar cases executed every step.

    Only cases count of which this is known: an open case may still execute it. Where these are few, the check has no
    result.
    """
    name, cases = "no idle step", [case for case in plan.similar if case.success is not False]
    known = {step["task_id"] for step in plan.tasks if step["origin"] not in ("new", "decision")}
    told = {
        task: [task in case.tasks for case in cases if case.has_ended or task in case.tasks]
        for task in plan.titles
        if task in known
    }
    shares = {task: sum(done) / len(done) for task, done in told.items() if len(done) >= FEW}
    idle = [f"{plan.titles[task]} ({share:.0%})" for task, share in shares.items() if share < LEAST_DONE]
    ids = [step["task_id"] for step in plan.tasks]
    idle += [f"{plan.titles[task]} (twice)" for task in plan.titles if ids.count(task) > 1]
    if idle:
        return Check(name, False, f"of {len(cases)} similar cases did: {', '.join(idle)}")
    if len(shares) < len(told):
        return Check(
            name, None, f"of {len(told) - len(shares)} steps fewer than {FEW} similar cases tell whether they are done"
        )
    return Check(
        name,
        True,
        f"every step was done by at least {min(shares.values(), default=0):.0%} of {len(cases)} similar cases",
    )


def _evidence(plan: Plan) -> Check:
    like = [case for case in plan.near if case.similarity >= NEAR]
    succeeded, verdict = sum(case.success is True for case in like), plan.head["verdict"]
    said = f"{verdict or 'no verdict'}; {len(like)} similar cases, of which {succeeded} are known to have succeeded"
    return Check('no "clear" on thin evidence', verdict != "clear" or succeeded >= LEAST_SUCCESSES, said)


def _assumed(plan: Plan) -> Check:
    """Checks that each total states its assumed share and its number of unknown steps, wherever a person reads it."""
    name, head = "assumed share shown", plan.head
    wanted = [
        f"{100 * head[c]:.1f} % assumed"
        for c in ("cost_assumed_share", "duration_assumed_share")
        if head[c] is not None
    ]
    wanted += [
        f"{n} step{'s' * (n != 1)} unknown" for c in ("cost_unknown_steps", "duration_unknown_steps") if (n := head[c])
    ]
    if head["success_probability"] is not None and (n := head["success_unknown_steps"]):
        wanted.append(f"{n} step{'s' * (n != 1)} assumed")
    wanted = list(dict.fromkeys(wanted))
    missing = [
        f"{where} does not say {words!r}"
        for where, text in plan.printed.items()
        for words in wanted
        if words not in text
    ]
    if not plan.printed or head["observed_share"] is None:
        return Check(
            name, False, "nothing is printed of it" if not plan.printed else "its share of observed figures is unknown"
        )
    return Check(name, not missing, "; ".join(missing or [f"{', '.join(wanted) or 'nothing is assumed'}"]))


def _unfounded(plan: Plan) -> Check:
    """Checks that no figure is shown where nothing was observed or stated.

    That is a success of priors, a cost or time of unknown steps, or a Reward without a stated gain.
    """
    work, head = [step for step in plan.steps if step["kind"] in ("task", "review")], plan.head
    wrong = []
    if head["success_probability"] is not None and all(step["p_basis"] == "prior" for step in work):
        wrong.append(f"success {head['success_probability']:.3f} of priors alone")
    for column, basis in (("cost_usd", "cost_basis"), ("duration_ms", "duration_basis")):
        if head[column] is not None and all(step[basis] is None for step in work):
            wrong.append(f"{column} {head[column]:g} of unknown steps")
    if head["reward_usd"] is not None and head.get("gain_basis") == "prior":
        wrong.append(f"Reward {head['reward_usd']:.2f} although no gain is stated")
    untimed = {step["node"] for step in work if step["duration_basis"] is None}
    begun = {step["node"] for step in plan.steps if step["start_ms"] is not None}
    wrong += [
        "a start behind a step of unknown time"
        for link in plan.links
        if link["src"] in untimed and link["dst"] in begun
    ][:1]
    return Check("no figure without evidence", not wrong, ", ".join(wrong) or "none")


def _names(plan: Plan) -> dict[str, str]:
    """Titles of steps, and the raw keys of what is expected between them."""
    return {row[side]: row[f"{side}_task_key"] for row in plan.flow for side in ("src", "dst")} | plan.titles


def node_f1(plan: Plan, done: Sequence[str], names: Callable[[str], Iterable[str]]) -> float | None:
    """Returns the F1 of the predicted activities, events included, against what really happened.

    `names`: the raw names of a task. Returns None where it is not known what happened.
    """
    if not done:
        return None
    wanted, titles = set(done), _names(plan)
    given = {next((name for name in names(task) if name in wanted), titles[task]) for task in titles}
    return 2 * len(given & wanted) / (len(given) + len(wanted))

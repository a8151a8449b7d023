"""Rules that name their steps bind before drafting: sequences get the demanded steps, the order, and lose the rest.

A procedure wins over history: a step that it demands for the request is in the sequences though similar cases did not
do it, and a step that it rules out is in none though they did. What differs from history is said with the rule.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from opus_pipelines.generation.records import GenerationContext, Request, Retrieved
from opus_pipelines.generation.refusals import wanted_hours
from opus_pipelines.intakes.elements import Element
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.interface import SimilarCase, TaskSequence
from opus_pipelines.lwm.precedence import Pair
from opus_pipelines.lwm.retrieval.completeness import CRITICAL_SUPPORT
from opus_pipelines.lwm.retrieval.named_rules import (
    LISTED,
    REPLACED,
    REQUESTED,
    NamedRule,
    named_rules,
    requested_steps_of,
)
from opus_pipelines.lwm.retrieval.rule_constraints import IN_FORCE, IntakeStatements, ResolvedRule, RuleConstraints
from opus_pipelines.lwm.retrieval.unknown_steps import UnknownStep
from opus_pipelines.lwm.stitching import IndustryCounts
from opus_pipelines.wkg.graph import WorkGraph

PROCEDURE = "procedure"  # the source of a sequence with what a procedure demands
ONLY_BEHIND = 0.95  # share of the cases with a step that did another one before it, from which it falls with that one
NOT_LISTED = "the request lists the steps that it wants, and this one is not among them"
MOSTLY = 0.5  # share of the similar cases from which they mostly did something


@dataclass(frozen=True)
class Bound:
    """What the rules that hold demand of each workflow for one Intention."""

    rules: tuple[NamedRule, ...] = ()

    @property
    def demanded(self) -> frozenset[str]:
        """Steps that a workflow must have."""
        return frozenset(rule.tasks[0] for rule in self.rules if rule.kind == "must_contain")

    @property
    def forbidden(self) -> frozenset[str]:
        """Steps that it must not have."""
        return frozenset(rule.tasks[0] for rule in self.rules if rule.kind == "must_not_contain")

    @property
    def order(self) -> list[Pair]:
        """Pairs of steps of which the first comes first."""
        return [(rule.tasks[0], rule.tasks[1]) for rule in self.rules if rule.kind == "before"]

    def ruled_out(self, counts: IndustryCounts) -> frozenset[str]:
        """Returns what must not be done, and what history does only behind it.

        What a step is replaced by takes its place, so that nothing falls away with it.
        """
        ends = {r.tasks[0] for r in self.rules if r.kind == "must_not_contain" and r.held != REPLACED}
        done = dict(zip(counts.tasks, counts.did.sum(0).tolist(), strict=True))
        behind = {
            task
            for task, n in done.items()
            if n and any(counts.before.get((end, task), 0) >= ONLY_BEHIND * n for end in ends)
        }
        onward = set(self.demanded)  # the work goes on behind another step
        while later := {then for first, then in self.order if first in onward} - onward - self.forbidden:
            onward |= later
        return self.forbidden | (behind - self.demanded - onward)

    def critical(self, groups: Iterable[frozenset[str]], counts: IndustryCounts) -> list[frozenset[str]]:
        """Returns the groups of critical tasks with what is demanded, and without what is ruled out."""
        gone = self.ruled_out(counts) if self.rules else frozenset[str]()
        left = [group - gone for group in groups]
        return sorted({*filter(None, left), *(frozenset({task}) for task in self.demanded)}, key=sorted)


NOTHING_BOUND = Bound()


def bound_rules(
    request: Request,
    cases: Sequence[SimilarCase],
    critical: Iterable[frozenset[str]],
    unknown: Sequence[UnknownStep],
    context: GenerationContext,
) -> Bound:
    """Returns the rules of the intake's procedures that name steps and hold for the request.

    The steps that history lacks are demanded. A step whose condition the request does not state stays where most
    similar cases did it, or outcomes need it.
    """
    intake = request.intake
    if intake.industry is None:
        return NOTHING_BOUND
    tasks = context.index.graph.tasks
    titles = {
        task: known.title
        for task, known in tasks.items()
        if intake.industry in known.industries and task not in context.index.passive
    }
    if context.catalogue is not None:
        tools = context.catalogue.resolved(intake.industry).by_name.values()
        titles |= {tool.task_id: tool.title for tool in tools if not tool.is_known}
    titles |= {step.task.task_id: step.task.title for step in unknown}
    times = {task: tasks[task].implementations for task in titles if task in tasks}
    inputs = None if request.is_only else [sentence.text for sentence in request.intention.decoded.inputs]
    asked = IntakeStatements.of(intake, inputs).request_text
    shares, needed = _shares(cases), frozenset[str]().union(*critical)
    wanted = requested_steps_of(intake.elements, titles) if request.is_only else []
    named = {rule.tasks[0] for rule in wanted}
    found = [
        *wanted,
        *(rule for step in unknown for rule in step.rules),
        *(
            r
            for r in named_rules(intake.elements, titles, asked, times)
            if not (r.is_usual_only and r.tasks[0] in named)
        ),
    ]
    kept = [r for r in found if not (r.is_usual_only and _is_otherwise(r, cases, shares, needed))]
    kept += _beyond_the_list(wanted, kept, sorted(t for t in titles if shares.get(t) or t in needed))
    if intake.gain_usd is not None:  # the Reward decides in which order
        kept = [rule for rule in kept if rule.held != LISTED]
    return Bound(tuple(_without_contradictions(kept)))


def _beyond_the_list(wanted: Sequence[NamedRule], rules: Sequence[NamedRule], done: Sequence[str]) -> list[NamedRule]:
    """Returns rules against the steps that a request does not list, where it lists those that it wants.

    What a procedure demands for the request stays.
    """
    order = next((rule for rule in wanted if rule.kind == "before"), None)
    if order is None:
        return []
    asked = {t for rule in wanted for t in rule.tasks} | {r.tasks[0] for r in rules if r.kind == "must_contain"}
    return [replace(order, kind="must_not_contain", tasks=(t,), held=NOT_LISTED) for t in done if t not in asked]


def _is_otherwise(
    rule: NamedRule, cases: Sequence[SimilarCase], shares: Mapping[str, float], needed: frozenset[str]
) -> bool:
    """Tells whether similar cases decide against a rule that is only usual."""
    if rule.kind == "before":
        turned = _share_turned(rule.tasks, cases)
        return turned is None or turned >= CRITICAL_SUPPORT
    return shares.get(rule.tasks[0], 0.0) >= CRITICAL_SUPPORT or rule.tasks[0] in needed


def _share_turned(pair: Sequence[str], cases: Sequence[SimilarCase]) -> float | None:
    """Returns the share of the similar cases with both tasks, which did not fail, that did the second one first.

    Returns None where no case has both.
    """
    first, second = pair
    both = [c.tasks for c in cases if c.success is not False and first in c.tasks and second in c.tasks]
    return sum(tasks.index(second) < tasks.index(first) for tasks in both) / len(both) if both else None


def _without_contradictions(rules: Sequence[NamedRule]) -> list[NamedRule]:
    """Returns the rules without those that say the contrary of one before them, or of several orders before them."""
    kept: list[NamedRule] = []
    contrary = {"must_contain": "must_not_contain", "must_not_contain": "must_contain"}
    behind: dict[str, set[str]] = {}  # by step all that comes behind it
    for rule in rules:
        if rule.kind == "before":
            first, then = rule.tasks
            if first in behind.get(then, ()):
                continue
            later = {then, *behind.get(then, ())}
            for task in [first, *(t for t, after in behind.items() if first in after)]:
                behind.setdefault(task, set()).update(later)
            kept.append(rule)
        elif not any(other.kind == contrary.get(rule.kind) and other.tasks == rule.tasks for other in kept):
            kept.append(rule)
    return kept


def _shares(cases: Sequence[SimilarCase]) -> dict[str, float]:
    """Returns by task the share of the similar cases that did not fail, by weight, that did it."""
    followed = [case for case in cases if case.success is not False]
    total = sum(case.weight for case in followed)
    shares: dict[str, float] = {}
    for case in followed:
        for task in set(case.tasks):
            shares[task] = shares.get(task, 0.0) + case.weight / total
    return shares


def with_bound(
    written: Sequence[TaskSequence], bound: Bound, counts: IndustryCounts, graph: WorkGraph, like: Mapping[str, str]
) -> list[TaskSequence]:
    """Returns the sequences with a version of each that keeps the rules, where it does not keep them itself.

    Of a step that no successful case did, the edges of the graph tell what it follows. A step that history lacks goes
    where the known task goes that is `like` it, and several such steps in the order of their sentences.
    """
    if not bound.rules:
        return list(written)
    gone, unknown = bound.ruled_out(counts), bound.demanded - set(counts.tasks)
    before = dict(counts.before)
    before |= {pair: edge.transitions for pair, edge in graph.edges.items() if not unknown.isdisjoint(pair)}
    for new, old in like.items():
        before |= {(a, new): n for (a, b), n in counts.before.items() if b == old}
        before |= {(new, b): n for (a, b), n in counts.before.items() if a == old}
    before |= dict.fromkeys(combinations(like, 2), 1)
    known = {sequence.tasks for sequence in written}
    repaired: dict[tuple[str, ...], TaskSequence] = {}
    for sequence in written:
        tasks = keeping([t for t in first_occurrences(sequence.tasks) if t not in gone], bound, before)
        if tasks and tasks not in known:
            repaired.setdefault(tasks, replace(sequence, tasks=tasks, source=PROCEDURE))
    return [*written, *repaired.values()]


def keeping(tasks: Sequence[str], bound: Bound, before: Mapping[Pair, int]) -> tuple[str, ...]:
    """Returns a sequence without ruled out steps so that it keeps the rules: with what is demanded, in order."""
    kept = list(tasks)
    for task in sorted(bound.demanded - set(kept), key=lambda t: [r.tasks[0] for r in bound.rules].index(t)):
        kept.insert(_place(task, kept, bound.order, before), task)
    for _ in range(len(bound.order)):  # a move may undo an earlier one
        for first, second in bound.order:
            if first in kept and second in kept and kept.index(first) > kept.index(second):
                kept.remove(first)
                kept.insert(kept.index(second), first)
    return tuple(kept)


def _place(task: str, kept: Sequence[str], order: Collection[Pair], before: Mapping[Pair, int]) -> int:
    """Returns the place of a step at which the fewest cases, and no rule, have it the other way round.

    A step of which neither tells comes before the last one.
    """
    if not kept:
        return 0

    def against(first: str, second: str) -> float:
        if (second, first) in order:
            return 1_000.0
        one, other = before.get((first, second), 0), before.get((second, first), 0)
        return other / (one + other) if one + other else 0.0

    costs = [
        sum(against(other, task) for other in kept[:place]) + sum(against(task, other) for other in kept[place:])
        for place in range(len(kept) + 1)
    ]
    least = min(costs)
    places = [place for place, cost in enumerate(costs) if cost <= least + 1e-9]
    return places[-1] if places[-1] < len(kept) or len(places) == 1 else places[-2]


def with_rules(
    rules: RuleConstraints, bound: Bound, retrieved: Retrieved, titles: Mapping[str, str]
) -> RuleConstraints:
    """Returns the constraints with the bound rules in force; they replace demands that were read of the same steps."""
    if not bound.rules:
        return rules
    cases = retrieved.processes[0].cases
    own = [_resolved(rule, cases, titles) for rule in bound.rules if titles.keys() >= set(rule.tasks)]
    stated = rules.constraints
    opposite = {("must_not_contain", t) for t in bound.demanded} | {("must_contain", t) for t in bound.forbidden}
    read = [r for r in rules.rules if not (r.is_in_force and r.tasks and (r.kind, r.tasks[0]) in opposite)]
    gone = {titles.get(t) for t in bound.forbidden}
    return RuleConstraints(
        stated.model_copy(
            update={
                "must_contain": tuple(name for name in stated.must_contain if name not in gone),
                "must_not_contain": _joined(stated.must_not_contain, own, "must_not_contain"),
                "before": tuple(
                    dict.fromkeys(
                        (*stated.before, *((titles[a], titles[b]) for a, b in bound.order if {a, b} <= titles.keys()))
                    )
                ),
                "deadlines": tuple(d for d in stated.deadlines if d.step not in gone),
            }
        ),
        (*read, *own),
    )


def with_wanted_time(rules: RuleConstraints, elements: Sequence[Element]) -> RuleConstraints:
    """Returns the constraints with the time within which the request wants to be done; a stated or read one decides."""
    wanted = wanted_hours(elements)
    if wanted is None or rules.constraints.max_lead_time_hours is not None:
        return rules
    value, sentence, document = wanted
    kind, place = "max_lead_time_hours", f"{document}, {sentence.place}"
    own = ResolvedRule(kind, f"{value:g}", IN_FORCE, place, sentence.text, sentence.element_id, why=REQUESTED)
    return RuleConstraints(rules.constraints.model_copy(update={kind: value}), (*rules.rules, own))


def _joined(stated: Sequence[str], own: Sequence[ResolvedRule], kind: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*stated, *(rule.value for rule in own if rule.kind == kind))))


def _resolved(rule: NamedRule, cases: Sequence[SimilarCase], titles: Mapping[str, str]) -> ResolvedRule:
    names = [titles[task] for task in rule.tasks]
    value = " before ".join(names)
    return ResolvedRule(
        rule.kind,
        value,
        IN_FORCE,
        rule.place,
        rule.sentence.text,
        rule.sentence.element_id,
        rule.tasks,
        why=rule.held or None,
        differs=difference_from_history(rule, cases, names),
    )


def difference_from_history(rule: NamedRule, cases: Sequence[SimilarCase], names: Sequence[str]) -> str | None:
    """Returns how most similar cases did it otherwise, None where they did it so."""
    followed = [case for case in cases if case.success is not False and case.tasks]
    if rule.kind == "before":
        share = _share_turned(rule.tasks, followed)
        if share is None:
            return f"no similar case did both {names[0]!r} and {names[1]!r}"
        return f"{share:.0%} of the similar cases did it the other way round" if share >= MOSTLY else None
    did = sum(rule.tasks[0] in case.tasks for case in followed) / len(followed) if followed else 0.0
    if rule.kind == "must_contain" and did < MOSTLY:
        return f"{did:.0%} of the similar cases did {names[0]!r}"
    return f"{did:.0%} of the similar cases did it" if rule.kind == "must_not_contain" and did >= MOSTLY else None

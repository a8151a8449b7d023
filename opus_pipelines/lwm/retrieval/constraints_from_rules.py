"""The constraints of the search: what settings state, and what process and contract documents demand.

Stated constraints (contract.toml, intake.toml) override what is read. Sentences of process and contract documents bind
where they concern the work (`intakes.requirements.rules`) and can be resolved (`lwm.retrieval.constraint_resolution`).
The client input and the wanted output set no constraint.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.intakes.requirements.rules import Rule
from opus_pipelines.lwm.retrieval.constraint_resolution import (
    CHOICES,
    IN_FORCE,
    LIMITS,
    STATED,
    ConstraintResolution,
    Pair,
    ResolutionContext,
    ResolvedRule,
    deadline_of,
)
from opus_pipelines.workflow.constraints import Constraints, folded


@dataclass(frozen=True)
class RuleConstraints:
    """The constraints in force, and every stated or read rule with its effect."""

    constraints: Constraints
    rules: tuple[ResolvedRule, ...] = ()

    def precedence(self, stable: frozenset[Pair]) -> frozenset[Pair]:
        """Return the demanded precedence, and the stable precedence that does not contradict it."""
        demanded = {
            (d.tasks[0], d.tasks[1]) for d in self.rules if d.is_in_force and d.kind == "before" and len(d.tasks) == 2
        }
        return frozenset({(a, b) for a, b in stable if (b, a) not in demanded} | demanded)

    @property
    def not_applied(self) -> int:
        """Return the number of sentences and stated constraints that may concern this intake and have no effect."""
        in_force = {(d.sentence or d.value, d.place) for d in self.rules if d.is_in_force}
        left = {(d.sentence or d.value, d.place) for d in self.rules if d.status == "not applied"}
        return len(left - in_force)

    def with_source(self, violation: str) -> str:
        """Return a violation with the place of the sentence that it violates, where one was read."""
        kind, _, rest = violation.partition(": ")
        for rule in self.rules:
            if rule.is_in_force and rule.sentence and rule.kind == kind and (kind in LIMITS or _names(rule, rest)):
                return f"{violation} ({rule.place})"
        return violation


def rule_constraints(rules: Sequence[Rule], context: ResolutionContext) -> RuleConstraints:
    """Resolve every demand of the rules, and merge the result with the stated constraints."""
    read = ConstraintResolution(context).resolve(rules)
    return RuleConstraints(_merged(context, read), (*_stated(context), *read))


def _names(rule: ResolvedRule, text: str) -> bool:
    if rule.kind == "deadlines":
        return text.startswith(f"{rule.value}:")
    return all(repr(name) in text for name in rule.value.split(" or " if rule.kind in CHOICES else " before "))


def _merged(context: ResolutionContext, read: Sequence[ResolvedRule]) -> Constraints:
    """Return the stated constraints and the read ones in force; of several limits, the tightest."""
    stated = context.intake.constraints
    new: dict[str, object] = {}

    def title(task: str) -> str:
        return context.matcher.graph.tasks[task].title

    for kind, tightest in LIMITS.items():
        values = [float(d.value) for d in read if d.is_in_force and d.kind == kind]
        if values:
            new[kind] = tightest(values)
    for kind in ("must_contain", "must_not_contain"):
        names = [title(d.tasks[0]) for d in read if d.is_in_force and d.kind == kind]
        new[kind] = tuple(dict.fromkeys((*getattr(stated, kind), *names)))
    orders = [(title(d.tasks[0]), title(d.tasks[1])) for d in read if d.is_in_force and d.kind == "before"]
    new["before"] = tuple(dict.fromkeys((*stated.before, *orders)))
    for kind in CHOICES:
        groups = [tuple(map(title, d.tasks)) for d in read if d.is_in_force and d.kind == kind]
        new[kind] = tuple(dict.fromkeys((*getattr(stated, kind), *groups)))
    deadlines = [deadline_of(d.figure, *map(title, d.tasks)) for d in read if d.is_in_force and d.figure]
    new["deadlines"] = tuple(dict.fromkeys((*stated.deadlines, *deadlines)))
    return stated.model_copy(update={k: v for k, v in new.items() if v != getattr(stated, k)})


def _stated(context: ResolutionContext) -> list[ResolvedRule]:
    """Return the constraints of contract.toml and intake.toml as resolved rules.

    One that names a task which nobody knows holds for every workflow, because no workflow has that task; it is shown
    as not applied, for the task may be known by another name.
    """
    stated, names, tasks_by_id = context.intake.constraints, context.matcher.names, context.matcher.graph.tasks
    own = {folded(tasks_by_id[node.task_id].title) for node in context.wfg.nodes.values() if node.task_id}

    def effect(*tasks: str | None) -> str:
        unknown = [t for t in tasks if t and not names.tasks(t) and folded(t) not in own]
        return f"no task of history is called {unknown[0]!r}" if unknown else IN_FORCE

    rules = [
        ResolvedRule(k, f"{getattr(stated, k):g}", IN_FORCE, STATED) for k in LIMITS if getattr(stated, k) is not None
    ]
    rules += [
        ResolvedRule(k, name, effect(name), STATED)
        for k in ("must_contain", "must_not_contain")
        for name in getattr(stated, k)
    ]
    rules += [
        ResolvedRule(kind, " or ".join(group), IN_FORCE, STATED) for kind in CHOICES for group in getattr(stated, kind)
    ]
    rules += [
        ResolvedRule("deadlines", deadline.text, effect(deadline.step, deadline.after), STATED)
        for deadline in stated.deadlines
    ]
    for a, b in stated.before:
        ids = [sorted(names.tasks(n) & context.wfg.nodes.keys()) for n in (a, b)]
        tasks = (ids[0][0], ids[1][0]) if all(len(i) == 1 for i in ids) else ()
        rules.append(ResolvedRule("before", f"{a} before {b}", effect(a, b), STATED, tasks=tasks))
    return rules

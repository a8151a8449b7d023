"""Rules become constraints of the search: what process and contract documents demand, each with its sentence and its
place.

Who may set what: contract.toml and intake.toml win over everything read; sentences of process and contract documents
bind as far as they are about the work (`requirements.rules`) and take effect (`settling`); the client's input and the
wanted output set nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.requirements.rules import Rule
from opus_pipelines.retrieval.constraint_resolution import (
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
from opus_pipelines.workflow.constraints import Constraints


@dataclass(frozen=True)
class RuleConstraints:
    """The constraints in force, and every demand behind them or beside them."""

    constraints: Constraints
    rules: tuple[ResolvedRule, ...] = ()

    def precedence(self, settled: frozenset[Pair]) -> frozenset[Pair]:
        """History's settled order, where no demanded order contradicts it, and the demanded one."""
        demanded = {
            (d.tasks[0], d.tasks[1]) for d in self.rules if d.is_in_force and d.kind == "before" and len(d.tasks) == 2
        }
        return frozenset({(a, b) for a, b in settled if (b, a) not in demanded} | demanded)

    @property
    def not_applied(self) -> int:
        """How many sentences ask for something that no constraint in force expresses, though they may be about this
        intake.
        """
        held = {(d.sentence, d.place) for d in self.rules if d.is_in_force}
        return len({(d.sentence, d.place) for d in self.rules if d.sentence and d.status == "not applied"} - held)

    def with_source(self, violation: str) -> str:
        """A violation with the place of the sentence that it offends, where one was read."""
        kind, _, rest = violation.partition(": ")
        for found in self.rules:
            if found.is_in_force and found.sentence and found.kind == kind and (kind in LIMITS or _names(found, rest)):
                return f"{violation} ({found.place})"
        return violation


def rule_constraints(rules: Sequence[Rule], ground: ResolutionContext) -> RuleConstraints:
    """Every demand of the rules, settled in their order, the strong ones first."""
    read = ConstraintResolution(ground).resolve(rules)
    return RuleConstraints(_merged(ground, read), (*_stated(ground), *read))


def _names(found: ResolvedRule, said: str) -> bool:
    if found.kind == "deadlines":
        return said.startswith(f"{found.value}:")
    return all(repr(name) in said for name in found.value.split(" or " if found.kind in CHOICES else " before "))


def _merged(ground: ResolutionContext, read: Sequence[ResolvedRule]) -> Constraints:
    """The stated constraints and the read ones that hold; of several limits the tightest."""
    stated = ground.stated
    title = lambda task: ground.matcher.graph.tasks[task].title
    new: dict[str, object] = {}
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
    dues = [deadline_of(d.figure, *map(title, d.tasks)) for d in read if d.is_in_force and d.figure]
    new["deadlines"] = tuple(dict.fromkeys((*stated.deadlines, *dues)))
    return stated.model_copy(update={k: v for k, v in new.items() if v != getattr(stated, k)})


def _stated(ground: ResolutionContext) -> list[ResolvedRule]:
    """What contract.toml and intake.toml state, in the same form."""
    stated, names = ground.stated, ground.matcher.names
    found = [
        ResolvedRule(k, f"{getattr(stated, k):g}", IN_FORCE, STATED) for k in LIMITS if getattr(stated, k) is not None
    ]
    found += [
        ResolvedRule(k, name, IN_FORCE, STATED)
        for k in ("must_contain", "must_not_contain")
        for name in getattr(stated, k)
    ]
    found += [
        ResolvedRule(kind, " or ".join(group), IN_FORCE, STATED) for kind in CHOICES for group in getattr(stated, kind)
    ]
    found += [ResolvedRule("deadlines", due.words, IN_FORCE, STATED) for due in stated.deadlines]
    for a, b in stated.before:
        ids = [sorted(names.tasks(n) & ground.wfg.nodes.keys()) for n in (a, b)]
        tasks = (ids[0][0], ids[1][0]) if all(len(i) == 1 for i in ids) else ()
        found.append(ResolvedRule("before", f"{a} before {b}", IN_FORCE, STATED, tasks=tasks))
    return found

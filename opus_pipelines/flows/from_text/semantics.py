"""Whether two flows mean the same: exact match as text, up to variable names, and after relaxations that are named.

The relaxations are those of the normal form below; `relaxed_match` returns which of them a match needs, so that a
figure of the semantic reading always states what it forgave.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from opus_pipelines.flows.from_text.activities import ActivityCatalogue
from opus_pipelines.language.word_stems import stems
from opus_pipelines.workflow.blocks.expressions import Comparison, Expression, Literal, Not, Path, map_paths, negated
from opus_pipelines.workflow.blocks.model import (
    Block,
    Branch,
    Call,
    Flow,
    For,
    If,
    Statement,
    UserTask,
    While,
    expressions,
    map_expressions,
    map_statements,
    renamed,
    walk,
)

BINDINGS = "dead assignments and reused names"
OPERANDS = "order of operands"
TRUTH = "truth of a value"
SIDES = "branches swapped under the opposite condition"
VERSIONS = "versions of one activity"
TEXTS = "wording of user tasks"
RELAXATIONS = (BINDINGS, OPERANDS, TRUTH, SIDES, VERSIONS, TEXTS)


@dataclass(frozen=True)
class Match:
    """How a predicted flow matches the expected one. `relaxations` are those that the semantic match needs."""

    exact: bool
    alpha: bool
    semantic: bool
    relaxations: tuple[str, ...] = ()


def compare(
    predicted: Flow, expected: Flow, catalogue: ActivityCatalogue, alike: Callable[[str, str], bool] | None = None
) -> Match:
    """Compares two flows in the three readings of the specification 2.5.

    `alike` says whether two texts of user tasks mean the same; by default they must have the same stems.
    """
    exact = predicted == expected
    alpha = exact or renamed(predicted) == renamed(expected)
    if alpha:
        return Match(exact, True, True)
    needed = relaxed_match(predicted, expected, catalogue, alike or same_stems)
    return Match(False, False, needed is not None, needed or ())


def relaxed_match(
    predicted: Flow, expected: Flow, catalogue: ActivityCatalogue, alike: Callable[[str, str], bool]
) -> tuple[str, ...] | None:
    """Returns the relaxations that a match of the normal forms needs; None where all together do not suffice."""

    def equal(relaxations: set[str]) -> bool:
        return _equal(predicted, expected, relaxations, (catalogue, alike))

    if not equal(set(RELAXATIONS)):
        return None
    needed = set(RELAXATIONS)
    for relaxation in RELAXATIONS:
        if equal(needed - {relaxation}):
            needed.discard(relaxation)
    return tuple(sorted(needed))


def same_stems(one: str, other: str) -> bool:
    """Returns whether two texts have the same stems of words that carry meaning."""
    return set(stems(one)) == set(stems(other))


def merged_versions(catalogue: ActivityCatalogue) -> Mapping[str, str]:
    """Returns for each activity the first one of the same application, object and operation, whatever its version."""
    first: dict[tuple[str, str, str], str] = {}
    merged = {}
    for activity in catalogue.activities:
        if activity.application:
            tail = activity.id.rpartition("__")[2].lower()
            key = (activity.application.lower(), activity.object.lower(), tail)
            merged[activity.id] = first.setdefault(key, activity.id)
    return merged


def _equal(
    one: Flow,
    other: Flow,
    relaxations: set[str],
    means: tuple[ActivityCatalogue, Callable[[str, str], bool]],
) -> bool:
    catalogue, alike = means
    texts = [[s.text for s in walk(flow.body) if isinstance(s, UserTask)] for flow in (one, other)]
    if TEXTS in relaxations:
        if len(texts[0]) != len(texts[1]):
            return False
        if not all(mine == theirs or alike(mine, theirs) for mine, theirs in zip(texts[0], texts[1], strict=True)):
            return False
    merged = merged_versions(catalogue) if VERSIONS in relaxations else {}
    forms = [normal_form(flow, relaxations, merged) for flow in (one, other)]
    return forms[0] == forms[1]


def normal_form(flow: Flow, relaxations: set[str], merged: Mapping[str, str]) -> Flow:
    """Returns the normal form of a flow under the given relaxations; flows that mean the same become equal."""

    def change(statement: Statement) -> Statement:
        new = map_expressions(statement, lambda condition: _condition(condition, relaxations))
        if isinstance(new, Call):
            return replace(new, activity=merged.get(new.activity, new.activity))
        if isinstance(new, UserTask) and TEXTS in relaxations:
            return replace(new, text="")
        if isinstance(new, If) and SIDES in relaxations:
            return _with_plain_sides(new)
        return new

    changed = replace(flow, body=map_statements(flow.body, change))
    return replace(changed, body=_Bindings().block(changed.body)) if BINDINGS in relaxations else renamed(changed)


def _condition(condition: Expression, relaxations: set[str]) -> Expression:
    if isinstance(condition, Not):
        return Not(_condition(condition.operand, relaxations))
    if isinstance(condition, Comparison):
        left, right = condition.left, condition.right
        if OPERANDS in relaxations and condition.operator in ("==", "!=") and isinstance(left, Literal):
            left, right = right, left
        condition = replace(condition, left=left, right=right)
        is_truth = isinstance(right, Literal) and isinstance(right.value, bool) and condition.operator in ("==", "!=")
        if TRUTH in relaxations and is_truth and isinstance(left, Path) and isinstance(right, Literal):
            return left if right.value == (condition.operator == "==") else Not(left)
    return condition


def _with_plain_sides(statement: If) -> If:
    """Returns the `If` with a condition that is not negated, where it has one condition and an else."""
    if len(statement.branches) != 1 or not statement.orelse:
        return statement
    branch = statement.branches[0]
    opposed = isinstance(branch.condition, Not) or (
        isinstance(branch.condition, Comparison) and branch.condition.operator in ("!=", "not in", "<=", ">=")
    )
    if not opposed:
        return statement
    return If((Branch(negated(branch.condition), statement.orelse),), branch.body)


class _Bindings:
    """Gives each binding a name of its own and each read the name of the last binding before it, in order of reading.

    Variables that nothing reads get one common name, so that their names and their reuse do not count.
    """

    def __init__(self) -> None:
        self._count, self._names = 0, dict[str, str]()

    def block(self, block: Block) -> Block:
        return tuple(self._statement(statement) for statement in block)

    def _bind(self, variable: str) -> str:
        self._count += 1
        self._names[variable] = f"v{self._count}"
        return self._names[variable]

    def _read(self, expression: Expression) -> Expression:
        return map_paths(
            expression, lambda path: Path((self._names.get(path.parts[0], path.parts[0]), *path.parts[1:]))
        )

    def _statement(self, statement: Statement) -> Statement:
        if isinstance(statement, Call | UserTask):
            return replace(statement, variable=self._bind(statement.variable))
        if isinstance(statement, For):
            iterable = self._read(statement.iterable)
            variable = self._bind(statement.variable)
            return For(variable, iterable, self.block(statement.body))
        if isinstance(statement, If):
            conditions = [self._read(branch.condition) for branch in statement.branches]  # before any branch binds
            entry, found = dict(self._names), []
            for branch, condition in zip(statement.branches, conditions, strict=True):
                self._names = dict(entry)
                found.append(Branch(condition, self.block(branch.body)))
            after, self._names = self._names, dict(entry)
            orelse = self.block(statement.orelse)
            self._names = self._names if statement.orelse else after
            return If(tuple(found), orelse)
        if isinstance(statement, While):
            return While(self._read(statement.condition), self.block(statement.body))
        if expressions(statement):
            statement = map_expressions(statement, self._read)
        return statement

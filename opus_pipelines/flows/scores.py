"""Scores of flows against the flow that was expected: those of the block model, and those of flow documents.

Of the block model: exact match in three readings (specification 2.5), syntax, activities, edits. The relaxations of the
semantic reading are those of the normal form below; `relaxed_match` returns which of them a match needs, so that a
figure of the semantic reading always states what it forgave.

Of documents: FlowSim in two variants, TreeBLEU, trigger and component match (StarFlow's program), the same with
structure validation (2505.24189, appendix C), bag of steps, and the shares of steps and tables that are not in the
catalogue (2404.08189).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.documents import FlowDocument, json_of
from opus_pipelines.flows.enterprise.validation import structure_errors
from opus_pipelines.flows.from_text.activities import ActivityCatalogue
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.language.word_stems import stems
from opus_pipelines.workflow.blocks.expressions import Comparison, Expression, Literal, Not, Path, map_paths, negated
from opus_pipelines.workflow.blocks.formats.python_ir import write_ir
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
    activities,
    expressions,
    ids,
    map_expressions,
    map_statements,
    renamed,
    walk,
)
from opus_pipelines.workflow.metrics.flow_similarity import component_match, flow_similarity, tree_bleu, trigger_match

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
            entry, branches = dict(self._names), []
            for branch, condition in zip(statement.branches, conditions, strict=True):
                self._names = dict(entry)
                branches.append(Branch(condition, self.block(branch.body)))
            after, self._names = self._names, dict(entry)
            orelse = self.block(statement.orelse)
            self._names = self._names if statement.orelse else after
            return If(tuple(branches), orelse)
        if isinstance(statement, While):
            return While(self._read(statement.condition), self.block(statement.body))
        if expressions(statement):
            statement = map_expressions(statement, self._read)
        return statement


MEASURES = (
    "exact_string",
    "exact_alpha",
    "exact_semantic",
    "parsed",
    "syntax_f1",
    "activity_f1",
    "hallucination",
    "edit_faithfulness",
)


@dataclass(frozen=True)
class TaskScore:
    """The scores of one flow. None where a measure does not apply: no call for hallucination, no edit for faithfulness.

    `syntax_f1` is over descriptors of statements (kind, activity, depth); `activity_f1` over the multiset of
    activities; `hallucination` the share of calls that are not in the catalogue; `edit_faithfulness` the share of the
    prior's statements that the expected flow keeps whose ids the predicted flow keeps, too.
    """

    uid: str
    exact_string: float
    exact_alpha: float
    exact_semantic: float
    parsed: float
    syntax_f1: float
    activity_f1: float
    hallucination: float | None
    edit_faithfulness: float | None = None
    relaxations: tuple[str, ...] = ()


def task_score(
    task: FlowTask,
    predicted: Flow | None,
    catalogue: ActivityCatalogue,
    alike: Callable[[str, str], bool] | None = None,
) -> TaskScore:
    """Returns the scores of a predicted flow; None stands for a text that is no flow, and scores 0.

    Nothing is said of edits, for which the ids of the prior flow must be known; see `faithfulness`.
    """
    uid, expected = task.uid, task.expected
    if expected is None:
        raise OpusError(f"test {uid} has no expected flow; only tests with one can be scored")
    if predicted is None:
        return TaskScore(uid, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, None)
    match = compare(predicted, expected, catalogue, alike)
    called = activities(predicted)
    unknown = [name for name in called if name not in catalogue.by_id]
    return TaskScore(
        uid,
        float(write_ir(predicted) == write_ir(expected)),
        float(match.alpha),
        float(match.semantic),
        1.0,
        multiset_f1(_descriptors(predicted), _descriptors(expected)),
        multiset_f1(Counter(called), Counter(activities(expected))),
        len(unknown) / len(called) if called else None,
        relaxations=match.relaxations,
    )


def multiset_f1(one: Counter[str], other: Counter[str]) -> float:
    """Returns the F1 of two multisets; 1 where both are empty."""
    total = sum(one.values()) + sum(other.values())
    return 2 * sum((one & other).values()) / total if total else 1.0


def _descriptors(flow: Flow) -> Counter[str]:
    descriptors = Counter[str]()
    for statement in walk(flow.body):
        descriptors[_descriptor(statement)] += 1
        if isinstance(statement, If):
            descriptors["branch"] += len(statement.branches) - 1
            descriptors["else"] += bool(statement.orelse)
    return descriptors


def _descriptor(statement: Statement) -> str:
    if isinstance(statement, Call):
        return f"call {statement.activity}"
    if isinstance(statement, UserTask):
        return "user task"
    if isinstance(statement, If):
        return "if"
    return "for" if isinstance(statement, For) else type(statement).__name__.lower()


def faithfulness(predicted: Flow, expected: Flow, prior: Flow) -> float | None:
    """Returns which share of the prior's calls that the expected flow keeps are in the predicted flow with their ids.

    `predicted` and `prior` have ids of one file; None where the expected flow keeps no call.
    """
    left = Counter(activities(expected))
    wanted = []
    for statement in walk(prior.body):
        if isinstance(statement, Call) and left[statement.activity]:
            left[statement.activity] -= 1
            wanted.append(statement.id)
    there = set(ids(predicted.body))
    return sum(ident in there for ident in wanted) / len(wanted) if wanted else None


@dataclass(frozen=True)
class FlowScores:
    """The scores of one flow. All are in [0, 1]; None where a score does not apply.

    `flowsim` compares with inputs, `flowsim_outline` without. The two `valid_` figures are 0 where the flow has any
    structure error. `hallucinated_steps` and `hallucinated_tables` are shares of the names that the flow gives.
    """

    flowsim: float
    flowsim_outline: float
    valid_flowsim: float
    valid_flowsim_outline: float
    tree_bleu: float
    trigger_match: float | None
    trigger_type_match: float | None
    component_match: float
    bag_of_steps: float
    bag_of_steps_jaccard: float
    hallucinated_steps: float | None
    hallucinated_tables: float | None
    structure_errors: int


def flow_scores(flow: FlowDocument, references: Sequence[FlowDocument], catalogue: Catalogue) -> FlowScores:
    """Returns the scores of a flow; with several references each score is that of the reference with the best FlowSim.

    Raises FlowTooLarge where a flow is too large to be compared, and ValueError without a reference.
    """
    own = json_of(flow)
    pairs = [(flow_similarity(own, json_of(r)), -n) for n, r in enumerate(references)]
    similarity, place = max(pairs)
    reference = references[-place]
    gold = json_of(reference)
    outline = flow_similarity(own, gold, with_inputs=False)
    errors = len(structure_errors(flow, catalogue))
    mine, theirs = _bag(flow), _bag(reference)
    common, total = (mine & theirs).total(), (mine | theirs).total()
    steps, tables = hallucinations(flow, catalogue)
    return FlowScores(
        similarity,
        outline,
        0.0 if errors else similarity,
        0.0 if errors else outline,
        tree_bleu(own, gold),
        trigger_match(own, gold),
        _trigger_type_match(flow, reference),
        component_match(own, gold),
        2 * common / (mine.total() + theirs.total()) if total else 1.0,
        common / total if total else 1.0,
        _share(steps),
        _share(tables),
        errors,
    )


def hallucinations(flow: FlowDocument, catalogue: Catalogue) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns (names outside the catalogue, names) of steps, the trigger included, and of tables.

    The rates HS and HT of a data set are micro rates: the sums over its flows divided.
    """
    kinds = [t.type in catalogue.triggers for t in flow.triggers]
    steps = [*kinds, *(catalogue.step(c) is not None for c in flow.components)]
    given = [part.inputs for part in flow.triggers] + [part.inputs for part in flow.components]
    inputs = [i for own in given for i in own if i.name == "table"]
    tables = [i.value in catalogue.tables for i in inputs if isinstance(i.value, str)]
    return (steps.count(False), len(steps)), (tables.count(False), len(tables))


def _share(counts: tuple[int, int]) -> float | None:
    return counts[0] / counts[1] if counts[1] else None


def _bag(flow: FlowDocument) -> Counter[str]:
    return Counter(component.name for component in flow.components)


def _trigger_type_match(flow: FlowDocument, reference: FlowDocument) -> float | None:
    if flow.trigger is None and reference.trigger is None:
        return None
    types = [f.trigger.type if f.trigger else None for f in (flow, reference)]
    return float(types[0] == types[1])

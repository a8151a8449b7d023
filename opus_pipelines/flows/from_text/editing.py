"""Edits a flow by an utterance: wishes become edit operations, which keep the ids of everything they do not name."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from opus_pipelines.flows.from_text.activities import content_stems
from opus_pipelines.flows.from_text.activity_features import Query
from opus_pipelines.flows.from_text.edit_places import (
    LOOPING,
    THE_CHECK,
    all_blocks,
    changed_constant,
    changed_loop,
    known_attribute,
    outermost,
    spoken_loop,
    targets,
    variables,
)
from opus_pipelines.flows.from_text.generator import MAX_CLAUSES, Drafter, FlowWriter, GenerationError
from opus_pipelines.flows.from_text.step_matching import StepMatcher
from opus_pipelines.flows.from_text.structure import FlowBuilder, Parts, excludes
from opus_pipelines.flows.from_text.synthesis import shown_object
from opus_pipelines.flows.text.clauses import CONDITION as CONDITION_CLAUSE
from opus_pipelines.flows.text.clauses import ELSE, STEP, Clause
from opus_pipelines.flows.text.conditions import read_condition
from opus_pipelines.flows.text.edit_texts import (
    ADD,
    ALWAYS,
    CONDITION,
    GUARD,
    NEGATE,
    REMOVE,
    EditText,
    edits_in,
    imperative,
)
from opus_pipelines.workflow.blocks.edits import (
    AddElse,
    Delete,
    DeleteElse,
    Insert,
    NegateCondition,
    Operation,
    Replace,
    SetCondition,
    Unwrap,
    Wrap,
    applied,
    described,
)
from opus_pipelines.workflow.blocks.expressions import Expression
from opus_pipelines.workflow.blocks.model import (
    Block,
    Call,
    Flow,
    For,
    If,
    Statement,
    UserTask,
    expressions,
    identified,
    ids,
    walk,
    with_variables,
    without_ids,
)

_END_WORDS = frozenset(
    "finish finishing that this everything done completed complete all "
    "it loop end flow of been steps else anything".split()
)
_THE_FLOW = frozenset(["this", "that", "it", "these", "so", "all", "of"])
MOST_WORDS_OF_A_PRODUCT = 2
LEAST_DELETING = 0.5  # the probability from which "delete the board" asks for an activity where no step fits


class EditError(GenerationError):
    """A wish that cannot be fulfilled; the message names it, and the steps of the flow."""


@dataclass(frozen=True)
class Edited:
    """The edited flow, the operations, and the steps that were chosen with their probabilities."""

    flow: Flow
    operations: tuple[Operation, ...]
    steps: tuple[tuple[str, float], ...] = ()

    @property
    def described(self) -> list[str]:
        """The operations as lines for people."""
        return [described(operation) for operation in self.operations]


def edited(writer: FlowWriter, utterance: str, prior: Flow) -> Edited:
    """Returns the flow after the edits that an utterance asks for.

    Raises UtteranceError for an utterance that cannot be read, EditError for a step that is not there, and FlowError
    for edits that contradict each other.
    """
    prior = identified(prior)
    editor = _Editor(writer, utterance, prior)
    operations = [operation for wish in edits_in(utterance) for operation in editor.operations(wish)]
    if not operations:
        raise EditError("the utterance asks for no change of the flow; say what to add, remove or replace")
    return Edited(applied(prior, operations), tuple(operations), tuple(editor.drafter.chosen))


class _Editor:
    def __init__(self, writer: FlowWriter, utterance: str, prior: Flow) -> None:
        self.writer, self.prior = writer, prior
        self.drafter = Drafter(writer, utterance, prior)
        self.matcher = StepMatcher(prior, writer.ranker)

    def operations(self, wish: EditText) -> list[Operation]:
        if wish.kind == REMOVE:
            return self._remove(wish)
        if wish.kind == CONDITION:
            return [SetCondition(self._last_if(wish.new).id, self._condition_of(f"if {wish.new}"))]
        if wish.kind == NEGATE:
            return [NegateCondition(self._last_if("the condition").id)]
        if wish.kind == ADD:
            return self._add(wish)
        if wish.kind == ALWAYS:
            return self._always(wish)
        if wish.kind == GUARD:
            return self._guard(wish)
        return self._replace(wish)

    def _guard(self, wish: EditText) -> list[Operation]:
        """A condition around steps that are there: "only send the message if …", "do not copy the file if …"."""
        if {word.lower() for word in wish.old.split()} <= _THE_FLOW:
            return [self._guard_of_all(wish)]
        steps = self.matcher.find(wish.old)
        if not steps:
            raise self._missing(wish.old)
        return [Wrap(step.id, step.id, self._condition_of(wish.new, step.id)) for step in steps]

    def _guard_of_all(self, wish: EditText) -> Operation:
        """A condition around the last steps that change something: "do this only if …"; what reads stays outside."""
        block: Block = self.prior.body
        while block and isinstance(block[-1], For | If):
            block = block[-1].body if isinstance(block[-1], For) else block[-1].branches[-1].body
        if not block:
            raise self._missing(wish.old)
        first = len(block) - 1
        while first and not self._reads(block[first - 1]):
            first -= 1
        return Wrap(block[first].id, block[-1].id, self._condition_of(wish.new, block[first].id))

    def _reads(self, statement: Statement) -> bool:
        by_id = self.writer.catalogue.by_id
        known = by_id.get(statement.activity) if isinstance(statement, Call) else None
        return known is None or known.operation == "retrieve"

    def _always(self, wish: EditText) -> list[Operation]:
        """Takes steps out of the condition that they stand under; without one the step is new."""
        steps = {step.id for step in self.matcher.find(wish.old)}
        around = [
            s
            for s in walk(self.prior.body)
            if isinstance(s, If) and steps & set(ids(s.branches[0].body)) and not s.orelse
        ]
        return [Unwrap(around[-1].id)] if around else self._add(EditText(ADD, wish.old))

    def _missing(self, text: str) -> EditError:
        steps = [s.activity if isinstance(s, Call) else f"user task {s.text!r}" for s in self.matcher.steps]
        shown = ", ".join(steps[:10]) or "none"
        return EditError(f"no step of the flow fits {text[:120]!r}; its steps are {shown}")

    def _last_if(self, text: str) -> If:
        found = [statement for statement in walk(self.prior.body) if isinstance(statement, If)]
        if not found:
            raise EditError(
                f"the flow has no condition for {text[:120]!r}; add one with a sentence that begins with if"
            )
        return found[-1]

    def _condition_of(self, text: str, inside: str = "") -> Expression:
        """The condition of a text; for a step inside a loop it may speak of the loop's item."""
        clause = next((c for c in self.writer.ranker.table.names.clauses(text) if c.kind == CONDITION_CLAUSE), None)
        if clause is None:
            raise EditError(f"{text[:120]!r} is no condition; say it with if")
        parts = Parts(self.drafter.step, self.drafter.listing, self.writer.habits)
        loops = {s.variable for s in walk(self.prior.body) if isinstance(s, For) and inside in ids(s.body)}
        here = [thing for thing in self.drafter.things if not thing.loop or thing.variable in loops or not inside]
        items = [thing for thing in here if thing.loop]
        own = [thing for thing in here if not inside or all(s.variable != thing.variable for s in self._at(inside))]
        builder = FlowBuilder(parts, [*(thing for thing in own if not thing.loop), *items])
        return builder.expression(read_condition(clause, self.writer.habits))

    def _at(self, ident: str) -> list[Call | UserTask]:
        return [step for step in self.matcher.steps if step.id == ident]

    # removing

    def _remove(self, wish: EditText) -> list[Operation]:
        words = {word.lower().strip(".,") for word in wish.old.split()}
        content = words - {"the", "a", "this", "that", "branch", "statement", "part", "case", "block"}
        if content <= {"else", "otherwise"}:
            found = [s for s in walk(self.prior.body) if isinstance(s, If) and s.orelse]
            if not found:
                raise self._missing(wish.old)
            return [DeleteElse(found[-1].id)]
        if content <= {"if", "condition", "check", "conditional"} or THE_CHECK.match(wish.old):
            return [Unwrap(self._last_if(wish.old).id)]
        if content <= {"loop", "for", "iteration"}:
            loops = [s for s in walk(self.prior.body) if isinstance(s, For)]
            if not loops:
                raise self._missing(wish.old)
            return [Unwrap(loops[-1].id)]
        chosen = self.matcher.by_place(wish.old)
        for text in [] if chosen else targets(wish.old):
            found_steps = self.matcher.find(text)
            if not found_steps and text == wish.old:
                return self._deleting_activity(wish)
            if not found_steps:
                raise self._missing(text)
            chosen += [step for step in found_steps if step not in chosen]
        return [Delete(step.id) for step in outermost(self.prior, chosen)]

    def _deleting_activity(self, wish: EditText) -> list[Operation]:
        """An activity that deletes, where no step of the flow fits what is to be removed."""
        clause = next((c for c in self.writer.ranker.table.names.clauses(wish.new) if c.kind == STEP), None)
        if clause is None:
            raise self._missing(wish.old)
        best = self.writer.ranker.ranked(self.drafter.query(clause), 1)[0]
        activity = self.writer.catalogue.by_id[best.activity]
        fits = set(content_stems(wish.old)) & {*activity.object_stems, *activity.described_stems}
        if not fits or activity.operation != "delete" or best.probability < LEAST_DELETING:
            raise self._missing(wish.old)
        return self._add(EditText(ADD, wish.new))

    # replacing

    def _replace(self, wish: EditText) -> list[Operation]:
        changed = changed_constant(self.prior, wish.old, wish.new) or changed_loop(self.prior, wish.new)
        if changed is not None:
            return [changed]
        old = self.matcher.find(wish.old) if wish.old else self._counterparts(wish.new)
        if not old and wish.old:
            old = self._counterparts(wish.new)
        if not old:
            if wish.old:
                raise self._missing(wish.old)
            return self._add(EditText(ADD, wish.new))
        made = [self._replacement(step, wish.new) for step in old]
        read = {name for s in walk(self.prior.body) for e in expressions(s) for name in variables(e)}
        operations: list[Operation] = []
        for step, new in zip(old, made, strict=True):
            kept = step.variable in read  # what later steps read keeps its name
            operations.append(Replace(step.id, replace(new[0], variable=step.variable) if kept else new[0]))
            if len(new) > 1:
                operations.append(Insert(new[1:], "after", step.id))
        return operations

    def _counterparts(self, new: str) -> list[Call | UserTask]:
        """The steps that a new step replaces where the old one is not named: those most like it; the last of equals."""
        by_id = self.writer.catalogue.by_id
        clause = self._clause(new, "")
        best = by_id[self.writer.ranker.ranked(self.drafter.query(clause), 1)[0].activity]
        scored = []
        for place, step in enumerate(self.matcher.steps):
            if isinstance(step, Call) and step.activity in by_id and step.activity != best.id:
                other = by_id[step.activity]
                same_object = bool(
                    {*best.object_stems, *best.described_stems} & {*other.object_stems, *other.described_stems}
                )
                same = 2.0 * same_object + (other.operation == best.operation) + (other.application == best.application)
                scored.append((same, place, step))
        if not scored or max(scored, key=lambda s: s[:2])[0] < 1:
            return []
        return [max(scored, key=lambda s: s[:2])[2]]

    def _clause(self, text: str, verb: str) -> Clause:
        found = next((c for c in self.writer.ranker.table.names.clauses(text) if c.kind == STEP), None)
        mention = self.matcher.mention(text)
        if found is None or not (mention.clause.verb or verb):
            return mention.clause if found is None else found
        if mention.clause.verb:
            return replace(found, verb=mention.clause.verb) if found.verb else found
        return Clause(STEP, (verb, *text.split()), verb)

    def _replacement(self, step: Call | UserTask, new: str) -> tuple[Call | UserTask, ...]:
        by_id = self.writer.catalogue.by_id
        activity = by_id.get(step.activity) if isinstance(step, Call) else None
        mention = self.matcher.mention(new)
        plain = [w for w in mention.clause.words if w]
        named = self.writer.ranker.table.names
        if activity is not None and mention.operation_only:
            siblings = [
                a
                for a in by_id.values()
                if (a.application, a.object, a.operation)
                == (activity.application, activity.object, mention.operation_only)
            ]
            if siblings:
                return (self.drafter.call(siblings[0].id, 1.0)[0],)
        verb = activity.operation if activity is not None else ""
        only_application = mention.applications and not mention.clause.verb and all(named.named(w) for w in plain)
        if only_application and activity is not None:
            words = (verb, "a", *shown_object(activity), "in", *plain)
            best = self.writer.ranker.ranked(
                Query(Clause(STEP, words, verb), "", dict.fromkeys(mention.applications, 1.0)), 1
            )[0]
            return (self.drafter.call(best.activity, best.probability)[0],)
        if activity is not None and not mention.clause.verb and 0 < len(plain) <= MOST_WORDS_OF_A_PRODUCT:
            words = (verb, "a", *shown_object(activity), "in", *plain)
            best = self.writer.ranker.ranked(Query(Clause(STEP, words, verb), "", {}), 1)[0]
            if best.activity != activity.id and set(content_stems(new)) <= set(by_id[best.activity].stems):
                return (self.drafter.call(best.activity, best.probability)[0],)
        steps = [c for c in self.writer.ranker.table.names.clauses(new) if c.kind == STEP]
        if not mention.clause.verb or not steps:
            steps = [self._clause(new, verb)]
        self.drafter.carried = activity.application if activity is not None else ""
        made = []
        for clause in steps:
            found = self.drafter.step(clause, ())
            if found is not None and isinstance(found[0], Call | UserTask):
                made.append(found[0])
        return tuple(made)

    # adding

    def _add(self, wish: EditText) -> list[Operation]:
        clauses = self.writer.ranker.table.names.clauses(wish.new)[:MAX_CLAUSES]
        steps = [clause for clause in clauses if clause.kind == STEP]
        if clauses and not steps and any(c.kind == CONDITION_CLAUSE for c in clauses):
            return [SetCondition(self._last_if(wish.new).id, self._condition_of(wish.new))]
        orelse = wish.orelse or (bool(clauses) and clauses[0].kind == ELSE)
        block = self.drafter.block([clause for clause in clauses if clause.kind != ELSE or clause is not clauses[0]])
        if not block:
            raise EditError(f"{wish.new[:120]!r} asks for no step; say what to add, verb first")
        block = without_ids(block)
        if orelse:
            found = [s for s in walk(self.prior.body) if isinstance(s, If) and not s.orelse]
            if not found:
                raise EditError("the flow has no condition without an else; name the condition first")
            return [AddElse(found[-1].id, block)]
        if wish.where in ("before", "after"):
            target = self._anchor(wish.anchor)
            if target is not None:
                return [Insert(block, "before" if wish.where == "before" else "after", target)]
            return [Insert(block, "prepend" if wish.where == "before" else "append")]
        if wish.where == "begin":
            return [Insert(block, "prepend")]
        return list(self._placed(block, wish))

    def _anchor(self, text: str) -> str | None:
        """The id of the step that stands at the place; None for the end of the flow."""
        words = {word.lower() for word in text.split()}
        if words <= _END_WORDS | {"the", "a", "is", "are", "has", "been"}:
            return None
        loops = [s for s in walk(self.prior.body) if isinstance(s, For)]
        if loops and LOOPING.match(imperative(text)):
            return loops[-1].id
        found = self.matcher.find(imperative(text))
        if not found:
            raise self._missing(text)
        return found[-1].id

    def _placed(self, block: Block, wish: EditText) -> Iterator[Operation]:
        for statement in block:
            wrap = self._wrap(statement)
            if wrap is not None:
                yield wrap
                continue
            yield self._inserted(statement, wish)

    def _wrap(self, statement: Statement) -> Operation | None:
        """A new condition around steps that the flow has already."""
        if not isinstance(statement, If) or len(statement.branches) != 1 or statement.orelse:
            return None
        wanted = [s.activity for s in statement.branches[0].body if isinstance(s, Call)]
        if not wanted or len(wanted) != len(statement.branches[0].body):
            return None
        for block in all_blocks(self.prior.body):
            names = [s.activity if isinstance(s, Call) else None for s in block]
            for start in range(len(names) - len(wanted) + 1):
                if names[start : start + len(wanted)] == wanted:
                    first, last = block[start].id, block[start + len(wanted) - 1].id
                    return Wrap(first, last, statement.branches[0].condition)
        return None

    def _inserted(self, statement: Statement, wish: EditText) -> Operation:
        loops = [s for s in walk(self.prior.body) if isinstance(s, For)]
        if isinstance(statement, For):
            same = next((loop for loop in reversed(loops) if loop.iterable == statement.iterable), None)
            if same is None:
                return Insert((statement,))
            inner = with_variables(Flow(statement.body), {statement.variable: same.variable}).body
            if len(inner) == 1 and isinstance(inner[0], If):
                return self._inserted(inner[0], wish)
            return Insert(inner, "append", same.id)
        if isinstance(statement, If):
            read = {path for e in expressions(statement) for path in variables(e)}
            ifs = [s for s in walk(self.prior.body) if isinstance(s, If) and not s.orelse]
            known = known_attribute(self.prior, statement.branches[0].condition, wish.new)
            if known is not None and not statement.orelse:
                other, opposite = known
                body = statement.branches[0].body
                return AddElse(other.id, body) if opposite else Insert(body, "append", other.branches[0].id or other.id)
            for other in reversed(ifs):
                if excludes(other.branches[-1].condition, statement.branches[0].condition):
                    return AddElse(other.id, (statement,))
            loop = next((loop for loop in reversed(loops) if loop.variable in read), None)
            return Insert((statement,), "append", loop.id) if loop else Insert((statement,))
        loop = spoken_loop(wish.new, loops)
        return Insert((statement,), "append", loop.id) if loop else Insert((statement,))

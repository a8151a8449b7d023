"""Edits a flow by an utterance: wishes become edit operations, which keep the ids of everything they do not name.

A wish names steps ("the slack message", "all create skills") and places: the condition that it speaks of, the loop of
its item, a block.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from opus_pipelines.flows.from_text.activities import DISTINCT, Activity, content_stems, split_words
from opus_pipelines.flows.from_text.activity_choice import ActivityRanker, shown_object
from opus_pipelines.flows.from_text.activity_features import Query, noun_phrase
from opus_pipelines.flows.from_text.generator import MAX_CLAUSES, Drafter, FlowWriter, GenerationError, Made
from opus_pipelines.flows.from_text.structure import Account, FlowBuilder, Parts, excludes, filter_of, unsaid
from opus_pipelines.flows.text.clauses import CONDITION as CONDITION_CLAUSE
from opus_pipelines.flows.text.clauses import ELSE, STEP, Clause
from opus_pipelines.flows.text.conditions import NUMBER, number_of, read_condition
from opus_pipelines.flows.text.conditions import described as read_adjectives
from opus_pipelines.flows.text.edit_texts import (
    ADD,
    ALWAYS,
    CONDITION,
    GUARD,
    MOVE,
    NEGATE,
    ONLY,
    REMOVE,
    RENAME,
    SWAP,
    TOGETHER,
    VALUE,
    EditText,
    addition,
    edits_in,
    imperative,
)
from opus_pipelines.flows.text.operations import lemma_of_verb, operations_of_verb
from opus_pipelines.flows.text.rewriting import plain_talk
from opus_pipelines.language.grammar.modality import is_base
from opus_pipelines.language.word_stems import EMPTY, stem
from opus_pipelines.workflow.blocks.edits import (
    AddElse,
    Delete,
    DeleteElse,
    Insert,
    Move,
    NegateCondition,
    Operation,
    Replace,
    SetCondition,
    Swap,
    Together,
    Unwrap,
    Wrap,
    applied,
    described,
)
from opus_pipelines.workflow.blocks.expressions import Comparison, Expression, Literal, Not, Path, paths
from opus_pipelines.workflow.blocks.formats.python_ir import write_condition
from opus_pipelines.workflow.blocks.model import (
    Block,
    Call,
    Flow,
    For,
    If,
    Statement,
    UserTask,
    While,
    activities,
    blocks_of,
    expressions,
    identified,
    ids,
    read_before_set,
    walk,
    with_variables,
    without_ids,
)

# A text that speaks of a condition, and one that speaks of going through a loop
THE_CHECK = re.compile(
    r"(?:the |this |that )?(?:if|condition|check|filter) (?:on|of|for|about|whether|that)\b", re.IGNORECASE
)
LOOPING = re.compile(
    r"(?:go|loop|iterate|run|walk|cycle) (?:through|over|across)\b|(?:the )?(?:loop|iteration)\b", re.IGNORECASE
)


def known_attribute(prior: Flow, condition: Expression, text: str) -> tuple[If, bool] | None:
    """Returns an if without an else whose attribute the text spells, and whether the text says the opposite."""
    words = set(content_stems(text.partition(",")[0]))
    for statement in walk(prior.body):
        if not isinstance(statement, If) or statement.orelse or len(statement.branches) != 1:
            continue
        old = statement.branches[0].condition
        holds, plain = truth(old)
        new_holds, new_plain = truth(condition)
        if holds is None or new_holds is None:
            continue
        own = {stem(word) for word in split_words(plain) if word not in EMPTY}
        if plain == new_plain or (len(own) > 1 and len(own & words) >= 2):
            return statement, holds != new_holds
    return None


def truth(condition: Expression) -> tuple[bool | None, str]:
    """Returns whether a condition asks that an attribute holds, and the attribute; None for another condition."""
    if isinstance(condition, Not):
        holds, name = truth(condition.operand)
        return (None if holds is None else not holds), name
    if isinstance(condition, Path) and len(condition.parts) > 1:
        return True, condition.parts[-1]
    if isinstance(condition, Comparison) and condition.operator in ("==", "!="):
        left, right = condition.left, condition.right
        if isinstance(left, Path) and isinstance(right, Literal) and isinstance(right.value, bool):
            return right.value == (condition.operator == "=="), left.parts[-1]
    return None, ""


def targets(text: str) -> list[str]:
    """Returns the texts of several steps that are named together; the whole text where it names one."""
    parts = [part.strip() for part in text.replace(" as well as ", " and ").replace(", and ", " and ").split(" and ")]
    return parts if len(parts) > 1 and all(parts) else [text]


_CONSTANT = re.compile(r"^(?:be |is |to )?(?:\"[^\"]+\"|'[^']+'|\d+)(?: in the (?:condition|if|check))?[.\s]*$")


def changed_constant(prior: Flow, old: str, new: str) -> Operation | None:
    """Returns the change of the condition whose constant is the old text; None where no condition has it."""
    old = old.strip("\"' ").lower()
    words = [word.strip("\"'.,").lower() for part in old.split() for word in part.split("-")]
    for statement in walk(prior.body):
        for branch in statement.branches if isinstance(statement, If) else ():
            condition = branch.condition
            if not isinstance(condition, Comparison) or not isinstance(condition.right, Literal):
                continue
            value = str(condition.right.value).lower()
            attribute = getattr(condition.left, "parts", ("",))[-1].lower()
            near = len(words) <= 4 and value in words and attribute in (*words, *new.lower().replace("-", " ").split())
            names_attribute = len(words) <= 4 and attribute in words and _CONSTANT.match(new)
            same_kind = not isinstance(condition.right.value, int | float) or re.search(r"\d", new) is not None
            if old and same_kind and (old == value or near or names_attribute):
                return SetCondition(
                    branch.id or statement.id, replace(condition, right=Literal(_new_value(new, attribute, words)))
                )
    return None


def _new_value(new: str, attribute: str, old: Sequence[str]) -> str:
    """The constant of the new text: the word before the attribute, the quoted one, or the last one."""
    quoted = re.search(r"\"([^\"]+)\"|'([^']+)'", new)
    if quoted:
        return quoted[1] or quoted[2]
    words = [word.strip("\"'.,") for part in new.split() for word in part.split("-")]
    place = next((i for i, word in enumerate(words) if word.lower() == attribute), None)
    if place and words[place - 1].lower() not in EMPTY:
        return words[place - 1]
    candidates = [word for word in words if word.lower() not in {attribute, "one", "ones", *old} | EMPTY]
    return candidates[-1] if candidates else words[-1]


def changed_text(prior: Flow, old: str, new: str) -> Operation | None:
    """Returns the change of the one user task in which a person or thing is replaced; None where there is none."""
    was, now = (re.sub(r"^(?:the|an?|our|my)\s+", "", text.strip(" .\"'"), flags=re.IGNORECASE) for text in (old, new))
    pattern = re.compile(rf"\b{re.escape(was)}\b", re.IGNORECASE)
    tasks = [s for s in walk(prior.body) if isinstance(s, UserTask) and was and pattern.search(s.text)]
    if len(tasks) != 1 or len(now.split()) > MOST_WORDS_OF_A_PRODUCT or pattern.fullmatch(tasks[0].text):
        return None
    return Replace(tasks[0].id, replace(tasks[0], text=pattern.sub(lambda _: now, tasks[0].text)))


def all_blocks(block: Block) -> Iterator[Block]:
    """Yields the block and every block inside it."""
    yield block
    for statement in block:
        for inner in blocks_of(statement):
            yield from all_blocks(inner)


def variables(expression: Expression) -> Iterator[str]:
    """Yields the variables that an expression reads."""
    for path in paths(expression):
        yield path.parts[0]


def outermost(prior: Flow, targets: Sequence[Call | UserTask]) -> list[Statement]:
    """Returns the steps, or the loop, while or if whose body they are whole."""
    gone = {step.id for step in targets}
    statements: list[Statement] = []

    def visit(block: Block) -> None:
        for statement in block:
            inner = [s for part in blocks_of(statement) for s in walk(part) if isinstance(s, Call | UserTask)]
            if isinstance(statement, Call | UserTask):
                if statement.id in gone:
                    statements.append(statement)
            elif inner and all(s.id in gone for s in inner):
                statements.append(statement)
            else:
                for part in blocks_of(statement):
                    visit(part)

    visit(prior.body)
    return statements


_STEP_WORDS = re.compile(
    r"^(?:(?:the|all|any|every|each|of|those|these|this|that)\s+)*(?:steps?|tasks?|activit(?:y|ies)|actions?|skills?|"
    r"parts?|calls?|node|operation)\s+(?:(?:to|that|which|for|of|where|it)\s+)*(?:we\s+|you\s+|it\s+)?",
    re.IGNORECASE,
)
_PLACES = {
    word: place
    for place, words in enumerate(("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th"), 1)
    for word in words.split()
}
_ORDINAL = "(?:last|final|" + "|".join(_PLACES) + ")"
_BY_PLACE = re.compile(
    rf"(?:the )?(?:very )?(?P<places>{_ORDINAL}(?:,? (?:and )?(?:the )?{_ORDINAL})*) "
    r"(?:steps?|tasks?|activit(?:y|ies)|actions?|ones?)"
)
_KIND_WORDS = frozenset(["skill", "step", "task", "activity", "action", "operation", "call", "api"])
_WORD = re.compile(r"\"[^\"]*\"|[\w.'-]+")


@dataclass(frozen=True)
class Mention:
    """A text that speaks of steps, as a clause; `verb` is "" where it names none."""

    clause: Clause
    applications: frozenset[str]
    operation_only: str = ""


class StepMatcher:
    """Finds steps of one flow."""

    def __init__(self, flow: Flow, ranker: ActivityRanker) -> None:
        self.ranker = ranker
        self.steps = [s for s in walk(flow.body) if isinstance(s, Call | UserTask)]

    def mention(self, text: str) -> Mention:
        """Returns what a text says of steps."""
        plain = _STEP_WORDS.sub("", text.strip(" .,;:"))
        words = _WORD.findall(plain)
        while words and words[0].lower() in ("to", "the", "all", "a", "an", "any", "every", "each") and len(words) > 1:
            words = words[1:]
        first = lemma_of_verb(words[0]) if words else ""
        has_verb = bool(operations_of_verb(first)) and (len(words) > 1 or words[0].lower() != first)
        if has_verb and _is_noun_here(words):
            has_verb = False
        named = self.ranker.table.names.named(plain)
        distinct = frozenset(name for name, weight in named.items() if weight >= 0.25)
        rest = [word for word in words if stem(word) not in _KIND_WORDS and word.lower() not in EMPTY]
        operation = ""
        if len(rest) == 1 and has_verb:
            operation = operations_of_verb(first)[0]
        verb = first if has_verb else ""
        clause = Clause(STEP, tuple([verb, *words[1:]] if has_verb else ["", *words]), verb)
        return Mention(clause, distinct, operation)

    def by_place(self, text: str) -> list[Call | UserTask]:
        """Returns the steps that a text names by their place: "the last step", "the second and third steps"."""
        match = _BY_PLACE.fullmatch(text.strip(" .,;:").lower())
        placed = []
        for word in re.findall(_ORDINAL, match["places"]) if match else ():
            place = len(self.steps) if word in ("last", "final") else _PLACES.get(word, 0)
            if 1 <= place <= len(self.steps):
                placed.append(self.steps[place - 1])
        return placed

    def pair(self, text: str) -> list[Call | UserTask]:
        """Returns two steps that a text names by their place: "the first two steps"; empty for another text."""
        match = re.search(r"\b(first|last) two\b", text.lower())
        if match is None and re.fullmatch(
            r"(?:the |these |both |two )*(?:steps?|two|both|tasks?)", text.lower().strip()
        ):
            return self.steps if len(self.steps) == 2 else []
        return [] if match is None else self.steps[:2] if match[1] == "first" else self.steps[-2:]

    def find(self, text: str) -> list[Call | UserTask]:
        """Returns the steps that a text means, in the order of the flow; empty where none fits."""
        if placed := self.by_place(text):
            return placed
        mention = self.mention(text)
        by_id = self.ranker.table.catalogue.by_id
        calls = [(s, by_id[s.activity]) for s in self.steps if isinstance(s, Call) and s.activity in by_id]
        if mention.operation_only:
            return [step for step, activity in calls if activity.operation == mention.operation_only]
        tasks = self._user_tasks(text)
        if tasks:
            return tasks
        names = self._only_application(mention)
        if names:
            return [step for step, activity in calls if activity.application in names]
        fitting = [step for step, activity in calls if self._fits(mention, step, activity)]
        if not fitting and mention.applications:  # an ordinary word may be part of a name: "object" of Object Storage
            named = self.ranker.table.names.named(text)
            mention = replace(mention, applications=frozenset(n for n, w in named.items() if w >= DISTINCT))
            fitting = [step for step, activity in calls if self._fits(mention, step, activity)]
        if not fitting:
            return []
        scores = {r.activity: r.score for r in self.ranker.ranked(Query(mention.clause), len(by_id))}
        best = max(fitting, key=lambda step: scores.get(step.activity, float("-inf")))
        if not mention.clause.verb and not mention.applications:
            own = {s.activity: _said_of(mention, s, by_id[s.activity]) for s in fitting}
            if not any(own.values()):
                return []
            if len(own) > 1 and all(said == own[best.activity] for said in own.values()):
                listed = ", ".join(f"{s.id} ({s.activity})" for s in fitting)
                raise EditError(f"{text[:120]!r} may be any of the steps {listed}; say which one")
        return [step for step in fitting if step.activity == best.activity]

    def _user_tasks(self, text: str) -> list[Call | UserTask]:
        words = set(content_stems(text)) - _KIND_WORDS
        tasks: list[Call | UserTask] = []
        for step in self.steps:
            if isinstance(step, UserTask):
                own = set(content_stems(step.text))
                if own and len(own & words) >= max(1, round(0.6 * min(len(own), max(1, len(words))))):
                    tasks.append(step)
        return tasks

    def _only_application(self, mention: Mention) -> frozenset[str]:
        """The applications, where a text has no words beside theirs."""
        words = [word for word in mention.clause.words if word and word.lower() not in EMPTY]
        rest = [word for word in words if not self.ranker.table.names.named(word) and stem(word) not in _KIND_WORDS]
        return mention.applications if not rest and not mention.clause.verb else frozenset()

    def _fits(self, mention: Mention, step: Call, activity: Activity) -> bool:
        head = noun_phrase(mention.clause).head
        words = set(content_stems(" ".join(mention.clause.words)))
        own = {*activity.object_stems, *activity.described_stems, *(stem(w) for w in step.variable.split("_"))}
        own |= {"".join(activity.object_stems)}
        short = {"".join(w[0] for w in activity.described_stems)} | {w[:5] for w in own}
        object_fits = bool(words & own) or head in short or (head != "" and head[:5] in short)
        if mention.applications and activity.application not in mention.applications:
            return False
        operations = operations_of_verb(mention.clause.verb) if mention.clause.verb else ()
        if operations and activity.operation not in operations:
            return False
        if object_fits or head in ("", "it", "one"):
            return True
        return activity.application in mention.applications


def _said_of(mention: Mention, step: Call, activity: Activity) -> frozenset[str]:
    """The words of a text that name a step."""
    return frozenset(content_stems(" ".join(mention.clause.words))) & {
        *activity.stems,
        *(stem(w) for w in step.variable.split("_")),
    }


def _is_noun_here(words: list[str]) -> bool:
    """Whether a first word such as "email" or "message" is a noun: no determiner follows, and nothing else does."""
    return len(words) == 1


_END_WORDS = frozenset(
    "finish finishing that this everything done completed complete all "
    "it loop end flow of been steps else anything".split()
)
_THE_FLOW = frozenset(["this", "that", "it", "these", "so", "all", "of"])
MOST_WORDS_OF_A_PRODUCT = 2
LEAST_DELETING = 0.5  # the probability from which "delete the board" asks for an activity where no step fits


class EditError(GenerationError):
    """A wish that cannot be fulfilled; the message names it, and the steps of the flow."""


def edited(writer: FlowWriter, utterance: str, prior: Flow) -> Made:
    """Returns the flow after the edits that an utterance asks for.

    Raises UtteranceError for an utterance that cannot be read, EditError for a step that is not there, and FlowError
    for edits that contradict each other.
    """
    prior = identified(prior)
    editor = _Editor(writer, utterance, prior)
    wished = [operation for wish in edits_in(utterance) for operation in editor.operations(wish)]
    operations = [o for i, o in enumerate(wished) if not isinstance(o, Unwrap) or o not in wished[:i]]
    if not operations:
        raise EditError("the utterance asks for no change of the flow; say what to add, remove or replace")
    flow = applied(prior, operations)
    _check_variables(prior, flow)
    _check_conditions(prior, flow)
    lines = tuple(_told(operation, prior) for operation in operations)
    editor.drafter.accounts.append(_account(utterance, lines, (prior, flow), writer))
    return editor.drafter.made(flow, lines)


# Words that say how a flow is changed, and where
_OF_EDITS = frozenset(
    map(
        stem,
        (
            "step task activity action node skill call move put shift bring pull push drop skip remove delete "
            "omit leave take cut strike cancel kill lose scrap replace swap switch exchange change turn convert "
            "instead use rather add insert include append make wrap set raise lower increase decrease reduce bump "
            "rename name place order position round first second third next last start begin end top bottom front "
            "behind ahead right inside outside between around loop iteration through condition check if filter "
            "branch else otherwise case limit threshold value amount number parallel time simultaneously always "
            "just still anymore longer want need like have keep go come run do happen new one two three both "
            "together again extra existing everything elsewhere everywhere not now henceforth today creation flow "
            "workflow process part thing reverse let "
        ).split(),
    )
)


def _account(utterance: str, lines: Sequence[str], flows: tuple[Flow, Flow], writer: FlowWriter) -> Account:
    """Says what an edit became, with the words that neither its operations nor the steps that they name have."""
    by_id, text = writer.catalogue.by_id, " ".join(lines)
    said = [text]
    for statement in (s for flow in flows for s in walk(flow.body)):
        if re.search(rf"\b{statement.id}\b", text) or statement.id not in ids(flows[0].body):
            activity = by_id.get(statement.activity) if isinstance(statement, Call) else None
            said += [activity.text, " ".join([*activity.stems, *split_words(activity.id)])] if activity else []
            said += [getattr(statement, "variable", ""), getattr(statement, "text", "")]
            said += [write_condition(e) for e in expressions(statement) if not isinstance(statement, For)]
    words = [word for word in plain_talk(utterance).split() if not writer.ranker.table.names.named(word)]
    lost = tuple(word for word in unsaid(words, *said) if stem(word) not in _OF_EDITS)
    asked = f"what does {' '.join(lost)!r} mean in {utterance[:120]!r}? The operations do not say it"
    return Account(utterance, "edit", "; ".join(lines), lost, asked if lost else "")


def _told(operation: Operation, prior: Flow) -> str:
    """An operation as a line, with the step of the flow that it names."""
    target = getattr(operation, "target", "")
    step = next((s for s in walk(prior.body) if target and s.id == target), None)
    if isinstance(step, Call | UserTask):
        return f"{described(operation)} ({step.activity if isinstance(step, Call) else step.text})"
    return described(operation)


def _check_variables(prior: Flow, flow: Flow) -> None:
    """Raises EditError where a step reads a variable that no step sets any more."""
    known = {name for _, name in read_before_set(prior)}
    unset = [name for _, name in read_before_set(flow) if name not in known]
    if not unset:
        return
    source = next(
        (
            s.activity if isinstance(s, Call) else getattr(s, "text", f"the loop over {s.variable}")
            for s in walk(prior.body)
            if isinstance(s, Call | UserTask | For) and s.variable == unset[0]
        ),
        "a step",
    )
    raise EditError(
        f"the edit would leave steps that read {unset[0]!r}, which nothing sets then; keep {source}, or remove the "
        f"steps and conditions that read {unset[0]!r} in the same edit"
    )


def _check_conditions(prior: Flow, flow: Flow) -> None:
    """Raises EditError where two conditions of a step exclude each other, or one asks for an item's mere being."""
    known = {branch.condition for s in walk(prior.body) if isinstance(s, If) for branch in s.branches}
    items = {s.variable for s in walk(flow.body) if isinstance(s, For)}
    for outer in walk(flow.body):
        for branch in outer.branches if isinstance(outer, If) else ():
            bare = isinstance(branch.condition, Path) and branch.condition not in known
            if bare and set(getattr(branch.condition, "parts", ())) <= items:
                asked = write_condition(branch.condition)
                raise EditError(f"the condition would only ask whether there is {asked!r}; say what must hold of it")
            for inner in walk(branch.body):
                if isinstance(inner, If) and excludes(branch.condition, inner.branches[0].condition):
                    both = f"{write_condition(branch.condition)} and {write_condition(inner.branches[0].condition)}"
                    raise EditError(f"a step would stand under {both}, which exclude each other; say it with otherwise")


_EXCEPT = re.compile(
    r"(?:everything|all(?: of it| the steps| steps)?|the rest)(?: else)? (?:except|but|apart from|other than)(?: for)? "
    r"(?P<kept>.+)$",
    re.IGNORECASE,
)
_ON_FROM = re.compile(
    r"(?:everything|anything|all|whatever|all (?:the )?steps|the rest)(?: that (?:comes|is))? "
    r"(?P<side>after|behind|below|following|before|above) (?P<step>.+)$",
    re.IGNORECASE,
)
_ADDS = re.compile(r"(?:please )?(?:add|insert|include|create|append)\b", re.IGNORECASE)
_MORE = re.compile(
    r"\b(?:also|another|one more|too|as well|again|second|an?|new|if|for each|each|every)\b", re.IGNORECASE
)
_OF_THE_FLOW = re.compile(
    r"\b(?:the|a|this|that) (?:step|task|condition|branch|loop|check)s?\b "
    r"(?:that|which|whereby|where|to|for|of|on|in)\b",
    re.IGNORECASE,
)
_CHANGING = frozenset(
    "move swap rename raise lower change switch put wrap loop combine merge split undo make use replace remove skip "
    "keep do let go set turn shift increase decrease reduce reorder start stop take leave only also".split()
)


def _asks_for_a_change(clauses: Sequence[Clause]) -> bool:
    """Whether a text that no activity fits asks for another edit of the flow and not for work of a person."""
    first = next((clause for clause in clauses if clause.kind == STEP), None)
    word = first.words[0].lower() if first else ""
    return word in _CHANGING or not (is_base(word) or word == "have")


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
        structural = {MOVE: self._move, SWAP: self._swap, TOGETHER: self._together, RENAME: self._rename}
        structural |= {VALUE: self._value, ONLY: self._only}
        return structural.get(wish.kind, self._replace)(wish)

    # order, names and values

    def _move(self, wish: EditText) -> list[Operation]:
        steps = self.matcher.find(imperative(wish.old))
        if not steps:
            return self._add(addition(wish.new))
        if wish.where in ("begin", "end"):
            return [Move(step.id, "prepend" if wish.where == "begin" else "append") for step in steps]
        words = {word.lower() for word in wish.anchor.split()}
        loops = [s.id for s in walk(self.prior.body) if isinstance(s, For)]
        if {"loop", "iteration"} & words or {"if", "condition", "check", "else"} & words:
            blocks = loops if {"loop", "iteration"} & words else [self._last_if(wish.anchor).branches[0].id]
            if not blocks:
                raise self._missing(wish.anchor)
            if wish.where.startswith("out"):
                return [Move(step.id, "after", blocks[-1]) for step in steps]
            if wish.where in ("inside", "inside of", "into", "within"):
                block = f"{blocks[-1]}.else" if "else" in words else blocks[-1]
                return [Move(step.id, "append", block) for step in steps]
            anchor = blocks[-1]
        else:
            found = self.matcher.find(imperative(wish.anchor))
            if not found:
                raise self._missing(wish.anchor)
            anchor = found[-1].id
        after = wish.where in ("after", "behind")
        return [Move(step.id, "after" if after else "before", anchor) for step in steps if step.id != anchor]

    def _swap(self, wish: EditText) -> list[Operation]:
        pair = self.matcher.pair(wish.old) if not wish.new else []
        for text in targets(wish.old) if not wish.new and not pair else (wish.old, wish.new):
            pair += self.matcher.find(imperative(text))[:1] if text else []
        if len(pair) == 1 and wish.new:  # "swap Slack with Teams"
            return self._replace(wish)
        if len(pair) != 2:
            raise self._missing(wish.old)
        return [Swap(pair[0].id, pair[1].id)]

    def _together(self, wish: EditText) -> list[Operation]:
        found = self.matcher.pair(wish.old)
        if wish.old.lower() in ("everything", "all", "all steps", "all of it", "all of this", "the steps"):
            found = [step for step in self.matcher.steps if step in self.prior.body]
        for text in targets(wish.old) if not found else ():
            found += self.matcher.find(imperative(text))[:1]
        wanted = {step.id for step in found}
        if len(wanted) < 2:
            return self._add(addition(wish.new))
        for block in all_blocks(self.prior.body):
            places = [i for i, statement in enumerate(block) if statement.id in wanted]
            if places and len(places) == len(wanted):
                own = [block[place] for place in places]
                apart = [Move(step.id, "after", before.id) for before, step in pairwise(own)]
                moves = apart if places[-1] - places[0] >= len(places) else []
                return [*moves, Together(own[0].id, own[-1].id)]
        listed = ", ".join(sorted(wanted))
        raise EditError(
            f"the steps {listed} do not follow one another in one block; move them next to each other first"
        )

    def _rename(self, wish: EditText) -> list[Operation]:
        steps = self.matcher.find(wish.old)
        tasks = [step for step in steps if isinstance(step, UserTask)]
        if not steps:
            raise self._missing(wish.old)
        if not tasks:
            raise EditError(
                f"{wish.old[:120]!r} is an activity of the catalogue, whose name stays; say which activity to use "
                "instead, or rename a user task"
            )
        return [Replace(task.id, replace(task, text=wish.new)) for task in tasks]

    def _compared(self) -> list[tuple[str, Comparison]]:
        """The conditions that compare with a constant, each with the id of its branch."""
        conditions = [
            (branch.id or s.id, branch.condition)
            for s in walk(self.prior.body)
            for branch in (s.branches if isinstance(s, If) else ())
        ]
        return [(i, c) for i, c in conditions if isinstance(c, Comparison) and isinstance(c.right, Literal)]

    def _value(self, wish: EditText) -> list[Operation]:
        match = NUMBER.search(wish.new)
        if match is None:
            raise self._missing(wish.new)
        value = number_of(match)
        words = set(content_stems(wish.old))
        numeric = [(i, c) for i, c in self._compared() if isinstance(getattr(c.right, "value", None), int | float)]
        named = [(i, c) for i, c in numeric if isinstance(c.left, Path) and stem(c.left.parts[-1]) in words]
        chosen = named or numeric
        if len(chosen) != 1:
            shown = "; ".join(f"{'.'.join(getattr(c.left, 'parts', ()))} {c.operator} {c.right}" for _, c in numeric)
            raise EditError(f"{wish.old[:120]!r} names no one value of a condition; the values are {shown or 'none'}")
        return [SetCondition(chosen[0][0], replace(chosen[0][1], right=Literal(value)))]

    def _only(self, wish: EditText) -> list[Operation]:
        last = next((s for s in reversed(list(walk(self.prior.body))) if isinstance(s, For)), None)
        if last is not None and (restriction := filter_of(wish.new.split())):
            held = read_condition(Clause(CONDITION_CLAUSE, restriction)).expression(last.variable)
            return [Wrap(last.body[0].id, last.body[-1].id, held)]
        value = wish.new.strip("\"'")
        read = read_adjectives((value, "item"))
        attribute = read.attribute if read else ""
        equal = [(i, c) for i, c in self._compared() if c.operator == "==" and isinstance(c.left, Path)]
        same = [(i, c) for i, c in equal if getattr(c.left, "parts", ("",))[-1] == attribute or not attribute]
        if same:
            return [SetCondition(same[-1][0], replace(same[-1][1], right=Literal(value)))]
        loops = [s for s in walk(self.prior.body) if isinstance(s, For)]
        if not loops:
            raise self._missing(wish.new)
        condition = Comparison(Path((loops[-1].variable, attribute or "status")), "==", Literal(value))
        return [Wrap(loops[-1].body[0].id, loops[-1].body[-1].id, condition)]

    def _guard(self, wish: EditText) -> list[Operation]:
        """A condition around steps that are there: "only send the message if …", "do not copy the file if …"."""
        if {word.lower() for word in wish.old.split()} <= _THE_FLOW:
            return [self._guard_of_all(wish)]
        steps = self.matcher.pair(wish.old) or self.matcher.find(wish.old)
        if not steps:
            raise self._missing(wish.old)
        for block in all_blocks(self.prior.body):
            own = [s.id for s in block if s in steps]
            if 1 < len(own) == len(steps):
                return [Wrap(own[0], own[-1], self._condition_of(wish.new, own[0]))]
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
        activity = by_id.get(statement.activity) if isinstance(statement, Call) else None
        return activity is None or activity.operation == "retrieve"

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
        conditions = [statement for statement in walk(self.prior.body) if isinstance(statement, If)]
        if not conditions:
            raise EditError(
                f"the flow has no condition for {text[:120]!r}; add one with a sentence that begins with if"
            )
        return conditions[-1]

    def _condition_of(self, text: str, inside: str = "") -> Expression:
        """The condition of a text; for a step inside a loop it may speak of the loop's item."""
        clause = next((c for c in self.writer.ranker.table.names.clauses(text) if c.kind == CONDITION_CLAUSE), None)
        if clause is None:
            raise EditError(f"{text[:120]!r} is no condition; say it with if")
        parts = Parts(self.drafter.step, self.drafter.listing)
        loops = {s.variable for s in walk(self.prior.body) if isinstance(s, For) and inside in ids(s.body)}
        here = [thing for thing in self.drafter.things if not thing.loop or thing.variable in loops or not inside]
        items = [thing for thing in here if thing.loop]
        own = [thing for thing in here if not inside or all(s.variable != thing.variable for s in self._at(inside))]
        builder = FlowBuilder(parts, [*(thing for thing in own if not thing.loop), *items])
        return builder.expression(read_condition(clause))

    def _at(self, ident: str) -> list[Call | UserTask]:
        return [step for step in self.matcher.steps if step.id == ident]

    # removing

    def _remove(self, wish: EditText) -> list[Operation]:
        words = {word.lower().strip(".,") for word in wish.old.split()}
        content = words - {"the", "a", "this", "that", "branch", "statement", "part", "case", "block"}
        if content <= {"else", "otherwise"}:
            with_else = [s for s in walk(self.prior.body) if isinstance(s, If) and s.orelse]
            if not with_else:
                raise self._missing(wish.old)
            return [DeleteElse(with_else[-1].id)]
        if content <= {"check", "test"} and (steps := self.matcher.find(wish.old)):
            named = getattr(steps[0], "text", "") or getattr(steps[0], "activity", "")
            raise EditError(f"{wish.old[:120]!r} may be the condition or the step {named!r}; say which of the two")
        if content <= {"if", "condition", "check", "conditional"} or THE_CHECK.match(wish.old):
            return [Unwrap(self._last_if(wish.old).id)]
        if content <= {"loop", "for", "iteration"}:
            loops = [s for s in walk(self.prior.body) if isinstance(s, For)]
            if not loops:
                raise self._missing(wish.old)
            return [Unwrap(loops[-1].id)]
        if match := _EXCEPT.match(wish.old):
            kept = [step for text in targets(match["kept"]) for step in self.matcher.find(text)]
            if not kept:
                raise self._missing(match["kept"])
            gone = [step for step in self.matcher.steps if step not in kept]
            return [Delete(step.id) for step in outermost(self.prior, gone)]
        chosen = self.matcher.by_place(wish.old)
        if match := _ON_FROM.match(wish.old):
            chosen = self._on_from(match)
        for text in [] if chosen else targets(wish.old):
            found_steps = self.matcher.find(text)
            if not found_steps and text == wish.old:
                return self._deleting_activity(wish)
            if not found_steps:
                raise self._missing(text)
            chosen += [step for step in found_steps if step not in chosen]
        whole = outermost(self.prior, chosen)
        loop = next((s for s in whole if isinstance(s, For | While)), None)
        if loop is not None and not words & {"loop", "loops", "everything", "all", "each", "every"}:
            raise EditError(
                f"{wish.old[:120]!r} is all that the loop {loop.id} does; remove the loop with it, or say what it does "
                "instead"
            )
        return [Delete(step.id) for step in whole]

    def _on_from(self, match: re.Match[str]) -> list[Call | UserTask]:
        """The steps before or after a step that a text names: "everything after the card"."""
        found = self.matcher.find(imperative(match["step"]))
        if not found:
            raise self._missing(match["step"])
        places = [place for place, step in enumerate(self.matcher.steps) if step in found]
        after = match["side"].lower() in ("after", "behind", "below", "following")
        chosen = self.matcher.steps[places[-1] + 1 :] if after else self.matcher.steps[: places[0]]
        if not chosen:
            raise self._missing(match[0])
        return chosen

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
        added = self._add(EditText(ADD, wish.new))
        if any(isinstance(s, UserTask) for each in added if isinstance(each, Insert) for s in walk(each.steps)):
            raise self._missing(wish.old)
        return added

    # replacing

    def _replace(self, wish: EditText) -> list[Operation]:
        changed = changed_constant(self.prior, wish.old, wish.new)
        changed = changed or changed_text(self.prior, wish.old, wish.new)
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
            is_read = step.variable in read  # what later steps read keeps its name
            operations.append(Replace(step.id, replace(new[0], variable=step.variable) if is_read else new[0]))
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
        step = next((c for c in self.writer.ranker.table.names.clauses(text) if c.kind == STEP), None)
        mention = self.matcher.mention(text)
        if step is None or not (mention.clause.verb or verb):
            return mention.clause if step is None else step
        if mention.clause.verb:
            return replace(step, verb=mention.clause.verb) if step.verb else step
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
            drafted = self.drafter.step(clause, ())
            if drafted is not None and isinstance(drafted[0], Call | UserTask):
                made.append(drafted[0])
        return tuple(made)

    # adding

    def _add(self, wish: EditText) -> list[Operation]:
        if _OF_THE_FLOW.search(wish.new) and not _ADDS.match(wish.new):
            raise self._missing(wish.new)
        clauses = self.writer.ranker.table.names.clauses(wish.new)[:MAX_CLAUSES]
        steps = [clause for clause in clauses if clause.kind == STEP]
        if clauses and not steps and any(c.kind == CONDITION_CLAUSE for c in clauses):
            return [SetCondition(self._last_if(wish.new).id, self._condition_of(wish.new))]
        orelse = wish.orelse or (bool(clauses) and clauses[0].kind == ELSE)
        block = self.drafter.block([clause for clause in clauses if clause.kind != ELSE or clause is not clauses[0]])
        if not block:
            raise EditError(f"{wish.new[:120]!r} asks for no step; say what to add, verb first")
        block = without_ids(block)
        if all(isinstance(s, UserTask) for s in walk(block)) and _asks_for_a_change(clauses):
            raise self._missing(wish.new)
        again = {s.activity for s in self.matcher.steps if isinstance(s, Call)} & set(activities(Flow(block)))
        if again and not (wish.where or orelse or _ADDS.match(wish.new) or _MORE.search(wish.new)):
            told = "which is there already; say 'add' for one more, or what is to change"
            raise EditError(f"{wish.new[:120]!r} may speak of {min(again)}, {told}")
        if orelse:
            conditions = [s for s in walk(self.prior.body) if isinstance(s, If) and not s.orelse]
            if not conditions:
                raise EditError("the flow has no condition without an else; name the condition first")
            return [AddElse(conditions[-1].id, block)]
        if wish.where in ("before", "after"):
            target = self._anchor(wish.anchor, wish.new)
            if target is not None:
                return [Insert(block, "before" if wish.where == "before" else "after", target)]
            return [Insert(block, "prepend" if wish.where == "before" else "append")]
        if wish.where == "begin":
            return [Insert(block, "prepend")]
        return [self._inserted(statement, wish) for statement in block]

    def _anchor(self, text: str, added: str) -> str | None:
        """The id of the step that stands at the place; None for the end of the flow."""
        words = {word.lower() for word in text.split()}
        if words <= _END_WORDS | {"the", "a", "is", "are", "has", "been"}:
            return None
        loops = [s for s in walk(self.prior.body) if isinstance(s, For)]
        if loops and LOOPING.match(imperative(text)):
            return loops[-1].id
        anchors = self.matcher.find(imperative(text))
        named = re.search(r"\b(?:to|on|for|of|in) (?:the|that|this) (.+)$", added)
        if (
            not anchors and named and words & {"it", "that", "this"}
        ):  # "add a comment to the ticket after it was created"
            anchors = self.matcher.find(named[1])
        if not anchors:
            raise self._missing(text)
        return anchors[-1].id

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
            same_attribute = known_attribute(self.prior, statement.branches[0].condition, wish.new)
            if same_attribute is not None and not statement.orelse:
                other, opposite = same_attribute
                body = statement.branches[0].body
                return AddElse(other.id, body) if opposite else Insert(body, "append", other.branches[0].id or other.id)
            for other in reversed(ifs):
                if excludes(other.branches[-1].condition, statement.branches[0].condition):
                    return AddElse(other.id, (statement,))
            loop = next((loop for loop in reversed(loops) if loop.variable in read), None)
            return Insert((statement,), "append", loop.id) if loop else Insert((statement,))
        return Insert((statement,))

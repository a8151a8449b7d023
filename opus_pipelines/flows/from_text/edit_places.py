"""Where an edit belongs in a flow: the condition that a text speaks of, the loop of its item, and blocks."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from opus_pipelines.flows.from_text.activities import content_stems, split_words
from opus_pipelines.flows.from_text.things import singular
from opus_pipelines.language.word_stems import EMPTY, stem
from opus_pipelines.workflow.blocks.edits import Operation, SetCondition, SetLoopHeader
from opus_pipelines.workflow.blocks.expressions import Comparison, Expression, Literal, Not, Path, paths
from opus_pipelines.workflow.blocks.model import Block, Call, Flow, For, If, Statement, UserTask, blocks_of, walk

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


def spoken_loop(text: str, loops: Sequence[For]) -> For | None:
    """Returns the loop whose item the text speaks of in the singular: "the lead", "its owner"."""
    words = [word.lower().strip(".,") for word in text.split()]
    if "each" in words or "every" in words:
        return None
    for loop in reversed(loops):
        for before, word in pairwise(words):
            single = not word.endswith("s") or word.endswith("'s")
            named = stem(word.removesuffix("'s")) == stem(loop.variable)
            if before in ("the", "that", "this") and single and named:
                return loop
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
_LOOPING = re.compile(
    r"^(?:loop|iterate|go|run|cycle)\w* (?:over|through|across)(?: all| each| every)?(?: of)?(?: the)? (?P<what>\w+)",
    re.IGNORECASE,
)


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
            if old and (old == value or near or names_attribute):
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
    kept = [word for word in words if word.lower() not in {attribute, "one", "ones", *old} | EMPTY]
    return kept[-1] if kept else words[-1]


def changed_loop(prior: Flow, new: str) -> Operation | None:
    """Returns the change of the last loop's header for "loop over the contacts"; None for another text."""
    match = _LOOPING.match(new.strip())
    loops = [statement for statement in walk(prior.body) if isinstance(statement, For)]
    if match is None or not loops:
        return None
    wanted = stem(match["what"])
    for statement in walk(prior.body):
        if isinstance(statement, Call) and wanted in {stem(word) for word in statement.variable.split("_")}:
            variable = singular(statement.variable)
            name = variable if variable != statement.variable else f"{variable}_item"
            return SetLoopHeader(loops[-1].id, Path((statement.variable,)), name)
    return None


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
    found: list[Statement] = []

    def visit(block: Block) -> None:
        for statement in block:
            inner = [s for part in blocks_of(statement) for s in walk(part) if isinstance(s, Call | UserTask)]
            if isinstance(statement, Call | UserTask):
                if statement.id in gone:
                    found.append(statement)
            elif inner and all(s.id in gone for s in inner):
                found.append(statement)
            else:
                for part in blocks_of(statement):
                    visit(part)

    visit(prior.body)
    return found

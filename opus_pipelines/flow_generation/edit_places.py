"""Where an edit belongs in a flow: the condition that a text speaks of, the loop of its item, and blocks."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from opus_pipelines.core.word_stems import EMPTY, stem
from opus_pipelines.flow_generation.activities import content_stems, split_words
from opus_pipelines.flows.expressions import Comparison, Expression, Literal, Not, Path, paths
from opus_pipelines.flows.model import Block, Flow, For, If
from opus_pipelines.flows.traversal import blocks_of, walk


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

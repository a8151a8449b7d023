"""Random flows for property tests: every statement, nested expressions, and texts with odd characters."""

from hypothesis import strategies as st

from opus_pipelines.workflow.blocks.expressions import (
    COMPARATORS,
    And,
    Comparison,
    Expression,
    Literal,
    Not,
    Operand,
    Or,
    Path,
)
from opus_pipelines.workflow.blocks.model import (
    Block,
    Branch,
    Call,
    Flow,
    For,
    If,
    Parallel,
    Statement,
    UserTask,
    While,
)

NAMES = st.sampled_from(["issue", "issues", "lead_2", "größe", "x", "file", "new_task", "v1"])
ACTIVITIES = st.sampled_from(["Jira_Issue__2_0_0__create_Issue", "Slack_message__3_0_0__create_message", "Box_File"])
TEXTS = st.one_of(
    st.sampled_from(
        ["check team status", "", "a 'b' \"c\"", "x::y ::: z", "<b>&amp;", " line\nbreak\t", "\\n \\", "für 🙂"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), max_size=12),
)
WHOLE = st.integers(min_value=-(2**63), max_value=2**63 - 1)
SCALARS = st.one_of(TEXTS, WHOLE, st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: Path(tuple(parts)))
OPERANDS: st.SearchStrategy[Operand] = st.one_of(PATHS, SCALARS.map(Literal))


def _comparison(left: Operand, operator: str, right: Operand) -> Comparison:
    return Comparison(left, next(each for each in COMPARATORS if each == operator), right)


COMPARISONS = st.builds(_comparison, OPERANDS, st.sampled_from(COMPARATORS), OPERANDS)


def _joined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(inner.map(Not), several.map(And), several.map(Or))


CONDITIONS: st.SearchStrategy[Expression] = st.recursive(st.one_of(COMPARISONS, OPERANDS), _joined, max_leaves=5)
ARGUMENTS = st.lists(st.tuples(NAMES, OPERANDS), max_size=2, unique_by=lambda pair: pair[0]).map(tuple)
CALLS = st.builds(Call, ACTIVITIES, NAMES, ARGUMENTS)
USER_TASKS = st.builds(UserTask, TEXTS, NAMES)


def _blocks(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[Block]:
    return st.lists(inner, min_size=1, max_size=3).map(tuple)


def _nested(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
    block = _blocks(inner)
    branches = st.lists(st.builds(Branch, CONDITIONS, block), min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(If, branches, st.one_of(st.just(()), block)),
        st.builds(For, NAMES, CONDITIONS, block),
        st.builds(While, CONDITIONS, block),
        st.builds(Parallel, st.lists(block, min_size=2, max_size=3).map(tuple)),
    )


STATEMENTS: st.SearchStrategy[Statement] = st.recursive(st.one_of(CALLS, USER_TASKS), _nested, max_leaves=8)
FLOWS = st.builds(Flow, st.lists(STATEMENTS, max_size=4).map(tuple), st.sampled_from(["", "Leads", "a <b> & 'c'"]))

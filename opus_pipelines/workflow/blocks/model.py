"""The flow: a name and a block of statements. The records are frozen; ids and names do not count for equality.

Two flows are equal when they do the same with the same variables. `traversal.renamed` makes them comparable whatever
the variables are called.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from opus_pipelines.workflow.blocks.expressions import Expression, FlowError, Operand, check_text, is_name

MAX_DEPTH = 30  # statements inside statements; recursion over a flow is bounded by it


def _id() -> str:
    return field(default="", compare=False, kw_only=True)


@dataclass(frozen=True)
class Call:
    """`variable = activity(name=value, …)`: one activity of a catalogue, and the variable that holds its result."""

    activity: str
    variable: str
    arguments: tuple[tuple[str, Operand], ...] = ()
    id: str = _id()

    def __post_init__(self) -> None:
        if not self.activity:
            raise FlowError(f"the call that sets {self.variable!r} names no activity")
        _check_name(self.variable)
        check_text(self.activity)
        names = [name for name, _ in self.arguments]
        for name in names:
            _check_name(name)
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise FlowError(f"the call of {self.activity} gives the argument {twice[0]!r} twice")


@dataclass(frozen=True)
class UserTask:
    """`variable = user_task("text")`: work that a person does, told in words."""

    text: str
    variable: str
    id: str = _id()

    def __post_init__(self) -> None:
        _check_name(self.variable)
        check_text(self.text)


@dataclass(frozen=True)
class Branch:
    """A condition of an `If` and the block that runs when it is the first to hold."""

    condition: Expression
    body: "Block"
    id: str = _id()

    def __post_init__(self) -> None:
        _check_block("a branch of an if", self.body)


@dataclass(frozen=True)
class If:
    """if, elif, else. `branches` holds one branch for the if and for each elif; an empty `orelse` is no else.

    An else that holds one `If` and nothing else is an elif: the record takes over the branches of that `If`.
    """

    branches: tuple[Branch, ...]
    orelse: "Block" = ()
    id: str = _id()

    def __post_init__(self) -> None:
        if not self.branches:
            raise FlowError("an if has no condition; give it a branch")
        if len(self.orelse) == 1 and isinstance(self.orelse[0], If):
            inner = self.orelse[0]
            object.__setattr__(self, "branches", (*self.branches, *inner.branches))
            object.__setattr__(self, "orelse", inner.orelse)


@dataclass(frozen=True)
class For:
    """`for variable in iterable`: the body runs once for each item."""

    variable: str
    iterable: Expression
    body: "Block"
    id: str = _id()

    def __post_init__(self) -> None:
        _check_name(self.variable)
        _check_block(f"the loop over {self.variable!r}", self.body)


@dataclass(frozen=True)
class While:
    """`while condition`: the condition is tested before each round of the body."""

    condition: Expression
    body: "Block"
    id: str = _id()

    def __post_init__(self) -> None:
        _check_block("a while", self.body)


@dataclass(frozen=True)
class Parallel:
    """Two blocks or more that run at the same time; the flow goes on when all have ended."""

    branches: tuple["Block", ...]
    id: str = _id()

    def __post_init__(self) -> None:
        if len(self.branches) < 2:
            raise FlowError(f"a parallel has {len(self.branches)} branches; it needs two or more")
        for branch in self.branches:
            _check_block("a branch of a parallel", branch)


Statement: TypeAlias = Call | UserTask | If | For | While | Parallel
Block: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True)
class Flow:
    """A whole flow. Its name is a title for people; an empty body is a flow without a step."""

    body: Block = ()
    name: str = field(default="", compare=False)


def _check_block(what: str, block: Block) -> None:
    if not block:
        raise FlowError(f"{what} has no step; give it one or remove it")


def _check_name(name: str) -> None:
    if not is_name(name):
        raise FlowError(f"{name!r} may not be the name of a variable; use letters, digits and '_'")

"""The flow: a name and a block of statements; and walks over it. The records are frozen; ids and names do not count.

Two flows are equal when they do the same with the same variables. `renamed` makes them comparable whatever the
variables are called.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from opus_pipelines.workflow.blocks.expressions import (
    Expression,
    FlowError,
    Operand,
    Path,
    check_text,
    is_name,
    map_paths,
    paths,
)

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


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """Returns the blocks inside a statement in their order; the last of an `If` is its else where it has one."""
    if isinstance(statement, If):
        bodies = tuple(branch.body for branch in statement.branches)
        return (*bodies, statement.orelse) if statement.orelse else bodies
    if isinstance(statement, For | While):
        return (statement.body,)
    return statement.branches if isinstance(statement, Parallel) else ()


def walk(block: Block) -> Iterator[Statement]:
    """Yields every statement of the block in the order of reading, a statement before those inside it."""
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from walk(inner)


def activities(flow: Flow) -> list[str]:
    """Returns the activity of every call in the order of reading, repeats included; user tasks are none."""
    return [statement.activity for statement in walk(flow.body) if isinstance(statement, Call)]


def depth(block: Block) -> int:
    """Returns how many statements stand inside one another: 0 for an empty block, 1 for a plain sequence."""
    return max((1 + max(map(depth, blocks_of(statement)), default=0) for statement in block), default=0)


def map_blocks(statement: Statement, change: Callable[[Block], Block]) -> Statement:
    """Returns the statement with every block inside it changed."""
    if isinstance(statement, If):
        branches = tuple(replace(branch, body=change(branch.body)) for branch in statement.branches)
        return replace(statement, branches=branches, orelse=change(statement.orelse) if statement.orelse else ())
    if isinstance(statement, For | While):
        return replace(statement, body=change(statement.body))
    if isinstance(statement, Parallel):
        return replace(statement, branches=tuple(map(change, statement.branches)))
    return statement


def map_statements(block: Block, change: Callable[[Statement], Statement]) -> Block:
    """Returns the block with every statement changed, those inside a statement before the statement itself."""
    return tuple(change(map_blocks(statement, lambda inner: map_statements(inner, change))) for statement in block)


def map_expressions(statement: Statement, change: Callable[[Expression], Expression]) -> Statement:
    """Returns the statement with its own conditions or iterable changed; arguments and inner blocks stay."""
    if isinstance(statement, If):
        branches = tuple(replace(branch, condition=change(branch.condition)) for branch in statement.branches)
        return replace(statement, branches=branches)
    if isinstance(statement, For):
        return replace(statement, iterable=change(statement.iterable))
    if isinstance(statement, While):
        return replace(statement, condition=change(statement.condition))
    return statement


def expressions(statement: Statement) -> list[Expression]:
    """Returns the conditions, the iterable or the arguments of a statement itself."""
    if isinstance(statement, If):
        return [branch.condition for branch in statement.branches]
    if isinstance(statement, For):
        return [statement.iterable]
    if isinstance(statement, While):
        return [statement.condition]
    return [value for _, value in statement.arguments] if isinstance(statement, Call) else []


def bound_variables(flow: Flow) -> list[str]:
    """Returns the variables that calls, user tasks and loops set, each once, in the order of first binding."""
    return list(dict.fromkeys(s.variable for s in walk(flow.body) if isinstance(s, Call | UserTask | For)))


def free_variables(flow: Flow) -> set[str]:
    """Returns the variables that are read and that nothing in the flow sets."""
    used = {path.parts[0] for s in walk(flow.body) for expression in expressions(s) for path in paths(expression)}
    return used - set(bound_variables(flow))


def read_before_set(flow: Flow) -> list[tuple[str, str]]:
    """Returns the id of a step and a variable that it reads and that no step before it sets, in the order of reading.

    A loop over its own variable and steps that need each other's results are found so: their variables are cyclic.
    """
    known: set[str] = set()
    found: list[tuple[str, str]] = []
    for statement in walk(flow.body):
        names = {path.parts[0] for expression in expressions(statement) for path in paths(expression)}
        found += [(statement.id, name) for name in sorted(names - known)]
        if isinstance(statement, Call | UserTask | For):
            known.add(statement.variable)
    return found


def renamed(flow: Flow, prefix: str = "v") -> Flow:
    """Returns the flow with its variables called `v1`, `v2`, … in the order of first binding.

    Variables that nothing sets keep their names. Flows that differ in the names of variables alone become equal
    (exact match up to variable names, Flow-Bench).
    """
    while any(re.fullmatch(prefix + r"\d+", name) for name in free_variables(flow)):
        prefix += "_"
    return with_variables(flow, {name: f"{prefix}{i}" for i, name in enumerate(bound_variables(flow), start=1)})


def with_variables(flow: Flow, names: dict[str, str]) -> Flow:
    """Returns the flow with these variables renamed wherever they are set or read."""

    def path(old: Path) -> Path:
        return Path((names.get(old.parts[0], old.parts[0]), *old.parts[1:]))

    def change(statement: Statement) -> Statement:
        new = map_expressions(statement, lambda expression: map_paths(expression, path))
        if isinstance(new, Call):
            new = replace(new, arguments=tuple((k, path(v) if isinstance(v, Path) else v) for k, v in new.arguments))
        if isinstance(new, Call | UserTask | For):
            new = replace(new, variable=names.get(new.variable, new.variable))
        return new

    return replace(flow, body=map_statements(flow.body, change))


def ids(block: Block) -> Iterator[str]:
    """Yields the id of every statement and of every branch of an `If`, in the order of reading; none is left out."""
    for statement in block:
        yield statement.id
        if isinstance(statement, If):
            for branch in statement.branches:
                yield branch.id
        for inner in blocks_of(statement):
            yield from ids(inner)


def identified(flow: Flow, taken: Iterable[str] = ()) -> Flow:
    """Returns the flow with an id of its own for every statement and branch: `s1`, `s2`, … where it has none.

    Ids that are there stay, except that of a second statement with the same id. `taken`: ids that no new one may have.
    """
    used, seen = {*taken, *ids(flow.body)}, set[str]()
    number = 0

    def fresh(old: str) -> str:
        nonlocal number
        if old and old not in seen:
            seen.add(old)
            return old
        while not number or f"s{number}" in used:
            number += 1
        used.add(f"s{number}")
        seen.add(f"s{number}")
        return f"s{number}"

    def block(old: Block) -> Block:
        return tuple(statement(each) for each in old)

    def statement(old: Statement) -> Statement:
        new = replace(old, id=fresh(old.id))
        if isinstance(new, If):
            branches = tuple(
                Branch(branch.condition, block(branch.body), id=identity)
                for branch, identity in [(each, fresh(each.id)) for each in new.branches]
            )
            return replace(new, branches=branches, orelse=block(new.orelse))
        return map_blocks(new, block)

    return replace(flow, body=block(flow.body))


def without_ids(block: Block) -> Block:
    """Returns the block without any id, for steps that become part of another flow."""

    def bare(statement: Statement) -> Statement:
        if isinstance(statement, If):
            statement = replace(statement, branches=tuple(replace(branch, id="") for branch in statement.branches))
        return replace(statement, id="")

    return map_statements(block, bare)

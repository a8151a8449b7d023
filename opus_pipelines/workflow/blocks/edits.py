"""Edit operations on the ids of a flow (Flow-Bench, arXiv 2505.11646), and their application.

An operation changes what it names and keeps the ids of everything else. Deleting the whole body of an if that has an
else negates the condition and keeps the else.

Edits work on a tree in which each elif is an if inside the else before it, so every header has an id.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from opus_pipelines.workflow.blocks.expressions import Expression, FlowError, negated
from opus_pipelines.workflow.blocks.formats.python_ir import loop_header, write_condition, write_step
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
    identified,
    ids,
    walk,
)


@dataclass
class Part:
    """One statement. `kind`: step, if, for, while or parallel; an if has two blocks: its body and its else."""

    kind: str
    id: str
    step: Call | UserTask | None = None
    variable: str = ""
    expression: Expression | None = None
    blocks: list[list["Part"]] = field(default_factory=list)
    alias: str = ""  # the id of the whole If, of which `id` is the first branch

    @property
    def size(self) -> int:
        """How many statements it is."""
        return 1 + sum(part.size for block in self.blocks for part in block)


def to_parts(block: Block) -> list[Part]:
    """Returns the block as parts."""
    return [_part(statement) for statement in block]


def _part(statement: Statement) -> Part:
    if isinstance(statement, If):
        orelse = to_parts(statement.orelse)
        for i, branch in reversed(list(enumerate(statement.branches))):
            alias = "" if i else statement.id
            body = to_parts(branch.body)
            orelse = [Part("if", branch.id, None, "", branch.condition, [body, orelse], alias)]
        return orelse[0]
    if isinstance(statement, For):
        return Part("for", statement.id, None, statement.variable, statement.iterable, [to_parts(statement.body)])
    if isinstance(statement, While):
        return Part("while", statement.id, None, "", statement.condition, [to_parts(statement.body)])
    if isinstance(statement, Parallel):
        return Part("parallel", statement.id, blocks=[to_parts(branch) for branch in statement.branches])
    return Part("step", statement.id, statement)


def to_block(parts: list[Part]) -> Block:
    """Returns parts as a block. What has become empty is left out: a loop without a step, an if without any.

    An if whose body is empty and that has an else becomes the else under the negated condition.
    """
    return tuple(statement for part in parts for statement in _statements(part))


def _statements(part: Part) -> Block:
    blocks = [to_block(block) for block in part.blocks]
    if part.step is not None:
        return (part.step,)
    if part.kind == "parallel":
        full = tuple(block for block in blocks if block)
        return (Parallel(full, id=part.id),) if len(full) > 1 else full[0] if full else ()
    expression = part.expression
    if expression is None:
        raise FlowError(f"step {part.id} has no condition")
    if part.kind == "if":
        body, orelse = blocks
        if not body:
            expression, body, orelse = negated(expression), orelse, ()
        return (If((Branch(expression, body, id=part.id),), orelse, id=part.alias),) if body else ()
    if not blocks[0]:
        return ()
    if part.kind == "for":
        return (For(part.variable, expression, blocks[0], id=part.id),)
    return (While(expression, blocks[0], id=part.id),)


class EditTree:
    """The parts of one flow, found by id."""

    def __init__(self, flow: Flow) -> None:
        flow = identified(flow)
        self.name, self.parts, self._taken = flow.name, to_parts(flow.body), frozenset(ids(flow.body))

    def flow(self) -> Flow:
        """Returns the flow as it is now, every new statement with an id."""
        return identified(Flow(to_block(self.parts), self.name), self._taken)

    def walk(self) -> Iterator[tuple[list[Part], int]]:
        """Yields every part by the list that it is in and its place there, in the order of reading."""
        waiting = [(self.parts, i) for i in reversed(range(len(self.parts)))]
        while waiting:
            block, i = waiting.pop()
            yield block, i
            inner = block[i].blocks
            waiting += [(b, j) for b in reversed(inner) for j in reversed(range(len(b)))]

    def place(self, target: str) -> tuple[list[Part], int]:
        """Returns the list that holds this step and its place there; raises FlowError where there is none."""
        found = next(((b, i) for b, i in self.walk() if target and target in (b[i].id, b[i].alias)), None)
        if found is None:
            known = [b[i].id for b, i in self.walk()]
            listed = ", ".join(known[:12]) + (" and more" if len(known) > 12 else "")
            raise FlowError(f"the flow has no step {target!r}; it has {listed or 'no step at all'}")
        return found

    def part(self, target: str) -> Part:
        """Returns the part with this id."""
        block, i = self.place(target)
        return block[i]

    def block(self, target: str) -> list[Part]:
        """Returns a block: `""` is the flow, `s3` the body of s3, `s3.else` its else, `s4.1` a branch of a parallel."""
        if not target:
            return self.parts
        owner, _, which = target.rpartition(".")
        if owner and (which == "else" or which.isdigit()) and not self._has(target):
            part, number = self.part(owner), 1 if which == "else" else int(which)
            if (which == "else") == (part.kind == "if") and number < len(part.blocks):
                return part.blocks[number]
            raise FlowError(f"step {owner} has no block {which!r}")
        part = self.part(target)
        if not part.blocks:
            raise FlowError(f"step {target} is no if and no loop; nothing can be put into it")
        return part.blocks[0]

    def _has(self, target: str) -> bool:
        return any(b[i].id == target for b, i in self.walk())


Where: TypeAlias = OneOf["before", "after", "prepend", "append"]


@dataclass(frozen=True)
class Insert:
    """Puts steps before or after a step, or first or last into a block (`EditTree.block` says how it is named)."""

    steps: Block
    where: Where = "append"
    target: str = ""


@dataclass(frozen=True)
class Delete:
    """Removes a step with all that is in it."""

    target: str


@dataclass(frozen=True)
class DeleteElse:
    """Removes the else of an if."""

    target: str


@dataclass(frozen=True)
class Replace:
    """Puts another call or user task in the place of a step; the id stays."""

    target: str
    step: Call | UserTask


@dataclass(frozen=True)
class SetCondition:
    """Gives an if, an elif or a while another condition."""

    target: str
    condition: Expression


@dataclass(frozen=True)
class NegateCondition:
    """Turns the condition of an if, an elif or a while around."""

    target: str


@dataclass(frozen=True)
class AddElse:
    """Gives an if without an else one."""

    target: str
    steps: Block


@dataclass(frozen=True)
class Wrap:
    """Puts the steps from `first` to `last`, which stand in one block, into a new if, for or while with this `id`.

    `variable` is that of a for, and empty otherwise; `loop` tells a while from an if.
    """

    first: str
    last: str
    expression: Expression
    variable: str = ""
    loop: bool = False
    id: str = ""


@dataclass(frozen=True)
class Unwrap:
    """Removes an if without an else, a loop or a parallel and leaves the steps that are in it."""

    target: str


@dataclass(frozen=True)
class SetLoopHeader:
    """Gives a for another variable and iterable, or a while another condition (then `variable` is empty)."""

    target: str
    expression: Expression
    variable: str = ""


@dataclass(frozen=True)
class Move:
    """Moves a step with all that is in it to a place, which is named as that of an insert."""

    target: str
    where: Where = "append"
    place: str = ""


@dataclass(frozen=True)
class Swap:
    """Lets two steps change places."""

    target: str
    other: str


@dataclass(frozen=True)
class Together:
    """Puts each of the steps from `first` to `last`, which stand in one block, into a branch of a new parallel."""

    first: str
    last: str


Operation: TypeAlias = (
    Insert
    | Delete
    | DeleteElse
    | Replace
    | SetCondition
    | NegateCondition
    | AddElse
    | Wrap
    | Unwrap
    | SetLoopHeader
    | Move
    | Swap
    | Together
)


def applied(flow: Flow, operations: Sequence[Operation]) -> Flow:
    """Returns the flow after all operations, in their order; what none of them names keeps its id.

    Raises FlowError for a step that is not there, for an operation that does not fit its step, and for operations that
    contradict each other.
    """
    _check_contradictions(operations)
    tree = EditTree(flow)
    for operation in operations:
        _apply(tree, operation)
    return tree.flow()


def _apply(tree: EditTree, operation: Operation) -> None:
    if isinstance(operation, Insert):
        _insert(tree, operation)
    elif isinstance(operation, Wrap | Together):
        _wrap(tree, operation)
    elif isinstance(operation, Move):
        _move(tree, operation)
    elif isinstance(operation, Swap):
        block, i = tree.place(operation.target)
        other, j = tree.place(operation.other)
        if _holds(block[i], operation.other) or _holds(other[j], operation.target):
            raise FlowError(f"one of the steps {operation.target} and {operation.other} stands in the other one")
        block[i], other[j] = other[j], block[i]
    elif isinstance(operation, Delete):
        block, i = tree.place(operation.target)
        del block[i]
    elif isinstance(operation, Unwrap):
        _unwrap(tree, operation)
    elif isinstance(operation, Replace):
        _replace(tree, operation)
    elif isinstance(operation, DeleteElse | AddElse):
        _else(tree, operation)
    else:
        _header(tree, operation)


def _insert(tree: EditTree, operation: Insert) -> None:
    if not operation.steps:
        raise FlowError("an insert has no step; give it one")
    _put(tree, to_parts(_fresh(tree, operation.steps)), operation.where, operation.target)


def _put(tree: EditTree, new: list[Part], where: Where, target: str) -> None:
    if where in ("before", "after"):
        block, i = tree.place(target)
        at = i + (where == "after")
    else:
        block = tree.block(target)
        at = 0 if where == "prepend" else len(block)
    block[at:at] = new


def _move(tree: EditTree, operation: Move) -> None:
    block, i = tree.place(operation.target)
    if operation.place and _holds(block[i], operation.place.removesuffix(".else")):
        raise FlowError(f"step {operation.target} cannot be moved to a place in itself")
    if operation.place:
        tree.part(operation.place.removesuffix(".else"))  # raises before anything is taken away
    part = block.pop(i)
    _put(tree, [part], operation.where, operation.place)


def _holds(part: Part, target: str) -> bool:
    return target in (part.id, part.alias) or any(_holds(inner, target) for block in part.blocks for inner in block)


def _fresh(tree: EditTree, steps: Block) -> Block:
    """Returns the steps without those ids that the flow has already."""
    if set(filter(None, ids(steps))) & {block[i].id for block, i in tree.walk()}:
        raise FlowError("an inserted step has the id of a step of the flow; leave the id out")
    return steps


def _wrap(tree: EditTree, operation: Wrap | Together) -> None:
    block, first = tree.place(operation.first)
    other, last = tree.place(operation.last)
    if other is not block or last < first:
        raise FlowError(f"the steps {operation.first} and {operation.last} do not stand in this order in one block")
    if isinstance(operation, Together):
        if first == last:
            raise FlowError(f"step {operation.first} stands alone; two steps or more are done at the same time")
        block[first : last + 1] = [Part("parallel", "", blocks=[[part] for part in block[first : last + 1]])]
        return
    kind = "for" if operation.variable else "while" if operation.loop else "if"
    blocks = [block[first : last + 1]] + ([[]] if kind == "if" else [])
    block[first : last + 1] = [Part(kind, operation.id, None, operation.variable, operation.expression, blocks)]


def _unwrap(tree: EditTree, operation: Unwrap) -> None:
    block, i = tree.place(operation.target)
    part = block[i]
    if part.kind == "step":
        raise FlowError(f"step {operation.target} has nothing in it to unwrap")
    if part.kind == "if" and part.blocks[1]:
        raise FlowError(f"the if {operation.target} has an else; delete it first")
    block[i : i + 1] = [inner for each in part.blocks for inner in each]


def _replace(tree: EditTree, operation: Replace) -> None:
    part = tree.part(operation.target)
    if part.step is None:
        raise FlowError(f"step {operation.target} is {_article(part)}; only a call or a user task can be replaced")
    step = operation.step
    part.step = (
        Call(step.activity, step.variable, step.arguments, id=part.id)
        if isinstance(step, Call)
        else UserTask(step.text, step.variable, id=part.id)
    )


def _else(tree: EditTree, operation: DeleteElse | AddElse) -> None:
    part = tree.part(operation.target)
    if part.kind != "if":
        raise FlowError(f"step {operation.target} is {_article(part)} and has no else")
    if isinstance(operation, AddElse):
        if part.blocks[1]:
            raise FlowError(f"the if {operation.target} has an else already; insert into {operation.target}.else")
        part.blocks[1] = to_parts(_fresh(tree, operation.steps))
    elif not part.blocks[1]:
        raise FlowError(f"the if {operation.target} has no else to delete")
    else:
        part.blocks[1] = []


def _header(tree: EditTree, operation: SetCondition | NegateCondition | SetLoopHeader) -> None:
    part = tree.part(operation.target)
    wanted = ("for", "while") if isinstance(operation, SetLoopHeader) else ("if", "while")
    if part.kind not in wanted or part.expression is None:
        raise FlowError(f"step {operation.target} is {_article(part)}, not {' or '.join(wanted)}")
    if isinstance(operation, NegateCondition):
        part.expression = negated(part.expression)
    elif isinstance(operation, SetCondition):
        part.expression = operation.condition
    elif (part.kind == "for") != bool(operation.variable):
        raise FlowError(f"step {operation.target} is {_article(part)}; its header has another form")
    else:
        part.expression, part.variable = operation.expression, operation.variable


def _article(part: Part) -> str:
    return f"{'an' if part.kind == 'if' else 'a'} {part.kind}"


def _check_contradictions(operations: Sequence[Operation]) -> None:
    """Raises FlowError where one operation undoes or overwrites another, or needs what another removes."""
    removed: dict[str, int] = {}
    changed: dict[tuple[str, str], int] = {}
    for number, operation in enumerate(operations, start=1):
        for target in _needs(operation):
            if target in removed:
                raise FlowError(
                    f"operations {removed[target]} and {number} contradict: the first removes step {target}"
                )
        if isinstance(operation, Delete | Unwrap):
            removed[operation.target] = number
        kind = _changes(operation)
        if kind is None or isinstance(operation, Insert | Wrap | Together):
            continue
        key = (operation.target, kind)
        if key in changed:
            raise FlowError(
                f"operations {changed[key]} and {number} contradict: both change the {kind} of step {key[0]}"
            )
        changed[key] = number
    for number, operation in enumerate(operations, start=1):
        kind = _changes(operation)
        target = getattr(operation, "target", "")
        if (
            kind
            and isinstance(operation, Replace | SetCondition | NegateCondition | SetLoopHeader)
            and target in removed
        ):
            raise FlowError(
                f"operations {number} and {removed[target]} contradict: one changes step {target}, one removes it"
            )


def _needs(operation: Operation) -> tuple[str, ...]:
    if isinstance(operation, Wrap | Together):
        return (operation.first, operation.last)
    if isinstance(operation, Move):
        return (operation.target, operation.place)
    return (operation.target, operation.other) if isinstance(operation, Swap) else (operation.target,)


def _changes(operation: Operation) -> str | None:
    """What of its step the operation sets; two that set the same contradict."""
    if isinstance(operation, SetCondition | NegateCondition | SetLoopHeader):
        return "condition"
    if isinstance(operation, AddElse | DeleteElse):
        return "else"
    return "step" if isinstance(operation, Replace) else None


def described(operation: Operation) -> str:
    """Returns an operation as one line for people."""
    if isinstance(operation, Insert):
        where = f"{operation.where} {operation.target}" if operation.target else operation.where
        return f"insert {where}: {_steps(operation.steps)}"
    if isinstance(operation, AddElse):
        return f"add else to {operation.target}: {_steps(operation.steps)}"
    if isinstance(operation, Replace):
        return f"replace {operation.target}: {write_step(operation.step)}"
    if isinstance(operation, SetCondition):
        return f"set the condition of {operation.target}: {write_condition(operation.condition)}"
    if isinstance(operation, Wrap):
        return f"wrap {operation.first} to {operation.last}: {_wrapper(operation)}"
    if isinstance(operation, SetLoopHeader):
        return f"set the loop of {operation.target}: {_wrapper(operation)}"
    if isinstance(operation, Move):
        return f"move {operation.target} {operation.where} {operation.place}".rstrip()
    if isinstance(operation, Swap):
        return f"swap {operation.target} and {operation.other}"
    if isinstance(operation, Together):
        return f"do {operation.first} to {operation.last} at the same time"
    words = {Delete: "delete", DeleteElse: "delete the else of", NegateCondition: "negate the condition of"}
    return f"{words.get(type(operation), 'unwrap')} {operation.target}"


def _wrapper(operation: Wrap | SetLoopHeader) -> str:
    text = write_condition(operation.expression)
    if operation.variable:
        return f"for {operation.variable} in {text}"
    return f"{'while' if isinstance(operation, SetLoopHeader) or operation.loop else 'if'} {text}"


def _steps(steps: Block) -> str:
    words = []
    for statement in walk(steps):
        if isinstance(statement, Call | UserTask):
            words.append(write_step(statement))
        elif isinstance(statement, If):
            words.append(f"if {write_condition(statement.branches[0].condition)}")
        else:
            words.append("parallel" if isinstance(statement, Parallel) else loop_header(statement))
    return "; ".join(words)

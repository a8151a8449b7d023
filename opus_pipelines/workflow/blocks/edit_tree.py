"""A flow as a tree that can be changed: each elif is an if inside the else before it, so every header has an id."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from opus_pipelines.workflow.blocks.expressions import Expression, FlowError, negated
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
from opus_pipelines.workflow.blocks.traversal import identified, ids


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

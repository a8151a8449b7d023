"""The operations that turn one flow into another: a tree difference with as few changed statements as possible.

Blocks are aligned by dynamic programming. Besides inserting, deleting and matching a statement, a run of statements may
be wrapped into a new header, and a header may be unwrapped. A match of two compound statements aligns their blocks.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from opus_pipelines.workflow.blocks.edits import (
    AddElse,
    Delete,
    DeleteElse,
    EditTree,
    Insert,
    NegateCondition,
    Operation,
    Part,
    Replace,
    SetCondition,
    SetLoopHeader,
    Unwrap,
    Wrap,
    to_block,
    to_parts,
)
from opus_pipelines.workflow.blocks.expressions import FlowError, negated
from opus_pipelines.workflow.blocks.model import Block, Call, Flow, ids, without_ids

MOST_PAIRS = 250_000  # of statements; beyond it a difference would take minutes
LONGEST_WRAPPED = 25  # statements of a block in which wraps are looked for
_SLIGHT = 0.5  # the cost of a changed header, in statements
_RENAMED = 0.25  # the cost of a changed variable


def difference(before: Flow, after: Flow) -> list[Operation]:
    """Returns operations that turn `before` into `after` (`edits.applied`); none where the flows are equal.

    `before` needs ids, as every format gives them; what is kept keeps them. Raises FlowError for flows that are too
    large to compare.
    """
    old, new = EditTree(before).parts, to_parts(after.body)
    sizes = [sum(part.size for part in parts) for parts in (old, new)]
    if sizes[0] * sizes[1] > MOST_PAIRS:
        raise FlowError(f"flows of {sizes[0]} and {sizes[1]} statements are too large to compare")
    script = _Script({*ids(before.body)})
    aligner = _Aligner()
    script.block(aligner, _Run(old, 0, len(old)), _Run(new, 0, len(new)), "")
    return [*script.headers, *script.inserts, *script.deletes]


class _Run(NamedTuple):
    """The statements from `begin` to `end` of one block."""

    parts: list[Part]
    begin: int
    end: int

    @property
    def key(self) -> tuple[int, int, int]:
        return id(self.parts), self.begin, self.end


class _Step(NamedTuple):
    """How the alignment goes on: delete, insert, match, negate, wrap or unwrap, and how many of each run it takes."""

    kind: str
    old: int
    new: int


def _whole(parts: list[Part]) -> _Run:
    return _Run(parts, 0, len(parts))


def _size(run: _Run) -> int:
    return sum(part.size for part in run.parts[run.begin : run.end])


class _Aligner:
    """Costs of alignments, each computed once."""

    def __init__(self) -> None:
        self._tables: dict[
            tuple[tuple[int, int, int], tuple[int, int, int]], dict[tuple[int, int], tuple[float, _Step]]
        ] = {}

    def cost(self, old: _Run, new: _Run) -> float:
        """Returns what it costs to turn the one run into the other, in statements."""
        if old.begin == old.end or new.begin == new.end:
            return float(_size(old) + _size(new))
        return self.table(old, new)[old.begin, new.begin][0]

    def table(self, old: _Run, new: _Run) -> dict[tuple[int, int], tuple[float, _Step]]:
        """Returns the best cost and step for every pair of places in the two runs."""
        key = (old.key, new.key)
        if key not in self._tables:
            table = self._tables[key] = {(old.end, new.end): (0.0, _Step("", 0, 0))}
            for i in range(old.end, old.begin - 1, -1):
                for j in range(new.end, new.begin - 1, -1):
                    if (i, j) != (old.end, new.end):
                        table[i, j] = min(
                            ((cost + table[i + s.old, j + s.new][0], s) for cost, s in self._steps(old, new, i, j)),
                            key=lambda found: found[0],
                        )
        return self._tables[key]

    def _steps(self, old: _Run, new: _Run, i: int, j: int) -> Iterator[tuple[float, _Step]]:
        if i < old.end and j < new.end:
            yield from self._matches(old.parts[i], new.parts[j])
        if i < old.end:
            yield old.parts[i].size, _Step("delete", 1, 0)
        if j < new.end:
            yield new.parts[j].size, _Step("insert", 0, 1)
        if i < old.end and j < new.end and max(old.end - old.begin, new.end - new.begin) <= LONGEST_WRAPPED:
            yield from self._wraps(old, new, i, j)

    def _matches(self, old: Part, new: Part) -> Iterator[tuple[float, _Step]]:
        if old.kind != new.kind or len(old.blocks) != len(new.blocks):
            return
        if old.step is not None:
            same = old.step == new.step
            renamed = (
                isinstance(old.step, Call) and isinstance(new.step, Call) and old.step.activity == new.step.activity
            )
            yield 0.0 if same else _RENAMED if renamed else 1.0, _Step("match", 1, 1)
            return
        inner = sum(self.cost(_whole(a), _whole(b)) for a, b in zip(old.blocks, new.blocks, strict=True))
        changed = (old.expression, old.variable) != (new.expression, new.variable)
        yield inner + _SLIGHT * changed, _Step("match", 1, 1)
        if _turned(old, new):
            yield (
                _size(_whole(old.blocks[0])) + self.cost(_whole(old.blocks[1]), _whole(new.blocks[0])),
                _Step("negate", 1, 1),
            )

    def _wraps(self, old: _Run, new: _Run, i: int, j: int) -> Iterator[tuple[float, _Step]]:
        header, inside = new.parts[j], old.parts[i]
        if header.kind in ("if", "for", "while"):
            extra = 1.0 + sum(_size(_whole(block)) for block in header.blocks[1:])
            for end in range(i + 1, old.end + 1):
                cost = self.cost(_Run(old.parts, i, end), _whole(header.blocks[0]))
                yield extra + cost, _Step("wrap", end - i, 1)
        if inside.kind in ("if", "for", "while"):
            extra = 1.0 + sum(_size(_whole(block)) for block in inside.blocks[1:])
            for end in range(j + 1, new.end + 1):
                cost = self.cost(_whole(inside.blocks[0]), _Run(new.parts, j, end))
                yield extra + cost, _Step("unwrap", 1, end - j)


def _turned(old: Part, new: Part) -> bool:
    """Whether the old else became the body of the new if, under the negated condition."""
    if old.kind != "if" or old.expression is None or new.blocks[1] or not old.blocks[1]:
        return False
    return new.expression == negated(old.expression)


@dataclass
class _Script:
    """What a difference consists of, in the order in which it can be applied: headers, inserts, deletes."""

    taken: set[str]
    headers: list[Operation] = field(default_factory=list)
    inserts: list[Operation] = field(default_factory=list)
    deletes: list[Operation] = field(default_factory=list)

    def block(self, aligner: _Aligner, old: _Run, new: _Run, target: str) -> None:
        """Writes what turns one block into another; `target` names the block."""
        waiting: list[Part] = []
        last = ""
        for kept, added in [*self._events(aligner, old, new), ("", None)]:
            if added is not None:
                waiting.append(added)
                continue
            if waiting:
                steps = without_ids(to_block(waiting))
                if last:
                    self.inserts.append(Insert(steps, "after", last))
                else:
                    self.inserts.append(Insert(steps, "before", kept) if kept else Insert(steps, "append", target))
                waiting = []
            last = kept

    def _events(self, aligner: _Aligner, old: _Run, new: _Run) -> Iterator[tuple[str, Part | None]]:
        """Yields what the new block consists of: the id of what is kept or wrapped, or a part to insert."""
        i, j = old.begin, new.begin
        if i == old.end or j == new.end:
            yield from (("", part) for part in new.parts[j : new.end])
            self.deletes += [Delete(part.id) for part in old.parts[i : old.end]]
            return
        table = aligner.table(old, new)
        while (i, j) != (old.end, new.end):
            step = table[i, j][1]
            runs = _Run(old.parts, i, i + step.old), _Run(new.parts, j, j + step.new)
            if step.kind == "insert":
                yield "", new.parts[j]
            elif step.kind == "delete":
                self.deletes.append(Delete(old.parts[i].id))
            elif step.kind == "wrap":
                yield self._wrap(aligner, runs[0], new.parts[j]), None
            elif step.kind == "unwrap":
                if any(old.parts[i].blocks[1:]):
                    self.headers.append(DeleteElse(old.parts[i].id))
                self.headers.append(Unwrap(old.parts[i].id))
                yield from self._events(aligner, _whole(old.parts[i].blocks[0]), runs[1])
            else:
                self._match(aligner, old.parts[i], new.parts[j], step.kind == "negate")
                yield old.parts[i].id, None
            i, j = i + step.old, j + step.new

    def _wrap(self, aligner: _Aligner, run: _Run, header: Part) -> str:
        ident = next(name for name in map("w{}".format, range(1, len(self.taken) + 2)) if name not in self.taken)
        self.taken.add(ident)
        first, last = run.parts[run.begin].id, run.parts[run.end - 1].id
        wrap = partial(Wrap, first, last, variable=header.variable, loop=header.kind == "while", id=ident)
        if header.expression is not None:
            self.headers.append(wrap(header.expression))
        self.block(aligner, run, _whole(header.blocks[0]), ident)
        if any(header.blocks[1:]):
            self.inserts.append(AddElse(ident, self._steps(header.blocks[1])))
        return ident

    def _steps(self, parts: list[Part]) -> Block:
        return without_ids(to_block(parts))

    def _match(self, aligner: _Aligner, old: Part, new: Part, turned: bool) -> None:
        if new.step is not None:
            if old.step != new.step:
                self.headers.append(Replace(old.id, new.step))
        elif turned:
            self.deletes += [Delete(part.id) for part in old.blocks[0]]
            self.block(aligner, _whole(old.blocks[1]), _whole(new.blocks[0]), f"{old.id}.else")
        else:
            self._header(old, new)
            for number, (before, after) in enumerate(zip(old.blocks, new.blocks, strict=True)):
                if number and old.kind == "if" and not before:
                    if after:
                        self.inserts.append(AddElse(old.id, self._steps(after)))
                elif number and old.kind == "if" and not after:
                    self.deletes.append(DeleteElse(old.id))
                else:
                    which = f".{number}" if old.kind == "parallel" else ".else" if number else ""
                    self.block(aligner, _whole(before), _whole(after), old.id + which)

    def _header(self, old: Part, new: Part) -> None:
        if (old.expression, old.variable) == (new.expression, new.variable) or new.expression is None:
            return
        if old.expression is not None and new.expression == negated(old.expression) and old.kind != "for":
            self.headers.append(NegateCondition(old.id))
        elif old.kind == "if":
            self.headers.append(SetCondition(old.id, new.expression))
        else:
            self.headers.append(SetLoopHeader(old.id, new.expression, new.variable))


def cost(before: Flow, after: Flow) -> float:
    """Returns how far two flows are apart in statements: infinite where they are too large to compare."""
    old, new = to_parts(before.body), to_parts(after.body)
    if sum(part.size for part in old) * sum(part.size for part in new) > MOST_PAIRS:
        return math.inf
    return _Aligner().cost(_whole(old), _whole(new))

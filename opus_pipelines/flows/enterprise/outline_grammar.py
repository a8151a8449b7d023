"""Which line of an outline may come next, so that a language model writes sound outlines of the catalogue only.

An outline is the trigger (`when daily`) and one line for each step, with two blanks for each block around it. A step of
no catalogue, or flow logic in a wrong place, cannot come out: a decoder takes one of the lines that may follow.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from opus_pipelines.flows.enterprise.documents import (
    CATCH,
    ELSE,
    ELSEIF,
    FOREACH,
    IF,
    LOGIC,
    PARALLEL,
    TRY,
    Component,
)

MOST_OUTLINE_LINES = 24  # from here on only what closes open blocks may follow
_MOST_DEPTH = 3


@dataclass(frozen=True)
class _Level:
    """One block that is open: what it is, how many steps it holds, and the last one."""

    kind: str
    size: int = 0
    last: str = ""


class OutlineGrammar:
    """The lines of outlines over some triggers and steps. `lists` are the steps that give a list to loop over."""

    def __init__(self, triggers: Sequence[str], steps: Sequence[str], lists: Sequence[str]) -> None:
        self._triggers, self._steps, self._lists = tuple(triggers), tuple(steps), frozenset(lists)
        self.allowed = lru_cache(maxsize=4096)(self._allowed)

    def _allowed(self, lines: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
        """Returns the lines that may follow, and whether the outline may end here."""
        if not lines:
            return tuple(f"when {trigger}" for trigger in self._triggers), False
        levels, listed = self._state(lines[1:])
        if levels[-1].kind and not levels[-1].size:
            places = [len(levels) - 1]  # a block that was just opened holds a step
        else:
            places = []
            for depth in range(len(levels) - 1, -1, -1):
                places.append(depth)
                if not _may_close(levels[depth]):
                    break
        can_end = len(lines) > 1 and 0 in places and all(map(_may_close, levels))
        closing = len(lines) > MOST_OUTLINE_LINES
        if closing and can_end:
            return (), True
        lines_that_follow = [
            "  " * depth + name
            for depth in (places[-1:] if closing else places)
            for name in self._names(levels[depth], depth, listed[depth], closing)
        ]
        return tuple(lines_that_follow), can_end

    def _names(self, level: _Level, depth: int, is_listed: bool, closing: bool) -> list[str]:
        if level.last == TRY:
            return [CATCH]
        names = list(self._steps[:1] if closing else self._steps)
        if closing or depth >= _MOST_DEPTH:
            return names
        names += [kind for kind in LOGIC if kind not in (ELSE, ELSEIF, CATCH, FOREACH)]
        if level.last in (IF, ELSEIF):
            names += [ELSEIF, ELSE]
        return [*names, FOREACH] if is_listed else names

    def _state(self, lines: Sequence[str]) -> tuple[list[_Level], list[bool]]:
        levels, listed = [_Level("")], [False]
        for line in lines:
            name = line.strip()
            depth = (len(line) - len(name)) // 2
            del levels[depth + 1 :]
            del listed[depth + 1 :]
            level = levels[depth]
            levels[depth] = _Level(level.kind, level.size + 1, name if name in LOGIC else "")
            listed[depth] = listed[depth] or name in self._lists
            if name in LOGIC:
                levels.append(_Level(name))
                listed.append(listed[depth])
        return levels, listed


def _may_close(level: _Level) -> bool:
    """Whether a block may end: it holds enough, and its last step waits for nothing."""
    least = 2 if level.kind == PARALLEL else 1 if level.kind else 0
    return level.size >= least and level.last != TRY


def sound_blocks(components: Sequence[Component]) -> tuple[Component, ...]:
    """Returns the components, numbered from 1, without flow logic that is empty or incomplete.

    Steps of a block that goes stand in the block around it. Orders must be unique, and a block must come before what it
    holds.
    """
    by_order = {c.order: c for c in components}
    left = list(components)
    while True:
        sizes = Counter(c.block for c in left)
        sound: list[Component] = []
        before: dict[int | None, str] = {}
        for component in left:
            last, size = before.get(component.block, ""), sizes[component.order]
            empty = component.is_logic and size < (2 if component.name == PARALLEL else 1)
            lost = component.name in (ELSE, ELSEIF) and last not in (IF, ELSEIF)
            lost = lost or (component.name == CATCH and last != TRY)
            if not empty and not (component.is_logic and lost):
                sound.append(component)
                before[component.block] = component.name if component.is_logic else ""
        sound = _paired(sound)
        orders = {c.order for c in sound}
        done = len(sound) == len(left)
        left = [replace(c, block=_holder(c.block, orders, by_order)) for c in sound]
        if done:
            return _renumbered(left)


def _holder(block: int | None, orders: set[int], by_order: dict[int, Component]) -> int | None:
    """The nearest block around that is still there."""
    while block is not None and block not in orders:
        block = by_order[block].block
    return block


def _paired(components: list[Component]) -> list[Component]:
    """Leaves a TRY out that no CATCH follows."""
    following: dict[int, str] = {}
    last: dict[int | None, Component] = {}
    for component in components:
        if component.block in last:
            following[last[component.block].order] = component.name if component.is_logic else ""
        last[component.block] = component
    return [c for c in components if not (c.is_logic and c.name == TRY and following.get(c.order) != CATCH)]


def _renumbered(components: list[Component]) -> tuple[Component, ...]:
    number = {c.order: n for n, c in enumerate(components, 1)}
    return tuple(
        replace(c, order=number[c.order], block=None if c.block is None else number[c.block]) for c in components
    )

"""Makes the blocks of an outline sound: what holds nothing, or has lost what it belongs to, is left out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from opus_pipelines.enterprise_flows.documents import CATCH, ELSE, ELSEIF, IF, PARALLEL, TRY, Component


def sound_blocks(components: Sequence[Component]) -> tuple[Component, ...]:
    """Returns the components, numbered from 1, without flow logic that is empty or incomplete.

    Steps of a block that goes stand in the block around it. Orders must be unique, and a block must come before what it
    holds.
    """
    by_order = {c.order: c for c in components}
    kept = list(components)
    while True:
        sizes = Counter(c.block for c in kept)
        sound: list[Component] = []
        before: dict[int | None, str] = {}
        for component in kept:
            last, size = before.get(component.block, ""), sizes[component.order]
            empty = component.is_logic and size < (2 if component.name == PARALLEL else 1)
            lost = component.name in (ELSE, ELSEIF) and last not in (IF, ELSEIF)
            lost = lost or (component.name == CATCH and last != TRY)
            if not empty and not (component.is_logic and lost):
                sound.append(component)
                before[component.block] = component.name if component.is_logic else ""
        sound = _paired(sound)
        orders = {c.order for c in sound}
        done = len(sound) == len(kept)
        kept = [replace(c, block=_holder(c.block, orders, by_order)) for c in sound]
        if done:
            return _renumbered(kept)


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

"""Drafts: programs made of a bank of phrases and models. Every draft is a valid program.

An item uses a model always, or where the task mentions a phrase. An alternative takes the place of the items behind it,
up to the first that is none: if, else if, else. A repeat goes back to the item before it while a phrase is mentioned,
which is a back edge (and may never end: the limit of rounds ends such a run).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.workflow.blocks.formats.core_program import NEXT, CoreProgram, CoreStep

ALWAYS = ""  # the phrase of an item without a decision
MOST_ITEMS = 30
_ASK = re.compile(r'call \w+ = mentions\(task=task, phrase="([^"]*)"\)')
_USE = re.compile(r'call plan = add_model\(plan=plan, model="([^"]*)"\)')


@dataclass(frozen=True)
class Bank:
    """What a program may be made of: the phrases to ask for, and the models to use with their kinds.

    Models of one kind take and give the same types, so that their places in a program are alike. `changing`: the kinds
    whose models give another type than they take.
    """

    phrases: tuple[str, ...]
    models: tuple[str, ...]
    kinds: tuple[int, ...]
    changing: frozenset[int] = frozenset()

    def kind(self, model: str) -> int:
        """Returns the kind of a model; -1 for no model."""
        return self.kinds[self.models.index(model)] if model else -1


@dataclass(frozen=True)
class Item:
    """A step of a draft: `phrase` decides, `model` is used.

    `back`: how many items a repeat goes back, 0 for none. `instead`: it is an alternative to the items behind it.
    """

    phrase: str
    model: str
    back: int = 0
    instead: bool = False


Draft = tuple[Item, ...]


def typed(draft: Draft, bank: Bank) -> Draft:
    """Returns the draft with its neighbours of one kind that changes a type as alternatives: if, else if.

    The first of them whose phrase a task mentions is used. An item without a decision ends them.
    """
    kinds = [bank.kind(item.model) for item in draft]
    after = [*kinds[1:], -1]
    return tuple(
        replace(item, instead=kind == behind and kind in bank.changing and item.phrase != ALWAYS)
        for item, kind, behind in zip(draft, kinds, after, strict=True)
    )


def program_of(draft: Draft) -> CoreProgram:
    """Returns the draft as a CoRE program: a decision and a step for each item, and a terminal step."""
    firsts = [f"Step {i + 1}" for i in range(len(draft))] + ["End"]
    steps: list[CoreStep] = []
    for place, item in enumerate(draft):
        first, after = firsts[place], firsts[place + 1]
        ask = f'call found = mentions(task=task, phrase="{item.phrase}")'
        use = f'call plan = add_model(plan=plan, model="{item.model}")'
        if item.back:
            target = firsts[max(0, place - item.back)]
            if target == first or item.phrase == ALWAYS:
                target = after
            steps.append(CoreStep(first, "decision", ask, (("Yes", target), ("No", after))))
        elif item.phrase == ALWAYS:
            steps.append(CoreStep(first, "process", use, ((NEXT, after),)))
        else:
            steps.append(CoreStep(first, "decision", ask, (("Yes", f"{first} use"), ("No", after))))
            steps.append(CoreStep(f"{first} use", "process", use, ((NEXT, firsts[_behind(draft, place)]),)))
    return CoreProgram((*steps, CoreStep("End", "terminal", "Give the plan.")))


def _behind(draft: Draft, place: int) -> int:
    """The place of the item that follows the use of an item."""
    while place < len(draft) and draft[place].instead:
        place += 1
    return min(place + 1, len(draft))


def draft_of(program: CoreProgram) -> Draft:
    """Returns the draft whose program differs from this one in the names of its steps alone.

    Raises InputError for a program of another form, which a language model can improve, and edits cannot.
    """
    items: list[Item] = []
    places = {step.key: i for i, step in enumerate(program.steps)}
    for place, step in enumerate(program.steps):
        ask, use = _ASK.fullmatch(step.instruction), _USE.fullmatch(step.instruction)
        if step.kind == "decision" and ask:
            items.append(Item(ask[1], ""))
        elif step.kind == "process" and use and items and items[-1].phrase and not items[-1].model:
            instead = places.get(step.targets[0], place) > place + 1
            items[-1] = Item(items[-1].phrase, use[1], instead=instead)
        elif step.kind == "process" and use:
            items.append(Item(ALWAYS, use[1]))
    draft = tuple(item if item.model else Item(item.phrase, "", 1) for item in items)
    if _numbered(program_of(draft)) != _numbered(program):
        raise InputError(
            "the program is no chain of 'mentions' decisions and 'add_model' steps: edits cannot improve it"
        )
    return draft


def _numbered(program: CoreProgram) -> list[tuple[str, str, list[tuple[str, int]]]]:
    place = {step.key: i for i, step in enumerate(program.steps)}
    return [
        (step.kind, step.instruction, [(key.lower(), place.get(target.lower(), -1)) for key, target in step.branches])
        for step in program.steps
        if step.kind != "terminal"
    ]


def random_draft(bank: Bank, generator: np.random.Generator) -> Draft:
    """Returns a draft drawn evenly: 1 to 20 items."""
    size = int(generator.integers(1, 21))
    return tuple(Item(_drawn(bank.phrases, generator), _drawn(bank.models, generator)) for _ in range(size))


def _drawn(words: Sequence[str], generator: np.random.Generator) -> str:
    return words[int(generator.integers(len(words)))]

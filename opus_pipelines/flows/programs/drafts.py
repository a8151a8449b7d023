"""Drafts: programs made of a bank of phrases and models, and the edit operators that lead from one to another.

Every draft is a valid program, whatever edits led to it: the policy over edits is constrained by the grammar. An item
uses a model always, or where the task mentions a phrase. An alternative takes the place of the items behind it, up to
the first that is none: if, else if, else. A repeat goes back to the item before it while a phrase is mentioned, which
is a back edge (and may never end: the limit of rounds ends such a run).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.workflow.blocks.formats.core_program import NEXT, CoreProgram, CoreStep

ALWAYS = ""  # the phrase of an item without a decision
Operator = Literal["add", "alternative", "remove", "replace", "rewrite", "swap", "repeat"]
EDIT_OPERATORS: tuple[Operator, ...] = ("add", "alternative", "remove", "replace", "rewrite", "swap", "repeat")
PRIOR = (0.3, 0.2, 0.15, 0.15, 0.05, 0.1, 0.05)  # of the operators, for every method and control
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


@dataclass(frozen=True)
class Edit:
    """One edit: its operator, the place, and the phrase and the model that it brings."""

    operator: Operator
    place: int
    phrase: str = ALWAYS
    model: str = ""


def applied(draft: Draft, edit: Edit) -> Draft:
    """Returns the draft after an edit; one that does not fit the draft changes nothing."""
    items = list(draft)
    at = edit.place
    if edit.operator in ("add", "alternative") and len(items) < MOST_ITEMS:
        instead = edit.operator == "alternative" and edit.phrase != ALWAYS
        items.insert(min(at, len(items)), Item(edit.phrase, edit.model, instead=instead))
    elif edit.operator == "repeat" and items and len(items) < MOST_ITEMS:
        items.insert(min(at, len(items)), Item(edit.phrase, "", 1))
    elif at < len(items):
        if edit.operator == "remove":
            del items[at]
        elif edit.operator == "replace":
            items[at] = Item(edit.phrase, edit.model, instead=items[at].instead and edit.phrase != ALWAYS)
        elif edit.operator == "rewrite":
            instead = items[at].instead and edit.phrase != ALWAYS
            items[at] = Item(edit.phrase, items[at].model, items[at].back, instead)
        elif edit.operator == "swap" and len(items) > 1:
            other = (at + 1) % len(items)
            items[at], items[other] = items[other], items[at]
    return tuple(items)


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


def random_edit(draft: Draft, bank: Bank, generator: np.random.Generator) -> Edit:
    """Returns an edit: the operator by the prior; its place, phrase and model drawn evenly."""
    operator = EDIT_OPERATORS[int(generator.choice(len(EDIT_OPERATORS), p=PRIOR))]
    place = int(generator.integers(len(draft) + 1))
    return Edit(operator, place, _drawn(bank.phrases, generator), _drawn(bank.models, generator))


def random_draft(bank: Bank, generator: np.random.Generator) -> Draft:
    """Returns a draft drawn evenly: 1 to 20 items."""
    size = int(generator.integers(1, 21))
    return tuple(Item(_drawn(bank.phrases, generator), _drawn(bank.models, generator)) for _ in range(size))


def _drawn(words: Sequence[str], generator: np.random.Generator) -> str:
    return words[int(generator.integers(len(words)))]

"""Coordinate search over programs: every single change of a draft, in a random order, until none helps.

All methods end with it, within the same limit of calls. A change gives a phrase another model, adds a phrase with a
model to those of its kind, takes an item out, or moves one. Models of one kind that changes a type are alternatives.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from opus_pipelines.flows.programs.drafts import MOST_ITEMS, Bank, Draft, Item, typed

Score = Callable[[Draft], float]


def neighbours(draft: Draft, bank: Bank) -> list[Draft]:
    """Returns every draft that is one change away, each once."""
    found = dict.fromkeys(typed(one, bank) for one in _changed(draft, bank) if len(one) <= MOST_ITEMS)
    found.pop(draft, None)
    return list(found)


def _changed(draft: Draft, bank: Bank) -> Iterator[Draft]:
    yield draft
    for place, item in enumerate(draft):
        rest = (*draft[:place], *draft[place + 1 :])
        yield rest
        yield from ((*rest[:to], item, *rest[to:]) for to in range(len(draft)) if to != place)
        if item.model:
            for model in bank.models:
                if bank.kind(model) == bank.kind(item.model):
                    yield (*draft[:place], replace(item, model=model), *draft[place + 1 :])
                else:
                    yield from _added(rest, Item(item.phrase, model), bank)
    asked = {item.phrase for item in draft}
    for phrase in bank.phrases:
        if phrase not in asked:
            for model in bank.models:
                yield from _added(draft, Item(phrase, model), bank)


def _added(draft: Draft, item: Item, bank: Bank) -> Iterator[Draft]:
    """The draft with an item before those of its kind; where there is none, between any two kinds."""
    kinds = [bank.kind(one.model) for one in draft]
    own = bank.kind(item.model)
    places = [kinds.index(own)] if own in kinds else _borders(kinds)
    yield from ((*draft[:place], item, *draft[place:]) for place in places)


def _borders(kinds: list[int]) -> list[int]:
    return [place for place in range(len(kinds) + 1) if place in (0, len(kinds)) or kinds[place - 1] != kinds[place]]


def climb(draft: Draft, score: Score, bank: Bank, generator: np.random.Generator) -> Draft:
    """Returns a draft that no single change improves, or that is as good and shorter; `score` ends it by raising.

    Each change is taken as soon as it helps; a change that was proposed from an earlier draft is not tried again.
    """
    reward, improved = score(draft), True
    while improved:
        improved = False
        places = neighbours(draft, bank)
        for place in generator.permutation(len(places)):
            found = score(places[place])
            if found > reward or (found == reward and len(places[place]) < len(draft)):
                draft, reward, improved = places[place], found, True
                break
    return draft

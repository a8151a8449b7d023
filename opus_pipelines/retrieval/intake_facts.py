"""What an intake states that a rule may depend on: its amounts with their currencies, its measures, and its own words.

A condition that the intake's facts do not decide stays undecided, and the rule that depends on it is not applied.
"""

import re
from collections.abc import Iterable
from functools import cached_property

from opus_pipelines.core.word_stems import stem, stem_set, stems, within
from opus_pipelines.requirements.grammar.figures import NUMBER, Figure, figure_of, money_in, number, with_tokens
from opus_pipelines.requirements.sentences import split_sentences
from opus_pipelines.requirements.statements import Condition

_MEASURE = re.compile(rf"(?P<n>{NUMBER})\s*-?(?P<u>[a-z°]+)")
_NEGATIVE = re.compile(r"\b(?:no|not|never|without|nobody|nothing|none|n't)\b|n't\b")
_SAID = {">": "above", ">=": "from", "<": "below", "<=": "up to"}
_COMPARE = {">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b}


class IntakeFacts:
    """The facts of one intake. `said`: its title and the client's own text."""

    def __init__(self, said: str) -> None:
        self.said = said

    @cached_property
    def money(self) -> tuple[Figure, ...]:
        """Every amount of money that the text states."""
        return money_in(self.said)

    @cached_property
    def words(self) -> frozenset[str]:
        """Stems of all its words."""
        return stem_set(self.said)

    @cached_property
    def sentences(self) -> tuple[tuple[tuple[str, ...], bool], ...]:
        """Stems of each sentence, and whether it denies something."""
        found = [text for line in self.said.splitlines() for _, text in split_sentences(line)]
        return tuple((stems(text.casefold()), bool(_NEGATIVE.search(text.casefold()))) for text in found)

    def unmet(self, conditions: Iterable[Condition]) -> tuple[str | None, bool]:
        """Why a rule with these conditions is not applied, None where all of them are met; and whether the facts
        decide that.
        """
        return next((found for c in conditions if (found := self._unmet(c))[0]), (None, False))

    def _unmet(self, condition: Condition) -> tuple[str | None, bool]:
        text = condition.text
        if text:
            met = self._mentions(text, condition.is_scope)
            if condition.negated and not condition.op:
                return (f"it holds unless {text!r}, which this intake states", True) if met else (None, False)
            if not met and not condition.is_scope:
                return f"it depends on {text!r}, which this intake does not state", False
            if not met:
                return f"it is about {text!r}, which this intake does not mention", True
        return self._unmet_figure(condition) if condition.op else (None, False)

    def _unmet_figure(self, condition: Condition) -> tuple[str | None, bool]:
        limit = condition.amount or 0.0
        asked = f"{'not ' if condition.negated else ''}{_SAID[condition.op]} {limit:,.2f} {condition.unit}"
        own, others = self._figures(condition.unit)
        if not own:
            more = f" in {condition.unit}, only in {', '.join(others)}" if others else ""
            return f"it holds for amounts {asked}, and the client input states no amount{more}", False
        largest = max(own)
        if _COMPARE[condition.op](largest, limit) != condition.negated:
            return None, False
        return f"it holds for amounts {asked}; the largest of the client input is {largest:,.2f} {condition.unit}", True

    def _figures(self, unit: str) -> tuple[list[float], list[str]]:
        """The amounts in the unit; and, for money, the other currencies that are stated."""
        if unit.isupper():
            own = [f.amount for f in self.money if f.unit == unit]
            return own, sorted({f.unit for f in self.money if f.unit != unit})
        said = with_tokens(self.said).casefold()
        found = [figure_of(token) for token in re.findall(r"⟦[^⟧]*⟧", said)]
        if unit == "percent" or any(f.unit == unit for f in found):
            return [f.amount for f in found if f.unit == unit], []
        counted = [(number(m["n"]), m["u"]) for m in _MEASURE.finditer(said)]
        return [n for n, noun in counted if n is not None and stem(noun) == stem(unit)], []

    def _mentions(self, text: str, is_scope: bool) -> bool:
        """The intake says so: a kind of case anywhere, a clause in one sentence that denies it no more than the clause
        does.
        """
        wanted = stems(text)
        if not wanted:
            return False
        if is_scope:
            return within(wanted, tuple(self.words))
        denies = bool(_NEGATIVE.search(text))
        return any(within(wanted, words) and denied == denies for words, denied in self.sentences)

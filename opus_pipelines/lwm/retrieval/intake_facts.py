"""The facts of an intake on which a rule may depend: amounts with currencies, measures, and the words of the client.

A condition that the facts do not decide stays undecided, and the rule that depends on it is not applied.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.sentences import split_sentences
from opus_pipelines.language.grammar.figures import NUMBER, Figure, figure_of, money_in, number, with_tokens
from opus_pipelines.language.grammar.statements import Condition
from opus_pipelines.language.word_stems import stem, stem_set, stems, within
from opus_pipelines.workflow.constraints import Constraints

_MEASURE = re.compile(rf"(?P<n>{NUMBER})\s*-?(?P<u>[a-z°]+)")
_NEGATIVE = re.compile(r"\b(?:no|not|never|without|nobody|nothing|none|n't)\b|n't\b")
_SAID = {">": "above", ">=": "from", "<": "below", "<=": "up to"}
_COMPARE = {">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b}


@dataclass(frozen=True)
class IntakeStatements:
    """What an intake states itself.

    `request_text`: title and client input. `constraints`: those of contract.toml and intake.toml. `documents`: the
    name of each document by element id. `answers`: the activity that a person gave for a phrase.
    """

    request_text: str
    constraints: Constraints
    documents: Mapping[str, str]
    answers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, intake: Intake, inputs: Sequence[str] | None = None) -> "IntakeStatements":
        """Return the statements of an intake; `inputs` has the client input of one Intention, None: that of all."""
        if inputs is None:
            inputs = [e.text or "" for e in intake.elements if e.role == "input"]
        documents = {e.element_id: f"{e.role}/{e.name}" for e in intake.elements}
        return cls("\n".join([intake.title or "", *inputs]), intake.constraints, documents, intake.answers)


class IntakeFacts:
    """The facts in the title and the client input of one intake."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def money(self) -> tuple[Figure, ...]:
        """Return every amount of money in the text."""
        return money_in(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the stems of all words."""
        return stem_set(self.text)

    @cached_property
    def sentences(self) -> tuple[tuple[tuple[str, ...], bool], ...]:
        """Return the stems of each sentence, and whether the sentence has a negation."""
        return tuple((stems(text.casefold()), bool(_NEGATIVE.search(text.casefold()))) for text in self._texts)

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        """Return the sentences as they are written, in the same order."""
        return tuple(text for line in self.text.splitlines() for _, text in split_sentences(line))

    def unmet(self, conditions: Iterable[Condition]) -> tuple[str | None, bool]:
        """Return why a rule with these conditions is not applied, and whether the facts decide that.

        The reason is None where all conditions are met.
        """
        return next((unmet for c in conditions if (unmet := self._unmet(c))[0]), (None, False))

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
        bound = f"{'not ' if condition.negated else ''}{_SAID[condition.op]} {limit:,.2f} {condition.unit}"
        own, others = self._figures(condition.unit, condition.of)
        if condition.of and not own:
            return f"it holds for {condition.of} {bound}, and the client input states no such figure of them", False
        if not own:
            more = f" in {condition.unit}, only in {', '.join(others)}" if others else ""
            return f"it holds for amounts {bound}, and the client input states no amount{more}", False
        largest = max(own)
        if _COMPARE[condition.op](largest, limit) != condition.negated:
            return None, False
        return f"it holds for amounts {bound}; the largest of the client input is {largest:,.2f} {condition.unit}", True

    def _figures(self, unit: str, of: str) -> tuple[list[float], list[str]]:
        """Return the amounts in the unit and, for money, the other currencies; of the sentences that name `of`."""
        if unit.isupper():
            money = money_in(self._sentences_about(of)) if of else self.money
            own = [f.amount for f in money if f.unit == unit]
            return own, sorted({f.unit for f in money if f.unit != unit})
        text = with_tokens(self._sentences_about(of) if of else self.text).casefold()
        figures = [figure_of(token) for token in re.findall(r"⟦[^⟧]*⟧", text)]
        if unit == "percent" or any(f.unit == unit for f in figures):
            return [f.amount for f in figures if f.unit == unit], []
        counted = [(number(m["n"]), m["u"]) for m in _MEASURE.finditer(text)]
        return [n for n, noun in counted if n is not None and stem(noun) == stem(unit)], []

    def _sentences_about(self, noun: str) -> str:
        """Return the sentences that have the last word of a noun phrase, one a line."""
        head = stem(noun.split()[-1])
        return "\n".join(text for text, (words, _) in zip(self._texts, self.sentences, strict=True) if head in words)

    def _mentions(self, text: str, is_scope: bool) -> bool:
        """Return whether the intake states the text.

        The name of a kind of case may be anywhere in it; a clause must be in one sentence, and both or neither
        negated.
        """
        wanted = stems(text)
        if not wanted:
            return False
        if is_scope:
            return within(wanted, tuple(self.words))
        denies = bool(_NEGATIVE.search(text))
        return any(within(wanted, words) and denied == denies for words, denied in self.sentences)

"""The first stage: a requirement becomes an outline, that is the trigger and the steps with their order, their blocks
and the span of the requirement that each comes from (its annotation). Inputs come in the second stage.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.catalogue_words import CatalogueWords
from opus_pipelines.flows.enterprise.clauses import STEP, Clause, clauses
from opus_pipelines.flows.enterprise.documents import (
    ACTION,
    CATCH,
    ELSE,
    ELSEIF,
    FLOW_LOGIC,
    FOREACH,
    IF,
    LOGIC,
    SUBFLOW,
    TRY,
    Component,
    FlowDocument,
    FlowDocumentError,
    Trigger,
)
from opus_pipelines.flows.enterprise.outline_grammar import sound_blocks
from opus_pipelines.flows.enterprise.step_choice import StepChoice
from opus_pipelines.flows.enterprise.trigger_choice import TriggerChoice

LEAST_EVIDENCE = 2.6  # nats of rarity from which a clause without a known verb asks for a step
_LIST = "look_up_records"
# What is said not to be done: "delete nothing", "do not close it".
_NOT_DONE = re.compile(
    r"^\W*(?:please\s+)?(?:do not|don't|never|not)\b|^\W*\w+\s+(?:nothing|nobody|no one)\b", re.IGNORECASE
)
# What is to be done to a record: "its requester is to be informed".
_TO_BE_DONE = re.compile(r"\b(?:(?:to|must|should|shall) be|gets?) (\w+(?:ed|en|t)\b.*)", re.IGNORECASE)
_EVERY = re.compile(r"\b(?:(?:of|to|for|from)\s+)?(?:every|each|all)\b(?! of them| one| of these)", re.IGNORECASE)
_EACH = re.compile(r"\beach (?:of|one)\b|\bevery one\b|\ball of them\b", re.IGNORECASE)


class OutlineComposer:
    """Writes outlines without a language model. It can only name steps that the catalogue has."""

    def __init__(self, catalogue: Catalogue, choice: StepChoice) -> None:
        self.catalogue, self._choice = catalogue, choice
        self._words = CatalogueWords(catalogue)
        self._triggers = TriggerChoice(self._words)

    def outline(self, requirement: str) -> FlowDocument:
        """Returns the outline of a requirement. Raises FlowDocumentError where the requirement has no word."""
        found = clauses(requirement, self)
        if not found:
            raise FlowDocumentError("the requirement is empty; say when the flow starts and what it does")
        trigger = found[0]
        steps = _Nesting(self._step, self._needs_look_up)
        for clause in found[1:]:
            if clause.kind != STEP or not _NOT_DONE.search(clause.text):
                steps.add(clause)
        kind = Trigger(self._triggers.kind(trigger.text), (), _trimmed(trigger.text))
        return with_categories(FlowDocument((kind,), steps.components()), self.catalogue)

    def asks_for_step(self, text: str) -> bool:
        """Returns whether a text asks for a step. One that only names columns and values says more of another step."""
        if self._choice.begins_step(text):
            return True
        if any(self._choice.begins_step(found[1]) for found in _TO_BE_DONE.finditer(text)):
            return True
        return self._choice.evidence(text) >= LEAST_EVIDENCE and not self._words.is_stated_value(text)

    def begins_step(self, text: str) -> bool:
        """Returns whether a text begins with the verb of a step."""
        return self._choice.begins_step(text)

    def is_value(self, text: str) -> bool:
        """Returns whether a text is the name of a value and nothing more."""
        return self._words.is_value(text)

    def is_event(self, text: str) -> bool:
        """Returns whether a text says when a flow starts."""
        return self._triggers.is_event(text)

    def _step(self, clause: Clause) -> str:
        """The step that the words ask for, without those that say to how many records it is done."""
        head = _EVERY.split(clause.text)[0]
        asked = head if head.strip() and self._choice.begins_step(head) else clause.text
        chosen = self._choice.ranked(asked)[0][0]
        if chosen.startswith("look_up") and asked is not clause.text and _LIST in self.catalogue.actions:
            return _LIST
        return chosen

    def _needs_look_up(self, clause: Clause) -> bool:
        """Whether a clause does something to every record of a table: the records must be looked up first."""
        found = _EVERY.search(clause.text)
        return found is not None and bool(self._words.tables(clause.text[found.end() :]))


class _Nesting:
    """Puts clauses into blocks: what each flow logic holds, and where its block ends."""

    def __init__(self, step: Callable[[Clause], str], needs_look_up: Callable[[Clause], bool]) -> None:
        self._step, self._needs_look_up = step, needs_look_up
        self._found: list[Component] = []
        self._around: list[Component] = []

    def add(self, clause: Clause) -> None:
        """Adds one clause."""
        if clause.kind == ELSE and not self._follows_if():
            clause = replace(clause, kind=IF)
        if clause.kind in (ELSE, ELSEIF, CATCH):
            self._close_to(*((IF, ELSEIF) if clause.kind != CATCH else (TRY,)))
        elif clause.opens_sentence:
            self._close_sentence(clause)
        if clause.kind == STEP:
            if self._needs_look_up(clause) and self._is_bulk(clause):
                self._append("look_up_records", clause)
                self._open(FOREACH, clause)
            elif self._is_each(clause):
                self._open(FOREACH, clause)
            self._append(self._step(clause), clause)
        elif clause.kind == FOREACH and not self._has_list():
            self._append("look_up_records", clause)
            self._open(FOREACH, clause)
        else:
            self._open(clause.kind, clause)

    def components(self) -> tuple[Component, ...]:
        """Returns the components in order; flow logic that holds nothing is left out, with what depends on it."""
        return sound_blocks(self._found)

    def _append(self, definition: str, clause: Clause) -> Component:
        category = FLOW_LOGIC if definition in LOGIC else ACTION
        block = self._around[-1].order if self._around else None
        made = Component(definition, len(self._found) + 1, category, block, (), _trimmed(clause.text))
        self._found.append(made)
        return made

    def _open(self, kind: str, clause: Clause) -> None:
        self._around.append(self._append(kind, clause))

    def _close_to(self, *kinds: str) -> None:
        """Closes blocks until the last one of these kinds is closed; without one nothing is closed."""
        places = [n for n, c in enumerate(self._around) if c.name in kinds]
        if places:
            del self._around[places[-1] :]

    def _close_sentence(self, clause: Clause) -> None:
        """A new sentence ends branches, unless the branch has no step yet; a loop goes on."""
        while self._around and self._around[-1].name != FOREACH:
            if not any(c.block == self._around[-1].order for c in self._found):
                break
            self._around.pop()

    def _follows_if(self) -> bool:
        """Whether an IF is open, or was closed right before."""
        here = self._around[-1].order if self._around else None
        last = next((c for c in reversed(self._found) if c.block == here), None)
        return any(c.name in (IF, ELSEIF) for c in self._around) or (last is not None and last.name in (IF, ELSEIF))

    def _is_each(self, clause: Clause) -> bool:
        """Whether a clause does something to each of the records that were looked up before."""
        is_open = any(c.name == FOREACH for c in self._around)
        return not is_open and self._has_list() and bool(_EACH.search(clause.text))

    def _has_list(self) -> bool:
        return any(c.definition == "look_up_records" for c in self._found)

    def _is_bulk(self, clause: Clause) -> bool:
        """Whether the clause's own step is not the search for the records itself."""
        chosen = self._step(clause)
        return not chosen.startswith(("look_up", "update_multiple", "get_")) and not any(
            c.name == FOREACH for c in self._around
        )


def _trimmed(text: str) -> str:
    return text.strip().strip(",;:").strip()


def with_categories(flow: FlowDocument, catalogue: Catalogue) -> FlowDocument:
    """Returns the flow with the category that the catalogue has for each step."""
    kinds = {**dict.fromkeys(catalogue.subflows, SUBFLOW), **dict.fromkeys(catalogue.actions, ACTION)}
    return replace(
        flow,
        components=tuple(
            c if c.is_logic else replace(c, category=kinds.get(c.definition, c.category)) for c in flow.components
        ),
    )

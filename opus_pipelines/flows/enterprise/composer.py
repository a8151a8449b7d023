"""The composer of flow documents without a language model: a requirement becomes an outline, the outline gets inputs.

An outline is the trigger and the steps with their order, their blocks and the span of the requirement that each comes
from (its annotation). Which step a clause asks for is a naive Bayes model over word stems, learnt from the catalogue's
own texts and from annotated flows; what it returns is always an entry of the catalogue.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from typing import Protocol

from opus_pipelines.flows.enterprise.catalogue import USERS, Catalogue
from opus_pipelines.flows.enterprise.catalogue_words import CatalogueWords, TriggerChoice, words
from opus_pipelines.flows.enterprise.clauses import STEP, Span, spans_of
from opus_pipelines.flows.enterprise.documents import (
    ACTION,
    CATCH,
    DOUNTIL,
    ELSE,
    ELSEIF,
    FLOW_LOGIC,
    FOREACH,
    IF,
    LOGIC,
    PARALLEL,
    SUBFLOW,
    TRY,
    Component,
    FlowDocument,
    FlowDocumentError,
    Trigger,
)
from opus_pipelines.flows.enterprise.step_inputs import InputComposer
from opus_pipelines.language.word_stems import EMPTY, stem

_SMOOTHING = 0.1  # of 0.02 to 1, the best when each handwritten requirement of the tune part is left out in turn
_KEPT = frozenset(["all", "up", "in", "of", "to", "on", "off", "out", "over", "it", "its", "them", "their"])
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|#[\w-]+|\([^()]*\)')


@dataclass
class StepChoice:
    """Counts of stems by step. `steps` are the names that can be chosen: actions and subflows."""

    steps: tuple[str, ...]
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    uses: Counter[str] = field(default_factory=Counter)
    spread: Counter[str] = field(default_factory=Counter)
    verbs: Counter[str] = field(default_factory=Counter)
    people: re.Pattern[str] = re.compile("(?!)")

    def ranked(self, clause: str) -> list[tuple[str, float]]:
        """Returns the steps with their log probability for a clause, the best first; equal ones by name."""
        asked = features(self.people.sub(" ", clause))
        vocabulary = max(1, len(self.spread))
        total = self.uses.total() + len(self.steps)
        scores = []
        for step in self.steps:
            own = self.counts[step]
            size = own.total() + _SMOOTHING * vocabulary
            score = 0.3 * math.log((self.uses[step] + 1) / total)
            score += sum(math.log((own[f] + _SMOOTHING) / size) for f in asked if f in self.spread)
            scores.append((step, score))
        return sorted(scores, key=lambda pair: (-pair[1], pair[0]))

    def evidence(self, clause: str) -> float:
        """Returns how strongly a clause asks for any step: the rarity of the stems that steps have, in nats."""
        rarity = [math.log(len(self.steps) / self.spread[f]) for f in features(clause) if self.spread[f] > 0]
        return sum(sorted(rarity, reverse=True)[:2])

    def begins_step(self, clause: str) -> bool:
        """Returns whether the first word that carries meaning is a verb with which steps begin."""
        own = [word for word in words(clause) if word not in EMPTY or word in ("do", "let")]
        return bool(own) and self.verbs[stem(own[0])] > 0


def features(clause: str) -> list[str]:
    """Returns the stems and pairs of neighbouring stems of a clause, without what it quotes."""
    own = [w for w in words(_QUOTED.sub(" ", clause)) if (w not in EMPTY or w in _KEPT) and not w.isdigit()]
    stems = [stem(word) for word in own]
    content = [s for s, w in zip(stems, own, strict=True) if w not in EMPTY]
    first = [f"first {stems[0]}"] if stems else []
    return list(dict.fromkeys([*first, *content, *(f"{a} {b}" for a, b in pairwise(stems))]))


def learnt(catalogue: Catalogue, flows: Iterable[FlowDocument] = ()) -> StepChoice:
    """Returns the model of a catalogue and of annotated flows. Steps that the catalogue does not have are left out."""
    entries = {**catalogue.actions, **catalogue.subflows}
    model = StepChoice(tuple(sorted(entries)), people=_people(catalogue))
    seen: Mapping[str, set[str]] = defaultdict(set)
    for name, entry in entries.items():
        for phrase in (entry.label, *re.split(r",|;| or ", entry.about)):
            _add(model, seen, name, phrase)
        for phrase in re.split(r",|;| or ", entry.about):
            if own := [w for w in words(phrase) if w not in EMPTY]:
                model.verbs[stem(own[0])] += 1
    names = _names(catalogue) - set(model.verbs)
    for flow in flows:
        for component in flow.components:
            if component.definition in entries and component.annotation:
                _add(model, seen, component.definition, component.annotation)
                model.uses[component.definition] += 1
                own = [stem(w) for w in words(component.annotation) if w not in EMPTY][:1]
                model.verbs.update(each for each in own if each not in names)
    model.spread.update(each for stems in seen.values() for each in stems)
    return model


def _names(catalogue: Catalogue) -> set[str]:
    """Stems of tables, columns and values: an annotation that begins with one ("incident", "its owner") has no verb."""
    tables = list(catalogue.tables.values())
    columns = [c for table in tables for c in table.columns.values()]
    texts = [name for table in tables for name in (table.label, *table.also)]
    texts += [text for c in columns for text in (c.label, *c.choices.values())]
    return {stem(word) for text in texts for word in words(text)}


def _people(catalogue: Catalogue) -> re.Pattern[str]:
    """Columns that refer to people: whom a step is done for says nothing of what is done."""
    columns = (c for table in catalogue.tables.values() for c in table.columns.values())
    labels = {c.label for c in columns if c.reference == USERS and c.label != "manager"}
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, labels)) or ['(?!)'])})\b", re.IGNORECASE)


def _add(model: StepChoice, seen: Mapping[str, set[str]], name: str, text: str) -> None:
    for each in features(model.people.sub(" ", text)):
        model.counts[name][each] += 1
        seen[name].add(each)


LEAST_EVIDENCE = 2.6  # nats of rarity from which a clause without a known verb asks for a step
LIST = "look_up_records"
# What is said not to be done: "delete nothing", "do not close it".
_NOT_DONE = re.compile(
    r"^\W*(?:please\s+)?(?:(?:should|must|need|shall)(?: not|n't)|do not|don't|never|not)\b|"
    r"^\W*\w+\s+(?:nothing|nobody|no one)\b",
    re.IGNORECASE,
)
# What is to be done to a record: "its requester is to be informed".
_TO_BE_DONE = re.compile(r"\b(?:(?:to|must|should|shall) be|gets?) (\w+(?:ed|en|t)\b.*)", re.IGNORECASE)
_EVERY = re.compile(r"\b(?:(?:of|to|for|from)\s+)?(?:every|each|all)\b(?! of them| one| of these)", re.IGNORECASE)
_THEM = re.compile(r"\b\w+ (?:them|these|those)\b", re.IGNORECASE)
_ASSIGNS = re.compile(
    r"\W*(?:please |then )*(?:re)?assign (?:it|them|these|those|the \w+|all \w+|each \w+)\b", re.IGNORECASE
)
_EACH = re.compile(r"\b(?:each|every) (?!of|one)|\beach (?:of|one)\b|\bevery one\b|\ball of them\b", re.IGNORECASE)


@dataclass
class _Node:
    """A step or flow logic with the words that it comes from and what it holds."""

    definition: str
    text: str = ""
    inside: list["_Node"] = field(default_factory=list)

    @property
    def logic(self) -> str:
        """The name of the flow logic; "" for a step."""
        return self.definition if self.definition in LOGIC else ""


class _Nesting:
    """Puts clauses into blocks: what each flow logic holds, and where its block ends."""

    def __init__(self, composer: "Composer") -> None:
        self._composer = composer
        self._around = [_Node("")]
        self._last, self._listed, self._together = "", False, False

    def add(self, clause: Span) -> None:
        """Adds one clause."""
        kind = IF if clause.kind == ELSE and not self._follows_if() else clause.kind
        if kind == CATCH and not self._is_in(TRY):
            self._wrap(TRY, clause)
        if kind in (ELSE, ELSEIF, CATCH):
            self._close_to(*((IF, ELSEIF) if kind != CATCH else (TRY,)))
        elif clause.opens_sentence:
            self._close_sentence()
        if clause.together and (clause.opens_sentence or not self._together):
            self._open(PARALLEL, clause)
        self._together = clause.together
        if kind == STEP:
            self._add_step(clause)
        elif kind in (IF, DOUNTIL) and clause.behind:
            self._wrap(kind, clause)
        elif kind == FOREACH and not self._listed:
            self._append(LIST, clause)
            self._open(FOREACH, clause)
        else:
            self._open(kind, clause)

    def components(self) -> tuple[Component, ...]:
        """Returns the components in order; flow logic that holds nothing is left out, with what depends on it."""
        found: list[Component] = []

        def number(nodes: Sequence[_Node], block: int | None) -> None:
            for node in nodes:
                order = len(found) + 1
                category = FLOW_LOGIC if node.logic else ACTION
                found.append(Component(node.definition, order, category, block, (), node.text))
                number(node.inside, order)

        number(_sound(self._around[0].inside), None)
        return tuple(found)

    def _add_step(self, clause: Span) -> None:
        chosen = self._composer.step(clause.text, clause.said)
        every = _EVERY.search(clause.said)
        looks_up = chosen.startswith(("look_up", "update_multiple", "get_")) or self._is_in(FOREACH)
        if every and self._composer.names_table(clause.said[every.end() :]) and not looks_up:
            records = _EVERY.search(clause.text)
            self._append(LIST, replace(clause, text=clause.text[records.start() :]) if records else clause)
            self._open(FOREACH, clause)
        elif self._listed and not self._is_in(FOREACH):
            them = self._last == LIST and _THEM.search(clause.said) and self._composer.changes_a_record(chosen)
            if _EACH.search(clause.said) or them:
                self._open(FOREACH, clause)
        self._append(chosen, clause)

    def _append(self, definition: str, clause: Span) -> _Node:
        made = _Node(definition, clause.text)
        self._around[-1].inside.append(made)
        self._last, self._listed = definition, self._listed or definition == LIST
        return made

    def _open(self, kind: str, clause: Span) -> None:
        self._around.append(self._append(kind, clause))

    def _wrap(self, kind: str, clause: Span) -> None:
        """Puts logic that is said behind a step around it."""
        here = self._around[-1].inside
        last = [here.pop()] if here else []
        self._append(kind, clause).inside += last

    def _is_in(self, kind: str) -> bool:
        return any(node.logic == kind for node in self._around)

    def _close_to(self, *kinds: str) -> None:
        """Closes blocks until the last one of these kinds is closed; without one nothing is closed."""
        places = [n for n, node in enumerate(self._around) if node.logic in kinds]
        if places:
            del self._around[places[-1] :]

    def _close_sentence(self) -> None:
        """A new sentence ends branches, unless the branch has no step yet; a loop goes on."""
        while len(self._around) > 1 and self._around[-1].logic != FOREACH and self._around[-1].inside:
            self._around.pop()

    def _follows_if(self) -> bool:
        """Whether an IF is open, or was closed right before."""
        last = self._around[-1].inside[-1:]
        return any(node.logic in (IF, ELSEIF) for node in (*self._around, *last))


_FOLLOWS = {ELSE: (IF, ELSEIF), ELSEIF: (IF, ELSEIF), CATCH: (TRY,)}


def _sound(nodes: Sequence[_Node]) -> list[_Node]:
    """Returns nodes without flow logic that is empty or incomplete; what it holds stands in its place."""
    sound: list[_Node] = []
    for node in nodes:
        node.inside = _sound(node.inside)
        before = sound[-1] if sound else None
        beside = node.logic == PARALLEL and len(node.inside) == 1 and before is not None and not before.logic
        if beside:  # "page the team and at the same time open a meeting"
            node.inside.insert(0, sound.pop())
        is_lost = node.logic in _FOLLOWS and (before is None or before.logic not in _FOLLOWS[node.logic])
        is_empty = bool(node.logic) and len(node.inside) < (2 if node.logic == PARALLEL else 1)
        sound += node.inside if is_lost or is_empty else [node]
    after = [node.logic for node in sound[1:]]
    caught = [node.logic != TRY or then == CATCH for node, then in zip_longest(sound, after)]
    return [each for node, whole in zip(sound, caught, strict=True) for each in ([node] if whole else node.inside)]


def with_categories(flow: FlowDocument, catalogue: Catalogue) -> FlowDocument:
    """Returns the flow with the category that the catalogue has for each step."""
    kinds = {**dict.fromkeys(catalogue.subflows, SUBFLOW), **dict.fromkeys(catalogue.actions, ACTION)}
    return replace(
        flow,
        components=tuple(
            c if c.is_logic else replace(c, category=kinds.get(c.definition, c.category)) for c in flow.components
        ),
    )


class DocumentWriter(Protocol):
    """Anything that writes a flow for a requirement: the composer, or a baseline."""

    name: str

    def flow(self, requirement: str) -> FlowDocument:
        """Returns the flow. Raises OpusError where there is none."""
        ...


class Composer:
    """Writes flows within a catalogue, without a language model. It can only name steps that the catalogue has."""

    def __init__(self, catalogue: Catalogue, flows: Iterable[FlowDocument] = (), name: str = "composer") -> None:
        """Learns from annotated flows; without any, the catalogue's own texts are all that is known of a step."""
        self.catalogue, self.name = catalogue, name
        self._choice, self._words = learnt(catalogue, flows), CatalogueWords(catalogue)
        self._triggers, self._inputs = TriggerChoice(self._words), InputComposer(catalogue)

    def flow(self, requirement: str) -> FlowDocument:
        """Returns the flow with its inputs. Raises FlowDocumentError where the requirement is empty."""
        return self._inputs.populate(self.outline(requirement))

    def outline(self, requirement: str) -> FlowDocument:
        """Returns trigger and steps with their annotations, without inputs.

        Raises FlowDocumentError where the requirement has no word.
        """
        spans = spans_of(requirement, self)
        if not spans:
            raise FlowDocumentError("the requirement is empty; say when the flow starts and what it does")
        steps = _Nesting(self)
        for span in spans[1:]:
            if span.kind != STEP or not _NOT_DONE.search(span.said):
                steps.add(span)
        trigger = spans[0].text.strip(" ,;:")
        start = Trigger(self._triggers.kind(trigger), (), trigger)
        return with_categories(FlowDocument((start,), steps.components()), self.catalogue)

    def asks_for_step(self, text: str) -> bool:
        """Returns whether a text asks for a step. One that only names columns and values says more of another step."""
        if self._choice.begins_step(text):
            return True
        if any(self._choice.begins_step(match[1]) for match in _TO_BE_DONE.finditer(text)):
            return True
        return self._choice.evidence(text) >= LEAST_EVIDENCE and not self._words.is_stated_value(text)

    def is_value(self, text: str) -> bool:
        """Returns whether a text is the name of a value and nothing more."""
        return self._words.is_value(text)

    def is_event(self, text: str) -> bool:
        """Returns whether a text says when a flow starts."""
        return self._triggers.is_event(text)

    def names_table(self, text: str) -> bool:
        """Returns whether a text names a table."""
        return bool(self._words.tables(text))

    def step(self, text: str, said: str) -> str:
        """Returns the step that words ask for, without those that say to how many records it is done.

        `said` is the text as the reader of utterances writes it, which counts where the text alone says little.
        """
        own = text if self._choice.evidence(text) >= LEAST_EVIDENCE else said
        head = _EVERY.split(own)[0]
        asked = head if head.strip() and self._choice.begins_step(head) else own
        chosen = self._choice.ranked(asked)[0][0]
        if _ASSIGNS.match(asked) and "assign" not in chosen and "update" not in chosen:
            chosen = "update_record" if "update_record" in self.catalogue.actions else chosen
        if chosen.startswith("look_up") and asked is not own and LIST in self.catalogue.actions:
            return LIST
        return chosen

    def changes_a_record(self, definition: str) -> bool:
        """Returns whether a step takes a record and changes it, so that it is done to each one of several."""
        entry = self.catalogue.actions.get(definition)
        takes = entry is not None and any(
            slot.type == "record" and slot.name == "record" for slot in entry.inputs.values()
        )
        return takes and definition.startswith(("update", "delete", "close", "set", "add", "assign"))

"""Which step of the catalogue a clause asks for: a naive Bayes model over word stems, learnt from the catalogue's own
texts and from annotated flows. What it returns is always an entry of the catalogue.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.catalogue_words import words
from opus_pipelines.flows.enterprise.documents import FlowDocument
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
        found = features(self.people.sub(" ", clause))
        vocabulary = max(1, len(self.spread))
        total = self.uses.total() + len(self.steps)
        scores = []
        for step in self.steps:
            own = self.counts[step]
            size = own.total() + _SMOOTHING * vocabulary
            score = 0.3 * math.log((self.uses[step] + 1) / total)
            score += sum(math.log((own[f] + _SMOOTHING) / size) for f in found if f in self.spread)
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
    labels = {c.label for c in columns if c.reference == "sys_user" and c.label != "manager"}
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, labels)) or ['(?!)'])})\b", re.IGNORECASE)


def _add(model: StepChoice, seen: Mapping[str, set[str]], name: str, text: str) -> None:
    for each in features(model.people.sub(" ", text)):
        model.counts[name][each] += 1
        seen[name].add(each)

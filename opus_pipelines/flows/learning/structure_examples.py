"""Tagged sentences to train the tagger on: of known flows, and of flows that a seeded generator draws and words.

A known flow has no tags of its own. The reading of its utterance by the rules is taken where the flow that it gives has
the structure of the known flow; otherwise that of the tagger where it has; otherwise the utterance teaches nothing.
"""

import random
from collections.abc import Callable, Iterable, Sequence

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.from_text.activities import ActivityCatalogue
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import FlowWriter
from opus_pipelines.flows.from_text.synthesis import examples
from opus_pipelines.flows.learning.structure_tags import FRONTED, OUT, SHARED, VERB, WITHIN, Tagged, tags_of
from opus_pipelines.flows.text.clauses import CONDITION, ELSE, LOOP, WHILE, Clause, sentences_of
from opus_pipelines.workflow.blocks.model import Flow, If

_ALTERNATIVE = "alternative"
_MANNERS = {
    CONDITION: (
        "if",
        "if",
        "if",
        "when",
        "whenever",
        "in case",
        "provided that",
        "unless",
        "assuming",
        "in the event that",
    ),
    _ALTERNATIVE: ("else if", "otherwise if", "or if", "elif", "but if"),
    ELSE: ("otherwise", "else", "or else", "if not", "in all other cases", "failing that"),
    LOOP: (
        "for each",
        "for every",
        "for all",
        "for all of",
        "loop over",
        "loop through",
        "iterate over",
        "go through each",
    ),
    WHILE: ("while", "until", "as long as", "so long as"),
}
_STATES = [
    "open",
    "closed",
    "urgent",
    "overdue",
    "empty",
    "approved",
    "rejected",
    "new",
    "active",
    "paid",
    "high",
    "pending",
    "invalid",
    "missing",
    "done",
]
_ATTRIBUTES = ["status", "priority", "amount", "type", "owner", "name", "size", "country", "stage", "score"]
_LINKS = tuple(
    tuple(link.split())
    for link in [
        "and",
        "and",
        "and",
        ", and",
        ", then",
        "then",
        ",",
        "and then",
        ", and then",
        "as well as",
        "along with",
        "together with",
        "followed by",
        "but",
        "plus",
        "and also",
        "after that",
    ]
)
# Work of people, whose verbs the catalogue does not have.
_WORK = tuple(
    tuple(work.split())
    for work in [
        "login to the account",
        "log in to the portal",
        "double-check the figures",
        "call the customer",
        "approve it",
        "sign the form",
        "book a room",
        "visit the site",
        "interview the candidate",
        "proofread the text",
        "negotiate the price",
        "ship the parcel",
    ]
)
_RESTRICTIONS = ("that", "which", "who", "whose owner", "where it")


def generated(catalogue: ActivityCatalogue, count: int, seed: int) -> list[Tagged]:
    """Returns `count` tagged sentences; the same seed gives the same ones."""
    draw = random.Random(seed)
    steps = [list(example.query.clause.words) for example in examples(catalogue, max(50, count), seed)]
    return [_Sentence(draw, steps).made() for _ in range(count)]


class _Sentence:
    """Draws the structure of one sentence and words it."""

    def __init__(self, draw: random.Random, steps: Sequence[list[str]]) -> None:
        self.draw, self.steps = draw, steps
        self.words: list[str] = []
        self.tags: list[str] = []

    def made(self) -> Tagged:
        form = self.draw.choices(
            (
                "steps",
                "if",
                "step if",
                "loop",
                "step loop",
                "while",
                "step while",
                "else",
                "elif",
                "loop if",
                "sequence loop",
            ),
            (6, 5, 2, 4, 2, 1, 1, 3, 2, 2, 2),
        )[0]
        if form == "steps":
            self._steps(4)
        elif form in ("else", "elif"):
            self._header(ELSE if form == "else" else _ALTERNATIVE)
            self._comma()
            self._steps(2)
        elif form in ("if", "loop", "while"):
            self._header({"if": CONDITION, "loop": LOOP, "while": WHILE}[form])
            self._comma()
            self._steps(3)
            if form == "if" and self.draw.random() < 0.25:
                self._put([self.draw.choice((",", ";"))], OUT)
                self._header(self.draw.choice((ELSE, _ALTERNATIVE)))
                self._comma()
                self._steps(2)
        elif form == "loop if":
            self._header(LOOP)
            self._comma()
            self._header(CONDITION)
            self._comma()
            self._steps(2)
        elif form == "sequence loop":
            self._steps(2)
            self._put(self.draw.choice(_LINKS), OUT)
            self._header(LOOP)
            self._comma()
            self._steps(2)
        else:
            self._steps(2)
            self._header({"step if": CONDITION, "step loop": LOOP, "step while": WHILE}[form])
        return Tagged(tuple(self.words), tuple(self.tags))

    def _put(self, words: Iterable[str], tag: str) -> None:
        for word in words:
            self.words.append(word)
            self.tags.append(tag)

    def _comma(self) -> None:
        if self.draw.random() < 0.8:
            self._put([self.draw.choice((",", ",", "then", ":"))], OUT)

    def _steps(self, most: int) -> None:
        if self.draw.random() < 0.15:
            self._put([self.draw.choice(("first", "then", "finally", "next", "also", "please"))], OUT)
        for number in range(self.draw.randint(1, most)):
            if number:
                self._put(self.draw.choice(_LINKS), OUT)
            if self.draw.random() < 0.08:
                place = [self.draw.choice(("in", "on", "from", "using")), *self.draw.choice((["the"], []))]
                self._put([*place, *self._noun()[:2]], FRONTED)
                self._put([","], OUT)
            words = self.draw.choice(self.steps) if self.draw.random() < 0.94 else list(self.draw.choice(_WORK))
            if number and self.draw.random() < 0.15 and len(words) > 2:
                self._put([self.draw.choice(("a", "an", "the"))], SHARED)
                self._put([word for word in words[1:] if word not in ("a", "an", "the", "new", "all")], WITHIN)
                continue
            self._put(words[:1], VERB)
            self._put(words[1:], WITHIN)

    def _header(self, kind: str) -> None:
        self._put(self.draw.choice(_MANNERS[kind]).split(), f"{kind}: marker")
        if kind == ELSE:
            return
        self._put(self._thing() if kind == LOOP else self._condition(), kind)

    def _noun(self) -> list[str]:
        words = self.draw.choice(self.steps)[1:]
        return [word for word in words if word not in ("a", "an", "the", "new", "all", "every")] or ["item"]

    def _thing(self) -> list[str]:
        words = self._noun()
        start = self.draw.choice(((), ("of", "the"), ("the",))) if self.draw.random() < 0.4 else ()
        state = [self.draw.choice(_STATES)] if self.draw.random() < 0.2 else []
        found = [*start, *state, *words[:3]] or ["item"]
        if self.draw.random() < 0.15:
            found += [
                *self.draw.choice(_RESTRICTIONS).split(),
                self.draw.choice(("is", "has")),
                self.draw.choice(_STATES),
            ]
        return found

    def _condition(self) -> list[str]:
        choose, thing = self.draw.choice, self._noun()[-2:]
        subject = choose(
            (["the", *thing], ["it"], ["they"], ["a", *thing], ["the", choose(_ATTRIBUTES), "of", "the", *thing])
        )
        says = choose(
            (
                ["is", choose(_STATES)],
                ["is", "not", choose(_STATES)],
                ["are", choose(_STATES)],
                ["has", choose(("a", "no", "any")), *thing],
                ["is", choose(("greater", "less", "more")), "than", str(self.draw.randint(1, 900))],
                ["equals", choose(_STATES)],
                ["contains", f'"{choose(_STATES)}"'],
                ["exists"],
                ["was", "created", "by", "me"],
            )
        )
        return choose(([*subject, *says], [*subject, *says], ["there", "are", choose(("any", "no", "new")), *thing]))


def structure_of(flow: Flow) -> list[str]:
    """Returns the structure of a flow: its steps and blocks in the order of reading, each with its depth."""
    found: list[str] = []

    def of_block(block: Iterable[object], depth: int) -> None:
        for statement in block:
            name = type(statement).__name__
            found.append(f"{depth} {name}")
            if isinstance(statement, If):
                for number, branch in enumerate(statement.branches):
                    if number:
                        found.append(f"{depth} elif")
                    of_block(branch.body, depth + 1)
                if statement.orelse:
                    found.append(f"{depth} else")
                    of_block(statement.orelse, depth + 1)
            elif hasattr(statement, "body"):
                of_block(statement.body, depth + 1)

    of_block(flow.body, 0)
    return found


def known_sentences(
    tasks: Sequence[FlowTask], writer: FlowWriter, readers: Sequence[Callable[[str], list[Clause]]]
) -> list[Tagged]:
    """Returns the tagged sentences of new flows whose structure the first fitting reader gives."""
    found = []
    for task in tasks:
        if task.expected is None or task.is_update:
            continue
        for reader in readers:
            tagged = _fitting(task, writer, reader)
            if tagged:
                found += tagged
                break
    return found


def _fitting(task: FlowTask, writer: FlowWriter, reader: Callable[[str], list[Clause]]) -> list[Tagged]:
    assert task.expected is not None
    try:
        clauses = reader(task.utterance)
        flow = writer.written(task.utterance, clauses).flow
    except OpusError:
        return []
    if structure_of(flow) != structure_of(task.expected):
        return []
    sentences = sentences_of(task.utterance, writer.ranker.table.names.spoken)
    tagged = [
        tags_of(words, [clause for clause in clauses if clause.sentence == number])
        for number, words in enumerate(sentences)
    ]
    return [one for one in tagged if one is not None]

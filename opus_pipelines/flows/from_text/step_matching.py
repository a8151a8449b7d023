"""Which steps of a flow a text means: "the slack message", "the step to create an issue", "all create skills"."""

import re
from dataclasses import dataclass, replace

from opus_pipelines.flows.from_text.activities import Activity, content_stems
from opus_pipelines.flows.from_text.activity_features import Query, noun_phrase
from opus_pipelines.flows.from_text.activity_ranker import ActivityRanker
from opus_pipelines.flows.from_text.applications import DISTINCT
from opus_pipelines.flows.text.clauses import STEP, Clause
from opus_pipelines.flows.text.operations import lemma_of_verb, operations_of_verb
from opus_pipelines.language.word_stems import EMPTY, stem
from opus_pipelines.workflow.blocks.model import Call, Flow, UserTask, walk

_STEP_WORDS = re.compile(
    r"^(?:(?:the|all|any|every|each|of|those|these|this|that)\s+)*(?:steps?|tasks?|activit(?:y|ies)|actions?|skills?|"
    r"parts?|calls?|node|operation)\s+(?:(?:to|that|which|for|of|where|it)\s+)*(?:we\s+|you\s+|it\s+)?",
    re.IGNORECASE,
)
_PLACES = {
    word: place
    for place, words in enumerate(("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th"), 1)
    for word in words.split()
}
_ORDINAL = "(?:last|final|" + "|".join(_PLACES) + ")"
_BY_PLACE = re.compile(
    rf"(?:the )?(?:very )?(?P<places>{_ORDINAL}(?:,? (?:and )?(?:the )?{_ORDINAL})*) "
    r"(?:steps?|tasks?|activit(?:y|ies)|actions?|ones?)"
)
_KIND_WORDS = frozenset(["skill", "step", "task", "activity", "action", "operation", "call", "api"])
_WORD = re.compile(r"\"[^\"]*\"|[\w.'-]+")


@dataclass(frozen=True)
class Mention:
    """A text that speaks of steps, as a clause; `verb` is "" where it names none."""

    clause: Clause
    applications: frozenset[str]
    operation_only: str = ""


class StepMatcher:
    """Finds steps of one flow."""

    def __init__(self, flow: Flow, ranker: ActivityRanker) -> None:
        self.ranker = ranker
        self.steps = [s for s in walk(flow.body) if isinstance(s, Call | UserTask)]

    def mention(self, text: str) -> Mention:
        """Returns what a text says of steps."""
        plain = _STEP_WORDS.sub("", text.strip(" .,;:"))
        words = _WORD.findall(plain)
        while words and words[0].lower() in ("to", "the", "all", "a", "an", "any", "every", "each") and len(words) > 1:
            words = words[1:]
        first = lemma_of_verb(words[0]) if words else ""
        has_verb = bool(operations_of_verb(first)) and (len(words) > 1 or words[0].lower() != first)
        if has_verb and _is_noun_here(words):
            has_verb = False
        named = self.ranker.table.names.named(plain)
        distinct = frozenset(name for name, weight in named.items() if weight >= 0.25)
        rest = [word for word in words if stem(word) not in _KIND_WORDS and word.lower() not in EMPTY]
        operation = ""
        if len(rest) == 1 and has_verb:
            operation = operations_of_verb(first)[0]
        verb = first if has_verb else ""
        clause = Clause(STEP, tuple([verb, *words[1:]] if has_verb else ["", *words]), verb)
        return Mention(clause, distinct, operation)

    def by_place(self, text: str) -> list[Call | UserTask]:
        """Returns the steps that a text names by their place: "the last step", "the second and third steps"."""
        match = _BY_PLACE.fullmatch(text.strip(" .,;:").lower())
        found = []
        for word in re.findall(_ORDINAL, match["places"]) if match else ():
            place = len(self.steps) if word in ("last", "final") else _PLACES.get(word, 0)
            if 1 <= place <= len(self.steps):
                found.append(self.steps[place - 1])
        return found

    def find(self, text: str) -> list[Call | UserTask]:
        """Returns the steps that a text means, in the order of the flow; empty where none fits."""
        if placed := self.by_place(text):
            return placed
        mention = self.mention(text)
        by_id = self.ranker.table.catalogue.by_id
        calls = [(s, by_id[s.activity]) for s in self.steps if isinstance(s, Call) and s.activity in by_id]
        if mention.operation_only:
            return [step for step, activity in calls if activity.operation == mention.operation_only]
        tasks = self._user_tasks(text)
        if tasks:
            return tasks
        names = self._only_application(mention)
        if names:
            return [step for step, activity in calls if activity.application in names]
        fitting = [step for step, activity in calls if self._fits(mention, step, activity)]
        if not fitting and mention.applications:  # an ordinary word may be part of a name: "object" of Object Storage
            named = self.ranker.table.names.named(text)
            mention = replace(mention, applications=frozenset(n for n, w in named.items() if w >= DISTINCT))
            fitting = [step for step, activity in calls if self._fits(mention, step, activity)]
        if not fitting:
            return []
        scores = {r.activity: r.score for r in self.ranker.ranked(Query(mention.clause), len(by_id))}
        best = max(fitting, key=lambda step: scores.get(step.activity, float("-inf")))
        return [step for step in fitting if step.activity == best.activity]

    def _user_tasks(self, text: str) -> list[Call | UserTask]:
        words = set(content_stems(text)) - _KIND_WORDS
        found: list[Call | UserTask] = []
        for step in self.steps:
            if isinstance(step, UserTask):
                own = set(content_stems(step.text))
                if own and len(own & words) >= max(1, round(0.6 * min(len(own), max(1, len(words))))):
                    found.append(step)
        return found

    def _only_application(self, mention: Mention) -> frozenset[str]:
        """The applications, where a text has no words beside theirs."""
        words = [word for word in mention.clause.words if word and word.lower() not in EMPTY]
        rest = [word for word in words if not self.ranker.table.names.named(word) and stem(word) not in _KIND_WORDS]
        return mention.applications if not rest and not mention.clause.verb else frozenset()

    def _fits(self, mention: Mention, step: Call, activity: Activity) -> bool:
        head = noun_phrase(mention.clause).head
        words = set(content_stems(" ".join(mention.clause.words)))
        own = {*activity.object_stems, *activity.described_stems, *(stem(w) for w in step.variable.split("_"))}
        own |= {"".join(activity.object_stems)}
        short = {"".join(w[0] for w in activity.described_stems)} | {w[:5] for w in own}
        object_fits = bool(words & own) or head in short or (head != "" and head[:5] in short)
        if mention.applications and activity.application not in mention.applications:
            return False
        operations = operations_of_verb(mention.clause.verb) if mention.clause.verb else ()
        if operations and activity.operation not in operations:
            return False
        if object_fits or head in ("", "it", "one"):
            return True
        return activity.application in mention.applications


def _is_noun_here(words: list[str]) -> bool:
    """Whether a first word such as "email" or "message" is a noun: no determiner follows, and nothing else does."""
    return len(words) == 1

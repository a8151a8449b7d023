"""The four scores of every task of a workflow: each by its rule, else the complement of its pair, else what the
settings state.

Cohesion Ch of EVAL A3, 0 best: how unlike the things are that one task is told to do.

The papers do not say how it is measured; this rule, `words`, is this project's own. A statement is the task's name, a
sentence of its description, of its objective or of its instructions (of the way in which it is done), or the names of
its data. Two statements are alike by the square root of the cosine of their sets of words, a word being the first five
letters of one with four or more. The score is 1 less the mean over all pairs. On the sample it tells two tasks made
into one from a task of its own at least as well as the sentence encoder does (README), and needs no model: the same on
every machine, to the last bit.

Coupling Cp of EVAL A3, 0 best: how much of what a task hangs on, and of what hangs on it, lies outside its community.

The papers do not say how it is measured; this rule, `community`, is this project's own: the mean of three shares, of
those that are known. Of the transitions into and out of the task in history, those across the border of its community
(`wkg/tasks.community`); of its neighbours in the workflow, those of another community; of its flows of data, those from
or to another community, and those from nobody in the workflow (what the client gives to the first tasks excepted).

Information Hygiene Ih of EVAL A3, 0 best: how much of what a task emits should not be emitted.

The papers do not say how it is measured; this rule, `signals`, is this project's own: the mean over the data that a
task leaves of the worst of three faults. Irrelevant: nobody after it in the workflow takes it, and it does not go to
the client (1); only k parts of it are taken, not the whole (1 / (k + 1): it holds at least one thing more). Redundant:
m tasks of the workflow emit it (1 - 1/m). Private: its name says that it holds telephone or account numbers (1).

Observability Ob of EVAL A3, 0 best: how little of what a task does leaves a trace.

The papers do not say how it is measured; this rule, `trace`, is this project's own: 1 less the mean of four traces,
each in [0, 1]. Does it leave named data (a review leaves its finding)? How often did history record whether it was
right? Did history record its cost and its time? Is it looked at in this workflow: a review of it counts 1, any other
task after it (the next ones, and those that take what it leaves) as much as it mends of what is wrong before it, and
together they miss what all of them miss.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from opus_pipelines.core.settings import ScoreRules, TaskScores
from opus_pipelines.evaluation.penalty import Scores
from opus_pipelines.evaluation.score_facts import Surroundings, TaskFacts
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.model import Workflow

SHORTEST, STEM = 4, 5
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|[\r\n]+")
_WORD = re.compile(r"[^\W\d_]+")


def words(facts: TaskFacts, _node: str, _around: Surroundings) -> float | None:
    """The rule; None where fewer than two statements have words."""
    return unlikeness(facts.statements)


def statements(names: Iterable[str], texts: Iterable[str | None]) -> tuple[str, ...]:
    """What is said of a task, each thing once: names as they stand, texts by sentence."""
    sentences = (part.strip() for text in texts if text for part in _SENTENCE.split(text))
    return tuple(dict.fromkeys(s for s in (*names, *sentences) if s))


@lru_cache(1 << 14)
def unlikeness(said: tuple[str, ...]) -> float | None:
    """1 - the mean likeness of all pairs, in [0, 1]; None where there is no pair. The order of the statements means
    nothing.
    """
    sets = [found for text in said if (found := _stems(text))]
    pairs = [likeness(a, b) for a, b in itertools.combinations(sets, 2)]
    return max(0.0, 1 - math.fsum(pairs) / len(pairs)) if pairs else None


def likeness(first: frozenset[str], second: frozenset[str]) -> float:
    """The square root of the cosine of two sets that are not empty: a shared word of many counts for more than its
    share.
    """
    return math.sqrt(len(first & second) / math.sqrt(len(first) * len(second)))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in _WORD.findall(text.casefold()) if len(word) >= SHORTEST)


def community(facts: TaskFacts, node: str, around: Surroundings) -> float | None:
    """The rule; None where none of the three shares is known."""
    shares = [] if facts.leaving is None else [facts.leaving]
    if around.bit[node] & around.home:
        neighbours = (around.parents[node] | around.children[node]) & around.home
        counts = (neighbours & around.abroad[node]).bit_count(), neighbours.bit_count()
        shares += [crossing / flows for crossing, flows in (counts, _flows(facts, node, around)) if flows]
    return sum(shares) / len(shares) if shares else None


def _flows(facts: TaskFacts, node: str, around: Surroundings) -> tuple[int, int]:
    """How many of its flows of data cross, and how many there are: one of each thing it takes, one of each it leaves
    to each taker.
    """
    crossing = flows = 0
    for name in facts.inputs:
        makers = around.makers.get(name, 0) & around.above[node]
        if makers & around.home or not (makers or node in around.fed):
            flows += 1
            crossing += not makers & around.home & ~around.abroad[node]
    for name in facts.outputs:
        takers = around.takers.get(name, 0) & around.below[node] & around.home
        flows += takers.bit_count()
        crossing += (takers & around.abroad[node]).bit_count()
    return crossing, flows


def signals(facts: TaskFacts, node: str, around: Surroundings) -> float | None:
    """The rule; None where it is not known what the task leaves, or where no task says what it takes."""
    if not facts.outputs or not (around.takers or node in around.delivers):
        return None
    return math.fsum(_fault(name, facts, node, around) for name in facts.outputs) / len(facts.outputs)


def _fault(name: str, facts: TaskFacts, node: str, around: Surroundings) -> float:
    if name in facts.private:
        return 1.0
    redundant = 1 - 1 / around.makers[name].bit_count()
    return max(redundant, 0.0 if node in around.delivers else _irrelevant(name, node, around))


def _irrelevant(name: str, node: str, around: Surroundings) -> float:
    below = around.below[node]
    if around.takers.get(name, 0) & below:
        return 0.0
    parts = sum(1 for other, takers in around.takers.items() if takers & below and is_part(other, name))
    return 1 / (parts + 1)


def is_part(name: str, whole: str) -> bool:
    """Whether a name is the whole's name and more: `invoice total`, which may have been written `invoice.total`, of
    `invoice`.
    """
    return name.startswith(f"{whole} ")


def trace(facts: TaskFacts, node: str, around: Surroundings) -> float | None:
    """The rule; always known: what nobody recorded left no trace."""
    leaves = 1.0 if facts.outputs or facts.is_review else 0.0
    return max(0.0, 1 - (leaves + facts.outcomes + facts.figures + looked_at(facts, node, around)) / 4)


def looked_at(facts: TaskFacts, node: str, around: Surroundings) -> float:
    """The chance that something wrong in it is seen by what comes after it."""
    watchers = around.children[node]
    for name in facts.outputs:
        watchers |= around.takers.get(name, 0) & around.below[node]
    found = [around.facts[other] for other in around.each(watchers)]
    if any(other.is_review for other in found):
        return 1.0
    return 1 - math.prod(sorted(1 - other.mends for other in found))


Rule = Callable[[TaskFacts, str, Surroundings], float | None]
RULES: Mapping[str, Rule] = {"words": words, "community": community, "trace": trace, "signals": signals}
COMPLEMENT = "complement"
# where nothing at all is known of a pair: what the paper's case study gives a task of which it says nothing
NEUTRAL = 0.5
PAIRS = (("cohesion", "coupling"), ("observability", "hygiene"))


def measure(workflow: Workflow, facts: Mapping[str, TaskFacts], rules: ScoreRules) -> dict[str, Scores]:
    """Scores by node; `facts` by node, of every task. The order of nodes and edges means nothing."""
    around = Surroundings(workflow, facts)
    ways = [(name, getattr(rules, name)) for pair in PAIRS for name in pair]
    stated = {folded(title): scores for title, scores in rules.tasks.items()}
    return {node: _scores(node, around, ways, stated) for node in around.tasks}


def _scores(
    node: str, around: Surroundings, ways: Sequence[tuple[str, str | float]], stated: Mapping[str, TaskScores]
) -> Scores:
    facts = around.facts[node]
    found: dict[str, float | None] = {}
    for name, way in ways:
        if isinstance(way, str):
            found[name] = None if way == COMPLEMENT else RULES[way](facts, node, around)
        else:
            found[name] = way
    own = stated.get(folded(around.workflow.by_id[node].title)) if stated else None
    found |= own.model_dump(exclude_none=True) if own else {}
    for first, second in PAIRS:
        if found[first] is None and found[second] is None:
            found[first] = NEUTRAL
    return Scores.of(**found)

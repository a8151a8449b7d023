"""Measures the four scores of every task of a workflow, each in [0, 1] with 0 best.

Each score comes from its rule, else it is the complement of its pair, else the value that the settings state. The
papers (EVAL A3) do not say how the scores are measured; the four rules are this project's own.

Cohesion Ch, rule `words`: how different the things are that one task is told to do. A statement is the name of the
task, a sentence of its description, of its objective or of the instructions of its execution mode, or the names of its
data. The similarity of two statements is the square root of the cosine of their sets of words, where a word is the
first five letters of a word with four or more. The score is 1 less the mean similarity of all pairs. On the sample it
distinguishes two merged tasks from a single task at least as well as the sentence encoder does (README). It needs no
model and gives the same bits on every machine.

Coupling Cp, rule `community`: the share of its connections that leave its community. The score is the mean of the known
ones of three shares. The first is the share of its transitions in history that cross the border of its community
(`wkg/tasks.community`). The second is the share of its neighbours in the workflow that belong to another community. The
third is the share of its data flows from or to another community, or from no task of the workflow (except what the
client gives to the first tasks).

Information Hygiene Ih, rule `signals`: how much of what a task emits should not be emitted. The score is the mean over
its output data of the worst of three faults. Irrelevant: no later task takes it, and it does not go to the client (1);
or only k parts of it are taken, not the whole (1 / (k + 1), because it holds at least one thing more). Redundant: m
tasks of the workflow emit it (1 - 1/m). Private: its name states that it holds telephone or account numbers (1).

Observability Ob, rule `trace`: how little of what a task does leaves a trace. The score is 1 less the mean of four
traces in [0, 1]. Does it leave named data (a review leaves its result)? How often did history record whether it was
right? Did history record its cost and its time? Does a later task detect its faults? A review counts 1; any other task
after it (its successors, and those that take its data) counts as much as it repairs of what is wrong before it, and the
probability that all of them miss a fault is the product.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from opus_pipelines.core.settings import ScoreRules, TaskScores
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.evaluation.penalty import Scores
from opus_pipelines.workflow.evaluation.score_facts import TaskFacts, WorkflowContext
from opus_pipelines.workflow.model import Workflow

SHORTEST, STEM = 4, 5
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|[\r\n]+")
_WORD = re.compile(r"[^\W\d_]+")


def words(facts: TaskFacts, _node: str, _around: WorkflowContext) -> float | None:
    """Returns Cohesion by the rule; None where fewer than two statements have words."""
    return mean_dissimilarity(facts.statements)


def statements(names: Iterable[str], texts: Iterable[str | None]) -> tuple[str, ...]:
    """Returns the statements about a task, each once: names as they are, texts by sentence."""
    sentences = (part.strip() for text in texts if text for part in _SENTENCE.split(text))
    return tuple(dict.fromkeys(s for s in (*names, *sentences) if s))


@lru_cache(1 << 14)
def mean_dissimilarity(texts: tuple[str, ...]) -> float | None:
    """Returns 1 - the mean similarity of all pairs of statements, in [0, 1], independent of their order.

    Returns None where there is no pair.
    """
    sets = [stems for text in texts if (stems := _stems(text))]
    pairs = [word_similarity(a, b) for a, b in itertools.combinations(sets, 2)]
    return max(0.0, 1 - math.fsum(pairs) / len(pairs)) if pairs else None


def word_similarity(first: frozenset[str], second: frozenset[str]) -> float:
    """Returns the square root of the cosine of two sets that are not empty.

    The root gives a single shared word among many a higher weight than its share.
    """
    return math.sqrt(len(first & second) / math.sqrt(len(first) * len(second)))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in _WORD.findall(text.casefold()) if len(word) >= SHORTEST)


def community(facts: TaskFacts, node: str, context: WorkflowContext) -> float | None:
    """Returns Coupling by the rule; None where none of the three shares is known."""
    shares = [] if facts.leaving is None else [facts.leaving]
    if context.bit[node] & context.has_community:
        neighbours = (context.parents[node] | context.children[node]) & context.has_community
        counts = (neighbours & context.other_communities[node]).bit_count(), neighbours.bit_count()
        shares += [crossing / flows for crossing, flows in (counts, _flows(facts, node, context)) if flows]
    return sum(shares) / len(shares) if shares else None


def _flows(facts: TaskFacts, node: str, context: WorkflowContext) -> tuple[int, int]:
    """Returns how many of its data flows cross the border of its community, and how many there are.

    Each data name that it takes is one flow; each name that it leaves is one flow to each task that takes it.
    """
    crossing = flows = 0
    for name in facts.inputs:
        makers = context.makers.get(name, 0) & context.above[node]
        if makers & context.has_community or not (makers or node in context.fed):
            flows += 1
            crossing += not makers & context.has_community & ~context.other_communities[node]
    for name in facts.outputs:
        takers = context.takers.get(name, 0) & context.below[node] & context.has_community
        flows += takers.bit_count()
        crossing += (takers & context.other_communities[node]).bit_count()
    return crossing, flows


def signals(facts: TaskFacts, node: str, context: WorkflowContext) -> float | None:
    """Returns Information Hygiene by the rule.

    Returns None where the outputs of the task are unknown, or where no task states its inputs.
    """
    if not facts.outputs or not (context.takers or node in context.delivers):
        return None
    return math.fsum(_fault(name, facts, node, context) for name in facts.outputs) / len(facts.outputs)


def _fault(name: str, facts: TaskFacts, node: str, context: WorkflowContext) -> float:
    if name in facts.private:
        return 1.0
    redundant = 1 - 1 / context.makers[name].bit_count()
    return max(redundant, 0.0 if node in context.delivers else _irrelevant(name, node, context))


def _irrelevant(name: str, node: str, context: WorkflowContext) -> float:
    below = context.below[node]
    if context.takers.get(name, 0) & below:
        return 0.0
    parts = sum(1 for other, takers in context.takers.items() if takers & below and is_part(other, name))
    return 1 / (parts + 1)


def is_part(name: str, whole: str) -> bool:
    """Returns whether a name extends the whole's name: `invoice total` (written `invoice.total`) extends `invoice`."""
    return name.startswith(f"{whole} ")


def trace(facts: TaskFacts, node: str, context: WorkflowContext) -> float | None:
    """Returns Observability by the rule; it is always known, because what nobody recorded left no trace."""
    leaves = 1.0 if facts.outputs or facts.is_review else 0.0
    return max(0.0, 1 - (leaves + facts.outcomes + facts.figures + detection_probability(facts, node, context)) / 4)


def detection_probability(facts: TaskFacts, node: str, context: WorkflowContext) -> float:
    """Returns the probability that a later task detects a fault of this task."""
    watchers = context.children[node]
    for name in facts.outputs:
        watchers |= context.takers.get(name, 0) & context.below[node]
    later = [context.facts[other] for other in context.each(watchers)]
    if any(other.is_review for other in later):
        return 1.0
    return 1 - math.prod(sorted(1 - other.q for other in later))


Rule = Callable[[TaskFacts, str, WorkflowContext], float | None]
RULES: Mapping[str, Rule] = {"words": words, "community": community, "trace": trace, "signals": signals}
COMPLEMENT = "complement"
# for a pair of which nothing is known: the value of the paper's case study for a task that it does not describe
NEUTRAL = 0.5
PAIRS = (("cohesion", "coupling"), ("observability", "hygiene"))


def measure(workflow: Workflow, facts: Mapping[str, TaskFacts], rules: ScoreRules) -> dict[str, Scores]:
    """Returns the scores by node; `facts` are by node, of every task. The order of nodes and edges does not count."""
    context = WorkflowContext(workflow, facts)
    score_rules = [(name, getattr(rules, name)) for pair in PAIRS for name in pair]
    stated = {folded(title): scores for title, scores in rules.tasks.items()}
    return {node: _scores(node, context, score_rules, stated) for node in context.tasks}


def _scores(
    node: str,
    context: WorkflowContext,
    score_rules: Sequence[tuple[str, str | float]],
    stated: Mapping[str, TaskScores],
) -> Scores:
    facts = context.facts[node]
    scores: dict[str, float | None] = {}
    for name, rule in score_rules:
        if isinstance(rule, str):
            scores[name] = None if rule == COMPLEMENT else RULES[rule](facts, node, context)
        else:
            scores[name] = rule
    own = stated.get(folded(context.workflow.by_id[node].title)) if stated else None
    scores |= own.model_dump(exclude_none=True) if own else {}
    for first, second in PAIRS:
        if scores[first] is None and scores[second] is None:
            scores[first] = NEUTRAL
    return Scores.of(**scores)

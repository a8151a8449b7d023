"""Computes the normative Penalties of EVAL (8)-(10) from four scores per task, and measures these scores.

Each score is in [0, 1] with 0 best. Each score comes from its rule, else it is the complement of its pair, else the
value that the settings state. The papers (EVAL A3) do not say how the scores are measured; the four rules are this
project's own.

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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Reward, ScoreRules, TaskScores
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.model import TaskNode, Workflow


@dataclass(frozen=True)
class Scores:
    """Ch, Cp, Ob and Ih of one task (EVAL A3), each in [0, 1], 0 best.

    `Scores.of` fills in the scores that are not measured. Raises WorkflowError for a score outside [0, 1].
    """

    cohesion: float
    coupling: float
    observability: float
    hygiene: float

    def __post_init__(self) -> None:
        if not (
            0 <= self.cohesion <= 1
            and 0 <= self.coupling <= 1
            and 0 <= self.observability <= 1
            and 0 <= self.hygiene <= 1
        ):
            wrong = [f"{name} is {x}" for name, x in asdict(self).items() if not 0 <= x <= 1]
            raise WorkflowError(f"a score lies in [0, 1]: {', '.join(wrong)}")

    @classmethod
    def of(
        cls,
        cohesion: float | None = None,
        coupling: float | None = None,
        observability: float | None = None,
        hygiene: float | None = None,
    ) -> "Scores":
        """Returns the scores; an absent one is the complement of its pair.

        Ch + Cp = 1 and Ob + Ih = 1, as the paper assumes. Raises WorkflowError where both scores of a pair are absent.
        """
        return cls(
            *_pair("cohesion", cohesion, "coupling", coupling),
            *_pair("observability", observability, "hygiene", hygiene),
        )


@dataclass(frozen=True)
class WorkflowPenalties:
    """CIP (8), SIP (9) and their joint Penalty (10) of a workflow, each in [0, 1]."""

    cip: float
    sip: float
    penalty: float


def penalties(workflow: Workflow, scores: Mapping[str, Scores], reward: Reward) -> WorkflowPenalties:
    """Returns EVAL (8)-(10) with α, β and λ from the settings; `scores` are by node."""
    known = list(task_scores(workflow, scores).values())
    first, second = cip(known, reward.alpha), sip(known, reward.beta)
    return WorkflowPenalties(first, second, joint_penalty(first, second, reward.lambda_))


def task_scores(workflow: Workflow, scores: Mapping[str, Scores]) -> dict[str, Scores]:
    """Returns the scores of the workflow's tasks, by node; raises WorkflowError where a task has none."""
    if missing := [t.id for t in workflow.tasks if t.id not in scores]:
        raise WorkflowError(f"no scores for {', '.join(map(repr, missing))}: without them the workflow has no Penalty")
    return {t.id: scores[t.id] for t in workflow.tasks}


def cip(scores: Collection[Scores], alpha: float = 0.5) -> float:
    """Returns EVAL (8): the mean of α Ch² + (1 - α) Cp² over the tasks; 0 without tasks.

    The paper does not say which of the two α weighs; this reading is 75 % certain.
    """
    return _mean_of_squares([(s.cohesion, s.coupling) for s in scores], alpha)


def sip(scores: Collection[Scores], beta: float = 0.5) -> float:
    """Returns EVAL (9): the mean of β Ob² + (1 - β) Ih² over the tasks; 0 without tasks.

    The paper does not say which of the two β weighs; this reading is 75 % certain.
    """
    return _mean_of_squares([(s.observability, s.hygiene) for s in scores], beta)


def joint_penalty(cip: float, sip: float, lambda_: float = 0.5) -> float:
    """Returns EVAL (10): sqrt(λ CIP² + (1 - λ) SIP²), quadratic as the printed figures require."""
    return min(1.0, math.sqrt(lambda_ * cip * cip + (1 - lambda_) * sip * sip))


def _mean_of_squares(pairs: Collection[tuple[float, float]], weight: float) -> float:
    if not pairs:
        return 0.0
    return min(1.0, math.fsum(weight * a * a + (1 - weight) * b * b for a, b in pairs) / len(pairs))


def _pair(first_name: str, first: float | None, second_name: str, second: float | None) -> tuple[float, float]:
    """Returns both scores of a pair, an absent one as the complement of the other."""
    if first is not None:
        return first, 1 - first if second is None else second
    if second is not None:
        return 1 - second, second
    raise WorkflowError(f"neither {first_name} nor {second_name} is known: one of the two is needed")


@dataclass(frozen=True)
class TaskFacts:
    """The facts about one task in any workflow; None means unknown.

    Names of data are folded (`workflow.constraints.folded`), each once. `statements`: its instructions and
    descriptions, one sentence each. `leaving`: the share of its transitions in history that cross the border of its
    community. `outcomes`: the share of its executions with a recorded outcome. `figures`: the share of its cost and
    time that history recorded. `q`: P(it is right | something before it was wrong), as history shows it.
    """

    statements: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    private: frozenset[str] = frozenset()
    community: str | None = None
    leaving: float | None = None
    outcomes: float = 0.0
    figures: float = 0.0
    q: float = 0.0
    is_review: bool = False


class WorkflowContext:
    """One workflow as the scores see it: the order of its tasks, and which tasks leave and take which data.

    Sets of tasks are bit masks with one bit per task (`bit`), for speed. `below` and `above`: all tasks after and
    before one, at any distance. `fed`: the tasks that follow an input. `delivers`: the tasks that lead to an output, at
    most through reviews. `has_community`: the tasks of known community. `other_communities`: for each task, those of
    them in another community.
    """

    def __init__(self, workflow: Workflow, facts: Mapping[str, TaskFacts]) -> None:
        self.workflow, self.facts = workflow, facts
        by_id = workflow.by_id
        self.tasks = [n for n in workflow.topological() if isinstance(by_id[n], TaskNode)]
        self.bit = {n: 1 << place for place, n in enumerate(self.tasks)}
        self.below, self.above = dict.fromkeys(self.tasks, 0), dict.fromkeys(self.tasks, 0)
        self.children, self.parents = dict.fromkeys(self.tasks, 0), dict.fromkeys(self.tasks, 0)
        self.fed: set[str] = set()
        self.delivers: set[str] = set()
        self._read_edges()
        self.makers, self.takers = self._named("outputs"), self._named("inputs")
        self.has_community, self.other_communities = self._communities()

    def each(self, tasks: int) -> Iterator[str]:
        """Yields the tasks of a bit mask, in topological order."""
        while tasks:
            least = tasks & -tasks
            yield self.tasks[least.bit_length() - 1]
            tasks ^= least

    def _read_edges(self) -> None:
        bit = self.bit
        for src, dst in self.workflow.edges:
            if src in bit and dst in bit:
                self.children[src] |= bit[dst]
                self.parents[dst] |= bit[src]
            elif src in bit:
                self.delivers.add(src)
            elif dst in bit:
                self.fed.add(dst)
        for task in self.tasks:
            self.above[task] = self.parents[task]
            for other in self.each(self.parents[task]):
                self.above[task] |= self.above[other]
        for task in reversed(self.tasks):
            self.below[task] = self.children[task]
            for other in self.each(self.children[task]):
                self.below[task] |= self.below[other]
            if task in self.delivers and self.facts[task].is_review:
                self.delivers.update(self.each(self.parents[task]))

    def _named(self, side: str) -> dict[str, int]:
        masks: dict[str, int] = {}
        for task in self.tasks:
            for name in getattr(self.facts[task], side):
                masks[name] = masks.get(name, 0) | self.bit[task]
        return masks

    def _communities(self) -> tuple[int, dict[str, int]]:
        """Returns the community masks. A review belongs to the community of the tasks that it reviews, if it is one."""
        own: dict[str, str | None] = {}
        members: dict[str, int] = {}
        for task in self.tasks:
            known = self.facts[task]
            communities = {own[u] for u in self.each(self.parents[task])} if known.is_review else {known.community}
            own[task] = name = communities.pop() if len(communities) == 1 else None
            if name is not None:
                members[name] = members.get(name, 0) | self.bit[task]
        has_community = sum(members.values())
        return has_community, {
            task: has_community & ~members[name] if name is not None else 0 for task, name in own.items()
        }


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

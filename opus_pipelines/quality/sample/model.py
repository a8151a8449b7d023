"""The generative model of the sample: tasks, execution modes, kinds of case and flows, and its exact expectations.

It is data without randomness.

A case has a correctness state S, right at first. Executing a task in a mode draws S from Bernoulli(p) if S was right,
else from Bernoulli(q); the recorded success of the task is the new S. A case without a needed task is damaged with that
task's probability, whatever its steps look like. A case succeeds when S is right at its end and it is not damaged.

A kind of case is a Markov chain over (node, state). The simulation and the truth use the same chain.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain as flatten
from typing import Any

import numpy as np

SMALL, LARGE = "quill-small-2", "quill-large-2"
USD_PER_MILLION_TOKENS: Mapping[str, float] = {SMALL: 0.4, LARGE: 6.0}
CODE_USD_PER_HOUR = 0.6
VARIATION = 0.25  # coefficient of variation of every duration and token count: gamma distributed
UNKNOWN_OUTCOMES = 0.02  # share of cases whose outcome nobody wrote down


@dataclass(frozen=True)
class ExecutionMode:
    """One execution mode of a task: who does it, its share, p, q, mean duration in ms, and mean counts of tokens."""

    actor_kind: str
    share: float
    p: float
    q: float
    duration_ms: float
    model: str | None = None
    tokens_in: float = 0.0
    tokens_out: float = 0.0


def human(share: float, p: float, q: float, minutes: float) -> ExecutionMode:
    """Returns the mode of a person, paid by the hour."""
    return ExecutionMode("human", share, p, q, minutes * 60_000)


def code(share: float, p: float, q: float, seconds: float) -> ExecutionMode:
    """Returns the mode of a program."""
    return ExecutionMode("code", share, p, q, seconds * 1000)


def small(share: float, p: float, q: float, tokens_in: float, tokens_out: float) -> ExecutionMode:
    """Returns the mode of the small model: cheap, quick, less reliable."""
    return ExecutionMode("model", share, p, q, 900 + 6 * tokens_out, SMALL, tokens_in, tokens_out)


def large(share: float, p: float, q: float, tokens_in: float, tokens_out: float) -> ExecutionMode:
    """Returns the mode of the large model: fifteen times the price, slower, more reliable."""
    return ExecutionMode("model", share, p, q, 1800 + 18 * tokens_out, LARGE, tokens_in, tokens_out)


@dataclass(frozen=True)
class Task:
    """A task of the industry; each source has its own name for it."""

    name: str
    description: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    instructions: Mapping[str, str]
    modes: tuple[ExecutionMode, ...]
    # mean time that somebody outside takes to answer; it passes before the work on the answer begins
    answer_hours: float = 0.0

    @property
    def p(self) -> float:
        """P(right | right before), averaged over the modes."""
        return sum(w.share * w.p for w in self.modes)

    @property
    def q(self) -> float:
        """P(right | wrong before), averaged over the modes."""
        return sum(w.share * w.q for w in self.modes)


@dataclass(frozen=True)
class Do:
    """A step that every case executes."""

    task: str


@dataclass(frozen=True)
class Maybe:
    """A step that a share of cases executes, whatever their state."""

    task: str
    share: float


@dataclass(frozen=True)
class Together:
    """Steps that are all executed, at the same time and in any order.

    The next task is drawn with odds by its weight.
    """

    weights: Mapping[str, float]


@dataclass(frozen=True)
class Check:
    """A check that every case executes; a case that is wrong after it returns to `back_to` with probability `share`."""

    task: str
    back_to: str
    share: float


@dataclass(frozen=True)
class Needed:
    """A check that a share of cases skips to save money.

    A case without it is damaged with probability `damage`.
    """

    task: str
    skipped: float
    damage: float


@dataclass(frozen=True)
class Ordered:
    """Two steps that every case executes; a share of cases does the second one first.

    Such a case is damaged with probability `damage`: the second step rested on what the first had not settled yet.
    """

    tasks: tuple[str, str]
    swapped: float
    damage: float


Element = Do | Maybe | Together | Check | Needed | Ordered


@dataclass(frozen=True)
class Kind:
    """A kind of case: its title, the text of a request, its flow, and its number of cases in history (0: `unseen`)."""

    title: str
    description: str
    details: Mapping[str, tuple[str, ...]]
    procedure: str
    flow: tuple[Element, ...]
    cases: int

    @property
    def written_title(self) -> str:
        """The title as history has it: without what stands in brackets, which an attribute of the case says."""
        return self.title.partition(" (")[0]

    @property
    def needed(self) -> Needed | None:
        """The check that the shortcut skips, or None."""
        return next((e for e in self.every_needed if e.skipped), None)

    @property
    def every_needed(self) -> tuple[Needed, ...]:
        """All tasks without which a case is damaged, each independently of the others."""
        return tuple(e for e in self.flow if isinstance(e, Needed))

    @property
    def orders(self) -> tuple[Ordered, ...]:
        """The pairs of steps whose order decides whether a case is damaged, each independently of the others."""
        return tuple(e for e in self.flow if isinstance(e, Ordered))

    @property
    def always(self) -> tuple[str, ...]:
        """Tasks that every regular case executes, in the order of the flow."""
        return tuple(t for e in self.flow if not isinstance(e, Maybe) for t in tasks_of(e))


@dataclass(frozen=True)
class Industry:
    """An industry: its tasks, and the cost of a person's hour in dollars."""

    name: str
    usd_per_hour: float
    tasks: Mapping[str, Task]

    def cost_usd(self, mode: ExecutionMode) -> float:
        """Returns the mean cost of executing a task in this mode: time or tokens, times their price."""
        return self.price(mode, mode.duration_ms, mode.tokens_in + mode.tokens_out)

    def price(self, mode: ExecutionMode, duration_ms: float, tokens: float) -> float:
        """Returns the dollars of one execution: people and programs cost time, models cost tokens."""
        if mode.model is not None:
            return tokens * USD_PER_MILLION_TOKENS[mode.model] / 1e6
        return duration_ms / 3.6e6 * (self.usd_per_hour if mode.actor_kind == "human" else CODE_USD_PER_HOUR)


def tasks_of(element: Element) -> Iterator[str]:
    """Returns the tasks that an element of a flow names as its own."""
    if isinstance(element, Together):
        yield from element.weights
    elif isinstance(element, Ordered):
        yield from element.tasks
    else:
        yield element.task


def normalise(name: str) -> str:
    """Returns a name as the normalised merge compares it: its words in lower case."""
    return " ".join(re.findall(r"[^\W_]+", name.lower()))


END = -1
Options = list[tuple[int, float]]


@dataclass
class Chain:
    """Nodes with their tasks, and where a case goes next when it is right and when it is wrong (END ends it)."""

    tasks: list[str] = field(default_factory=list)
    groups: list[int | None] = field(default_factory=list)
    right: list[Options] = field(default_factory=list)
    wrong: list[Options] = field(default_factory=list)
    start: Options = field(default_factory=lambda: [(END, 1.0)])

    def add(self, task: str, following: Options, group: int | None = None) -> int:
        """Adds a node whose case goes on to `following`, right or wrong."""
        self.tasks.append(task)
        self.groups.append(group)
        self.right.append(following)
        self.wrong.append(following)
        return len(self.tasks) - 1


def variants(kind: Kind) -> list[tuple[float, Chain, bool]]:
    """Returns (share of cases, their chain, whether it is the shortcut) for each variant of a kind."""
    needed = kind.needed
    full = (1 - needed.skipped if needed else 1.0, compile_chain(kind), False)
    return [full, (needed.skipped, compile_chain(kind, needed.task), True)] if needed else [full]


def compile_chain(kind: Kind, skip: str | None = None) -> Chain:
    """Returns the flow of a kind as a chain, without the task `skip`.

    It is built from the end, so that each element knows its successor.
    """
    chain = Chain()
    backs: list[tuple[int, Check]] = []
    for group, element in reversed(list(enumerate(kind.flow))):
        if isinstance(element, Together):
            chain.start = _together(chain, element, group)
        elif isinstance(element, Ordered):
            first, second = (_in_order(chain, tasks) for tasks in (element.tasks, element.tasks[::-1]))
            chain.start = [(first, 1 - element.swapped), (second, element.swapped)]
        elif isinstance(element, Maybe):
            node = chain.add(element.task, chain.start)
            chain.start = [(node, element.share)] + [(n, pr * (1 - element.share)) for n, pr in chain.start]
        elif not (isinstance(element, Needed) and element.task == skip):
            node = chain.add(element.task, chain.start)
            chain.start = [(node, 1.0)]
            if isinstance(element, Check):
                backs.append((node, element))
    for node, check in backs:
        target = chain.tasks.index(check.back_to)
        chain.wrong[node] = [(target, check.share)] + [(n, pr * (1 - check.share)) for n, pr in chain.right[node]]
    return chain


def _in_order(chain: Chain, tasks: tuple[str, ...]) -> int:
    """Adds nodes of tasks, one after the other, before what the chain starts with. Returns the first of them."""
    following = chain.start
    for task in reversed(tasks):
        following = [(chain.add(task, following), 1.0)]
    return following[0][0]


def _together(chain: Chain, element: Together, group: int) -> Options:
    """Adds the nodes of a parallel block, one for each (task, tasks done before it). Returns how the block begins."""
    following = chain.start
    known: dict[tuple[str, frozenset[str]], int] = {}

    def begin(done: frozenset[str]) -> Options:
        rest = {t: w for t, w in element.weights.items() if t not in done}
        if not rest:
            return following
        return [(node(task, done), weight / sum(rest.values())) for task, weight in rest.items()]

    def node(task: str, done: frozenset[str]) -> int:
        if (task, done) not in known:
            known[task, done] = chain.add(task, begin(done | {task}), group)
        return known[task, done]

    return begin(frozenset())


@dataclass
class Expected:
    """Expectations for one case of a chain.

    They are counts of visits, starts, ends and transitions by task, and P(right at the end).
    """

    visits: dict[str, float]
    after_wrong: dict[str, float]
    starts: dict[str, float]
    ends: dict[str, float]
    transitions: dict[tuple[str, str], float]
    right: float


def expected(chain: Chain, tasks: Mapping[str, Task]) -> Expected:
    """Returns the exact expectations, from the linear system of the chain over (node, state before)."""
    size = len(chain.tasks)
    moves = np.zeros(
        (2 * size, 2 * size)
    )  # from (node, state before) to (next node, state before it); 2i is right, 2i + 1 wrong
    entry = np.zeros(2 * size)
    for target, probability in chain.start:
        entry[2 * target] += probability
    for node, before, after, options, chance in _steps(chain, tasks):
        for target, probability in options:
            if target != END:
                moves[2 * node + before, 2 * target + after] += chance * probability
    visits = np.linalg.solve((np.eye(2 * size) - moves).T, entry)
    return _by_task(chain, tasks, visits)


def _steps(chain: Chain, tasks: Mapping[str, Task]) -> list[tuple[int, int, int, Options, float]]:
    """Yields (node, wrong before, wrong after, next node, probability of that state after)."""
    steps = []
    for node, name in enumerate(chain.tasks):
        for before, chance in ((0, tasks[name].p), (1, tasks[name].q)):
            steps.append((node, before, 0, chain.right[node], chance))
            steps.append((node, before, 1, chain.wrong[node], 1 - chance))
    return steps


def _by_task(chain: Chain, tasks: Mapping[str, Task], visits: np.ndarray) -> Expected:
    sums: dict[str, dict[Any, Any]] = {
        name: defaultdict(float) for name in ("visits", "after_wrong", "starts", "ends", "transitions")
    }
    right = 0.0
    for node, name in enumerate(chain.tasks):
        sums["visits"][name] += visits[2 * node] + visits[2 * node + 1]
        sums["after_wrong"][name] += visits[2 * node + 1]
    for node, probability in chain.start:
        sums["starts"][chain.tasks[node]] += probability
    for node, before, after, options, chance in _steps(chain, tasks):
        for target, probability in options:
            flow = float(visits[2 * node + before] * chance * probability)
            if target == END:
                sums["ends"][chain.tasks[node]] += flow
                right += flow * (after == 0)
            else:
                sums["transitions"][chain.tasks[node], chain.tasks[target]] += flow
    return Expected(**{name: dict(values) for name, values in sums.items()}, right=right)


def mixed(parts: list[tuple[float, Expected]]) -> Expected:
    """Returns the weighted sum of expectations. `right` is meaningful only where the weights add up to 1."""

    def total(name: str) -> dict[Any, Any]:
        keys = dict.fromkeys(flatten.from_iterable(getattr(e, name) for _, e in parts))
        return {key: sum(w * getattr(e, name).get(key, 0.0) for w, e in parts) for key in keys}

    names = ("visits", "after_wrong", "starts", "ends", "transitions")
    return Expected(**{name: total(name) for name in names}, right=sum(w * e.right for w, e in parts))

"""Defines the terms of the generative model: tasks, execution modes, kinds of case and flows.

It is data without randomness.

A case has a correctness state S, right at first. Executing a task in a mode draws S from Bernoulli(p) if S was right,
else from Bernoulli(q); the recorded success of the task is the new S. A case without a needed task is damaged with that
task's probability, whatever its steps look like. A case succeeds when S is right at its end and it is not damaged.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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


Element = Do | Maybe | Together | Check | Needed


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
    def needed(self) -> Needed | None:
        """The check that the shortcut skips, or None."""
        return next((e for e in self.every_needed if e.skipped), None)

    @property
    def every_needed(self) -> tuple[Needed, ...]:
        """All tasks without which a case is damaged, each independently of the others."""
        return tuple(e for e in self.flow if isinstance(e, Needed))

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
    else:
        yield element.task


def normalise(name: str) -> str:
    """Returns a name as the normalised merge compares it: its words in lower case."""
    return " ".join(re.findall(r"[a-z0-9]+", name.lower()))


def by_name(*tasks: Task) -> dict[str, Task]:
    """Returns tasks by their names."""
    return {task.name: task for task in tasks}

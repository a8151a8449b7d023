"""Draws cases from the generative model: tasks, their order, execution modes, people, times, costs and outcomes."""

from dataclasses import dataclass, field
from random import Random

from opus_pipelines.quality.sample.model import (
    END,
    UNKNOWN_OUTCOMES,
    VARIATION,
    Chain,
    ExecutionMode,
    Industry,
    Kind,
    Options,
    Task,
    variants,
)

FIRST_DAY_MS = 1_736_121_600_000  # 2025-01-06T00:00Z, a Monday
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
HISTORY_DAYS = 200
PEOPLE = (
    "A. Okafor",
    "B. Lindqvist",
    "C. Marchetti",
    "D. Santos",
    "E. Whitfield",
    "F. Nakagawa",
    "G. Haddad",
    "H. Brandt",
)
PROGRAM = "process-engine 4"


@dataclass
class Performed:
    """One execution of a task; times are in ms since 1970 UTC."""

    task: Task
    mode: ExecutionMode
    actor: str
    ready_ms: int
    start_ms: int
    end_ms: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    right: bool


@dataclass
class Case:
    """One case as history records it, and whether it took the shortcut."""

    number: int
    contract: str
    kind: Kind
    description: str
    facts: dict[str, str]
    success: bool | None
    shortcut: bool
    performed: list[Performed] = field(default_factory=list)


def draw_cases(seed: int, industry: Industry, contract: str, kind: Kind) -> list[Case]:
    """Returns every case of a kind in order of arrival. The same seed gives the same cases."""
    random = Random(f"{seed}/{contract}/{kind.title}")
    draws = _Draws(random, Random(f"{seed}/{contract}/{kind.title}/answers"), industry)
    arrivals = sorted(FIRST_DAY_MS + int(random.random() * HISTORY_DAYS * DAY_MS) for _ in range(kind.cases))
    chains = [chain for _, chain, _ in variants(kind)]
    cases = []
    for number, arrival in enumerate(arrivals):
        facts = {name: random.choice(choices) for name, choices in kind.details.items()}
        shortcut = kind.needed is not None and random.random() < kind.needed.skipped
        performed = _perform(draws, chains[shortcut], arrival)
        success = _outcome(random, kind, shortcut, performed)
        cases.append(
            Case(number, contract, kind, kind.description.format(**facts), facts, success, shortcut, performed)
        )
    return cases


def _outcome(random: Random, kind: Kind, shortcut: bool, performed: list[Performed]) -> bool | None:
    """Returns whether the case is right at its end and not damaged, or None where the outcome was not recorded."""
    damaged = shortcut and kind.needed is not None and random.random() < kind.needed.damage
    done = [step.task.name for step in performed]
    for pair in kind.orders:
        first, second = map(done.index, pair.tasks)
        damaged |= random.random() < pair.damage and second < first
    return None if random.random() < UNKNOWN_OUTCOMES else performed[-1].right and not damaged


@dataclass(frozen=True)
class _Draws:
    """The sources of chance. `answers` is one of its own: how long others take changes nothing else."""

    random: Random
    answers: Random
    industry: Industry


def _perform(draws: _Draws, chain: Chain, arrival: int) -> list[Performed]:
    """Walks along the chain.

    Tasks of a parallel block are ready together and started one after the other, so that they overlap in time.
    """
    done: list[Performed] = []
    right, group, ready = True, None, arrival
    random, node = draws.random, _pick(draws.random, chain.start)
    while node != END:
        task = draws.industry.tasks[chain.tasks[node]]
        parallel = chain.groups[node] is not None and chain.groups[node] == group
        if done and not parallel:
            ready = max(p.end_ms for p in done) + random.randint(200, 5000)
        earliest = max(ready, done[-1].start_ms + 1000) if parallel else ready
        done.append(_do(draws, task, right, ready, earliest))
        right, group = done[-1].right, chain.groups[node]
        node = _pick(random, chain.right[node] if right else chain.wrong[node])
    return done


def _do(draws: _Draws, task: Task, right: bool, ready: int, earliest: int) -> Performed:
    random = draws.random
    mode = random.choices(task.modes, [w.share for w in task.modes])[0]
    waited = random.gammavariate(2, 900_000) if mode.actor_kind == "human" else random.gammavariate(2, 4000)
    if task.answer_hours:
        waited += draws.answers.gammavariate(2, task.answer_hours * HOUR_MS / 2)
    duration = max(1, round(_vary(random, mode.duration_ms)))
    tokens_in, tokens_out = round(_vary(random, mode.tokens_in)), round(_vary(random, mode.tokens_out))
    start = earliest + int(waited)
    return Performed(
        task,
        mode,
        _actor(random, mode),
        ready,
        start,
        start + duration,
        tokens_in,
        tokens_out,
        draws.industry.price(mode, duration, tokens_in + tokens_out),
        random.random() < (mode.p if right else mode.q),
    )


def _vary(random: Random, mean: float) -> float:
    return random.gammavariate(VARIATION**-2, mean * VARIATION**2) if mean else 0.0


def _actor(random: Random, mode: ExecutionMode) -> str:
    return mode.model or (random.choice(PEOPLE) if mode.actor_kind == "human" else PROGRAM)


def _pick(random: Random, options: Options) -> int:
    """Draws a target by its probability."""
    return random.choices([t for t, _ in options], [p for _, p in options])[0]

"""Optimal alignments of cases and a model, and what is measured by them.

An alignment pairs the steps of a case with a run of the model (Adriansyah, van Dongen, van der Aalst 2011): a move of
both costs 0, a step of the case alone or of the model alone 1, and a silent transition 0.
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from opus_pipelines.core.errors import InputError
from opus_pipelines.workflow.conformance.net import SINK, START, Marking, Net, has_ended

MAX_STATES = 50_000  # of one search: a second, and more where many branches are parallel
Trace = tuple[str, ...]


class Deviation(StrEnum):
    """What a move does that is not of both."""

    ADDED = "added"  # a step of the case alone
    LEFT_OUT = "left out"  # a step of the model alone


class AlignmentMove(NamedTuple):
    """One move: the label of the step, the transition of the model, or both; a silent transition has no label."""

    label: str | None
    transition: int | None
    deviation: Deviation | None


@dataclass(frozen=True)
class Alignment:
    """The moves of one optimal alignment, its cost, and 1 - cost / (steps of the case + steps of the shortest run)."""

    moves: tuple[AlignmentMove, ...]
    cost: int
    fitness: float

    @property
    def deviations(self) -> list[tuple[Deviation, str]]:
        """The moves of one side alone, each with its label, in their order."""
        return [(move.deviation, move.label) for move in self.moves if move.deviation and move.label is not None]


def align(net: Net, trace: Trace, shortest: int, states: int = MAX_STATES) -> Alignment | None:
    """Returns an optimal alignment, or None where none was found within so many states.

    `shortest`: the steps of the shortest run of the model (`shortest_run`). The search goes through states in the order
    of their cost (0-1 breadth-first), and of equal ones through the newest first, so that a case that fits takes as
    many states as it has steps. Steps that the model does not know are never searched for.
    """
    known = {label for label in net.labels if label is not None}
    inside = [label for label in trace if label in known]
    moves = _search(net, inside, states)
    if moves is None:
        return None
    whole: list[AlignmentMove] = []
    own = iter(trace)
    for move in moves:
        if move.label is not None and move.deviation is not Deviation.LEFT_OUT:
            for label in own:  # up to the step of this move
                if label == move.label:
                    break
                whole.append(AlignmentMove(label, None, Deviation.ADDED))
        whole.append(move)
    whole += [AlignmentMove(label, None, Deviation.ADDED) for label in own]
    cost = sum(move.deviation is not None for move in whole)
    worst = len(trace) + shortest
    return Alignment(tuple(whole), cost, 1 - cost / worst if worst else 1.0)


def shortest_run(net: Net) -> int:
    """Returns how many steps the shortest run of the model has. Raises InputError where no run ends."""
    moves = _search(net, (), MAX_STATES)
    if moves is None:
        raise InputError(f"no run of the model was found that ends, within {MAX_STATES:,} states")
    return sum(move.label is not None for move in moves)


def _search(net: Net, trace: Sequence[str], states: int) -> list[AlignmentMove] | None:
    start = (START, 0)
    best: dict[tuple[Marking, int], int] = {start: 0}
    came: dict[tuple[Marking, int], tuple[tuple[Marking, int], AlignmentMove]] = {}
    queue = deque([(0, start)])
    steps: dict[Marking, list[tuple[int, str | None, Marking]]] = {}
    done: set[tuple[Marking, int]] = set()
    while queue:
        cost, state = queue.popleft()
        if state in done:
            continue
        done.add(state)
        marking, at = state
        if at == len(trace) and has_ended(marking):
            return _path(came, state)
        if len(done) > states:
            return None
        if marking not in steps:
            steps[marking] = [(t, net.labels[t], net.fire(t, marking)) for t in net.enabled(marking)]
        ways: list[tuple[int, tuple[Marking, int], AlignmentMove]] = []
        if at < len(trace):
            ways.append((1, (marking, at + 1), AlignmentMove(trace[at], None, Deviation.ADDED)))
        for transition, label, after in steps[marking]:
            if label is None:
                ways.append((0, (after, at), AlignmentMove(None, transition, None)))
            else:
                ways.append((1, (after, at), AlignmentMove(label, transition, Deviation.LEFT_OUT)))
                if at < len(trace) and label == trace[at]:
                    ways.append((0, (after, at + 1), AlignmentMove(label, transition, None)))
        for more, reached, move in ways:  # a move of both is put in front last, and is tried first
            if reached not in best or cost + more < best[reached]:
                best[reached] = cost + more
                came[reached] = state, move
                (queue.append if more else queue.appendleft)((cost + more, reached))
    return None


def _path(
    came: Mapping[tuple[Marking, int], tuple[tuple[Marking, int], AlignmentMove]], state: tuple[Marking, int]
) -> list[AlignmentMove]:
    moves = []
    while state in came:
        state, move = came[state]
        moves.append(move)
    return moves[::-1]


@dataclass(frozen=True)
class Measures:
    """How a log and a model agree. Each is a share, or None where its search would go through too many states.

    `fitness`: mean of the cases' alignments. `replay_fitness`: 1/2 (1 - missing / consumed) + 1/2 (1 - remaining /
    produced) over the tokens of all cases; steps that the model does not know are not replayed (Rozinat and van der
    Aalst 2008). `precision`: of the steps with which any run of the model can continue the beginnings of cases, the
    share that cases continued with (Munoz-Gama and Carmona 2010). `generalisation`: 1 - the mean of 1 / sqrt(uses) over
    the transitions in the token replay (Buijs et al. 2014).
    """

    cases: int
    conforming: int
    not_aligned: int
    fitness: float | None
    replay_fitness: float | None
    precision: float | None
    generalisation: float | None


def measures(
    net: Net, cases: Mapping[Trace, int], alignments: Mapping[Trace, Alignment | None], states: int = MAX_STATES
) -> Measures:
    """Returns the measures of variants, each with its number of cases and its alignment (`align`).

    `states`: how many markings silent transitions may reach from those of the cases.
    """
    aligned = {trace: made for trace, made in alignments.items() if made is not None}
    total = sum(cases[trace] for trace in aligned)
    silent = _SilentSteps(net, states)
    replay_fitness = generalisation = precision = None
    with suppress(_TooManyStates):
        replay_fitness, generalisation = _replay(net, cases, silent)
    with suppress(_TooManyStates):
        precision = _precision(net, cases, silent)
    return Measures(
        cases=sum(cases.values()),
        conforming=sum(cases[trace] for trace, made in aligned.items() if not made.cost),
        not_aligned=sum(cases.values()) - total,
        fitness=sum(made.fitness * cases[trace] for trace, made in aligned.items()) / total if total else None,
        replay_fitness=replay_fitness,
        precision=precision,
        generalisation=generalisation,
    )


class _TooManyStates(Exception):
    """The markings that silent transitions reach are too many."""


class _SilentSteps:
    """What silent transitions reach from each marking, the nearest first. Raises _TooManyStates."""

    def __init__(self, net: Net, states: int) -> None:
        self._net, self._left = net, states
        self._reached: dict[Marking, list[tuple[Marking, tuple[int, ...]]]] = {}

    def after(self, marking: Marking) -> list[tuple[Marking, tuple[int, ...]]]:
        """Returns the markings, this one first, each with the transitions that lead to it."""
        if marking in self._reached:
            return self._reached[marking]
        seen = {marking}
        runs: list[tuple[Marking, tuple[int, ...]]] = [(marking, ())]
        for now, run in runs:  # it grows meanwhile
            for transition in self._net.enabled(now):
                if self._net.labels[transition] is None:
                    reached = self._net.fire(transition, now)
                    if reached not in seen:
                        seen.add(reached)
                        runs.append((reached, (*run, transition)))
            if len(runs) > self._left:
                raise _TooManyStates
        self._left -= len(runs)
        self._reached[marking] = runs
        return runs


def _precision(net: Net, cases: Mapping[Trace, int], silent: _SilentSteps) -> float:
    weight, done = Counter[Trace](), defaultdict[Trace, set[str]](set)
    for trace, number in cases.items():
        for at, label in enumerate(trace):
            weight[trace[:at]] += number
            done[trace[:at]].add(label)
    behind: dict[Trace, frozenset[Marking]] = {(): frozenset((START,))}
    steps: dict[frozenset[Marking], Mapping[str, frozenset[Marking]]] = {}
    allowed = escaping = 0
    for run in sorted(weight, key=len):  # each behind its own beginning
        if run:
            behind[run] = steps[behind[run[:-1]]].get(run[-1], frozenset())
        if behind[run] not in steps:
            steps[behind[run]] = _next_steps(net, behind[run], silent)
        may = steps[behind[run]].keys()
        allowed += weight[run] * len(may)
        escaping += weight[run] * len(may - done[run])
    return 1 - escaping / allowed if allowed else 1.0


def _next_steps(net: Net, markings: Iterable[Marking], silent: _SilentSteps) -> Mapping[str, frozenset[Marking]]:
    """Returns the labels that may come next, each with the markings that it leads to."""
    after = defaultdict[str, set[Marking]](set)
    for marking in markings:
        for reached, _ in silent.after(marking):
            for transition in net.enabled(reached):
                if (label := net.labels[transition]) is not None:
                    after[label].add(net.fire(transition, reached))
    return {label: frozenset(reached) for label, reached in after.items()}


def _replay(net: Net, cases: Mapping[Trace, int], silent: _SilentSteps) -> tuple[float, float]:
    """Returns the fitness by token replay, and the generalisation."""
    tokens, uses = Counter[str](), Counter[int]()
    for trace, number in cases.items():
        counted, fired = _replayed(net, trace, silent)
        for name, count in counted.items():
            tokens[name] += count * number
        for transition in fired:
            uses[transition] += number
    lost, left = tokens["missing"] / tokens["consumed"], tokens["remaining"] / tokens["produced"]
    rare = sum(1 / math.sqrt(uses[t]) if uses[t] else 1.0 for t in range(len(net.labels)))
    return (1 - lost) / 2 + (1 - left) / 2, 1 - rare / len(net.labels)


def _replayed(net: Net, trace: Trace, silent: _SilentSteps) -> tuple[dict[str, int], list[int]]:
    """Returns the missing, consumed, remaining and produced tokens of one case, and the transitions that fired.

    A step takes the nearest silent transitions that enable it; without any, its missing tokens are added. The end takes
    those that end the model, or else those that bring a token into its sink beside others.
    """
    marking, missing, fired = START, 0, list[int]()
    for label in trace:
        with_label = [t for t, own in enumerate(net.labels) if own == label]
        if not with_label:
            continue
        for reached, run in silent.after(marking):
            if ready := [t for t in net.enabled(reached) if net.labels[t] == label]:
                marking, chosen = reached, ready[0]
                fired += run
                break
        else:
            chosen = min(with_label, key=lambda t: len(_lacking(net, t, marking)))
            lacking = _lacking(net, chosen, marking)
            missing += len(lacking)
            marking = tuple(sorted((*marking, *lacking)))
        fired.append(chosen)
        marking = net.fire(chosen, marking)
    ways = silent.after(marking)
    marking, run = next(
        (way for way in ways if has_ended(way[0])), next((way for way in ways if SINK in way[0]), ways[0])
    )
    fired += run
    ended = SINK in marking  # its token is the last one that is consumed
    return {
        "missing": missing + (not ended),
        "consumed": sum(len(net.takes[t]) for t in fired) + 1,
        "remaining": len(marking) - ended,
        "produced": sum(len(net.gives[t]) for t in fired) + 1,
    }, fired


def _lacking(net: Net, transition: int, marking: Marking) -> list[int]:
    return list((Counter(net.takes[transition]) - Counter(marking)).elements())

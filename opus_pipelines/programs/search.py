"""Searches for a better program by reward (AutoFlow 1.4 and 1.5), beside two controls with the same number of calls.

Every method sees rewards of the tasks to select on only. The best program by these is tested once, on tasks that were
held out by their ids; nothing is chosen by that figure. A reward belongs to the very program that earned it: nothing
repairs a program between the choice and the run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from opus_pipelines.programs.drafts import Bank, Draft, program_of, random_draft, random_edit
from opus_pipelines.programs.drafts import applied as edited
from opus_pipelines.programs.edit_policy import EditPolicy
from opus_pipelines.programs.history_generator import HistoryGenerator
from opus_pipelines.programs.rewards import INVALID, BudgetSpent, Harness

VERSION = 1
HEAT = 0.003  # mean loss of the reward that is taken at the first call
LENGTH = 0.001  # of the reward that an item must earn to be worth its place in the walk
MOST_IDLE = 10_000  # proposals in a row that were scored before: nothing new is left


@dataclass(frozen=True)
class Proposal:
    """A program that was tried: its call, its reward, the best reward by then, and whether it is valid."""

    call: int
    reward: float
    best: float
    is_valid: bool


@dataclass
class SearchRun:
    """One run of a method: the best draft, its reward on the tasks to select on, and every proposal in order.

    `has_signal`: the rewards of the proposals differ; without it nothing could be learnt.
    """

    method: str
    seed: int
    best: Draft
    reward: float
    begin: float
    proposals: list[Proposal] = field(default_factory=list)

    @property
    def valid_share(self) -> float:
        """The share of the proposals that are valid programs."""
        return sum(one.is_valid for one in self.proposals) / len(self.proposals) if self.proposals else 1.0

    @property
    def has_signal(self) -> bool:
        """Whether the rewards differed."""
        return len({one.reward for one in self.proposals} | {self.begin}) > 1

    def curve(self, points: int = 100) -> list[tuple[int, float]]:
        """Returns (call, best reward by then), at most so many points, the last one included."""
        if not self.proposals:
            return [(1, self.begin)]
        step = max(1, len(self.proposals) // points)
        chosen = [*self.proposals[::step], self.proposals[-1]]
        return list(dict.fromkeys((one.call, one.best) for one in chosen))


class Method(Protocol):
    """A method: proposes the next draft from the best one so far, and learns from its reward."""

    def propose(self, best: Draft) -> Draft:
        """Returns the next draft to try."""
        ...

    def learn(self, gain: float) -> None:
        """Takes what the draft that was proposed last gained over the one before, 0 where it is worse."""
        ...


class PolicyGradient:
    """Edits drawn by a policy that REINFORCE trains."""

    def __init__(self, bank: Bank, seed: int) -> None:
        self.policy, self._generator = EditPolicy(bank), np.random.default_rng(seed)

    def propose(self, best: Draft) -> Draft:
        """Returns the best draft after one or two drawn edits."""
        draft, self._last = self.policy.propose(best, self._generator)
        return draft

    def learn(self, gain: float) -> None:
        """Takes one step of the gradient."""
        self.policy.learn(self._last, gain)


class InContext:
    """Edits by what the history of (program, reward) shows, as the in-context loop has it."""

    def __init__(self, bank: Bank, seed: int) -> None:
        self._generator = HistoryGenerator(bank, np.random.default_rng(seed))

    def propose(self, best: Draft) -> Draft:
        """Returns the best draft after an edit that history makes likely to help."""
        return self._generator.propose(best)

    def learn(self, gain: float) -> None:
        """Adds the gain to the history."""
        self._generator.learn(gain)


class RandomEdits:
    """A control: edits drawn evenly from the best draft."""

    def __init__(self, bank: Bank, seed: int) -> None:
        self._bank, self._generator = bank, np.random.default_rng(seed)

    def propose(self, best: Draft) -> Draft:
        """Returns the best draft after one or two random edits."""
        for _ in range(int(self._generator.integers(1, 3))):
            best = edited(best, random_edit(best, self._bank, self._generator))
        return best

    def learn(self, gain: float) -> None:
        """Learns nothing."""


class RandomPrograms:
    """A control: every program is drawn anew."""

    def __init__(self, bank: Bank, seed: int) -> None:
        self._bank, self._generator = bank, np.random.default_rng(seed)

    def propose(self, best: Draft) -> Draft:
        """Returns a random draft."""
        return random_draft(self._bank, self._generator)

    def learn(self, gain: float) -> None:
        """Learns nothing."""


METHODS: dict[str, Callable[[Bank, int], Method]] = {
    "policy gradient": PolicyGradient,
    "in context": InContext,
    "random edits": RandomEdits,
    "random programs": RandomPrograms,
}


def improve(method: str, bank: Bank, begin: Draft, harness: Harness, seed: int) -> SearchRun:
    """Returns what a method found within the calls of the harness, beginning at a draft.

    The first call scores the beginning. Every method walks by simulated annealing: a draft that is worse than the one
    before is taken with a probability that falls to 0 at the last call, because a program with a default step cannot be
    improved by single edits that all help. A reward that is equal takes the shorter program.
    """
    chosen, generator = METHODS[method](bank, seed), np.random.default_rng([seed, 1])
    first = harness.score(program_of(begin))
    found = SearchRun(method, seed, begin, first, first)
    current, worth, idle = begin, first, 0
    while idle < MOST_IDLE:
        draft = chosen.propose(current)
        calls = harness.calls
        try:
            reward = harness.score(program_of(draft))
        except BudgetSpent:
            break
        chosen.learn(max(0.0, reward - worth))
        idle = idle + 1 if harness.calls == calls else 0
        if _is_better((reward, draft), (found.reward, found.best)):
            found.best, found.reward = draft, reward
        heat = HEAT * (1 - harness.calls / harness.most_calls) if harness.most_calls else 0.0
        value = reward - LENGTH * len(draft)
        if value > worth - LENGTH * len(current) - heat * generator.exponential():
            current, worth = draft, reward
        if harness.calls > calls:
            found.proposals.append(Proposal(harness.calls, reward, found.reward, reward != INVALID))
    return found


def _is_better(one: tuple[float, Draft], other: tuple[float, Draft]) -> bool:
    return one[0] > other[0] or (one[0] == other[0] and len(one[1]) < len(other[1]))

"""Searches for a better program by reward (AutoFlow 1.4 and 1.5), beside a control with the same number of calls.

Programs are proposed by a policy that REINFORCE trains (Williams 1992; AutoFlow 1.5, 1.9).

Every method sees rewards of the tasks to select on only. The best program by these is tested once, on tasks that were
held out by their ids; nothing is chosen by that figure. A reward belongs to the very program that earned it: nothing
repairs a program between the choice and the run.

Both methods share one plan for their calls. The first half is the method's own: programs drawn by the policy, or
drawn anew. Then a coordinate search tries every single change of the best of them: another model for a phrase, a
phrase with a model added to those of its kind, an item taken out or moved. Half of what is left is the method's again,
and so on.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.core.errors import InputError
from opus_pipelines.flows.programs.drafts import (
    ALWAYS,
    MOST_ITEMS,
    Bank,
    Draft,
    Item,
    program_of,
    random_draft,
    typed,
)
from opus_pipelines.flows.programs.executors import ToolExecutor
from opus_pipelines.flows.programs.rewards import INVALID, BudgetSpent, Harness
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram

Array = NDArray[np.float64]
NONE = 5.0  # the logit of no model at the beginning
BEGIN = 2.0  # by how much a choice of the first program is above it
RANGE = (5.7, 6.5)  # between the logits of a phrase, at the first call and at the last
RATE, ORDER_RATE = 0.7, 0.05
KEEP = 0.95  # of the baseline at each program
MOST_LIKELY = 25  # every so manieth program is the most likely one, which teaches nothing
BOUNDS = (8.0, 4.0, 6.0)  # of the order's scores of models, phrases and kinds


@dataclass(frozen=True)
class Drawn:
    """A program that was drawn: its phrases and models in order, and the order of the kinds."""

    phrases: NDArray[np.int64]
    models: NDArray[np.int64]
    kinds: NDArray[np.int64]


class TaskPolicy:
    """A policy over whole programs of a bank of phrases and models, which sees the tasks.

    A program decides for each phrase which model it uses, or none; models of one kind stand together, and those that
    change the type of what they take are alternatives of each other, because a plan changes a type once at a time. This
    is the grammar that programs are drawn from:

        pi(program) = prod over phrases softmax(logits of the phrase) x PL(order of kinds) x prod over kinds PL(order)

    PL is the model of Plackett and Luce (1975): its marginal on a part of the items has the same form. So a task earns
    reward by those choices alone whose phrases it mentions, and the gradient sums over the tasks (Williams 1992):

        grad J = sum over tasks t of (R_t - b_t) grad log pi(the choices whose phrases t mentions),  b_t a running mean.

    What a phrase is worth adds up over all tasks that mention it, also over those that were never solved together. A
    phrase's step is a mean over its tasks, so that rare phrases learn as fast as frequent ones. The logits keep within
    a range, so that no option is ever given up; the range grows, which lowers the entropy.

    `mentions`: (tasks, phrases), whether a task mentions a phrase. `rewards`: those of the first program, by task.
    """

    def __init__(self, bank: Bank, mentions: NDArray[np.bool_], begin: Draft, rewards: Sequence[float]) -> None:
        self._bank, self._mentions = bank, mentions
        self._kinds = np.array(bank.kinds)
        self._tasks = np.maximum(mentions.sum(0), 1)  # that mention each phrase
        phrases, models = len(bank.phrases), len(bank.models)
        self._none = models
        self.logits: Array = np.zeros((phrases, models + 1))
        self.logits[:, models] = NONE
        self._of_models, self._of_phrases = np.zeros(models), np.zeros(phrases)
        self._of_kinds: Array = np.zeros(int(self._kinds.max()) + 1)
        self._baseline = np.array(rewards, float)
        steps = [(bank.phrases.index(item.phrase), bank.models.index(item.model)) for item in begin if item.model]
        for place, (phrase, model) in enumerate(steps):
            self.logits[phrase, model] = NONE + BEGIN
            self._of_models[model] = (len(steps) / 2 - place) / 2

    def draw(self, generator: np.random.Generator, progress: float) -> tuple[Draft, Drawn]:
        """Returns a program. `progress`: the share of the calls that are used up."""
        shares = self._shares(progress)
        chosen = (shares.cumsum(1) < generator.random((len(shares), 1))).sum(1).clip(0, self._none)
        noise = [generator.gumbel(size=size) for size in (len(self._of_kinds), len(chosen))]
        return self._program(chosen, noise[0], noise[1])

    def most_likely(self) -> Draft:
        """Returns the program of the highest probability."""
        chosen = self.logits.argmax(1)
        return self._program(chosen, np.zeros(len(self._of_kinds)), np.zeros(len(chosen)))[0]

    def learn(self, drawn: Drawn, rewards: Sequence[float], progress: float) -> None:
        """Takes one step of the gradient for a program with these rewards of the tasks, then moves the baselines."""
        advantages = np.array(rewards, float) - self._baseline
        self._baseline += (1 - KEEP) * advantages
        shares, rows = self._shares(progress), np.arange(len(self.logits))
        chosen = np.full(len(rows), self._none)
        chosen[drawn.phrases] = drawn.models
        direction = -shares
        direction[rows, chosen] += 1
        self.logits += RATE * ((advantages @ self._mentions) / self._tasks)[:, None] * direction
        self._learn_order(drawn, advantages)

    def _shares(self, progress: float) -> Array:
        span = RANGE[0] + (RANGE[1] - RANGE[0]) * min(1.0, progress)
        most = self.logits.max(1, keepdims=True)
        np.maximum(self.logits, most - span, out=self.logits)
        shares: Array = np.exp(self.logits - most)
        return shares / shares.sum(1, keepdims=True)

    def _program(self, chosen: NDArray[np.int64], of_kinds: Array, of_phrases: Array) -> tuple[Draft, Drawn]:
        phrases = np.nonzero(chosen < self._none)[0][:MOST_ITEMS]
        models = chosen[phrases]
        kinds = self._of_kinds + of_kinds
        scores = self._of_models[models] + self._of_phrases[phrases] + of_phrases[phrases]
        order = np.lexsort((-scores, -kinds[self._kinds[models]]))
        phrases, models = phrases[order], models[order]
        drawn = Drawn(phrases, models, np.array(list(dict.fromkeys(self._kinds[models].tolist())), np.int64))
        items = tuple(Item(self._bank.phrases[p], self._bank.models[m]) for p, m in zip(phrases, models, strict=True))
        return typed(items, self._bank), drawn

    def _learn_order(self, drawn: Drawn, advantages: Array) -> None:
        phrases, models = drawn.phrases, drawn.models
        mentioned, kinds = self._mentions[:, phrases], self._kinds[models]
        of_models, of_phrases = np.zeros_like(self._of_models), np.zeros_like(self._of_phrases)
        for kind in drawn.kinds:
            own = np.nonzero(kinds == kind)[0]
            scores = self._of_models[models[own]] + self._of_phrases[phrases[own]]
            moved = advantages @ order_direction(scores, mentioned[:, own])
            np.add.at(of_models, models[own], moved)
            np.add.at(of_phrases, phrases[own], moved / 2)
        if len(drawn.kinds):
            any_of = np.stack([mentioned[:, kinds == kind].any(1) for kind in drawn.kinds], 1)
            moved = advantages @ order_direction(self._of_kinds[drawn.kinds], any_of)
            self._of_kinds[drawn.kinds] += ORDER_RATE * moved
        self._of_models += ORDER_RATE * of_models
        self._of_phrases += ORDER_RATE * of_phrases
        for scores, bound in zip((self._of_models, self._of_phrases, self._of_kinds), BOUNDS, strict=True):
            np.clip(scores, -bound, bound, out=scores)


def mentioned_phrases(harness: Harness, bank: Bank) -> NDArray[np.bool_]:
    """Returns whether each task mentions each phrase of the bank: (tasks, phrases).

    A program's own tool reads the tasks where tools carry programs out, else their letters are compared. It reads no
    reward and no reference.
    """
    tool = harness.executor.toolbox.tools.get("mentions") if isinstance(harness.executor, ToolExecutor) else None

    def is_in(phrase: str, text: str) -> bool:
        if phrase == ALWAYS:
            return True
        return phrase.lower() in text.lower() if tool is None else tool.run(task=text, phrase=phrase) == "Yes"

    return np.array([[is_in(phrase, task.text) for phrase in bank.phrases] for task in harness.tasks])


def order_direction(scores: Array, present: NDArray[np.bool_]) -> Array:
    """Returns the gradient of the log-probability of an order by the scores, for each task: (tasks, items).

    `scores`: those of the items in their order. `present`: which of them count for a task (Plackett and Luce).
    """
    weights = np.exp(scores - scores.max(initial=0.0))
    rest = np.cumsum((present * weights)[:, ::-1], 1)[:, ::-1]
    drawn_before = np.cumsum(np.where(present, 1 / np.maximum(rest, 1e-12), 0.0), 1)
    return np.where(present, 1 - weights * drawn_before, 0.0)


Score = Callable[[Draft], float]


def neighbours(draft: Draft, bank: Bank) -> list[Draft]:
    """Returns every draft that is one change away, each once."""
    found = dict.fromkeys(typed(one, bank) for one in _changed(draft, bank) if len(one) <= MOST_ITEMS)
    found.pop(draft, None)
    return list(found)


def _changed(draft: Draft, bank: Bank) -> Iterator[Draft]:
    yield draft
    for place, item in enumerate(draft):
        rest = (*draft[:place], *draft[place + 1 :])
        yield rest
        yield from ((*rest[:to], item, *rest[to:]) for to in range(len(draft)) if to != place)
        if item.model:
            for model in bank.models:
                if bank.kind(model) == bank.kind(item.model):
                    yield (*draft[:place], replace(item, model=model), *draft[place + 1 :])
                else:
                    yield from _added(rest, Item(item.phrase, model), bank)
    asked = {item.phrase for item in draft}
    for phrase in bank.phrases:
        if phrase not in asked:
            for model in bank.models:
                yield from _added(draft, Item(phrase, model), bank)


def _added(draft: Draft, item: Item, bank: Bank) -> Iterator[Draft]:
    """The draft with an item before those of its kind; where there is none, between any two kinds."""
    kinds = [bank.kind(one.model) for one in draft]
    own = bank.kind(item.model)
    places = [kinds.index(own)] if own in kinds else _borders(kinds)
    yield from ((*draft[:place], item, *draft[place:]) for place in places)


def _borders(kinds: list[int]) -> list[int]:
    return [place for place in range(len(kinds) + 1) if place in (0, len(kinds)) or kinds[place - 1] != kinds[place]]


def climb(draft: Draft, score: Score, bank: Bank, generator: np.random.Generator) -> Draft:
    """Returns a draft that no single change improves, or that is as good and shorter; `score` ends it by raising.

    Each change is taken as soon as it helps; a change that was proposed from an earlier draft is not tried again.
    """
    reward, improved = score(draft), True
    while improved:
        improved = False
        places = neighbours(draft, bank)
        for place in generator.permutation(len(places)):
            found = score(places[place])
            if found > reward or (found == reward and len(places[place]) < len(draft)):
                draft, reward, improved = places[place], found, True
                break
    return draft


SEARCH_VERSION = 4
_OWN = 0.5  # share of the calls that are left which the method has, before a coordinate search has the others
TASK_POLICY, RANDOM_PROGRAMS = METHODS = ("policy gradient", "random programs")
MOST_IDLE = 3_000  # proposals in a row that were scored before: nothing new is left


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

    def searched(self) -> "Searched":
        """Returns it as the record that searches of any kind share."""
        best = program_of(self.best)
        return Searched(best, self.begin, self.reward, self.valid_share, self.has_signal, self.curve())

    def curve(self, points: int = 100) -> list[tuple[int, float]]:
        """Returns (call, best reward by then), at most so many points, the last one included."""
        if not self.proposals:
            return [(1, self.begin)]
        step = max(1, len(self.proposals) // points)
        chosen = [*self.proposals[::step], self.proposals[-1]]
        return list(dict.fromkeys((one.call, one.best) for one in chosen))


@dataclass(frozen=True)
class Searched:
    """What any search came to: the best program, its reward on the tasks to select on, and how it got there."""

    best: CoreProgram
    begin: float
    reward: float
    valid_share: float
    has_signal: bool
    curve: list[tuple[int, float]]


def improve(method: str, bank: Bank, begin: Draft, harness: Harness, seed: int) -> SearchRun:
    """Returns what a method found within the calls of the harness, beginning at a draft.

    The first call scores the beginning. Raises InputError where the harness states no limit of calls.
    """
    if harness.most_calls is None:
        raise InputError("a search needs a limit of calls")
    first = harness.score(program_of(begin))
    found, generator = SearchRun(method, seed, begin, first, first), np.random.default_rng([seed, 1])
    search = (_PolicySearch if method == TASK_POLICY else _RandomSearch)(bank, harness, generator, found)
    with suppress(BudgetSpent):
        search.run()
    return found


@dataclass
class _Search:
    """A search: phases of the method in turn with coordinate searches, until the calls are used up."""

    bank: Bank
    harness: Harness
    generator: np.random.Generator
    found: SearchRun

    def run(self) -> None:
        """Searches until the calls are used up, or nothing new is proposed any more."""
        before = -1
        while self.harness.calls > before:
            before = self.harness.calls
            left = (self.harness.most_calls or 0) - self.harness.calls
            climb(self.phase(max(1, round(_OWN * left))), self.tried, self.bank, self.generator)

    def phase(self, calls: int) -> Draft:
        """Lets the method propose for so many calls, and returns the draft that the coordinate search begins at."""
        raise NotImplementedError

    def tried(self, draft: Draft) -> float:
        """Returns the reward of a draft; keeps the best, and records the proposal where it is a new call."""
        before = self.harness.calls
        reward = self.harness.score(program_of(draft))
        if is_better((reward, draft), (self.found.reward, self.found.best)):
            self.found.best, self.found.reward = draft, reward
        if self.harness.calls > before:
            self.found.proposals.append(Proposal(self.harness.calls, reward, self.found.reward, reward != INVALID))
        return reward


@dataclass
class _PolicySearch(_Search):
    """Programs drawn by a policy that sees the tasks; REINFORCE trains it by the rewards of all tasks."""

    def __post_init__(self) -> None:
        begin = self.found.best
        rewards = self.harness.scores(program_of(begin))
        self._policy = TaskPolicy(self.bank, mentioned_phrases(self.harness, self.bank), begin, rewards)
        self._drawn = 0

    def phase(self, calls: int) -> Draft:
        """Draws and learns, and returns the best program of this phase."""
        start, total, idle = self.harness.calls, self.harness.most_calls or 1, 0
        best: tuple[float, Draft] = -np.inf, ()
        while self.harness.calls - start < calls and idle < MOST_IDLE:
            before, progress = self.harness.calls, self.harness.calls / total
            self._drawn += 1
            if self._drawn % MOST_LIKELY == 0:
                draft = self._policy.most_likely()
                reward = self.tried(draft)
            else:
                draft, drawn = self._policy.draw(self.generator, progress)
                reward = self.tried(draft)
                self._policy.learn(drawn, self.harness.scores(program_of(draft)), progress)
            if is_better((reward, draft), best):
                best = reward, draft
            idle = idle + 1 if self.harness.calls == before else 0
        return best[1]


class _RandomSearch(_Search):
    """Programs that are drawn anew, evenly."""

    def phase(self, calls: int) -> Draft:
        """Draws, and returns the best program of this phase."""
        start = self.harness.calls
        best: tuple[float, Draft] = -np.inf, ()
        for _ in range(MOST_IDLE):
            draft = random_draft(self.bank, self.generator)
            tried = self.tried(draft), draft
            best = tried if is_better(tried, best) else best
            if self.harness.calls - start >= calls:
                break
        return best[1]


def is_better(one: tuple[float, Draft], other: tuple[float, Draft]) -> bool:
    """Returns whether a draft has a higher reward, or the same and is shorter."""
    return one[0] > other[0] or (one[0] == other[0] and len(one[1]) < len(other[1]))

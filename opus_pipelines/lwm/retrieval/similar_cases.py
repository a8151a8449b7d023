"""The similar cases of an intake and their weights: by text, by attributes, else all cases of the industry.

Text: the cosine of a case's vector with the request; a case that is `TEXT_SHARPNESS` less similar than the most similar
one has 1/e of its weight. Where there are both, the weights by text and by attributes are multiplied. Where there is
neither, all cases of the industry count, later ones more where the forest finds that the work changed over time. Where
no case has a text, the request is compared with the names of the steps instead: cases that did the steps which it names
have the share `NAMED_WEIGHT` of all weight. A case that probably still runs counts as any other, with its expected
rest: a lower weight would favour work that ends early.

Attributes are what the client gave (an amount, a product, a country). Their similarity is the proximity of a random
forest that predicts the tasks of a case. The forest learns from the tasks of cases which attributes matter and where a
number must be split: regression trees predict which tasks and which consecutive pairs a case holds, and the similarity
of two cases is the share of trees in which they are in one leaf (Breiman 2001; as weights of a conditional
distribution, Meinshausen 2006). The start time of a case is an attribute too, so that changed work is learnt from the
cases after the change. The expected rest of a running case is a prediction. So a case is weighted with its probability
of having ended, and where most of the latest cases still run, the forest is fitted to the time before them: otherwise
it would take the start of the predictions for a change of the work.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.statistics import wilson
from opus_pipelines.history.records.column_mapping import unprefixed
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.language.embedding.index import RowSearch, Selection
from opus_pipelines.language.grammar.figures import money_in, number
from opus_pipelines.lwm.retrieval.consensus import Consensus, Trace, consensus
from opus_pipelines.lwm.retrieval.task_names import named_in
from opus_pipelines.workflow.constraints import folded

TREES = 40
_SEED = 0  # of the forest: the same cases give the same one
LEAST_LEAF = 25  # cases in a leaf; a leaf with few cases overfits
MOST_FIT = 6_000  # most cases that each tree is fitted to
FEATURES_TRIED = 0.5  # share of the features that are tried for each split, where there are many
FEW_FEATURES = 8  # up to so many, all are tried for each split, so that an important one is not missed
CATEGORIES = 30  # most frequent values of an attribute, each of which is a feature
LEAST_CATEGORY = 5  # least cases with such a value
NUMBER_SHARE = 0.95  # least share of an attribute's values that are numbers (or times) where it is numeric (or a time)
FEW_VALUES = 8  # up to so many distinct numbers are treated as categories
TARGETS = 60  # consecutive pairs that are predicted, in addition to the tasks
MOSTLY_ENDED = 0.8  # mean probability that consecutive cases have ended, below which most of them still run
WINDOW_SHARE = 0.05  # length of the window of consecutive cases, as a share of all cases
LEAST_WINDOW = 25  # least cases of that window
LEAST_BEFORE = 0.3  # least share of the cases before that window; with fewer, the forest is fitted to all cases
LEAST_WEIGHT = 1e-3  # weight of a case that certainly still runs
USUAL = 0.99  # a task or pair that more cases than this share have, or lack, is no target
STAND_INS = 32  # cases of the history whose attributes stand in for those that a request does not tell
_UNKNOWN = -1e12  # value of a missing attribute: a split separates it from every other value

Attributes = Mapping[str, str]


@dataclass
class Features:
    """Turns attributes into a matrix of features, as learnt from the attributes of a history.

    Numbers stay as they are. Times become seconds, the weekday, and the seconds between each two of them. Names
    become one column for each frequent value and one for the frequency of the value.
    """

    numbers: list[str] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    names: list[tuple[str, tuple[str, ...], Mapping[str, int]]] = field(default_factory=list)

    @classmethod
    def of(cls, history: Sequence[Attributes]) -> "Features":
        """Return the features of the attributes of a history: which are numbers, times or names."""
        features = cls()
        for key in sorted({key for case in history for key in case}):
            values = [case[key] for case in history if case.get(key)]
            counts = Counter(values)
            if len(counts) < 2:
                continue
            if _share(values, _number) >= NUMBER_SHARE and len(counts) > FEW_VALUES:
                features.numbers.append(key)
            elif _share(values, _time) >= NUMBER_SHARE:
                features.times.append(key)
            else:
                frequent = [v for v, n in counts.most_common(CATEGORIES) if LEAST_CATEGORY <= n < len(history)]
                features.names.append((key, tuple(frequent), counts))
        return features

    @property
    def known(self) -> frozenset[str]:
        """Return the attributes that have at least two values in the history."""
        return frozenset([*self.numbers, *self.times, *(key for key, *_ in self.names)])

    def are_stated(self, attributes: Attributes) -> np.ndarray:
        """Return which features [features] attributes tell; the start time is always told."""
        told = [True, *(key in attributes for key in self.numbers)]
        for n, key in enumerate(self.times):
            told += [key in attributes] * 2
            told += [key in attributes and other in attributes for other in self.times[n + 1 :]]
        for key, frequent, _ in self.names:
            told += [key in attributes] * (len(frequent) + 1)
        return np.array(told)

    def of_cases(self, cases: Sequence[Attributes], began: Sequence[float | None]) -> np.ndarray:
        """Return the features [cases, features]; `began` is in seconds since 1970."""
        columns: list[list[float | None]] = [list(began)]
        columns += [[_number(case.get(key, "")) for case in cases] for key in self.numbers]
        moments = {key: [_time(case.get(key, "")) for case in cases] for key in self.times}
        for n, times in enumerate(moments.values()):
            columns.append([None if t is None else t.timestamp() for t in times])
            columns.append([None if t is None else float(t.weekday()) for t in times])
            for other in list(moments)[n + 1 :]:
                columns.append(
                    [
                        None if a is None or b is None else b.timestamp() - a.timestamp()
                        for a, b in zip(times, moments[other], strict=True)
                    ]
                )
        for key, frequent, counts in self.names:
            values = [case.get(key) for case in cases]
            columns += [[float(value == name) for value in values] for name in frequent]
            columns.append([float(counts.get(value, 0)) if value else None for value in values])
        return np.array(
            [[_UNKNOWN if value is None else value for value in column] for column in columns], np.float64
        ).T


class Proximity:
    """A random forest fitted to one history, and the weights that it gives to the cases for a new one."""

    def __init__(
        self,
        cases: Sequence[Attributes],
        began: Sequence[float | None],
        done: Sequence[frozenset[Any]],
        features: Features,
        p_ended: np.ndarray | None = None,
    ) -> None:
        """Fit the forest.

        `done` has the tasks and pairs of each case, which are the targets; `p_ended` [cases] is its probability
        of having ended (None: all have).
        """
        from sklearn.ensemble import RandomForestRegressor

        self.features = features
        self._latest = max((b for b in began if b is not None), default=None)
        matrix = np.array(features.of_cases(cases, began))
        weights = np.ones(len(done)) if p_ended is None else np.maximum(p_ended, LEAST_WEIGHT)
        training = _before_most_run(began, weights)
        targets = _targets([done[n] for n in training])
        self._forest = RandomForestRegressor(
            TREES,
            min_samples_leaf=min(LEAST_LEAF, max(1, len(training) // 4)),
            max_features=1.0 if matrix.shape[1] <= FEW_FEATURES else FEATURES_TRIED,
            max_samples=min(MOST_FIT, len(training)),
            random_state=_SEED,
            n_jobs=1,
        ).fit(
            matrix[training], targets.squeeze(1) if targets.shape[1] == 1 else targets, sample_weight=weights[training]
        )
        self._drawn = matrix[np.random.default_rng(_SEED).permutation(len(matrix))[:STAND_INS]]
        self._leaves = self._forest.apply(matrix)
        self._of_leaf = [Counter(self._leaves[:, tree].tolist()) for tree in range(TREES)]
        self._kept: dict[bytes, np.ndarray] = {}

    def weights(self, attributes: Attributes, began: float | None) -> np.ndarray:
        """Return the weights [cases] of the cases of the history; they sum to 1.

        Where `began` is None, the start time is that of the latest case of the history. What the attributes do not
        tell is averaged over cases of the history: a claim without an amount is not like the claims of the least one.
        """
        row = self.features.of_cases([attributes], [self._latest if began is None else began])
        told = self.features.are_stated(attributes)
        rows = row if told.all() else np.where(told, row, self._drawn)
        leaves = self._forest.apply(rows)
        key = leaves.tobytes()
        if key not in self._kept:
            if len(self._kept) > 1_000:
                self._kept.clear()
            weights = np.zeros(len(self._leaves))
            for tree in range(TREES):
                for leaf, times in Counter(leaves[:, tree].tolist()).items():
                    weights[self._leaves[:, tree] == leaf] += times / self._of_leaf[tree][leaf]
            self._kept[key] = weights / (TREES * len(rows))
        return self._kept[key]


def _before_most_run(began: Sequence[float | None], p_ended: np.ndarray) -> np.ndarray:
    """Return the indices of the cases that began before the first window of which most still run.

    They are in order of time. Where fewer than `LEAST_BEFORE` of the cases began before it, all indices are
    returned.
    """
    order = np.argsort([-np.inf if b is None else b for b in began], kind="stable")
    width = min(len(order), max(LEAST_WINDOW, int(WINDOW_SHARE * len(order))))
    means = np.convolve(p_ended[order], np.ones(width) / width, "valid")
    below = np.flatnonzero(means < MOSTLY_ENDED)
    before = int(below[0]) + width // 2 if len(below) else len(order)
    return np.sort(order[:before]) if before >= LEAST_BEFORE * len(order) else np.arange(len(order))


def _targets(done: Sequence[frozenset[Any]]) -> np.ndarray:
    """Return the targets [cases, targets], 0 or 1, of the forest.

    They are the tasks and the most frequent pairs that some cases hold and others do not.
    """
    counts = Counter(item for tasks_and_pairs in done for item in tasks_and_pairs)
    informative = [i for i, n in counts.items() if (1 - USUAL) * len(done) < n < USUAL * len(done)]
    tasks = sorted(i for i in informative if isinstance(i, str))
    pairs = sorted((i for i in informative if not isinstance(i, str)), key=lambda i: (-counts[i], i))[:TARGETS]
    chosen = [*tasks, *pairs]
    return (
        np.array([[item in tasks_and_pairs for item in chosen] for tasks_and_pairs in done], np.float32)
        if chosen
        else np.zeros((len(done), 1), np.float32)
    )


def _share(values: Sequence[str], read: Any) -> float:
    return sum(read(v) is not None for v in values) / len(values)


_DECIMAL_COMMA = re.compile(r"-?\d{1,3}(?:\.?\d{3})*,\d{1,2}")


def _number(value: str) -> float | None:
    if _DECIMAL_COMMA.fullmatch(value.strip()):
        value = value.replace(".", "").replace(",", ".")
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) and abs(number) < 1e300 else None


def _time(value: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


TEXT_SHARPNESS = 0.05
TEXT_CASES = 60  # cases that have a weight by text, the most similar ones
_MOST_CASES = 20_000  # most cases of an industry that are compared, the latest ones
_ENDS = re.compile(r"(?<=[.!?;])\s+|\n")  # of a sentence, or of a line `name: value`
_FORBIDS = re.compile(
    r"\b(do|does|must|should|shall|may|can|need)(\s+not|n't)\b|\bcannot\b|\b(without|no need|instead of|never)\b", re.I
)
LONGEST_NAME = 120  # most characters of a line that may state an attribute
WHOSE = ("client", "contract")  # columns of wkg/cases that count as attributes
FEWEST_CASES = 20  # cases of an industry below which attributes are not used
NAMED_WEIGHT = 0.9  # share of the weight of the cases that did what the request names, where no case has a text
NEGLIGIBLE = 1e-6  # weight, relative to the largest, below which a case is left out


ALL_CASES = "all cases"  # the basis of similarity where nothing of an intake can be compared with cases


@dataclass(frozen=True)
class StartOutcomes:
    """How the cases ended that are like an intake at its start, whatever was done in them later.

    Only what is known at the start weighs them: the request and the attributes. `success`: the share that succeeded, by
    weight; `cases`: the effective number with a known outcome (Kish 1965); `basis`: that of `SimilarCases`.
    """

    success: float
    cases: float
    basis: str

    @classmethod
    def of(cls, outcomes: Sequence[bool | None], weights: Sequence[float], basis: str) -> "StartOutcomes | None":
        """Return what these cases tell; None where no outcome is known."""
        known = [(bool(success), w) for success, w in zip(outcomes, weights, strict=True) if success is not None and w]
        total = sum(w for _, w in known)
        if not total > 0:
            return None
        share = sum(w for success, w in known if success) / total
        return cls(min(1.0, share), total**2 / sum(w * w for _, w in known), basis)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the share (Wilson)."""
        low, high = wilson(self.success * self.cases, self.cases)
        return float(low), float(high)


@dataclass(frozen=True)
class SimilarCases:
    """Rows of wkg/cases with their weights, heaviest first (the largest is 1), and their consensus.

    `rows`: the cases that may be followed; `compared`, `compared_weights`: the failed cases among them, too, because
    outcomes are compared with and without them. `basis`: text, attributes, text and attributes, or all cases.
    `nearest`: cosine of the most similar case; None without text. `at_start`: how the cases ended that are like the
    intake at the start.
    """

    rows: np.ndarray
    weights: np.ndarray
    basis: str
    nearest: float | None
    consensus: Consensus
    compared: np.ndarray
    compared_weights: np.ndarray
    at_start: "StartOutcomes | None" = None


class IndustryCases:
    """The cases of one industry (None: of all) that may be followed, with the models of their similarity."""

    def __init__(
        self,
        cases: pa.Table,
        search: RowSearch,
        rows: np.ndarray,
        titles: Mapping[str, str] | None = None,
    ) -> None:
        """Take the `rows` of `cases` of the industry.

        `search` finds the cases with a text by it; `titles` has the title of each task that is a work step.
        """
        self._titles = titles or {}
        self._cases, self._search, self._rows = cases, search, latest(cases, rows, _MOST_CASES)
        self._has_text = search.has_vector[self._rows]
        self._is_told = bool(self._has_text.any())

    def __len__(self) -> int:
        return len(self._rows)

    def load(self) -> None:
        """Compute now what every search needs."""
        self._traces, self._may_be_followed, self._with_text, self._features, self._proximity  # noqa: B018 - are kept
        if not self._is_told:
            self._steps, self._stated  # noqa: B018

    def similar(self, intake: Intake, request: np.ndarray) -> SimilarCases | None:
        """Return the similar cases of an intake; None where no case of the industry has a task.

        `request` is the unit vector [d] of the client input.
        """
        if not len(self._rows) or not any(trace.tasks for trace in self._traces):
            return None
        weights, nearest = np.ones(len(self._rows)), None
        basis = ["text"] if self._is_told else []
        attributes = self.attributes_of(intake)
        if (attributes or not self._is_told) and self._proximity is not None:
            began = intake.received_at.timestamp() if intake.received_at else None
            weights = self._proximity.weights(attributes, began)
            basis += ["attributes"] if attributes else []
        if self._is_told:
            weights, nearest = self._by_text(request, weights)
        at_start = self._at_start(weights, " and ".join(basis) or ALL_CASES)
        if not self._is_told and (named := self.steps_named(intake)):
            weights = self._drawn_to(named, weights)
            basis.append("named steps")
        followed, order = _heaviest(np.where(self._may_be_followed, weights, 0.0))
        if not len(order):  # all that are like it failed: the usual path is left
            followed, order = _heaviest(self._may_be_followed.astype(float))
            basis = []
        if not len(order):
            return None
        compared, of_all = _heaviest(np.where(self._has_tasks, weights, 0.0))
        return SimilarCases(
            self._rows[order],
            followed,
            " and ".join(basis) or ALL_CASES,
            nearest,
            consensus([self._traces[n] for n in order], followed),
            self._rows[of_all],
            compared,
            at_start,
        )

    def _by_text(self, request: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the weights [cases] by text times `others`, and the cosine of the most similar case.

        The nearest cases are asked for until no further one can be among those that have a weight (the threshold
        algorithm, Fagin, Lotem and Naor 2003). A case without a text is as one whose cosine is 0.
        """
        most = TEXT_CASES
        while True:
            rows, found = self._search.nearest(request, most, self._with_text)
            cosines = np.where(self._has_text, np.float32(-np.inf), np.float32(0))
            cosines[np.searchsorted(self._rows, rows)] = found
            weights = weights_by_text(cosines, others)
            unseen = math.exp((found[-1] - cosines.max()) / TEXT_SHARPNESS) * others.max()
            if len(rows) == self._has_text.sum() or unseen <= np.partition(weights, -TEXT_CASES)[-TEXT_CASES]:
                return weights, float(cosines.max())
            most *= 4

    @cached_property
    def _with_text(self) -> Selection:
        mask = np.zeros(self._cases.num_rows, bool)
        mask[self._rows] = self._has_text
        return self._search.among(mask)

    def _at_start(self, weights: np.ndarray, basis: str) -> StartOutcomes | None:
        """Return how the cases ended that are like an intake at the start; without any basis all cases count alike."""
        counted = np.ones(len(weights)) if basis == ALL_CASES else weights
        return StartOutcomes.of(self._outcomes, counted.tolist(), basis)

    @cached_property
    def _outcomes(self) -> list[bool | None]:
        outcomes: list[bool | None] = self._cases["success"].take(pa.array(self._rows)).to_pylist()
        return outcomes

    def attributes_of(self, intake: Intake) -> dict[str, str]:
        """Return the attributes of the intake that this history knows.

        They come from intake.toml, else from lines `name: value` of the client's documents.
        """
        names = sorted(name for name in self._features.known if name not in WHOSE)
        # a path in a record, as `claim.facts.severity`, is stated by its last part, where no other ends alike
        ends = Counter(name.rpartition(".")[2] for name in names)
        known = {folded(end): name for name in names if ends[end := name.rpartition(".")[2]] == 1}
        known |= {folded(name): name for name in names}
        attributes = dict(_in_documents(intake.elements, known))
        whose = {"client": intake.client, "contract": intake.contract}
        attributes |= {
            name: value for name, value in whose.items() if name in self._features.known and value is not None
        }
        attributes |= {name: v for k, v in intake.attributes.items() if (name := _known(k, known))}
        return self._with_amount(attributes, intake.elements)

    def states_attributes(self, intake: Intake) -> bool:
        """Return whether the intake states more than whose it is of what this history knows of its cases."""
        return not self.attributes_of(intake).keys() <= set(WHOSE)

    def _with_amount(self, attributes: dict[str, str], elements: Sequence[Element]) -> dict[str, str]:
        """Return the attributes with the amount of money that the client's prose states.

        It is the value of the one attribute of these cases that is an amount. Where the prose states several amounts,
        nothing says which of them is meant.
        """
        names = [name for name in self._features.known if is_amount_name(name)]
        stated = attributes.get(names[0]) if len(names) == 1 else None
        if len(names) != 1 or (stated is not None and _number(stated) is not None):
            return attributes
        text = "\n".join(e.text or "" for e in elements if e.role == "input") if stated is None else stated
        amounts = amounts_in(text)
        return attributes | {names[0]: self._as_written(names[0], amounts[0])} if len(amounts) == 1 else attributes

    def _as_written(self, name: str, amount: float) -> str:
        """Return an amount as the cases write it, where the attribute has so few values that each counts by itself."""
        values = next((counts for key, _, counts in self._features.names if key == name), {})
        return next((value for value in values if _number(value) == amount), str(amount))

    def steps_named(self, intake: Intake) -> frozenset[str]:
        """Return the work steps of these cases that the client's documents name.

        Lines that state an attribute name no step, and neither do sentences that forbid something.
        """
        texts = [element.text or "" for element in intake.elements if element.role in ("input", "output")]
        sentences = [
            part
            for text in texts
            for part in _ENDS.split(text)
            if part.strip() and not _FORBIDS.search(part) and not any(_in_line(part, self._stated))
        ]
        tasks = self._steps
        return frozenset(tasks[n] for n in named_in(sentences, [self._titles[task] for task in tasks]))

    @cached_property
    def _steps(self) -> list[str]:
        """Return the tasks of these cases that are work steps, sorted."""
        return sorted(frozenset[str]().union(*(trace.tasks for trace in self._traces)) & self._titles.keys())

    @cached_property
    def _stated(self) -> dict[str, str]:
        """Return every attribute of these cases by its name as names are compared, also those of one value."""
        return {folded(name): name for case in self._attributes for name in case}

    def _drawn_to(self, named: frozenset[str], weights: np.ndarray) -> np.ndarray:
        """Return the weights [cases] when those that may be followed and did most of these steps have NAMED_WEIGHT."""
        shared = np.array([len(named.intersection(trace.tasks)) for trace in self._traces])
        best = shared[self._may_be_followed & (weights > 0)].max(initial=0)
        did = shared >= max(best, 1)
        whole, others = weights[did & self._may_be_followed].sum(), weights[~did & self._may_be_followed].sum()
        if not whole > 0 or not others > 0:
            return weights
        return np.where(did, weights, weights * min(1.0, whole * (1 - NAMED_WEIGHT) / (NAMED_WEIGHT * others)))

    @cached_property
    def _attributes(self) -> list[dict[str, str]]:
        column = self._cases["attributes"].take(pa.array(self._rows))
        own = [{k: v for k, v in (row or ()) if v is not None and v.strip()} for row in column.to_pylist()]
        for name in WHOSE:
            values = self._cases[name].take(pa.array(self._rows)).to_pylist()
            own = [one if value is None else {**one, name: value} for one, value in zip(own, values, strict=True)]
        return own

    @cached_property
    def _features(self) -> Features:
        return Features.of(self._attributes)

    @cached_property
    def _traces(self) -> list[Trace]:
        columns = ["tasks", "expected_rest", "task_predecessors"]
        taken = self._cases.select(columns).take(pa.array(self._rows))
        return [
            Trace.of([*(t or ()), *(rest or ())], None if p is None else [*p, *([None] * len(rest or ()))])
            for t, rest, p in zip(*(taken[name].to_pylist() for name in columns), strict=True)
        ]

    @cached_property
    def _may_be_followed(self) -> np.ndarray:
        """Return, for each case [cases], whether it has tasks and did not fail."""
        failed = pc.equal(self._cases["success"], False).fill_null(False).to_numpy()[self._rows]
        return np.asarray(self._has_tasks & ~failed)

    @cached_property
    def _has_tasks(self) -> np.ndarray:
        return np.array([bool(trace.tasks) for trace in self._traces])

    @cached_property
    def _proximity(self) -> Proximity | None:
        began = pc.cast(self._cases["started_at"], pa.int64()).take(pa.array(self._rows)).to_pylist()
        if len(began) < FEWEST_CASES or (not self._features.known and all(b is None for b in began)):
            return None
        seconds = [None if b is None else b / 1e6 for b in began]
        p_ended = pc.fill_null(self._cases["p_ended"].take(pa.array(self._rows)), 1.0).to_numpy()
        done = [frozenset(c.tasks) | c.pairs for c in self._traces]
        return Proximity(self._attributes, seconds, done, self._features, p_ended)


def latest(cases: pa.Table, rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` of these rows, those of the cases that began last."""
    if len(rows) <= most:
        return rows
    began = pc.fill_null(pc.cast(cases["started_at"], pa.int64()), 0).to_numpy()[rows]
    return np.sort(rows[np.argsort(-began, kind="stable")[:most]])


def _heaviest(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights that count, heaviest first and with 1 as the largest, and their places.

    There are none where all are 0.
    """
    if not weights.max() > 0:
        return np.zeros(0), np.zeros(0, np.int64)
    weights = weights / weights.max()
    order = np.argsort(-weights, kind="stable")
    order = order[weights[order] >= NEGLIGIBLE]
    return weights[order], order


def weights_by_text(cosines: np.ndarray, others: np.ndarray | float = 1.0) -> np.ndarray:
    """Return the weights [cases] of cases by the cosines of their requests, times `others`; the rest is 0."""
    weights = np.exp((cosines - cosines.max()) / TEXT_SHARPNESS) * others
    if len(weights) > TEXT_CASES:
        weights[weights < np.partition(weights, -TEXT_CASES)[-TEXT_CASES]] = 0.0
    return np.asarray(weights)


# the word for an amount of money in the names of attributes, in the languages of exports
_AMOUNT_WORD = re.compile(
    "amount|betrag|summe|preis|kosten|bedrag|prijs|price|sum|total|cost|value|montant|somme|prix|importe|precio|monto|"
    "importo|prezzo|costo|belopp|beløb|kwota|valor|fee"
)
_BARE_AMOUNT = re.compile(
    r"(?<![\w.,:/-])\d{1,3}(?:[.,]?\d{3})*[.,]\d{2}(?![\w/-]|[.,:]\d|\s*(?:uhr|h|am|pm|o'clock)\b)", re.I
)

CENT = 0.01
_FIELD = re.compile(r"^\W*(?P<name>[^\W\d][\w /-]{1,40}?)\W*[:=]\W*(?P<value>\d[\d.,]*\d|\d)\W*$", re.M)
_THOUSANDS = re.compile(r"(?<![\w.,:/-])\d{1,3}(?:[.,]\d{3})+(?![\w/-]|[.,:]\d|\s*(?:%|km|kg|m\b))")


def is_amount_name(name: str) -> bool:
    """Return whether the name of an attribute says that its value is an amount of money."""
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    return any(_AMOUNT_WORD.fullmatch(word.casefold()) for word in words) or bool(
        money_in(f"1 {words[-1]}" if words else "")
    )


def amounts_in(text: str) -> list[float]:
    """Return the distinct amounts of money of a text.

    Where none has a currency or the name of an amount ("amount_gbp: 3900"), these are the numbers with two decimals,
    else those with thousands apart ("3,500"). Of amounts and their total, the total counts alone.
    """
    amounts = [figure.amount for figure in money_in(text)]
    amounts += [
        value
        for match in _FIELD.finditer(text)
        if is_amount_name(match["name"]) and (value := number(match["value"])) is not None
    ]
    for pattern in (_BARE_AMOUNT, _THOUSANDS):
        if not amounts:
            amounts = [float(n) for match in pattern.finditer(text) if (n := number(match[0])) is not None]
    amounts = list(dict.fromkeys(amounts))
    largest = max(amounts, default=0.0)
    return [largest] if len(amounts) > 2 and abs(sum(amounts) - 2 * largest) < CENT else amounts


def _known(text: str, known: Mapping[str, str]) -> str | None:
    """Return the attribute with this name, with or without the prefix that exports put before case attributes."""
    return known.get(folded(text)) or known.get(folded(unprefixed(text.strip())))


def _in_documents(elements: Sequence[Element], known: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield the known attributes of lines `name: value`, as JSON and tables are read.

    A name may hold a colon itself; the first value of an attribute counts.
    """
    seen: set[str] = set()
    for element in elements:
        for line in (element.text or "").splitlines() if element.role == "input" else ():
            for name, value in _in_line(line, known):
                if name not in seen:
                    seen.add(name)
                    yield name, value


def _in_line(line: str, known: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield what a line `name: value` states, for each place where the name may end."""
    for place, character in enumerate(line[:LONGEST_NAME]):
        name = _known(line[:place], known) if character in ":=" else None
        if name is not None and line[place + 1 :].strip():
            yield name, line[place + 1 :].strip()

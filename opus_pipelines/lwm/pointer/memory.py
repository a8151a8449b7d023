"""The cases of one industry as the pointer model reads them: what similar requests led to, and how tasks follow.

All figures of a case that is itself in the memory can be computed as if it were not there (`hidden`), so that training
sees what generation will see: a request that history has not seen yet.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from opus_pipelines.lwm.fine_tuning.task_reader import ReadCases, TaskReader
from opus_pipelines.lwm.pointer.candidates import (
    FEATURES,
    FEW,
    PRIOR,
    SHARPNESS,
    Candidates,
    EncodedRequest,
    TitleMatch,
    plain,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

READ = 0.9  # share of the steps of history whose tasks a task reader must have learnt to be asked
_NEAREST = 60  # cases that support a task by the similarity of their requests
KERNEL_WIDTH = 0.7  # of the Gaussian kernel between unit vectors
# share of a kernel regression's kernel that compares words, the rest compares vectors; and its ridge
REGRESSIONS = ((0.5, 0.15), (1.0, 0.3), (0.0, 0.05))  # the first one is the likelihood of a task
PLACE_SHARPNESS = 0.05  # of the softmax over clauses that tells where a request speaks of a task
COVERED = 0.15  # cosine of a clause and a task from which the task explains something of the clause
TEXTS_WEIGHT = 0.3  # weight of what texts say of a task, beside history's estimate, in the choice of candidates
MOST_UNKNOWN = 12  # candidates that no case did, at most
FREE_WORDS = 0.5  # share of the steps that one case alone has, from which tasks are words instead of names


@dataclass(frozen=True)
class IndustryGraph:
    """The tasks of one industry and their edges.

    Attributes:
        tasks: ids, sorted; those that a catalogue declares stand behind them.
        titles: their titles.
        vectors: unit vectors [tasks, d] of their texts.
        gamma: γ of LWM (2) [tasks, tasks], 0 where there is no edge.
        transitions: how often the edge was carried out [tasks, tasks].

    Both matrices are sparse: of 10,000 tasks a dense one takes 800 MB.
    """

    tasks: tuple[str, ...]
    titles: tuple[str, ...]
    vectors: np.ndarray
    gamma: "csr_array"
    transitions: "csr_array"

    def with_tasks(self, tasks: Sequence[str], titles: Sequence[str], vectors: np.ndarray) -> "IndustryGraph":
        """Return the graph with further tasks behind its own, without edges."""
        size = len(self.tasks) + len(tasks)
        return IndustryGraph(
            (*self.tasks, *tasks),
            (*self.titles, *titles),
            np.concatenate([self.vectors, vectors]),
            _grown(self.gamma, size),
            _grown(self.transitions, size),
        )

    def without(self, traces: Iterable[Sequence[int]]) -> "IndustryGraph":
        """Return the graph without the transitions of these traces; γ falls as LWM (2) says."""
        gone = Counter(pair for trace in traces for pair in pairwise(trace))
        edges = self.transitions.tocoo()
        taken = np.array([gone[pair] for pair in zip(edges.row.tolist(), edges.col.tolist(), strict=True)], np.float64)
        left = np.maximum(0.0, edges.data - taken)
        gamma = 1.0 - (1.0 - at(self.gamma, edges.row, edges.col)) ** (left / edges.data)
        places, kept = (edges.row, edges.col), left > 0
        return replace(
            self,
            gamma=sparse(places, np.where(kept, gamma, 0.0), len(self.tasks)),
            transitions=sparse(places, left, len(self.tasks)),
        )


def sparse(places: tuple[Sequence[int], Sequence[int]], values: ArrayLike, size: int) -> "csr_array":
    """Return the square matrix [size, size] with these values at (rows, columns), added up; zeros are not stored."""
    from scipy.sparse import coo_array

    matrix = coo_array((np.asarray(values, np.float64), places), shape=(size, size)).tocsr()
    matrix.eliminate_zeros()
    return matrix


def _grown(matrix: "csr_array", size: int) -> "csr_array":
    """Return the square matrix [size, size] with these values at its beginning."""
    found = matrix.copy()
    found.resize((size, size))
    return found


def at(matrix: "csr_array", rows: Sequence[int], columns: Sequence[int]) -> np.ndarray:
    """Return the values [n] of a sparse matrix at n places."""
    from scipy.sparse import issparse

    found = matrix[np.asarray(rows, np.int64), np.asarray(columns, np.int64)]
    return np.asarray(found.toarray() if issparse(found) else found, np.float64).ravel()


def block(matrix: "csr_array", tasks: ArrayLike) -> np.ndarray:
    """Return the dense block [k, k] of a sparse matrix among k tasks."""
    return np.asarray(matrix[tasks][:, tasks].toarray())


class CaseMemory:
    """The cases of one industry: their requests, and their tasks in order."""

    def __init__(
        self, graph: IndustryGraph, texts: Sequence[str], vectors: np.ndarray, traces: Sequence[Sequence[int]]
    ) -> None:
        """Take the cases.

        Args:
            graph: tasks and edges of the industry.
            texts: the requests.
            vectors: their unit vectors [cases, d].
            traces: for each case the places of its tasks in `graph.tasks`, in order, each once; none is empty.
        """
        self.graph, self.vectors, self.traces = graph, np.asarray(vectors, np.float32), [list(t) for t in traces]
        self._texts = list(texts)
        size = len(graph.tasks)
        earlier = [pair for trace in self.traces for pair in combinations(trace, 2)]
        self.before = sparse(
            (list(map(itemgetter(0), earlier)), list(map(itemgetter(1), earlier))), np.ones(len(earlier)), size
        )
        self.together = (self.before + self.before.T).tocsr()
        self.place_sum, self.begins, self.ends = np.zeros(size), np.zeros(size), np.zeros(size)
        for trace in self.traces:
            for n, task in enumerate(trace):
                self.place_sum[task] += _relative(n, len(trace))
            self.begins[trace[0]] += 1
            self.ends[trace[-1]] += 1
        self.holds = np.zeros((len(self.traces), size), np.float32)
        for row, trace in enumerate(self.traces):
            self.holds[row, trace] = 1.0
        self.counts = self.holds.sum(0).astype(np.float64)
        self._own_case, self._own_task = np.nonzero(self.holds)
        self.declared = np.zeros(size, bool)

    def with_declared(self, tasks: Sequence[str], titles: Sequence[str], vectors: np.ndarray) -> "CaseMemory":
        """Return the memory with further tasks that no case did and a catalogue declares; `vectors` [n, d].

        What was computed of the cases is not computed anew.
        """
        from scipy.sparse import vstack

        words, of_cases, of_titles = self._words
        graph, more = self.graph.with_tasks(tasks, titles, vectors), len(tasks)
        size = len(graph.tasks)
        other = copy(self)
        vars(other).update(
            graph=graph,
            before=_grown(self.before, size),
            together=_grown(self.together, size),
            holds=np.pad(self.holds, ((0, 0), (0, more))),
            declared=np.pad(self.declared, (0, more), constant_values=True),
            _regressions=[(np.pad(weights, ((0, 0), (0, more))), own) for weights, own in self._regressions],
            _words=(words, of_cases, vstack([of_titles, words.transform([plain(title) for title in titles])])),
            _title_match=TitleMatch([plain(title) for title in graph.titles]),
            **{name: np.pad(getattr(self, name), (0, more)) for name in ("place_sum", "begins", "ends", "counts")},
        )
        return other

    def without(self, hidden: Collection[int]) -> "CaseMemory":
        """Return the memory of the other cases; the transitions of the hidden ones are taken out of the edges."""
        gone = set(hidden)
        kept = [n for n in range(len(self.traces)) if n not in gone]
        graph = self.graph.without([self.traces[n] for n in sorted(gone)])
        return CaseMemory(graph, [self._texts[n] for n in kept], self.vectors[kept], [self.traces[n] for n in kept])

    def load(self) -> None:
        """Compute now what every request needs."""
        self._regressions, self._words, self._title_match  # noqa: B018 - each is kept

    def log_odds(self, reader: TaskReader, text: str) -> np.ndarray:
        """Return the log-odds [tasks] that a request asks for each task; 0 for those that the reader did not learn.

        All are 0 where it did not learn most of the work: it is of another industry, which has a few of the tasks.
        """
        if not self.is_read_by(reader):
            return np.zeros(len(self.graph.tasks))
        return np.asarray(reader.log_odds([text], self.graph.tasks, self.graph.vectors)[0])

    def is_read_by(self, reader: TaskReader) -> bool:
        """Whether the reader learnt most of the work."""
        learnt = np.array([task in reader.places for task in self.graph.tasks])
        return bool(self.counts @ learnt >= READ * self.counts.sum())

    @property
    def read_cases(self) -> ReadCases:
        """The cases as a task reader learns from them."""
        return ReadCases(self._texts, self.holds, self.graph.tasks, self.graph.vectors)

    @cached_property
    def has_names(self) -> bool:
        """Whether tasks have names that cases share; otherwise most steps are words of their case alone."""
        return float((self.counts == 1.0).sum()) < FREE_WORDS * float(self.counts.sum())

    def candidates(
        self, request: EncodedRequest, most: int, hidden: int | None = None, unknown: np.ndarray | None = None
    ) -> Candidates:
        """Return the `most` likeliest tasks of a request, and at most `MOST_UNKNOWN` unknown ones whose texts are near.

        `hidden`: the case that is left out, None for none. `unknown` [tasks]: which tasks are seen as if no case had
        done them; None: the declared ones.
        """
        graph, cosines = self.graph, self.vectors @ request.vector
        unknown = self.declared if unknown is None else unknown
        if hidden is not None:
            cosines[hidden] = -1.0
        near = np.argsort(-cosines, kind="stable")[:_NEAREST]
        supports = []
        for sharpness in SHARPNESS:
            weights = np.exp((cosines[near] - cosines[near[0]]) / sharpness)
            supports.append((weights / weights.sum()) @ self.holds[near])
        nearest = np.full(len(graph.tasks), -1.0)
        np.maximum.at(nearest, self._own_task, cosines[self._own_case])
        by_kernel, *by_other_kernels = self._estimates(request, hidden)
        likelihood = np.where(unknown, PRIOR, np.clip(by_kernel, PRIOR, 1.0))
        clauses = request.clauses @ graph.vectors.T
        words = self._words[0].transform([plain(request.text)])
        own = self.traces[hidden] if hidden is not None else []
        gamma_to, gamma_from = self._by_gamma(likelihood, own)
        titled = self.declared | self.has_names | (self.counts > 0.0)
        if not self.has_names:  # the title of a task that no other case did may be from this very request
            titled[[task for task in own if self.counts[task] == 1.0]] = False
        columns = [
            *supports,
            nearest,
            by_kernel,
            graph.vectors @ request.vector,
            clauses.max(0),
            np.asarray((words @ self._words[2].T).todense())[0],
            np.log(self.counts / len(self.traces) + PRIOR),
            gamma_to,
            gamma_from,
            self._together(likelihood, own),
            np.full(len(graph.tasks), cosines[near[0]]),
            (-likelihood).argsort(kind="stable").argsort(kind="stable"),
            np.full(len(graph.tasks), likelihood.sum()),
            *by_other_kernels,
            *self._votes(cosines, near),
            *(column * titled for column in self._title_match.columns(plain(request.text))),
        ]
        by_texts = TEXTS_WEIGHT * clauses.max(0)
        chosen = _highest(by_kernel + 0.5 * supports[1] + by_texts, ~unknown, most)
        if unknown.any():
            titles = columns[FEATURES.index("words of the title")]
            chosen = np.concatenate([chosen, _highest(by_texts + TEXTS_WEIGHT * titles, unknown, MOST_UNKNOWN)])
        features, similarity = np.stack(columns, 1)[chosen], clauses[:, chosen]
        place_of = {task: n for n, task in enumerate(chosen.tolist())}
        before, direct = block(self.before, chosen), block(self.graph.transitions, chosen)
        begins, ends = self.begins[chosen], self.ends[chosen]
        places, counts = self.place_sum[chosen], self.counts[chosen]
        inside = [(n, place_of[task]) for n, task in enumerate(own) if task in place_of]
        for n, a in inside:
            for m, b in inside:
                before[a, b] -= n < m
                direct[a, b] -= n + 1 == m and direct[a, b] > 0
            begins[a] -= n == 0
            ends[a] -= n == len(own) - 1
            places[a] -= _relative(n, len(own))
            counts[a] -= 1
        contrast = similarity - 0.5 * similarity.mean(1, keepdims=True)
        weights = np.exp((contrast - contrast.max(0)) / PLACE_SHARPNESS)
        found = Candidates(
            chosen,
            features,
            likelihood[chosen],
            request.places @ (weights / weights.sum(0)),
            similarity,
            before,
            direct,
            begins,
            ends,
            counts,
            (places + 0.5) / (counts + 1),
        )
        return found.without_history_of(unknown[chosen]) if unknown.any() else found

    def _votes(self, cosines: np.ndarray, near: np.ndarray) -> list[np.ndarray]:
        """Return for each of `FEW` the share [tasks] of the nearest cases that have a task, by their cosines."""
        found = []
        for few in FEW:
            weights = np.maximum(cosines[near[:few]], 0.0)
            found.append(weights @ self.holds[near[:few]] / max(1e-6, float(weights.sum())))
        return found

    def _estimates(self, request: EncodedRequest, hidden: int | None) -> list[np.ndarray]:
        """Return the kernel ridge estimates [tasks] of the probability of each task; leave-one-out where hidden.

        The leave-one-out estimate of case i is y_i − α_i / A_ii, where A is the inverse of the regularised kernel.
        """
        if hidden is not None:
            return [self.holds[hidden] - weights[hidden] / diagonal[hidden] for weights, diagonal in self._regressions]
        words, of_cases, _ = self._words
        common = np.asarray((words.transform([plain(request.text)]) @ of_cases.T).todense())[0]
        near, rates = _kernel(request.vector[None], self.vectors)[0], self.holds.mean(0)
        return [
            np.asarray((share * common + (1 - share) * near) @ weights + rates)
            for (share, _), (weights, _) in zip(REGRESSIONS, self._regressions, strict=True)
        ]

    @cached_property
    def _regressions(self) -> list[tuple[np.ndarray, np.ndarray]]:
        of_cases = self._words[1]
        common, near = np.asarray((of_cases @ of_cases.T).todense()), _kernel(self.vectors, self.vectors)
        found = []
        for share, ridge in REGRESSIONS:
            inverse = np.linalg.inv(share * common + (1 - share) * near + ridge * np.eye(len(near)))
            found.append((inverse @ (self.holds - self.holds.mean(0)), np.diag(inverse).copy()))
        return found

    @cached_property
    def _title_match(self) -> TitleMatch:
        return TitleMatch([plain(title) for title in self.graph.titles])

    def _by_gamma(self, likelihood: np.ndarray, own: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return Σ_u p_u γ_ut and Σ_u γ_tu p_u [tasks]; the transitions of the case `own` are taken out of γ."""
        to, back = self.graph.gamma.T @ likelihood, self.graph.gamma @ likelihood
        places = own[:-1], own[1:]
        known, gammas = at(self.graph.transitions, *places), at(self.graph.gamma, *places)
        for a, b, transitions, gamma in zip(*places, known.tolist(), gammas.tolist(), strict=True):
            if transitions > 0:
                less = gamma - (1.0 - (1.0 - gamma) ** (max(0.0, transitions - 1) / transitions))
                to[b] -= likelihood[a] * less
                back[a] -= likelihood[b] * less
        return to, back

    def _together(self, likelihood: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return Σ_u p_u n(u and t) / n(u) [tasks], where n counts cases; the case `own` is taken out."""
        per_case = likelihood / (self.counts + 2.0)
        found = np.asarray(self.together @ per_case)
        mass = float(per_case[own].sum()) if own else 0.0
        for task in own:
            found[task] -= mass - per_case[task]
        return found

    @cached_property
    def _words(self) -> tuple[Any, Any, Any]:
        """Return the tf-idf vectoriser of words and pairs of words, and its rows of the cases and of the titles."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts, titles = [plain(text) for text in self._texts], [plain(title) for title in self.graph.titles]
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\S+")
        words.fit([*texts, *titles, *titles])  # titles twice, so that no word of a title is dropped as rare
        return words, words.transform(texts), words.transform(titles)


def _highest(scores: np.ndarray, among: np.ndarray, most: int) -> np.ndarray:
    """Return the places of the `most` highest scores, at most, of those that are `among` them."""
    return np.argsort(np.where(among, -scores, np.inf), kind="stable")[: min(most, int(among.sum()))]


def _relative(place: int, length: int) -> float:
    return place / max(1, length - 1)


def _kernel(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp((one.astype(np.float64) @ other.T.astype(np.float64) - 1.0) / KERNEL_WIDTH**2))

"""The five metrics of the Opus LWM paper (arXiv 2412.00573): coverage, Kendall, DTW, BLEU and cosine, and their area.

The paper leaves denominators and normalisations open. Coverage divides by the generated tasks, as its text says, and
the recall of the reference tasks stands beside it. DTW is divided by its largest possible value, BLEU is smoothed by
method 1 (epsilon 0.1) of Chen and Cherry. The figures of the paper's Table 1 contradict its definitions, so ours are
compared with our own references only.

Tasks are matched one to one by the similarity of their texts.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

THRESHOLD = 0.6  # cosine above which two tasks may be the same one; WorFBench (arXiv 2410.07869) uses it, too
_IN_ORDER = 1e-9  # among equal matches the one that keeps the order of both workflows is taken
Match = tuple[int, int]


def best_matches(similarity: np.ndarray, threshold: float = THRESHOLD) -> list[Match]:
    """Returns the pairs (generated, reference) of the one-to-one match with the largest sum of similarities.

    `similarity` [n, m]; only pairs above the threshold count. The pairs are sorted by the generated task.
    """
    similarity = np.asarray(similarity, dtype=np.float64)
    if similarity.size == 0:
        return []
    n, m = similarity.shape
    in_order = np.outer(np.arange(n) / n, np.arange(m) / m) * _IN_ORDER
    from scipy.optimize import linear_sum_assignment  # it loads most of SciPy

    rows, columns = linear_sum_assignment(np.where(similarity > threshold, similarity + in_order, 0.0), maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return sorted((i, j) for i, j in pairs if similarity[i, j] > threshold)


AXES = ("coverage", "kendall", "dtw", "bleu", "cosine")  # in the order of the paper's table; the area depends on it
MAX_AREA = 2.5 * math.sin(math.radians(72))
BLEU_ORDER = 4
_BLEU_EPSILON = 0.1


@dataclass(frozen=True)
class OpusMetrics:
    """The metrics of one generated workflow, or the means of several.

    Attributes:
        coverage: share of the generated tasks that match a reference task.
        kendall: Kendall's tau of the matched tasks' orders times coverage, from -1 to 1.
        dtw: dynamic time warping similarity of these orders times coverage.
        bleu: mean BLEU-4 of the generated tasks with their matches; 0 where a task has no match.
        cosine: mean cosine of the generated tasks with their matches; 0 where a task has no match.
        recall: share of the reference tasks that match a generated task.
        f1: harmonic mean of coverage and recall.
    """

    coverage: float
    kendall: float
    dtw: float
    bleu: float
    cosine: float
    recall: float
    f1: float

    @property
    def area(self) -> float:
        """The area of the five metrics on the axes of a regular pentagon, from 0 to `MAX_AREA`; a negative tau is 0."""
        return float(area_of(np.array([getattr(self, axis) for axis in AXES])))


def area_of(values: np.ndarray) -> np.ndarray:
    """Returns the area for the five metrics in the order of `AXES`, [...] for [..., 5]."""
    clipped = np.maximum(values, 0.0)
    return np.asarray(0.5 * math.sin(math.radians(72)) * (clipped * np.roll(clipped, -1, axis=-1)).sum(axis=-1))


def opus_metrics(
    generated: Sequence[str], reference: Sequence[str], similarity: np.ndarray, threshold: float = THRESHOLD
) -> OpusMetrics:
    """Returns the metrics of a generated workflow.

    Args:
        generated: title and description of each generated task, in order.
        reference: the same of the reference.
        similarity: cosines [n, m] of the texts (`matching.cosines`).
        threshold: cosine that a match must exceed.
    """
    n, m = len(generated), len(reference)
    matches = best_matches(similarity, threshold)
    if not matches:
        return OpusMetrics(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    k = len(matches)
    coverage = k / n
    return OpusMetrics(
        coverage=coverage,
        kendall=kendall_tau(matches, m) * coverage,
        dtw=dtw_similarity(matches, m) * coverage,
        bleu=sum(bleu(generated[i], reference[j]) for i, j in matches) / n,
        cosine=sum(float(similarity[i, j]) for i, j in matches) / n,
        recall=k / m,
        f1=2 * k / (n + m),
    )


def kendall_tau(matches: Sequence[Match], reference_tasks: int) -> float:
    """Returns Kendall's tau of the reference positions in generated order; one match counts 1 where there is one task.

    `matches` are sorted by the generated task; positions are distinct, so tau-a and tau-b are the same.
    """
    positions = [j for _, j in matches]
    k = len(positions)
    if k < 2:
        return float(k == 1 and reference_tasks == 1)
    signs = sum(1 if a < b else -1 for n, a in enumerate(positions) for b in positions[n + 1 :])
    return signs / (k * (k - 1) / 2)


def dtw_similarity(matches: Sequence[Match], reference_tasks: int) -> float:
    """Returns 1 - DTW / (k * max(1, m - 1)) of the reference positions in generated order and in their own order.

    The cost of a step is the distance of the positions; a step goes on in one sequence or in both. 0 without a match.
    """
    positions = [j for _, j in matches]
    k = len(positions)
    if not k:
        return 0.0
    in_order = sorted(positions)
    total = np.full((k + 1, k + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(k):
        for j in range(k):
            cheapest = min(total[i, j], total[i, j + 1], total[i + 1, j])
            total[i + 1, j + 1] = abs(positions[i] - in_order[j]) + cheapest
    return 1.0 - float(total[k, k]) / (k * max(1, reference_tasks - 1))


def bleu(text: str, reference: str) -> float:
    """Returns sentence BLEU-4 of lower-cased words with uniform weights, brevity penalty and smoothing method 1.

    0 where the texts share no word.
    """
    words, expected = _words(text), _words(reference)
    if not set(words) & set(expected):
        return 0.0
    logs = 0.0
    for order in range(1, BLEU_ORDER + 1):
        own, known = _ngrams(words, order), _ngrams(expected, order)
        both = sum((own & known).values())
        logs += math.log((both or _BLEU_EPSILON) / max(1, own.total()))
    brevity = 1.0 if len(words) > len(expected) else math.exp(1 - len(expected) / len(words))
    return brevity * math.exp(logs / BLEU_ORDER)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _ngrams(words: list[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))

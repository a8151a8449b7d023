"""One-to-one matches between the tasks of a generated workflow and those of a reference, by the similarity of texts."""

from collections.abc import Sequence

import numpy as np

from opus_pipelines.language.embedding.encoder import TextEncoder

THRESHOLD = 0.6  # cosine above which two tasks may be the same one; WorFBench (arXiv 2410.07869) uses it, too
_IN_ORDER = 1e-9  # among equal matches the one that keeps the order of both workflows is taken
Match = tuple[int, int]


def cosines(encoder: TextEncoder, generated: Sequence[str], reference: Sequence[str]) -> np.ndarray:
    """Returns the cosine of every generated text with every reference text, [n, m] float64, from -1 to 1."""
    if not generated or not reference:
        return np.zeros((len(generated), len(reference)))
    vectors = np.asarray(encoder.encode([*generated, *reference]), dtype=np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors[: len(generated)] @ vectors[len(generated) :].T


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

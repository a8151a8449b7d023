"""Steps of many cases as flat arrays: which step comes directly before which, and distinct whole numbers.

Large arrays are sorted, which is many times faster than the hash table of `np.unique`.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def consecutive(lengths: np.ndarray, stated: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Returns the numbers of the earlier and of the later step of each pair.

    `lengths` [cases] are the numbers of steps. `stated` [steps, one case after the other] are lists of places in the
    step's own case: the steps directly before it. NULL stands for the step in front of it. A place outside of the case
    is left out, and the same place counts once.
    """
    case = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    position = np.arange(len(case)) - first[case]
    after = np.flatnonzero(np.asarray(pc.is_null(stated)) & (position > 0))
    before = after - 1
    places = pc.list_flatten(stated)
    if len(places):
        owner = pc.list_parent_indices(stated).to_numpy()
        known = np.asarray(pc.is_valid(places))
        place, owner = pc.fill_null(places, -1).to_numpy()[known].astype(np.int64), owner[known]
        inside = (place >= 0) & (place < lengths[case[owner]])
        place, owner = place[inside], owner[inside]
        named = distinct(owner * np.int64(len(case)) + first[case[owner]] + place)
        before = np.concatenate([before, named % len(case)])
        after = np.concatenate([after, named // len(case)])
    return before, after


def numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the number of each value among the distinct ones in ascending order, and a place of each distinct one."""
    order = np.argsort(values)
    begins = begins_anew(values[order])
    number = np.empty(len(values), np.int64)
    number[order] = np.cumsum(begins) - 1
    return number, order[begins]


def distinct(values: np.ndarray) -> np.ndarray:
    """Returns the distinct values of an array of whole numbers, in ascending order."""
    ordered = np.sort(values)
    return ordered[begins_anew(ordered)]


def distinct_counts(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct values of an array of whole numbers, in ascending order, and how often each occurs."""
    ordered = np.sort(values)
    first = np.flatnonzero(begins_anew(ordered))
    return ordered[first], np.diff(np.append(first, len(ordered)))


def begins_anew(ordered: np.ndarray) -> np.ndarray:
    """Returns for each of these ordered values whether it differs from the one before it; the first one does."""
    begins = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins

"""Lists of texts from numbers of texts: as an Arrow column, and as JSON, of which ids are made."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.ids import canonical


def text_lists(names: Sequence[str], numbers: np.ndarray, lengths: np.ndarray) -> pa.ListArray:
    """Returns lists of these lengths with the names of the numbers, which stand one list after the other."""
    ends = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    return pa.ListArray.from_arrays(ends, pa.array(names, pa.string()).take(pa.array(numbers)))


def json_lists(names: Sequence[str], numbers: np.ndarray, lengths: np.ndarray) -> list[str]:
    """Returns `core.ids.canonical` of each of the lists that `text_lists` returns."""
    joined = pc.binary_join(text_lists([canonical(name) for name in names], numbers, lengths), ",")
    return [f"[{text}]" for text in joined.to_pylist()]

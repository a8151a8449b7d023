"""Numbers for the ids of cases: equal ids have equal numbers, and no table of ids is kept."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opus_pipelines.event_logs.arrow_arrays import array, numbers, text_offsets
from opus_pipelines.event_logs.arrow_batches import text_hashes

Keys = npt.NDArray[np.uint64]
_SHORT = 7  # bytes: such a text is its own number, with its length in the first byte
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def case_keys(ids: pa.Array) -> Keys:
    """Returns the number of each text, which may be in dictionary encoding. The number of NULL is arbitrary.

    Texts of more than seven bytes are told apart by a 64-bit hash, as implementations are by their ids.
    """
    if not pa.types.is_dictionary(ids.type):
        return _keys(ids)
    if not len(ids.dictionary):
        return np.zeros(len(ids), np.uint64)
    codes = numbers(ids.indices.cast(pa.int32()).fill_null(0), np.int32)
    return _keys(ids.dictionary)[codes]


def _keys(texts: pa.Array) -> Keys:
    offsets = text_offsets(texts)
    lengths = np.diff(offsets)
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.zeros(end - first + 8, np.uint8)
    if end > first:
        data[: end - first] = np.frombuffer(texts.buffers()[2], np.uint8, end - first, first)
    words = np.ndarray((end - first + 1,), "<u8", data.data, 0, (1,))
    keys: Keys = words[offsets[:-1] - first] & _MASKS[np.minimum(lengths, 8)]
    keys |= lengths.astype(np.uint64) << np.uint64(56)
    long = np.flatnonzero(lengths > _SHORT)
    if len(long) == len(lengths):
        return text_hashes(texts)[0]
    if len(long):
        keys[long] = text_hashes(texts.take(array(long, pa.int64())))[0]
    return keys

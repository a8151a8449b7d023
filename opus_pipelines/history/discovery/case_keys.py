"""Numbers for the ids of cases: equal ids have equal numbers, and no table of ids is kept."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opus_pipelines.history.records.arrow_arrays import array, numbers_or, text_offsets
from opus_pipelines.history.records.arrow_batches import text_hashes

Keys = npt.NDArray[np.uint64]
_SHORT_ID = 7  # bytes: such a text is its own number, with its length in the last byte
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, so that different numbers stay different


def case_keys(ids: pa.Array) -> Keys:
    """Returns the number of each text, which may be in dictionary encoding. The number of NULL is arbitrary.

    Texts of more than seven bytes are told apart by a 64-bit hash, as implementations are by their ids. The numbers of
    many texts are spread evenly.
    """
    if not pa.types.is_dictionary(ids.type):
        return _keys(ids) * _MIX
    if not len(ids.dictionary):
        return np.zeros(len(ids), np.uint64)
    codes = numbers_or(ids.indices.cast(pa.int32()), np.int32, 0)
    return (_keys(ids.dictionary) * _MIX)[codes]


def _keys(texts: pa.Array) -> Keys:
    offsets = text_offsets(texts)
    lengths = np.diff(offsets)
    longest = int(lengths.max()) if len(lengths) else 0
    long = np.flatnonzero(lengths > _SHORT_ID) if longest > _SHORT_ID else lengths[:0]
    if len(long) and len(long) == len(lengths):
        return text_hashes(texts)[0]
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.zeros(end - first + 8, np.uint8)
    if end > first:
        data[: end - first] = np.frombuffer(texts.buffers()[2], np.uint8, end - first, first)
    words = np.ndarray((end - first + 1,), "<u8", data.data, 0, (1,))
    size = lengths.astype(np.uint64)
    keys: Keys = words[offsets[:-1] - first] << (64 - 8 * size)  # a shift by 64 leaves nothing
    keys |= size
    if len(long):
        keys[long] = text_hashes(texts.take(array(long, pa.int64())))[0]
    return keys

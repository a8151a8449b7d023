"""The texts of flat rows: the distinct texts of all columns stand in one array, and columns refer to them."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from opus_pipelines.history.columns.values import Coded, UnusualError
from opus_pipelines.history.records.arrow_arrays import Ints, Longs, booleans, indices, numbers, validity

_MOST_BYTES = (1 << 31) - (1 << 20)  # of one Arrow array of texts


class FlatTexts:
    """The texts of a block of whole cases, see `values.Texts`."""

    def __init__(self, texts: pa.Array, traces: int, event_trace: Ints) -> None:
        self.traces, self.event_trace = traces, event_trace
        self._texts = texts

    def values(self, places: Ints) -> pa.Array:
        """Returns the texts at these positions. A negative position gives NULL."""
        return self._texts.take(indices(places))

    def coded(self, places: Ints) -> Coded:
        """Returns the texts at these positions in dictionary encoding.

        No text is compared, so that equal texts of a column that is not dictionary-encoded have several codes.
        """
        known = places >= 0
        some: Longs = places[known].astype(np.int64)
        if not len(some):
            return Coded(np.full(len(places), -1, np.int32), self._texts.slice(0, 0))
        first, last = int(some.min()), int(some.max())
        if last - first > 4 * len(some) + 1024:
            found, codes_of_some = np.unique(some, return_inverse=True)
        else:
            present = np.zeros(last - first + 1, bool)
            present[some - first] = True
            found = np.flatnonzero(present) + first
            codes_of_some = (np.cumsum(present) - 1)[some - first]
        codes = np.full(len(places), -1, np.int32)
        codes[known] = codes_of_some
        return Coded(codes, self._texts.take(indices(found)))

    def replace(self, places: Ints, texts: pa.Array) -> None:
        """Replaces the texts at ascending positions."""
        marked = np.zeros(len(self._texts), bool)
        marked[places] = True
        self._texts = pa.compute.replace_with_mask(self._texts, booleans(marked), texts)


def coded_texts(column: pa.Array) -> Coded:
    """Returns a column of texts, in dictionary encoding or not, as codes. NULL and the empty text have code -1.

    A column without dictionary encoding has a code for every row.
    """
    is_coded = pa.types.is_dictionary(column.type)
    values = column.dictionary if is_coded else column
    if is_coded:
        codes = numbers(column.indices.cast(pa.int32()), np.int32)
        valid = validity(column.indices)
    else:
        codes, valid = np.arange(len(column), dtype=np.int32), validity(column)
    filled = numbers(pa.compute.binary_length(values), np.int32) > 0
    if valid is not None:
        codes = np.where(valid, codes, np.int32(-1))
    if not filled.all():
        codes = np.where((codes >= 0) & filled[codes], codes, np.int32(-1)) if len(filled) else codes
    return Coded(codes.astype(np.int32, copy=False), values)


def together(parts: list[pa.Array]) -> Coded:
    """Returns the parts of a column as one column of codes."""
    if not all(pa.types.is_dictionary(part.type) for part in parts):
        parts = [part.cast(pa.string()) for part in parts]
        if sum(part.nbytes for part in parts) > _MOST_BYTES:
            raise UnusualError
        return coded_texts(pa.concat_arrays(parts))
    whole = pa.chunked_array(parts).unify_dictionaries()
    return coded_texts(pa.concat_arrays(whole.chunks))


def in_one(columns: Mapping[str, Coded]) -> tuple[pa.Array, dict[str, int]]:
    """Returns the texts of all columns as one array, and where those of each column begin.

    Raises UnusualError if they are more than such an array holds.
    """
    if sum(column.values.nbytes for column in columns.values()) > _MOST_BYTES:
        raise UnusualError
    starts = np.cumsum([0, *(len(column.values) for column in columns.values())]).tolist()
    return pa.concat_arrays([column.values for column in columns.values()]), dict(zip(columns, starts, strict=False))

"""The bin of a value, told apart from sql/wkg/histograms.sql, which bins what is mined."""

from bisect import bisect_right

from opus_pipelines.wkg.estimates.figures import BORDERS


def bin_of(value: int) -> int:
    """The bin of an integer below 2^63; -1 is the bin of 0 and of what is less."""
    return bisect_right(BORDERS, value) - 1

"""The fixtures of history for this folder."""

from tests.history_fixtures import bench, keys, make_bench

__all__ = ["bench", "keys", "make_bench"]

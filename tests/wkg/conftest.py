"""The fixtures of the Work Knowledge Graph for this folder."""

from tests.wkg_fixtures import history, lake, rebuild

__all__ = ["history", "lake", "rebuild"]

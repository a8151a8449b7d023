"""The shared part of Flow-Bench, for tests that skip where it is absent."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data")) / "flow_bench"
reason = f"no real data in {DATA}; OPUS_TEST_DATA says where it is"
needs_data = [pytest.mark.data, pytest.mark.skipif(not DATA.is_dir(), reason=reason)]


@cache
def bench_tests() -> tuple[dict[str, Any], ...]:
    """The tests as they stand in the file."""
    return tuple(yaml.safe_load((DATA / "conditional_ootb.yaml").read_text("utf-8"))["tests"])


def sequences() -> list[tuple[int, str, str]]:
    """The uid, `prior` or `expected`, and the text of every sequence."""
    found = []
    for test in bench_tests():
        uid = test["_metadata"]["uid"]
        found += [(uid, "prior", text) for text in test["input"]["prior_sequence"] or ()]
        found += [(uid, "expected", text) for text in test["expected_output"]["sequence"]]
    return found

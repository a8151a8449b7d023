"""What the benchmarks say of a program that they start: its own seconds and its own memory."""

import sys
from pathlib import Path

import pytest

from benchmarks import measuring
from benchmarks.measuring import child, own_peak_mib

BARE = [sys.executable, "-I", "-S", "-c"]
LARGE_MIB = 120


def test_a_small_program_does_not_have_the_peak_of_the_one_that_started_it() -> None:
    held = b"x" * (LARGE_MIB << 20)
    printed, spent = child([*BARE, "print(1)"])
    assert printed == "1\n"
    assert own_peak_mib() >= LARGE_MIB
    assert 0 < spent["peak_mib"] < 50
    assert len(held) == LARGE_MIB << 20


def test_a_large_program_has_its_own_peak() -> None:
    _, spent = child([*BARE, f"x = b'x' * ({LARGE_MIB} << 20)"])
    assert LARGE_MIB <= spent["peak_mib"] < LARGE_MIB + 50


def test_a_program_says_its_own_peak_itself() -> None:
    held = b"x" * (LARGE_MIB << 20)
    folder = str(Path(measuring.__file__).parent)
    code = f"import sys; sys.path.insert(0, {folder!r}); from measuring import own_peak_mib; print(own_peak_mib())"
    printed, _ = child([sys.executable, "-c", code])
    assert 0 < int(printed) < 60
    assert len(held) == LARGE_MIB << 20


def test_a_program_that_fails_ends_the_benchmark_with_its_last_lines() -> None:
    with pytest.raises(SystemExit, match="no such log"):
        child([*BARE, "raise SystemExit('no such log')"])

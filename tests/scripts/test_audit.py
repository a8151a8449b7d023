"""The audit passes only what was asked about."""

from typing import Any

import pytest

from scripts.audit import verdict

SOUND: dict[str, Any] = {"name": "a", "version": "1", "vulns": []}
KNOWN = {"name": "b", "version": "2", "vulns": [{"id": "CVE-2026-1", "fix_versions": ["3"]}]}
UNASKED = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("dependencies", "code", "words"),
    [
        ([SOUND], 0, ["1 packages", "no known"]),
        ([SOUND, KNOWN], 1, ["b 2", "CVE-2026-1", "3"]),
        ([SOUND, UNASKED], 2, ["1 of 2", "not found"]),
        ([KNOWN, UNASKED], 1, ["CVE-2026-1", "1 of 2"]),
    ],
)
def test_the_verdict_follows_what_was_found_and_what_was_asked(
    dependencies: list[dict[str, Any]], code: int, words: list[str]
) -> None:
    found, lines = verdict(dependencies)
    assert found == code
    assert [word for word in words if word not in "\n".join(lines)] == []

"""Warnings and pictures as Dagster shows them."""

import base64

import dagster as dg

from assets.checks import MINED_CHECKS, reported
from assets.metadata import shown, summary
from opus_pipelines.core.errors import CheckResult

SPEC = next(spec for spec in MINED_CHECKS if spec.name == "drift_of_edges")


def result(*found: CheckResult) -> dg.AssetCheckResult:
    [made] = reported(found, [SPEC])
    return made


def test_a_check_that_does_not_block_fails_as_a_warning() -> None:
    warned = result(CheckResult("drift of edges", False, "34 %", "wkg/edges", blocking=False))
    assert (warned.passed, warned.severity, warned.description) == (False, dg.AssetCheckSeverity.WARN, "34 %")


def test_one_that_blocks_fails_as_an_error() -> None:
    assert result(CheckResult("drift of edges", False, "34 %", "wkg/edges")).severity == dg.AssetCheckSeverity.ERROR


def test_one_that_passes_does() -> None:
    assert result(CheckResult("drift of edges", True, "1 %", "wkg/edges", blocking=False)).passed


def test_one_that_was_not_looked_at_is_an_error() -> None:
    assert (result().passed, result().severity) == (False, dg.AssetCheckSeverity.ERROR)


def test_pictures_are_carried_by_the_page() -> None:
    value = shown({"graph.svg": "<svg/>"})["graph"].value
    assert value == f"![graph.svg](data:image/svg+xml;base64,{base64.b64encode(b'<svg/>').decode()})"


def test_the_summary_of_a_manifest() -> None:
    check = {"name": "drift of edges", "dataset": "wkg/edges", "detail": "34 %", "passed": False, "blocking": False}
    manifest = {
        "inputs": {"sources": [{}, {}]},
        "counts": {"wkg/tasks": 3, "wkg/edges": 2, "wkg/cases": 9},
        "recall_at_10": 1.0,
        "checks": [check, check | {"passed": True}],
        "drift": {"from": "w1"},
    }
    assert summary(manifest) == {
        "tasks": 3,
        "edges": 2,
        "cases": 9,
        "sources": 2,
        "recall_at_10": 1.0,
        "warnings": ["drift of edges (wkg/edges): 34 %"],
        "drift": {"from": "w1"},
    }
    assert summary({"inputs": {"sources": []}}) == {"sources": 0, "warnings": []}

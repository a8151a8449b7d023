"""Formats a run's summary for Dagster: key figures and pictures of the snapshot."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from opus_pipelines.reporting.wkg_graph import data_uri


def summary(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Returns key figures of a snapshot's manifest, without those that an older one lacks."""
    counts, checks = manifest.get("counts") or {}, manifest.get("checks") or []
    figures = {
        "tasks": counts.get("wkg/tasks"),
        "edges": counts.get("wkg/edges"),
        "cases": counts.get("wkg/cases"),
        "sources": len(manifest["inputs"]["sources"]),
        "recall_at_10": manifest.get("recall_at_10"),
        "warnings": [f"{c['name']} ({c['dataset']}): {c['detail']}" for c in checks if not c["passed"]],
        "drift": manifest.get("drift"),
    }
    return {name: value for name, value in figures.items() if value is not None}


def shown(pictures: Mapping[str, str]) -> dict[str, Any]:
    """Returns each SVG as an image inside the page itself."""
    return {
        name.removesuffix(".svg"): dg.MetadataValue.md(f"![{name}]({data_uri(svg)})") for name, svg in pictures.items()
    }

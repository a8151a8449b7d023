"""What a person reads in Dagster beside an asset: key figures and pictures of a snapshot, tables, links to pages."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg
import pyarrow.compute as pc

from opus_pipelines.core.schemas import OPTIMIZED
from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.lake.results import ResultKey


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
    from opus_pipelines.reporting.wkg_graph import data_uri

    return {
        name.removesuffix(".svg"): dg.MetadataValue.md(f"![{name}]({data_uri(svg)})") for name, svg in pictures.items()
    }


MOST_ROWS = 50
_BEST = ("title", "reward_usd", "cost_usd", "success_probability", "workflow_id")


def sources_table(files: Iterable[Mapping[str, Any]]) -> dg.TableMetadataValue | None:
    """Returns a row for each source with the numbers of its files and records; None without sources.

    Files that are gone are left out: a source of a forgotten client must not be named again.
    """
    rows: dict[str, dict[str, Any]] = {}
    for file in (file for file in files if file["status"] != "gone"):
        row = rows.setdefault(file["source"], {"source": file["source"], "files": 0, "records": 0, "rejected": 0})
        row["files"] += 1
        row["records"] += file["records"] or 0
        row["rejected"] += file["records_rejected"] or 0
    return _table([rows[name] for name in sorted(rows)])


def best_table(lake: Lake, result: ResultKey) -> dg.TableMetadataValue | None:
    """Returns the best workflow of each goal, those with the highest Reward first; None where none is ranked."""
    rows = result.read(lake, OPTIMIZED, ["rank", "feasible", *_BEST])
    best = rows.filter(pc.and_(pc.equal(rows["rank"], 1), rows["feasible"])).select(_BEST).to_pylist()
    return _table(sorted(best, key=lambda row: (-(row["reward_usd"] or 0.0), row["workflow_id"])))


def page_of(result: ResultKey, pages_url: str) -> dg.MetadataValue[Any]:
    """Returns the link to the page of a contract where pages are served, else the command that writes it."""
    client, contract = result.client, result.contract
    if pages_url:
        return page_link(pages_url, f"{slug(client)}__{slug(contract)}.html")
    return dg.MetadataValue.text(f"opus report --client {shlex.quote(client)} --contract {shlex.quote(contract)}")


def page_link(pages_url: str, name: str) -> dg.UrlMetadataValue:
    """Returns the link to a page that `opus report` writes."""
    return dg.MetadataValue.url(f"{pages_url.rstrip('/')}/{name}")


def _table(rows: list[dict[str, Any]]) -> dg.TableMetadataValue | None:
    """Returns the first rows as a table; Dagster's tables hold no NULL, so that an unknown figure is a dash."""
    if not rows:
        return None
    shown = [{name: "–" if value is None else value for name, value in row.items()} for row in rows[:MOST_ROWS]]
    columns = [dg.TableColumn(name) for name in shown[0]]
    return dg.MetadataValue.table([dg.TableRecord(row) for row in shown], schema=dg.TableSchema(columns))

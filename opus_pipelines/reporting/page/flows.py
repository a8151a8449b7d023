"""The pages of flows that were written from utterances: a list of the newest batches, and a page for each flow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from opus_pipelines.core import formatting
from opus_pipelines.flow_pages.page import FlowPage, Retrieved, flow_page
from opus_pipelines.flows.formats.bpmn_reader import read_bpmn
from opus_pipelines.flows.formats.python_ir import parse
from opus_pipelines.flows.model import Flow
from opus_pipelines.lake.layout import slug
from opus_pipelines.reporting.page.render import environment, inline

LIST = "flows.html"
MOST_FLOWS = 500  # of a contract that get a page; the list names all
MOST_ROWS = 5_000  # of the list
_ROWS = """
SELECT f.*, s.exact_semantic, s.activity_f1
FROM flows_flows AS f
SEMI JOIN (
    SELECT client, contract, max_by(batch, made_at) AS batch FROM flows_flows GROUP BY client, contract
) AS newest USING (client, contract, batch)
LEFT JOIN flows_scores AS s
    ON s.client = f.client AND s.contract = f.contract AND s.batch = f.batch AND s.item = f.item
    AND s.system = 'flow writer' AND f.status <> 'rejected'
WHERE f.client = coalesce($client, f.client) AND f.contract = coalesce($contract, f.contract)
ORDER BY f.client, f.contract, f.file, f.line
LIMIT $most
"""
Row = dict[str, Any]


@dataclass(frozen=True)
class _Listed:
    row: Row
    page: str | None


def flow_rows(connection: duckdb.DuckDBPyConnection, client: str | None, contract: str | None) -> list[Row]:
    """Returns the rows of the newest batch of each contract, or of one, with scores where there is a reference."""
    found = connection.execute(_ROWS, {"client": client, "contract": contract, "most": MOST_ROWS})
    columns = [column[0] for column in found.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


def render_flows(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the HTML of the list and of each flow by file name, the list first; nothing where there is no row."""
    if not rows:
        return {}
    listed: list[_Listed] = []
    pages: dict[str, str] = {}
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row["client"], row["contract"]
        counts[key] = counts.get(key, 0) + 1
        name = None
        if row["status"] == "written" and counts[key] <= MOST_FLOWS:
            name = f"{slug(row['client'])}__{slug(row['contract'])}__flow_{counts[key]:04}.html"
            pages[name] = page_of(row)
        listed.append(_Listed(row, name))
    template = environment().get_template(LIST)
    text = template.render(
        rows=listed, most=MOST_ROWS, is_cut=len(rows) == MOST_ROWS, number=formatting.number, **inline()
    )
    return {LIST: text, **pages}


def page_of(row: Row) -> str:
    """Returns the HTML of one flow: the flow before and after, what changed, the texts, and what was retrieved."""
    flow = parse(row["sequence"]) if row["sequence"] else read_bpmn(row["bpmn"].encode()).flow
    found = tuple(Retrieved(r["activity"], r["description"] or "", r["score"]) for r in row["retrieved"] or ())
    name = f"{row['client']} / {row['contract']}: {row['item']}"
    prior = parse(row["prior"]) if row["prior"] else None
    return flow_page(FlowPage(Flow(flow.body, name), prior, row["utterance"] or "", found))

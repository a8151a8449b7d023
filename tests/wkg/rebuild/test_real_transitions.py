"""Transitions mined from real logs, against an independent count: flat events, and pairing done in SQL."""

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from lxml import etree

from opus_pipelines.core.schemas import ALIASES, EDGES
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake, read_table
from opus_pipelines.wkg.rebuild.steps import Engines, mine
from tests.rebuilding import resolved_history

DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data")) / "event_logs"
pytestmark = [
    pytest.mark.data,
    pytest.mark.spark,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}; OPUS_TEST_DATA says where it is"),
]

XES = {"helpdesk": "helpdesk.xes.gz", "bpic2012": "bpic2012.xes.gz", "bpic2013": "bpic2013_incidents.xes.gz"}
CSV = {"bpic2017w": "real_start_end_BPIC_2017_W.csv.gz"}

# A task is a start, or a complete with no start open: in the running sum of +1 a start and -1 a complete of one
# activity of one case, a complete that makes a new low below 0 found none. Logs without start and complete: every event
# is a task.
PAIRS = """
with marked as (
    select *, case transition when 'start' then 1 when 'complete' then -1 else 0 end as step,
           bool_or(transition in ('start', 'complete')) over (partition by log) as has_work
    from events
), summed as (
    select *, sum(step) over w as level, min(level) over (w rows between unbounded preceding and 1 preceding) as lowest
    from (select *, sum(step) over (partition by log, case_id, activity order by time, position) as level from marked)
    window w as (partition by log, case_id, activity order by time, position)
), tasks as (
    select * from summed
    where not has_work or step = 1 or (step = -1 and level < least(coalesce(lowest, 0), 0))
), followed as (
    select log, activity as src, lead(activity) over (partition by log, case_id order by time, position) as dst from tasks
)
select log, src, dst, count(*) as transitions from followed where dst is not null group by all
"""


def xes_events(log: Any, path: Any) -> Any:
    """Every event of a XES file: log, case, position in the file, activity, transition, time as text."""
    position, rows = 0, []
    with gzip.open(path) as file:
        for _, trace in etree.iterparse(file, tag="{*}trace"):
            names = {c.get("key"): c.get("value") for c in trace if c.get("key")}
            for event in trace.iterchildren("{*}event"):
                values = {c.get("key"): c.get("value") for c in event}
                transition = values.get("lifecycle:transition", "").lower()
                case = names["concept:name"]
                rows.append((log, case, position, values["concept:name"], transition, values["time:timestamp"]))
                position += 1
            trace.clear()
    names = ("log", "case_id", "position", "activity", "transition", "time")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def independent_counts() -> Any:
    """(log, src, dst) -> transitions, by DuckDB over flat events."""
    con = duckdb.connect()
    con.execute(
        "create table events (log text, case_id text, position bigint, activity text, transition "
        "text, time timestamptz)"
    )
    for log, name in XES.items():
        con.register("flat", xes_events(log, DATA / name))
        con.execute("insert into events select * from flat")
        con.unregister("flat")
    for log, name in CSV.items():
        con.execute(
            """
            insert into events
            select ?, case_id, row_number() over (), activity, '', start_time
            from read_csv(?, all_varchar = true, parallel = false)
        """,
            [log, str(DATA / name)],
        )
    rows = con.execute(PAIRS).fetchall()
    return {(log, src, dst): n for log, src, dst, n in rows}


def test_transitions_equal_an_independent_count(tmp_path: Path, spark: Any) -> None:
    for log, name in (XES | CSV).items():
        (tmp_path / "history" / log).mkdir(parents=True)
        (tmp_path / "history" / log / name).write_bytes((DATA / name).read_bytes())
    (tmp_path / "history" / "bpic2017w" / "source.toml").write_text('timezone = "Europe/Amsterdam"\n')
    lake = Lake(tmp_path / "lake")
    state = read_history(lake, tmp_path / "history", datetime(2026, 1, 31, tzinfo=UTC))
    night = resolved_history(lake, Settings(), state)
    mine(night, Engines(lambda _: spark, lambda: spark))
    folder = night.snapshot.folder
    task = {
        (a["source"], a["task_key"]): a["task_id"] for a in read_table(ALIASES, folder / "task_aliases").to_pylist()
    }
    mined = {(e["src"], e["dst"]): e["transitions"] for e in read_table(EDGES, folder / "edges").to_pylist()}
    counted: dict[tuple[str, str], int] = {}
    for (log, src, dst), n in independent_counts().items():
        pair = task[log, src], task[log, dst]
        counted[pair] = counted.get(pair, 0) + n
    assert mined == counted
    assert sum(mined.values()) == 151_422 + 57_979 + 16_768 + 210_578

"""The part `reading` of `speed.py`: CSV, Parquet and XES beside pm4py, Polars, DuckDB and rustxes.

Two kinds of work are told apart. `columns`: from the file to columns of case, activity and time, typed; it is what
`opus discover` does before it counts, checks of each row included, and what `polars.scan_csv(...).select(...)` does.
`implementations`: from the file to what a rebuild keeps, masked, costed, checked, one row a case; no peer does that.

The made tables have the columns case, activity and time, and two that nobody needs. XES is a made log and, if it is
there, bpic2012. `read_cpu_s` is without the start of the process and its imports, as far as they are known beforehand.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import child

Figures = dict[str, Any]
_XES_CASES = 5_000  # of 20 events
_SPENT = """
import json, sys, time
cpu, began = time.process_time(), time.perf_counter()
rows = read(sys.argv[1])
print(json.dumps({"rows": rows, "read_cpu_s": time.process_time() - cpu, "read_wall_s": time.perf_counter() - began}))
"""
_OURS = """
import io, sys
from pathlib import Path
import pyarrow.csv, pyarrow.parquet
from opus_pipelines.history.discovery.edge_log import EdgeLog
from opus_pipelines.history.discovery.edge_log import Tally
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.formats import format_of
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.formats import csv_log, parquet_log, xes

SETTINGS = SourceSettings(timezone="UTC")

def sink_of(path):
    ignore = lambda given: None
    log = LogFile("s", path.name, format_of(path.name, None))
    return Assembler(log, SETTINGS, OtherFiles(), Outlets(ignore, ignore))
"""
_COLUMNS = (
    _OURS
    + """
class Kept(list):
    def add(self, case, columns):
        self.append((case, columns))

class Columns(EdgeLog):
    def __init__(self, reader):
        super().__init__(reader, Tally(), 1, None)
        self._parts = Kept()
    def finish(self):
        pass

def read(name):
    path, logs = Path(name), []
    by_columns = csv_log.read_by_columns if path.suffix == ".csv" else parquet_log.read_by_columns
    def log_of(table):
        logs.append(Columns(table.row_reader(encodes_cases=False)))
        return logs[0]
    assert by_columns(lambda: path.open("rb"), SETTINGS, sink_of(path), log_of=log_of) and not logs[0].has_more
    return sum(len(case) for case, _ in logs[0]._parts)
"""
)
_IMPLEMENTATIONS = (
    _OURS
    + """
def read(name):
    from opus_pipelines.history.records.files import open_data
    path = Path(name)
    sink = sink_of(path)
    reader = csv_log.read if path.suffix == ".csv" else parquet_log.read if path.suffix == ".parquet" else xes.read
    reader(lambda: open_data(path), SETTINGS, sink)
    sink.finish()
    assert not sink.counts.rejected
    return sink.counts.records
"""
)
_POLARS = """
import polars as pl
def read(path):
    scan = pl.scan_parquet(path) if path.endswith(".parquet") else pl.scan_csv(path, try_parse_dates=True)
    return scan.select("case", "activity", "time").collect().height
"""
_DUCKDB = """
import duckdb
def read(path):
    return duckdb.sql(f'''SELECT "case", activity, "time" FROM '{path}' ''').to_arrow_table().num_rows
"""
_PM4PY_TABLE = """
import pandas as pd
import pm4py
def read(path):
    needed = ["case", "activity", "time"]
    parquet = path.endswith(".parquet")
    events = pd.read_parquet(path, columns=needed) if parquet else pd.read_csv(path, usecols=needed)
    return len(pm4py.format_dataframe(events, case_id="case", activity_key="activity", timestamp_key="time"))
"""
_PM4PY_XES = """
import pm4py
def read(path):
    return len(pm4py.read_xes(path, variant="iterparse"))
"""
_RUSTXES = """
import rustxes
def read(path):
    return len(rustxes.import_xes(path)[0])
"""


def measure(rows: int, peer: Path | None, event_logs: Path | None) -> Figures:
    """Returns by file what each engine took, and the CPU seconds of each peer divided by ours."""
    found: Figures = {}
    ours = {"opus, columns": _COLUMNS, "opus, implementations": _IMPLEMENTATIONS}
    theirs = {"polars": _POLARS, "pm4py": _PM4PY_TABLE} if peer else {}
    with tempfile.TemporaryDirectory(prefix="opus-speed-") as folder:
        for file in write_tables(Path(folder), rows):
            found[file.name] = _beside(file, ours | {"duckdb": _DUCKDB}, theirs, peer)
        logs = {"made.xes.gz": write_xes(Path(folder) / "made.xes.gz")}
        if event_logs is not None and (event_logs / "bpic2012.xes.gz").exists():
            logs["bpic2012.xes.gz"] = event_logs / "bpic2012.xes.gz"
        for name, file in logs.items():
            of_xes = {"rustxes": _RUSTXES, "pm4py": _PM4PY_XES} if peer else {}
            found[name] = _beside(file, {"opus, implementations": _IMPLEMENTATIONS}, of_xes, peer)
    return {"files": found}


def _beside(file: Path, ours: dict[str, str], theirs: dict[str, str], peer: Path | None) -> Figures:
    taken: Figures = {}
    for name, code in (ours | theirs).items():
        python = peer if name in theirs and peer is not None else Path(sys.executable)
        shown, spent = child([python, "-c", code + _SPENT, file])
        taken[name] = spent | json.loads(shown.splitlines()[-1])
    if len(rows := {of["rows"] for of in taken.values()}) > 1:
        raise SystemExit(f"{file.name}: the engines disagree about the number of events: {rows}")
    ratios = {
        own: {
            name: {key: round(of[key] / taken[own][key], 3) for key in ("cpu_s", "read_cpu_s")}
            for name, of in taken.items()
            if not name.startswith("opus")
        }
        for own in taken
        if own.startswith("opus")
    }
    return {"bytes": file.stat().st_size, "taken": taken, "peer_divided_by": ratios}


def write_tables(folder: Path, rows: int) -> list[Path]:
    """Writes seeded events of cases of 20 steps, in no order: as CSV without and with quotation marks, as Parquet."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    draw = np.random.default_rng(17)
    cases = rows // 20
    steps = (np.arange(20) * 2 + draw.integers(0, 3, (cases, 20))) % 40
    minutes = np.cumsum(draw.integers(1, 600, (cases, 20)), 1) + draw.integers(27_000_000, 27_500_000, (cases, 1))
    order = draw.permutation(cases * 20)
    names = pa.array([f"activity {n:02} of the process" for n in range(40)])
    branches = pa.array([f"branch {n:03}" for n in range(200)])
    seconds = pa.array((minutes.ravel()[order] * 60).astype("datetime64[s]"))
    columns = {
        "case": pa.array(np.repeat(np.arange(cases), 20)[order]).cast(pa.string()),
        "activity": names.take(pa.array(steps.ravel()[order])),
        "time": seconds,
        "branch": branches.take(pa.array(draw.integers(0, 200, cases * 20))),
        "reference": pa.array(draw.integers(10_000, 99_999_999, cases * 20)).cast(pa.string()),
    }
    files = [folder / name for name in ("plain.csv", "quoted.csv", "table.parquet")]
    written = pa.table(columns | {"time": seconds.cast(pa.string())})
    csv.write_csv(written, files[0], csv.WriteOptions(quoting_style="none", quoting_header="none"))
    csv.write_csv(written, files[1], csv.WriteOptions(quoting_style="all_valid"))
    pq.write_table(pa.table(columns), files[2])
    return files


def write_xes(file: Path) -> Path:
    """Writes seeded cases of 20 events, with a resource and a cost each."""
    import numpy as np

    draw = np.random.default_rng(18)
    with gzip.open(file, "wt", encoding="utf-8", compresslevel=6) as out:
        out.write('<?xml version="1.0" encoding="UTF-8"?>\n<log xes.version="1849-2016">\n')
        for case in range(_XES_CASES):
            out.write(f'<trace>\n<string key="concept:name" value="{case}"/>\n')
            moment = np.datetime64("2024-01-01T00:00:00") + np.timedelta64(int(draw.integers(0, 400_000)), "m")
            for step in range(20):
                moment += np.timedelta64(int(draw.integers(1, 600)), "m")
                task, who = (step * 2 + int(draw.integers(0, 3))) % 40, int(draw.integers(0, 100))
                out.write(
                    f'<event>\n<string key="concept:name" value="activity {task:02} of the process"/>\n'
                    f'<date key="time:timestamp" value="{moment}.000+00:00"/>\n'
                    f'<string key="org:resource" value="person {who:03}"/>\n</event>\n'
                )
            out.write("</trace>\n")
        out.write("</log>\n")
    return file

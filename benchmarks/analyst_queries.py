#!/usr/bin/env python3
"""Ten queries of analysts over the rows of many workflows, through the views, as `duckdb -init views.sql` has them.

    .venv/bin/python benchmarks/analyst_queries.py LAKE [--rows 10000000] [--work DIR] [--results benchmarks/results]

The rows are those of the ranked workflows of LAKE (the sample's), copied under other clients and with other ids until
workflows/* has so many; figures vary by a tenth, so that they do not compress to nothing. A contract has the rows of
100 copies in one file for each dataset, sorted and in row groups as the package writes them. The best of three runs of
each query counts, with its rows as an Arrow table. The copy is deleted at the end.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import duckdb

sys.path.insert(0, str(Path(__file__).parent))
from measuring import machine

from opus_pipelines.core.schemas import DATASETS
from opus_pipelines.lake.layout import Lake, slug, write_json
from opus_pipelines.reporting.views import shipped_queries, views_sql

WORKFLOWS = ("workflows/optimized", "workflows/tasks", "workflows/edges", "workflows/expected_flow")
COPIED = (*WORKFLOWS, "generation/intakes", "generation/intentions", "reports/cost", "reports/reward")
IDS = ("intake_id", "intention_id", "workflow_id", "folder")
IN_ONE_CONTRACT = 100  # copies
SHIPPED = ("best_workflows", "cost_by_task", "saving_against_history", "undecided", "tasks_of_workflow")
ONE_CLIENT = "client = '{client}'"
WRITTEN = {
    "ranking of one client": f"FROM ({{ranking}}) WHERE {ONE_CLIENT}",
    "Reward by client": "SELECT client, count(*), sum(reward_usd), avg(success_probability) FROM workflows_optimized "
    "WHERE rank = 1 GROUP BY ALL ORDER BY 1",
    "steps of people by task": "SELECT title, count(*) AS n, avg(cost_usd) FROM workflows_tasks "
    "WHERE actor_kind = 'human' GROUP BY ALL ORDER BY n DESC LIMIT 20",
    "most frequent pairs of steps": "SELECT src_task_key, dst_task_key, count(*) AS n FROM workflows_expected_flow "
    "GROUP BY ALL ORDER BY n DESC LIMIT 20",
    "steps of one contract that cost most": f"SELECT workflow_id, title, cost_usd FROM workflows_tasks "
    f"WHERE {ONE_CLIENT} ORDER BY cost_usd DESC, workflow_id LIMIT 20",
}


def copy_rows(source: Path, lake: Path, rows: int) -> dict[str, int]:
    """Writes the copies; returns the number of rows and bytes of workflows/*."""
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = true; SET memory_limit = '3GB'")
    of = lambda name: sorted((source / name).glob("*/*/*/*.parquet"))
    of_workflows = [str(file) for name in WORKFLOWS for file in of(name)]
    (each,) = connection.execute("SELECT sum(num_rows) FROM parquet_file_metadata($1)", [of_workflows]).fetchall()[0]
    contracts = max(1, round(rows / each / IN_ONE_CONTRACT))
    for name in COPIED:
        dataset = DATASETS[name]
        for number in range(contracts):
            for file in of(name):
                columns = duckdb.connect().execute("DESCRIBE FROM read_parquet($1)", [str(file)]).fetchall()
                known = {column for column, *_ in columns}
                ids = [f"{column} || '-' || copy AS {column}" for column in IDS if column in known]
                floats = [column for column, kind, *_ in columns if kind == "DOUBLE"]
                ids += [f"{c} * (0.9 + 0.2 * (hash(copy, {number}, {c}) % 10007) / 10007) AS {c}" for c in floats]
                changed = ", ".join([f"client || ' {number:03}' AS client", *ids])
                stated = ["client", "contract", *(key for key in dataset.key if key not in ("client", "contract"))]
                order = ", ".join(dict.fromkeys(key for key in stated if key in known))
                client_key, *rest = file.relative_to(source / name).parts
                into = lake / name / (client_key + slug(f" {number:03}")) / Path(*rest)
                into.parent.mkdir(parents=True, exist_ok=True)
                copies = IN_ONE_CONTRACT if any(column in known for column in IDS[:3]) else 1
                read = f"read_parquet('{file}', hive_partitioning = false), range({copies}) AS r(copy)"
                connection.execute(
                    f"COPY (SELECT * EXCLUDE (copy) REPLACE ({changed}) FROM {read} ORDER BY {order}) "
                    f"TO '{into}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 65536)"
                )
    for pointer in sorted((source / "workflows" / "current").glob("*__*.json")):
        stated_pointer = json.loads(pointer.read_text("utf-8"))
        for number in range(contracts):
            client, contract = f"{stated_pointer['client']} {number:03}", stated_pointer["contract"]
            write_json(Lake(lake).pointer_path(client, contract), stated_pointer | {"client": client})
    files = [file for name in WORKFLOWS for file in (lake / name).glob("*/*/*/*.parquet")]
    return {
        "rows": each * IN_ONE_CONTRACT * contracts,
        "files": len(files),
        "mib": sum(file.stat().st_size for file in files) >> 20,
    }


def measure(lake: Lake) -> dict[str, dict[str, float]]:
    """Returns wall and CPU seconds of the best of three runs of each query, and its rows."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    began = time.perf_counter()
    connection.execute(views_sql(lake))
    found: dict[str, dict[str, float]] = {"making the views": {"wall_s": round(time.perf_counter() - began, 3)}}
    shipped = shipped_queries()
    texts = {name: shipped[name].sql for name in SHIPPED}
    ((client,),) = connection.execute("SELECT max(client) FROM reports_cost").fetchall()
    ranking = shipped["ranking"].sql.rstrip("; \n")
    texts |= {name: text.format(ranking=ranking, client=client) for name, text in WRITTEN.items()}
    for name, text in texts.items():
        runs = []
        for _ in range(3):
            wall, cpu = time.perf_counter(), time.process_time()
            rows = connection.sql(text).to_arrow_table().num_rows
            runs.append((time.perf_counter() - wall, time.process_time() - cpu, rows))
        wall, cpu, rows = min(runs)
        found[name] = {"wall_s": round(wall, 3), "cpu_s": round(cpu, 3), "rows": rows}
        print(name, found[name], flush=True)
    return found


def main() -> None:
    """Copies, measures, writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lake", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="opus-analysts-", dir=arguments.work))
    try:
        copied = copy_rows(arguments.lake, place, arguments.rows)
        print(copied, flush=True)
        lake = Lake(place)
        lake.ensure_empty()
        figures = {"machine": machine(), "versions": {"duckdb": version("duckdb")}, **copied, "queries": measure(lake)}
    finally:
        shutil.rmtree(place)
    (arguments.results / "analyst_queries.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

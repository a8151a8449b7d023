#!/usr/bin/env python3
"""Speed beside peers, on the same input in the same run: mining, the FAISS index, the encoder, the start of commands.

    .venv/bin/python benchmarks/speed.py [mining index encoder start] [--peer PYTHON] [--events 250000 1000000]
        [--whole-up-to 1000000] [--vectors 10000 100000] [--results benchmarks/results]

Each part writes `<results>/<part>.json`: figures, machine, versions. Times are CPU seconds of a process and all that it
started, with the wall seconds beside them, because other programs may run on the machine.

mining: flat events in no order, in one Parquet file, to directly-follows edges with counts. `discover` is the command
`opus discover FILE`: counts of edges and tasks by event and by case, when they were seen, first and last tasks, and the
checks of every row. `ours` reads events into implementations (masked, costed, one row a case), and mines all seven
aggregates and the tables of a snapshot, up to so many events; `edges_alone` is that reading and the aggregate of edges,
without the resolution of names and all other tables. A peer reads the columns case, activity and time, and counts
pairs: DuckDB and Spark by a window, Polars by a window, pm4py by `discover_dfg`. Polars and pm4py run in PYTHON, a
scratch environment that has them; without --peer they are left out. Spark runs with at most a million events, pm4py
with ten million. All times include the start of the process and its imports, but for Spark. What is known after each
size is written.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from measuring import machine

LIBRARIES = ("duckdb", "pyspark", "faiss-cpu", "onnxruntime", "openvino", "torch", "pyarrow", "numpy")
Figures = dict[str, Any]
SPENT = """
import json, resource, time
began = time.perf_counter()
rows = run()
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"wall_s": time.perf_counter() - began, "cpu_s": used.ru_utime + used.ru_stime,
                  "peak_mib": used.ru_maxrss >> 10, "edges": rows}))
"""
PEERS = {
    "duckdb": """
import duckdb, sys
def run():
    return len(duckdb.sql(f'''SELECT a, b, count(*) FROM (SELECT activity AS a,
        lead(activity) OVER (PARTITION BY "case" ORDER BY time) AS b FROM '{sys.argv[1]}')
        WHERE b IS NOT NULL GROUP BY ALL''').fetchall())
""",
    "polars": """
import sys
import polars as pl
def run():
    events = pl.scan_parquet(sys.argv[1]).select("case", "activity", "time").sort("case", "time")
    pairs = events.with_columns(pl.col("activity").shift(-1).over("case").alias("next")).drop_nulls("next")
    return pairs.group_by("activity", "next").len().collect().height
""",
    "pm4py": """
import sys
import pandas as pd
import pm4py
def run():
    events = pd.read_parquet(sys.argv[1], columns=["case", "activity", "time"])
    events = pm4py.format_dataframe(events, case_id="case", activity_key="activity", timestamp_key="time")
    return len(pm4py.discover_dfg(events)[0])
""",
}
OF_PEER = ("polars", "pm4py")  # the others run in this environment
MOST_EVENTS = {"spark_lead": 1_000_000, "pm4py": 10_000_000}


def main() -> int:
    """Runs the parts and writes their figures."""
    parts: dict[str, Callable[[argparse.Namespace], Figures]] = {
        "mining": mining, "index": index, "encoder": encoder, "start": start,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(parts), choices=[*parts, []], metavar="PART")
    parser.add_argument("--peer", type=Path, help="an interpreter that has polars and pm4py")
    parser.add_argument("--events", type=int, nargs="+", default=[250_000])
    parser.add_argument("--whole-up-to", type=int, default=1_000_000, help="events of the largest snapshot")
    parser.add_argument("--vectors", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    for name in arguments.parts:
        write(arguments.results, name, parts[name](arguments))
    return 0


def write(folder: Path, name: str, figures: Figures) -> None:
    """Writes and prints the figures of one part."""
    versions = {library: version(library) for library in LIBRARIES}
    found = {"machine": machine(), "versions": versions, **figures}
    (folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(name, json.dumps({k: v for k, v in found.items() if k != "versions"}), flush=True)


def mining(arguments: argparse.Namespace) -> Figures:
    """Returns by size what ours and each peer took from flat events to edges, and each peer divided by ours."""
    sizes: Figures = {}
    for events in arguments.events:
        sizes[str(events)] = _mining(events, arguments.peer, arguments.whole_up_to)
        write(arguments.results, "mining", {"events": sizes})
    return {"events": sizes}


def _mining(events: int, peer: Path | None, whole_up_to: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="opus-speed-") as folder:
        file = write_events(Path(folder) / "history" / "events", events)
        taken = {"discover": _discover(file)}
        if events <= whole_up_to:
            taken["ours"] = _ours(Path(folder))
        if events <= MOST_EVENTS["spark_lead"]:
            taken["spark_lead"] = _spark_lead(file)
        for name, code in PEERS.items():
            python = peer if name in OF_PEER else Path(sys.executable)
            if python is not None and events <= MOST_EVENTS.get(name, events):
                done = subprocess.run([python, "-c", code + SPENT, file], stdout=subprocess.PIPE, text=True, check=True)
                taken[name] = json.loads(done.stdout.splitlines()[-1])
    edges = {taken[name]["edges"] for name in taken}
    if len(edges) > 1:
        raise SystemExit(f"the engines disagree about the number of edges: {edges}")
    ours = {"discover": taken["discover"]["cpu_s"]}
    if "ours" in taken:
        ours |= {"ours": taken["ours"]["cpu_s"], "edges_alone": taken["ours"]["edges_alone"]["cpu_s"]}
    peers = {name: of["cpu_s"] for name, of in taken.items() if name not in ours}
    ratios = {own: {name: round(cpu / spent, 3) for name, cpu in peers.items()} for own, spent in ours.items()}
    return {"load": os.getloadavg(), "taken": taken, "peer_cpu_divided_by": ratios}


def _discover(file: Path) -> Figures:
    command = [sys.executable, "-m", "opus_pipelines.cli.start", "discover", file, "--timezone", "UTC", "--top", "1"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=file.parent)
    shown = process.stdout.read() if process.stdout is not None else ""
    used = os.wait4(process.pid, 0)[2]
    edges = int(shown.partition(" edges")[0].rpartition(" ")[2].replace(",", ""))
    spent = {"wall_s": time.perf_counter() - began, "cpu_s": used.ru_utime + used.ru_stime}
    return spent | {"peak_mib": used.ru_maxrss >> 10, "edges": edges}


def write_events(folder: Path, events: int) -> Path:
    """Writes seeded events of cases of 20 steps, 40 activities, in no order; returns the file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(16)
    cases = events // 20
    steps = (np.arange(20) * 2 + draw.integers(0, 3, (cases, 20))) % 40
    minutes = np.cumsum(draw.integers(1, 600, (cases, 20)), 1) + draw.integers(0, 500_000, (cases, 1))
    order = draw.permutation(cases * 20)
    names = pa.array([f"activity {n:02} of the process" for n in range(40)])
    table = pa.table(
        {
            "case": pa.array(np.repeat(np.arange(cases), 20)[order]).cast(pa.string()),
            "activity": names.take(pa.array(steps.ravel()[order])),
            "time": pa.array((minutes.ravel()[order] * 60_000_000).astype("datetime64[us]")),
        }
    )
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "events.parquet")
    return folder / "events.parquet"


def _ours(folder: Path) -> Figures:
    code = """
import json, resource, sys, time
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from measuring import Family
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.embedding.encoder import encoder_of
from opus_pipelines.lake.layout import Lake
from opus_pipelines.mining.engines import mine
from opus_pipelines.mining.queries import Source
from opus_pipelines.nightly import steps
from resources.spark import SparkResource
root = Path(sys.argv[1])
settings = Settings(paths=Paths(lake=root / "lake", history=root / "history", intakes=root))
spark, lake = SparkResource.of(settings), Lake(root / "lake")
engines = steps.Engines(lambda lake: encoder_of(settings.encoder), spark.session, spark.graph_session)
with Family() as family, lake.lock():
    began = time.perf_counter()
    steps.read(settings, lake, datetime.now(UTC))
    read = {"wall_s": time.perf_counter() - began, "cpu_s": family.cpu_seconds}
    made = steps.mine(settings, lake, engines)
    whole = {"wall_s": time.perf_counter() - began, "cpu_s": family.cpu_seconds}
    sources = [Source(part.source, part.folder, part.aliases) for part in made.mined.resolved.parts]
    mine(sources, ("edges",), settings.spark, spark.session, root / "spill")
    edges_alone = {"cpu_s": read["cpu_s"] + family.cpu_seconds - whole["cpu_s"]}
    peak = max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, family.largest_bytes >> 20)
    made_of = {"reading": read, "edges_alone": edges_alone, "edges": made.counts["wkg/edges"], "peak_mib": peak}
    print(json.dumps(whole | made_of))
"""
    (folder / "history" / "events" / "source.toml").write_text('industry = "test"\ntimezone = "UTC"\n')
    command = [sys.executable, "-c", code, folder, Path(__file__).parent]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def _spark_lead(file: Path) -> Figures:
    code = """
import json, sys, time
sys.path.insert(0, sys.argv[2])
from measuring import Family
from opus_pipelines.core.settings import Settings
from resources.spark import SparkResource
with Family() as family:
    began = time.perf_counter()
    session = SparkResource.of(Settings()).session()
    session.read.parquet(sys.argv[1]).createOrReplaceTempView("events")
    pairs = "SELECT activity AS a, lead(activity) OVER (PARTITION BY `case` ORDER BY time) AS b FROM events"
    rows = session.sql(f"SELECT a, b, count(*) FROM ({pairs}) WHERE b IS NOT NULL GROUP BY a, b").toArrow().num_rows
    print(json.dumps({"wall_s": time.perf_counter() - began, "cpu_s": family.cpu_seconds, "edges": rows}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, file, Path(__file__).parent],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, cwd=file.parent,
    )  # fmt: skip
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def index(arguments: argparse.Namespace) -> Figures:
    """Returns recall@10 and the milliseconds of a query of the exact index and of the one of lists, by size."""
    import numpy as np

    from opus_pipelines.embedding.index import VectorIndex
    from opus_pipelines.wkg.vectors import recall

    found = {}
    for size in arguments.vectors:
        draw = np.random.default_rng(size)
        centres = draw.normal(size=(max(40, size // 200), 384)).astype(np.float32)
        vectors = centres[draw.integers(len(centres), size=size)] + draw.normal(scale=0.6, size=(size, 384))
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        ids = [str(number) for number in range(size)]
        for kind, exact_up_to in (("exact", None), ("lists", 0)):
            began = _spent()
            made = VectorIndex.build(ids, vectors, exact_up_to)
            built = _spent() - began
            made.search(vectors[:100], 10)
            found[f"{kind} {size}"] = {
                "is_exact": made.is_exact,
                "build_cpu_s": round(built, 2),
                "query_cpu_ms": round((_spent() - began - built) * 10, 3),
                "recall_at_10": round(recall(made, vectors), 4),
            }
    return {"dimension": 384, "vectors": "around size / 200 centres, deviation 0.6", "taken": found}


def encoder(arguments: argparse.Namespace) -> Figures:
    """Returns what loading and encoding 500 passages of 5 to 120 words takes with ONNX Runtime, with OpenVINO in
    bfloat16 where this CPU has it, and with torch.
    """
    code = """
import json, resource, sys
from pathlib import Path
from opus_pipelines.core.settings import Encoder as Chosen
from opus_pipelines.embedding.encoder import Encoder
def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
words = "verify the claim against its policy and pay what is covered after the survey of damage".split()
texts = [" ".join(words[(i * 7 + j * j) % len(words)] for j in range(5 + i * 115 // 500)) for i in range(500)]
encoder = Encoder(Chosen(model=sys.argv[1], precision=sys.argv[3])); began = spent()
encoder.encode(["x"]); loaded = spent()
vectors = encoder.encode(texts); done = spent()
vectors.tofile(sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(json.dumps({"load_cpu_s": loaded - began, "encode_cpu_s": done - loaded, "peak_mib": peak}))
"""
    import numpy as np

    from opus_pipelines.embedding.encoder import DEFAULT, locate
    from opus_pipelines.embedding.openvino_bert import can_run

    taken, vectors = {}, {}
    with tempfile.TemporaryDirectory(prefix="opus-speed-") as folder:
        bare = Path(folder) / "bare"  # without tokenizer.json, so that transformers reads vocab.txt and torch runs
        bare.mkdir()
        for file in Path(locate(DEFAULT)[0]).iterdir():
            if file.name != "tokenizer.json":
                (bare / file.name).symlink_to(file)
        asked = [("onnxruntime", DEFAULT, "float32"), ("torch", str(bare), "float32")]
        if can_run():
            asked.append(("openvino_bfloat16", DEFAULT, "bfloat16"))
        for name, model, precision in asked:
            out = Path(folder) / name
            command = [sys.executable, "-c", code, model, out, precision]
            environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
            taken[name] = json.loads(done.stdout.splitlines()[-1])
            vectors[name] = np.fromfile(out, np.float32).reshape(500, -1)
    nearest = {name: np.argsort(-(found @ found.T), axis=1)[:, 1:11] for name, found in vectors.items()}
    for name, found in nearest.items():
        both = [len(set(ours) & set(theirs)) for ours, theirs in zip(found, nearest["torch"], strict=True)]
        taken[name] |= {
            "recall_at_10": sum(both) / 5_000,
            "torch_divided_by_it": round(taken["torch"]["encode_cpu_s"] / taken[name]["encode_cpu_s"], 2),
        }
    largest = float(np.abs(vectors["onnxruntime"] - vectors["torch"]).max())
    return {"passages": 500, "taken": taken, "largest_difference": largest}


def start(arguments: argparse.Namespace) -> Figures:
    """Returns the least CPU seconds of five runs of commands that only read, on an empty lake."""
    commands = {"--help": ["--help"], "query": ["query"], "query --help": ["query", "--help"]}
    with tempfile.TemporaryDirectory(prefix="opus-speed-") as folder:
        return {"cpu_s": {name: min(_cpu_of(line, folder) for _ in range(5)) for name, line in commands.items()}}


def _cpu_of(arguments: list[str], folder: str) -> float:
    command = [sys.executable, "-m", "opus_pipelines.cli.start", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    used = os.wait4(process.pid, 0)[2]
    return round(used.ru_utime + used.ru_stime, 3)


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Speed beside peers, on the same input in the same run.

    .venv/bin/python benchmarks/speed.py [mining reading index encoder start commands] [--peer PYTHON]
        [--events 62500 1000000] [--whole-up-to 1000000] [--rows 1000000] [--event-logs FOLDER]
        [--vectors 10000 100000] [--results benchmarks/results]

Each part writes `<results>/<part>.json`: figures, ratios, machine, day, load, versions. Times are CPU seconds of a
process and all that it started, with the wall seconds beside them, because other programs may run on the machine. They
include the start of the process and its imports, but for Spark; `peak_mib` is the most memory that a process had.

mining: flat events in no order, in one Parquet file, to directly-follows edges with counts. `discover` is the command
`opus discover FILE`: counts of edges and tasks by event and by case, when they were seen, first and last tasks, and the
checks of every row. `ours` reads events into implementations (masked, costed, one row a case), and mines all seven
aggregates and the tables of a snapshot, up to so many events; `edges_alone` is that reading and the aggregate of edges,
without the resolution of names and all other tables. A peer reads the columns case, activity and time, and counts
pairs: DuckDB and Spark by a window, Polars by a window, pm4py by `discover_dfg`. Polars and pm4py run in PYTHON, a
scratch environment that has them; without --peer they are left out. Peers run from a million events on, Spark at a
million alone, pm4py up to ten million. What is known after each size is written.

reading: see `speed_reading.py`. commands: see `speed_commands.py`.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import speed_commands
import speed_reading
from measuring import child, taken_on

LIBRARIES = ("duckdb", "pyspark", "faiss-cpu", "onnxruntime", "openvino", "torch", "pyarrow", "numpy")
Figures = dict[str, Any]
SHOWN = "\nimport json\nprint(json.dumps({'edges': run()}))\n"
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
PEERS_FROM = 1_000_000  # events: below that, their start is all that can be seen
SPARK_AT, MOST_OF_PM4PY = 1_000_000, 10_000_000


def main() -> int:
    """Runs the parts and writes their figures."""
    parts: dict[str, Callable[[argparse.Namespace], Figures]] = {
        "mining": mining, "reading": reading, "index": index, "encoder": encoder, "start": start, "commands": commands,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=" ".join(parts))
    parser.add_argument("--peer", type=Path, help="an interpreter that has polars and pm4py")
    parser.add_argument("--events", type=int, nargs="+", default=[62_500, 125_000, 250_000, 500_000, 1_000_000])
    parser.add_argument("--whole-up-to", type=int, default=1_000_000, help="events of the largest snapshot")
    parser.add_argument("--vectors", type=int, nargs="+", default=[10_000, 20_000, 40_000, 100_000])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the tables that `reading` reads")
    parser.add_argument("--event-logs", type=Path, help="a folder with bpic2012.xes.gz, which `reading` reads too")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(parts):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    arguments.results.mkdir(parents=True, exist_ok=True)
    for name in arguments.parts or parts:
        write(arguments, name, parts[name](arguments))
    return 0


def write(arguments: argparse.Namespace, name: str, figures: Figures) -> None:
    """Writes and prints the figures of one part."""
    versions = {library: version(library) for library in LIBRARIES} | _of_peers(arguments.peer)
    found = {**taken_on(), "versions": versions, **figures}
    folder = arguments.results
    (folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(name, json.dumps({k: v for k, v in found.items() if k != "versions"}), flush=True)


def _of_peers(peer: Path | None) -> dict[str, str]:
    """Returns the versions of the libraries that the peer's interpreter has."""
    if peer is None:
        return {}
    code = """
import json
from importlib.metadata import distributions
found = {of.metadata["Name"].lower(): of.version for of in distributions()}
print(json.dumps({f"peer's {name}": found[name] for name in ("polars", "pm4py", "rustxes", "pandas") if name in found}))
"""
    found: dict[str, str] = json.loads(child([peer, "-c", code])[0])
    return found


def mining(arguments: argparse.Namespace) -> Figures:
    """Returns by size what ours and each peer took from flat events to edges, and each peer divided by ours."""
    sizes: Figures = {}
    for events in arguments.events:
        sizes[str(events)] = _mining(events, arguments.peer, arguments.whole_up_to)
        write(arguments, "mining", {"events": sizes})
    return {"events": sizes}


def _mining(events: int, peer: Path | None, whole_up_to: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="opus-speed-") as folder:
        file = write_events(Path(folder) / "history" / "events", events)
        taken = {"discover": _discover(file)}
        if events <= whole_up_to:
            taken["ours"] = _ours(Path(folder))
        if events == SPARK_AT:
            taken["spark_lead"] = _spark_lead(file)
        for name, code in PEERS.items() if events >= PEERS_FROM else ():
            python = peer if name in OF_PEER else Path(sys.executable)
            if python is not None and (name != "pm4py" or events <= MOST_OF_PM4PY):
                shown, spent = child([python, "-c", code + SHOWN, file])
                taken[name] = spent | json.loads(shown.splitlines()[-1])
    edges = {taken[name]["edges"] for name in taken}
    if len(edges) > 1:
        raise SystemExit(f"the engines disagree about the number of edges: {edges}")
    ours = {"discover": taken["discover"]["cpu_s"]}
    if "ours" in taken:
        ours |= {"ours": taken["ours"]["cpu_s"], "edges_alone": taken["ours"]["edges_alone"]["cpu_s"]}
    peers = {name: of["cpu_s"] for name, of in taken.items() if name not in ours}
    ratios = {own: {name: round(cpu / spent, 3) for name, cpu in peers.items()} for own, spent in ours.items()}
    clock = {name: round(taken[name]["wall_s"] / taken["discover"]["wall_s"], 3) for name in peers}
    return {"taken": taken, "peer_cpu_divided_by": ratios, "peer_wall_divided_by": {"discover": clock}}


def _discover(file: Path) -> Figures:
    command = [sys.executable, "-m", "opus_pipelines.cli.start", "discover", file, "--timezone", "UTC", "--top", "1"]
    shown, spent = child(command, file.parent)
    return spent | {"edges": int(shown.partition(" edges")[0].rpartition(" ")[2].replace(",", ""))}


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
import json, sys, time
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from measuring import Family, own_peak_mib
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.language.embedding.encoder import encoder_of
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.mining.engines import Source, mine_aggregates
from opus_pipelines.wkg.rebuild import steps
from resources.spark import SparkResource
root = Path(sys.argv[1])
settings = Settings(paths=Paths(lake=root / "lake", history=root / "history", intakes=root))
spark, lake = SparkResource.of(settings), Lake(root / "lake")
engines = steps.Engines(spark.session, spark.graph_session)
with Family() as family, lake.lock():
    began = time.perf_counter()
    steps.read(settings, lake, datetime.now(UTC))
    read = {"wall_s": time.perf_counter() - began, "cpu_s": family.cpu_seconds}
    rebuild = steps.begun(settings, lake, lambda lake: encoder_of(settings.encoder))
    made = steps.mine(rebuild, engines)
    whole = {"wall_s": time.perf_counter() - began, "cpu_s": family.cpu_seconds}
    sources = [Source(part.source, part.folder, part.aliases) for part in rebuild.parts]
    mine_aggregates(sources, ("edges",), settings.spark, spark.session, root / "spill")
    edges_alone = {"cpu_s": read["cpu_s"] + family.cpu_seconds - whole["cpu_s"]}
    peak = max(own_peak_mib(), family.largest_bytes >> 20)
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

    from opus_pipelines.language.embedding.index import VectorIndex
    from opus_pipelines.wkg.rebuild.vectors import recall

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
from opus_pipelines.language.embedding.encoder import Encoder
def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
words = "verify the claim against its policy and pay what is covered after the survey of damage".split()
texts = [" ".join(words[(i * 7 + j * j) % len(words)] for j in range(5 + i * 115 // 500)) for i in range(500)]
encoder = Encoder(Chosen(model=sys.argv[1], precision=sys.argv[3])); began = spent()
encoder.encode(["x"]); loaded = spent()
vectors = encoder.encode(texts); done = spent()
vectors.tofile(sys.argv[2])
print(json.dumps({"load_cpu_s": loaded - began, "encode_cpu_s": done - loaded}))
"""
    import numpy as np

    from opus_pipelines.language.embedding.bert import can_run
    from opus_pipelines.language.embedding.encoder import DEFAULT, locate

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
            shown, spent = child(command, environment=environment)
            taken[name] = json.loads(shown.splitlines()[-1]) | {"peak_mib": spent["peak_mib"]}
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
    return child([sys.executable, "-m", "opus_pipelines.cli.start", *arguments], Path(folder))[1]["cpu_s"]


def reading(arguments: argparse.Namespace) -> Figures:
    """Returns what reading tables and XES takes beside peers."""
    return speed_reading.measure(arguments.rows, arguments.peer, arguments.event_logs)


def commands(arguments: argparse.Namespace) -> Figures:
    """Returns what the commands take on the sample."""
    return speed_commands.measure()


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes what `speed.py`, `bulk.py` and `exponents.py` found as pictures, and as a page of tables.

    .venv/bin/python benchmarks/pictures.py [--results benchmarks/results] [--pictures docs/pictures]

Reads the results as JSON. Writes `<pictures>/speed-mining.svg`, `speed-reading.svg`, `speed-growth.svg` and
`speed-commands.svg`, and `<results>/README.md` with every ratio. Each picture says on what and when it was measured.
Equal results give equal files. A part without results has neither picture nor table.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "opus", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False})
mpl.rcParams.update({"axes.spines.right": False, "legend.frameon": False, "axes.titlesize": 10})
Found = dict[str, Any]
OURS, OTHERS = "#0072b2", ("#d55e00", "#009e73", "#cc79a7", "#999999", "#e69f00", "#56b4e9")
NAMES = {
    "discover": "opus discover", "ours": "opus, a whole snapshot", "edges_alone": "opus, edges alone",
    "spark_lead": "Spark, LEAD", "duckdb": "DuckDB", "polars": "Polars", "pm4py": "pm4py", "rustxes": "rustxes",
}  # fmt: skip
RATIO = "CPU seconds of the other program divided by ours: above 1 ours takes less."


def main(line: list[str] | None = None) -> int:
    """Writes the pictures and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--pictures", type=Path, default=Path(__file__).parents[1] / "docs" / "pictures")
    arguments = parser.parse_args(line)
    drawn: dict[str, Callable[[Found, Figure], None]] = {
        "mining": draw_mining, "reading": draw_reading, "exponents": draw_growth, "commands": draw_commands,
    }  # fmt: skip
    arguments.pictures.mkdir(parents=True, exist_ok=True)
    for part, draw in drawn.items():
        found = read(arguments.results, part)
        if found:
            figure = Figure(figsize=(7.2, 4.0 if part != "reading" else 4.6), layout="constrained")
            draw(found, figure)
            figure.text(0.01, -0.005, origin(found), fontsize=7, color="#555555", va="top")
            name = {"exponents": "growth"}.get(part, part)
            file = arguments.pictures / f"speed-{name}.svg"
            figure.savefig(file, metadata={"Date": None, "Creator": None}, bbox_inches="tight")
            print(file)
    page = arguments.results / "README.md"
    page.write_text(tables(arguments.results), "utf-8")
    print(page)
    return 0


def read(results: Path, part: str) -> Found:
    """Returns the results of one part, nothing where it was not measured."""
    file = results / f"{part}.json"
    found: Found = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def origin(found: Found) -> str:
    """Returns on what, when and beside how many other programs results were taken."""
    load = found.get("load")
    beside = f", load {load[0]:.1f}" if load else ""
    return f"{found['machine']}; {found.get('date', 'day unknown')}{beside}"


def draw_mining(found: Found, figure: Figure) -> None:
    """CPU seconds of each engine by events, both axes logarithmic."""
    axes = figure.subplots()
    lines: dict[str, list[tuple[int, float]]] = {}
    for events, one in found["events"].items():
        for name, spent in one["taken"].items():
            lines.setdefault(name, []).append((int(events), spent["cpu_s"]))
    for name, points in sorted(lines.items(), key=lambda line: (line[0] != "discover", line[0])):
        events, seconds = zip(*sorted(points), strict=True)
        own = name in ("discover", "ours")
        colour = OURS if own else OTHERS[sorted(set(lines) - {"discover", "ours"}).index(name) % len(OTHERS)]
        style = "--" if name == "ours" else "-"
        axes.plot(events, seconds, style, marker="o", markersize=4, color=colour, label=NAMES.get(name, name))
    axes.set(xscale="log", yscale="log", xlabel="events", ylabel="CPU seconds, start included")
    axes.set_title("From a flat log in Parquet to its edges", loc="left")
    axes.legend()


def draw_reading(found: Found, figure: Figure) -> None:
    """CPU seconds of each engine by file, without its start."""
    files = {name: one["taken"] for name, one in found["files"].items()}
    every = figure.subplots(len(files), 1, squeeze=False)[:, 0]
    for axes, (name, taken) in zip(every, files.items(), strict=True):
        engines = list(taken)[::-1]
        seconds = [taken[engine]["read_cpu_s"] for engine in engines]
        colours = [OURS if engine.startswith("opus") else OTHERS[3] for engine in engines]
        bars = axes.barh([NAMES.get(engine, engine) for engine in engines], seconds, color=colours)
        axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=7)
        axes.set_title(f"{name}, {next(iter(taken.values()))['rows']:,} events", loc="left", fontsize=8)
        axes.tick_params(labelsize=7)
    every[-1].set_xlabel("CPU seconds of reading, without start and imports")
    figure.set_size_inches(7.2, 1.1 * len(files) + 0.6)


def draw_growth(found: Found, figure: Figure) -> None:
    """Cost by size of history, tasks and intakes, each with its exponent and interval."""
    chosen = {name: one for name, one in found["exponents"].items() if one["sizes"] > 2}
    axes = figure.subplots()
    for place, (name, one) in enumerate(chosen.items()):
        sizes, costs = zip(*((int(size), cost) for size, cost in one["costs"].items()), strict=True)
        label = f"{name}: {one['exponent']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
        colour = (OURS, *OTHERS)[place % (len(OTHERS) + 1)]
        axes.plot(
            [s / sizes[0] for s in sizes],
            [c / costs[0] for c in costs],
            marker="o",
            markersize=4,
            color=colour,
            label=label,
        )
    axes.plot([1, 40], [1, 40], ":", color="#999999", label="proportional to size: 1")
    axes.set(
        xscale="log", yscale="log", xlabel="size, divided by the smallest", ylabel="CPU time, divided by the first"
    )
    axes.set_title("Growth of cost: exponents with their 95 % intervals", loc="left")
    axes.legend(fontsize=7)


def draw_commands(found: Found, figure: Figure) -> None:
    """CPU and wall seconds of each command on the sample."""
    axes = figure.subplots()
    names = list(found["taken"])[::-1]
    for key, height, colour, word in (("wall_s", 0.18, OTHERS[3], "wall"), ("cpu_s", -0.18, OURS, "CPU")):
        places = [place + height for place in range(len(names))]
        bars = axes.barh(places, [found["taken"][name][key] for name in names], 0.34, color=colour, label=word)
        axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xlabel("seconds")
    axes.set_title("Commands on the sample", loc="left")
    axes.legend()


def tables(results: Path) -> str:
    """Returns the page of all ratios and figures as Markdown."""
    parts: list[str] = ["# Results of the benchmarks", "`make bench` writes this page from the JSON files beside it."]
    made: dict[str, Callable[[Found], list[str]]] = {
        "mining": mining_table, "reading": reading_table, "index": index_table, "encoder": encoder_table,
        "start": start_table, "commands": commands_table, "bulk": bulk_table, "exponents": growth_table,
    }  # fmt: skip
    for part, table in made.items():
        found = read(results, part)
        if found:
            parts += [f"## {part.capitalize()}", origin(found), *table(found)]
    return "\n\n".join(parts) + "\n"


def table_of(head: list[str], rows: list[list[Any]]) -> str:
    """Returns a table as Markdown; numbers are rounded, and what is missing stays empty."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_shown(value) for value in line) + " |" for line in lines)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return (
        f"{value:,.3g}"
        if isinstance(value, float) and abs(value) < 1_000
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def mining_table(found: Found) -> list[str]:
    """CPU, wall and memory of each engine by size, and each peer divided by `opus discover`."""
    rows = []
    for events, one in found["events"].items():
        for name, spent in one["taken"].items():
            cpu = one["peer_cpu_divided_by"]["discover"].get(name)
            wall = one.get("peer_wall_divided_by", {}).get("discover", {}).get(name)
            rows.append(
                [int(events), NAMES.get(name, name), spent["cpu_s"], spent["wall_s"], spent.get("peak_mib"), cpu, wall]
            )
    head = ["events", "engine", "CPU s", "wall s", "peak MiB", "CPU divided by `opus discover`", "wall divided by it"]
    return [RATIO, table_of(head, rows)]


def reading_table(found: Found) -> list[str]:
    """Seconds of each engine by file, and each peer divided by ours."""
    rows = []
    for file, one in found["files"].items():
        for name, spent in one["taken"].items():
            ratios = [ours.get(name, {}).get("read_cpu_s") for ours in one["peer_divided_by"].values()]
            columns = [None, *ratios] if len(ratios) == 1 else ratios
            rows.append(
                [
                    file,
                    NAMES.get(name, name),
                    spent["rows"],
                    spent["cpu_s"],
                    spent["read_cpu_s"],
                    spent["peak_mib"],
                    *columns,
                ]
            )
    head = ["file", "engine", "events", "CPU s of the process", "CPU s of reading", "peak MiB",
            "divided by opus, columns", "divided by opus, implementations"]  # fmt: skip
    return [RATIO + " The last two columns divide the seconds of reading.", table_of(head, rows)]


def index_table(found: Found) -> list[str]:
    """Recall and cost of the index by kind and size."""
    head = ["index, vectors", "CPU ms a query", "recall@10", "CPU s to build"]
    return [
        table_of(head, [[n, o["query_cpu_ms"], o["recall_at_10"], o["build_cpu_s"]] for n, o in found["taken"].items()])
    ]


def encoder_table(found: Found) -> list[str]:
    """Cost and recall of the encoders."""
    keys = ("load_cpu_s", "encode_cpu_s", "torch_divided_by_it", "recall_at_10", "peak_mib")
    head = ["encoder", "load, CPU s", "encode, CPU s", "torch divided by it", "recall@10", "peak MiB"]
    return [table_of(head, [[name, *(one[key] for key in keys)] for name, one in found["taken"].items()])]


def start_table(found: Found) -> list[str]:
    """CPU seconds of commands that only read, on an empty lake."""
    return [table_of(["opus", "CPU s"], [[f"`{name}`", seconds] for name, seconds in found["cpu_s"].items()])]


def commands_table(found: Found) -> list[str]:
    """Cost of the commands on the sample."""
    rows = [[name, one["cpu_s"], one["wall_s"], one["peak_mib"]] for name, one in found["taken"].items()]
    return [table_of(["command, on the sample", "CPU s", "wall s", "peak MiB of its largest process"], rows)]


def bulk_table(found: Found) -> list[str]:
    """Cost of intakes by their number."""
    rows = [[int(n), one["wall_s"], one["cpu_s"], 1_000 * one["cpu_s"] / int(n)] for n, one in found["intakes"].items()]
    return [table_of(["intakes", "wall s", "CPU s", "CPU ms an intake"], rows)]


def growth_table(found: Found) -> list[str]:
    """Exponents of cost with their intervals."""
    rows = [[name, one["exponent"], one["low"], one["high"], one["sizes"]] for name, one in found["exponents"].items()]
    share = f"{found['confidence']:.0%} interval"
    return [table_of(["cost by size of", "exponent", f"{share}, from", "to", "sizes"], rows)]


if __name__ == "__main__":
    sys.exit(main())

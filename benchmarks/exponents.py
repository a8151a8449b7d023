"""How a cost grows with size: the exponent b of cost = a * size^b, with an interval.

    .venv/bin/python benchmarks/exponents.py [RESULTS]

Reads what `speed.py` and `bulk.py` wrote into RESULTS, `benchmarks/results` without it, and writes `exponents.json`
there. A cost that is paid once, such as the start of a process, makes the exponent smaller.
"""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from measuring import taken_on

CONFIDENCE = 0.95
_OF_INDEX = {  # building an exact index copies the vectors, in less time than can be measured
    "tasks (exact search)": ("exact", "query_cpu_ms"),
    "tasks (search in lists)": ("lists", "query_cpu_ms"),
    "tasks (building the lists)": ("lists", "build_cpu_s"),
}


@dataclass(frozen=True)
class Exponent:
    """A fitted exponent and its interval; the interval is None with two sizes, which a line always fits."""

    exponent: float
    low: float | None
    high: float | None
    sizes: int


def exponent_of(costs: Mapping[float, float]) -> Exponent:
    """Fits the exponent by least squares over the logarithms; `costs` is by size, both above 0.

    The interval is that of Student's t for the slope. Raises ValueError for fewer than two sizes.
    """
    from scipy.stats import t

    if len(costs) < 2:
        raise ValueError("an exponent needs costs at two sizes at least")
    points = [(math.log(size), math.log(cost)) for size, cost in sorted(costs.items())]
    n = len(points)
    mean_x, mean_y = (math.fsum(values) / n for values in zip(*points, strict=True))
    spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    if n == 2:
        return Exponent(round(slope, 3), None, None, n)
    rest = math.fsum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    half = float(t.ppf((1 + CONFIDENCE) / 2, n - 2)) * math.sqrt(rest / (n - 2) / spread)
    return Exponent(round(slope, 3), round(slope - half, 3), round(slope + half, 3), n)


def main() -> None:
    """Writes and prints the exponents of history, tasks and intakes."""
    results = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "results"
    found = {}
    for name, costs in known_costs(results).items():
        if len(costs) > 1:
            found[name] = {
                "costs": {str(int(size)): costs[size] for size in sorted(costs)},
                **asdict(exponent_of(costs)),
            }
            print(name, json.dumps(found[name]))
    written = {**taken_on(), "confidence": CONFIDENCE, "exponents": found}
    (results / "exponents.json").write_text(json.dumps(written, indent=1) + "\n", "utf-8")


def known_costs(results: Path) -> dict[str, dict[float, float]]:
    """Returns CPU seconds by size of what the results of the benchmarks have of it."""
    read = lambda name: json.loads(file.read_text("utf-8")) if (file := results / f"{name}.json").exists() else {}
    sizes = [(float(size), one["taken"]) for size, one in _by_size(read("mining").get("events"))]
    mined = {size: taken["ours"]["cpu_s"] for size, taken in sizes if "ours" in taken}
    discovered = {size: taken["discover"]["cpu_s"] for size, taken in sizes}
    index: dict[str, dict[float, float]] = {name: {} for name in _OF_INDEX}
    for label, one in read("index").get("taken", {}).items():
        kind, size = label.split()
        for name, (of, figure) in _OF_INDEX.items():
            if of == kind:
                index[name][float(size)] = one[figure]
    bulk = {float(size): one["cpu_s"] for size, one in _by_size(read("bulk").get("intakes"))}
    history = {"history (events)": mined, "discover (events)": discovered}
    return {**history, **index, "intakes": bulk}


def _by_size(found: object) -> list[tuple[str, dict[str, Any]]]:
    return list(found.items()) if isinstance(found, dict) else []


if __name__ == "__main__":
    main()

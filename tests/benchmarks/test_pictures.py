"""The pictures and the page of the benchmarks: figures as they are in the results, and on what they were taken."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # Matplotlib takes half a second to load

FROM = {"machine": "A CPU, 2 cores", "date": "2026-11-26", "load": [0.1, 0.2, 0.3]}
MINING = {
    "events": {
        "1000000": {
            "taken": {
                "discover": {"cpu_s": 0.8, "wall_s": 0.6, "peak_mib": 220},
                "polars": {"cpu_s": 1.2, "wall_s": 0.9, "peak_mib": 313},
                "spark_lead": {"cpu_s": 15.0, "wall_s": 12.0},
            },
            "peer_cpu_divided_by": {"discover": {"polars": 1.5, "spark_lead": 18.75}},
            "peer_wall_divided_by": {"discover": {"polars": 1.5, "spark_lead": 20.0}},
        }
    }
}
GROWTH = {
    "confidence": 0.95,
    "exponents": {
        "intakes": {
            "costs": {"100": 9.0, "200": 17.0, "400": 33.0},
            "exponent": 0.937,
            "low": 0.8,
            "high": 1.07,
            "sizes": 3,
        }
    },
}


def results(folder: Path) -> Path:
    """Writes the results above into a folder."""
    (folder / "mining.json").write_text(json.dumps(FROM | MINING))
    (folder / "exponents.json").write_text(json.dumps(FROM | GROWTH))
    return folder


def test_the_page_has_every_ratio_and_its_machine(tmp_path: Path) -> None:
    from benchmarks.pictures import tables

    page = tables(results(tmp_path))
    assert page.count("A CPU, 2 cores; 2026-11-26, load 0.1") == 2
    assert "| 1,000,000 | Polars | 1.2 | 0.9 | 313 | 1.5 | 1.5 |" in page
    assert "| 1,000,000 | Spark, LEAD | 15 | 12 |  | 18.8 | 20 |" in page
    assert "| intakes | 0.937 | 0.8 | 1.07 | 3 |" in page
    assert "Encoder" not in page


def test_equal_results_give_equal_pictures_of_the_parts_that_were_measured(tmp_path: Path) -> None:
    from benchmarks.pictures import main

    drawn = []
    for name in ("one", "two"):
        assert main(["--results", str(results(tmp_path)), "--pictures", str(tmp_path / name)]) == 0
        drawn.append({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()})
    assert drawn[0] == drawn[1]
    assert sorted(drawn[0]) == ["speed-growth.svg", "speed-mining.svg"]
    assert b"A CPU, 2 cores; 2026-11-26, load 0.1" in drawn[0]["speed-mining.svg"]
    assert b"intakes: 0.94 (0.80 to 1.07)" in drawn[0]["speed-growth.svg"]

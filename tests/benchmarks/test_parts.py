"""What parts are worth: the table of differences, and in a small form the parts that decide for a new client."""

import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from parts import LOOKUPS, WHOLE, Bench, Table, measure, without  # type: ignore[import-not-found]

from opus_pipelines.quality.sample.sources import SOURCES
from opus_pipelines.quality.sample.write import write_sample


def test_a_row_has_its_mean_the_paired_difference_and_the_share_of_changed_workflows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = Table(groups=["a", "b"])
    table.values |= {WHOLE: [3.0, 5.0], "no edges": [1.0, 3.0]}
    table.chosen |= {WHOLE: [("x",), ("y",)], "no edges": [("x",), ("z",)]}
    table.add(table)
    table.show("dollars")
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "dollars, n = 4"
    assert shown[3].split() == ["whole", "system", "4.000", "[3.000,", "5.000]"]
    assert shown[4].split() == ["no", "edges", "2.000", "[1.000,", "3.000]", "2.000", "[2.000,", "2.000]", "0.50"]


@pytest.mark.nightly
def test_what_decides_for_a_client_without_history_earns_dollars(tmp_path: Path) -> None:
    write_sample(tmp_path, seed=0)
    own = [source for source in SOURCES if source.name == "castellan_household"]
    lake = without(tmp_path, "castellan", own, own)
    found = measure(Bench(lake), own, Namespace(only="no unknown steps,no critical tasks"))
    mean = {name: float(np.mean(values)) for name, values in found.values.items()}
    assert mean[WHOLE] > 180  # of 204 that are possible
    assert mean[WHOLE] - mean["no unknown steps"] > 20
    assert mean[WHOLE] - mean["no critical tasks"] > 20
    assert mean[WHOLE] - mean[LOOKUPS[0]] > 50

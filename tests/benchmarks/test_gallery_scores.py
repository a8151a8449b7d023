"""Predictions as the gallery scores them: what plans.py prints is read, and events are left out on both sides for work
steps alone.
"""

import gzip
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from gallery_scores import Score, Scores, read_scores, scored

PRINTED = """all, n = 40; history 700
  predictions          node 0.901 [0.880,0.920]  link 0.700 [0.650,0.750]  exact 0.100 [0.0,0.2]  first 1.000 [1.0,1.0]  P 0.9 R 0.9
  nearest request      node 0.880 [0.850,0.910]  link 0.740 [0.700,0.780]  exact 0.100 [0.0,0.2]  first 1.000 [1.0,1.0]  P 0.9 R 0.9
  most frequent plan   node 0.890 [0.860,0.920]  link 0.710 [0.670,0.750]  exact 0.100 [0.0,0.2]  first 1.000 [1.0,1.0]  P 0.9 R 0.9
  minus nearest request     node +0.021 [-0.001,+0.040]  link -0.040 [-0.060,-0.020]
  minus most frequent plan  node +0.011 [-0.010,+0.030]  link -0.010 [-0.030,+0.010]
  length of the truth 5.0
new, n = 3; history 700
  predictions          node 0.500 [0.400,0.600]  link 0.100 [0.000,0.200]  exact 0.000 [0.0,0.0]  first 1.000 [1.0,1.0]  P 0.9 R 0.9
"""
# Stands for the shared plans.py: prints the plans that it was asked to score, and those that it may learn from.
SCORER = """
import gzip, json, sys
read = lambda path: [json.loads(line)["plan"] for line in gzip.open(path, "rt")]
print(json.dumps([read(sys.argv[2]), read(sys.argv[5])]), file=sys.stderr)
sys.exit(1)
"""


def test_the_difference_is_to_the_better_control_of_nodes_and_of_links() -> None:
    assert read_scores("everything", PRINTED) == Score(
        "everything", 40, 0.901, 0.7, (0.011, -0.01, 0.03), (-0.04, -0.06, -0.02)
    )


def test_only_what_was_predicted_is_asked_and_events_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    row = {
        "id": "1",
        "request": "r",
        "plan": ["Submit", "Start trip", "Pay"],
        "links": [["Submit", "Start trip"], ["Start trip", "Pay"]],
    }
    for name, rows in (("test", [row, row | {"id": "2"}]), ("train", [row | {"id": "3"}])):
        with gzip.open(tmp_path / "gold" / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(one) + "\n" for one in rows)
    (tmp_path / "plans.py").write_text(SCORER)
    assert scored(tmp_path, tmp_path) == Scores()  # nothing was predicted
    for name in ("predictions", "steps"):
        (tmp_path / f"{name}.jsonl").write_text('{"id": "2", "plan": ["Submit"], "links": []}\n')
    (tmp_path / "events.json").write_text('["Start trip"]')
    found = scored(tmp_path, tmp_path)
    whole, work = ["Submit", "Start trip", "Pay"], ["Submit", "Pay"]
    assert found.rows == []  # what fails to score is said, not shown as a score
    assert found.text == f"everything\n{json.dumps([[whole], [whole]])}\n\nwork steps\n{json.dumps([[work], [work]])}\n"


@pytest.mark.parametrize("printed", ["", "all, n = 3; history 2\n"])
def test_what_is_no_table_is_an_error(printed: str) -> None:
    with pytest.raises((ValueError, IndexError, KeyError)):
        read_scores("everything", printed)

"""The lines of `make run` about parts: the largest of each set, intervals that hold 0, what never shows."""

from scripts.parts_lines import lines


def row(worth: float, low: float, high: float, changed: float) -> dict[str, object]:
    return {"mean": 1.0, "interval": [0.0, 2.0], "worth": worth, "worth_interval": [low, high], "changed": changed}


def test_a_set_names_what_is_worth_most_and_what_changes_nothing() -> None:
    rows = {
        "whole system": {"mean": 3.0, "interval": [2.0, 4.0]},
        "no edges": row(5.514, -2.39, 15.9, 0.3),
        "no procedure": row(72.29, 26.0, 121.6, 0.8),
        "untrained Intention": row(-1.0, -2.0, 0.5, 0.1),
        "no reviews": row(0.0, 0.0, 0.0, 0.0),
        "look-up: nearest success": {"mean": 1.0, "interval": [0.0, 2.0], "worth": 9.0, "worth_interval": [1.0, 9.0]},
    }
    worth, same = lines({"clients: all": {"rows": rows}, "another": {"rows": rows}})
    assert worth.partition(": ")[2].split(", ", 1) == ["procedure 72.3", "edges 5.51 [-2.39, 15.9]"]
    assert same.partition(": ")[2] == "reviews"

"""What the first rows of a table show that the proposed columns leave out."""

import pytest

from opus_pipelines.ingestion.onboarding.column_doubts import column_doubts
from opus_pipelines.ingestion.onboarding.table_sample import Column, TableSample

ROLES = {"case": "Order", "activity": "Step", "time": "Day"}


def sample(
    day: str = "05.01.2025", clock: str = "08:15", lines: int = 2, steps: tuple[str, ...] = ("a", "b")
) -> TableSample:
    rows = [(f"o{n}", f"{line}0", step, day, clock) for n in range(5) for line in range(lines) for step in steps]
    names = ("Order", "Order Item", "Step", "Day", "Entry")
    values = zip(*rows, strict=True)
    return TableSample({name: Column(name, tuple(v)) for name, v in zip(names, values, strict=True)}, len(rows))


def test_a_clock_beside_days_and_lines_of_orders_are_said() -> None:
    clock, part = [text for _, text in column_doubts(sample(), ROLES)]
    assert ("'Day'" in clock, "'Entry'" in clock) == (True, True)
    assert ("5 of 5 cases" in part, "'Order Item'" in part) == (True, True)


@pytest.mark.parametrize(
    "seen",
    [
        sample(day="05.01.2025 08:15", lines=1),  # the time has its clock
        sample(clock="MUELLER", lines=1),
        sample(clock="12345", lines=1, steps=("a", "b", "a")),  # an activity that repeats within the line, too
    ],
    ids=["clock", "name", "repeated"],
)
def test_what_is_read_whole_is_not_doubted(seen: TableSample) -> None:
    assert column_doubts(seen, ROLES) == []

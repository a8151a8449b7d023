"""What the first rows of a table show that the proposed columns leave out."""

import pytest

from opus_pipelines.history.ingestion.onboarding.columns import column_doubts
from opus_pipelines.history.ingestion.onboarding.table_sample import Column, TableSample

ROLES = {"case": "Order", "activity": "Step", "time": "Day"}


def sample(
    day: str = "05.01.2025", clock: str = "08:15", lines: int = 2, steps: tuple[str, ...] = ("a", "b")
) -> TableSample:
    rows = [(f"o{n}", f"{line}0", step, day, clock) for n in range(5) for line in range(lines) for step in steps]
    names = ("Order", "Order Item", "Step", "Day", "Entry")
    values = zip(*rows, strict=True)
    return TableSample({name: Column(name, tuple(v)) for name, v in zip(names, values, strict=True)}, len(rows))


def test_lines_of_orders_are_said() -> None:
    ((_, part),) = column_doubts(sample(), ROLES)
    assert ("5 of 5 cases" in part, "'Order Item'" in part) == (True, True)


def renamed(seen: TableSample, name: str) -> TableSample:
    columns = {name if old == "Order Item" else old: column for old, column in seen.columns.items()}
    return TableSample({new: Column(new, column.values) for new, column in columns.items()}, seen.rows)


def test_parts_of_a_case_are_told_by_their_rows_where_their_name_is_a_code() -> None:
    timed = sample(day="05.01.2025 08:15")
    ((_, part),) = column_doubts(renamed(timed, "EBELP"), ROLES)
    assert ("5 of 5 cases" in part, "'EBELP'" in part) == (True, True)
    clerks = TableSample(
        {
            "Order": Column("Order", ("o1",) * 4),
            "Step": Column("Step", ("file", "check", "file", "check")),
            "Day": Column("Day", ("05.01.2025 08:15",) * 4),
            "Room": Column("Room", ("1", "2", "3", "4")),  # each does one thing
        },
        4,
    )
    assert column_doubts(clerks, ROLES) == []


def test_rows_for_start_and_end_are_no_parts_of_a_case() -> None:
    rows = [(f"o{n}", step, kind, "05.01.2025 08:15") for n in range(5) for step in "ab" for kind in ("Beginn", "Ende")]
    names = ("Order", "Step", "Status", "Day")
    columns = {name: Column(name, values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    ((_, doubt),) = column_doubts(TableSample(columns, len(rows)), ROLES)
    assert ("'Status'" in doubt, "transition under [columns]" in doubt) == (True, True)


def test_columns_of_times_beside_one_row_a_case_are_doubted() -> None:
    times = {name: Column(name, tuple(f"{n + 1:02d}.01.2025 08:15" for n in range(20))) for name in ("a", "b", "c")}
    own = {"Order": Column("Order", tuple(f"o{n}" for n in range(20))), "Step": Column("Step", ("x", "y") * 10)}
    ((_, doubt),) = column_doubts(TableSample(own | times, 20), {"case": "Order", "activity": "Step", "time": "a"})
    assert "('a', 'b', 'c')" in doubt


CHANGES = [
    ("Status", "New", "Open"),
    ("Priority", "Low", "High"),
    ("Status", "Open", "Waiting"),
    ("Priority", "High", "Low"),
    ("Status", "Waiting", "Closed"),
]


def changes(of_field: dict[str, str], old: dict[str, str]) -> TableSample:
    rows = [
        (f"t{n}", of_field.get(field, field), old.get(before, before), after, "05.01.2025 08:15")
        for n in range(5)
        for field, before, after in CHANGES
    ]
    names = ("Order", "Field", "From", "Step", "Day")
    columns = {name: Column(name, values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    return TableSample(columns, len(rows))


def test_new_values_of_several_fields_are_doubted_as_activities() -> None:
    ((_, doubt),) = column_doubts(changes({}, {}), ROLES)
    assert ("'Step'" in doubt, "(Status, Priority, ...)" in doubt) == (True, True)
    assert '"{Field} {Step}"' in doubt


def test_one_field_or_another_column_than_the_value_before_is_not_doubted() -> None:
    assert column_doubts(changes({"Priority": "Status"}, {}), ROLES) == []
    assert column_doubts(changes({}, {"Open": "Smith", "High": "Jones", "Waiting": "Smith"}), ROLES) == []


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

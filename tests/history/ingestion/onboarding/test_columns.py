"""Which column holds what."""

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.ingestion.onboarding.columns import find_columns
from opus_pipelines.history.ingestion.onboarding.table_sample import Column, TableSample, names_role, zone_of


def table(**columns: list[str]) -> TableSample:
    named = {
        name.replace("__", " "): Column(name.replace("__", " "), tuple(values)) for name, values in columns.items()
    }
    return TableSample(named, len(next(iter(named.values())).values))


def log(cases: int = 30, **more: list[str]) -> dict[str, list[str]]:
    """Three events a case, under names of no language."""
    rows = range(3 * cases)
    return {
        "Ticketnummer": [f"T{n // 3}" for n in rows],
        "Tätigkeit": [("open", "work", "shut")[n % 3] for n in rows],
        "Zeitstempel": [f"2024-01-{n // 3 % 28 + 1:02d} 0{n % 3}:00:00" for n in rows],
        **more,
    }


def test_german_names() -> None:
    rows = range(90)
    found = find_columns(
        table(
            **log(
                Sachbearbeiter=[f"p{n % 5}" for n in rows],
                Abteilung=[f"d{n % 2}" for n in rows],
                Kosten=[f"{n},50 €" for n in rows],
                Produkt=[f"x{n // 3 % 2}" for n in rows],
                Eingangsdatum=[f"2023-12-{n // 3 % 28 + 1:02d}" for n in rows],
            )
        )
    )
    assert found.roles == {
        "case": "Ticketnummer",
        "activity": "Tätigkeit",
        "time": "Zeitstempel",
        "actor": "Sachbearbeiter",
        "actor_group": "Abteilung",
        "cost": "Kosten",
    }
    assert (found.attributes, found.decimal, found.currency, found.zone) == (
        ("Produkt", "Eingangsdatum"),
        ",",
        None,
        "Europe/Berlin",
    )


def test_a_cost_that_is_the_case_s_is_counted_once() -> None:
    found = find_columns(table(**log(cost=[f"{n // 3}.5" for n in range(90)])))
    assert found.roles["case_cost"] == "cost"
    assert "cost" not in found.roles
    price = find_columns(table(**log(**{"Total__cost__(EUR)": ["9.17"] * 90})))
    assert (price.roles["cost"], price.currency) == ("Total cost (EUR)", "EUR")


@pytest.mark.parametrize("name", ["(case)_Cost_Type", "cost centre", "amount", "expense", "Costumer"])
def test_what_is_not_plainly_a_cost_is_an_attribute(name: str) -> None:
    found = find_columns(table(**log(**{name: [str(n // 3) for n in range(90)]})))
    assert "cost" not in found.roles
    assert "case_cost" not in found.roles
    assert found.attributes == (name,)


def test_values_that_come_later_or_change_are_no_attributes_of_the_case() -> None:
    rows = range(90)
    found = find_columns(
        table(**log(later=["" if n % 3 == 0 else f"v{n // 3}" for n in rows], changes=[f"{n % 3}" for n in rows]))
    )
    assert found.attributes == ()


def test_start_and_end() -> None:
    rows = range(90)
    found = find_columns(
        table(
            **{
                "Fall-ID": [f"f{n // 3}" for n in rows],
                "Schritt": [f"s{n % 3}" for n in rows],
                "Beginn": [f"2024-01-01 {n % 24:02d}:00" for n in rows],
                "Ende": [f"2024-01-01 {n % 24:02d}:30" for n in rows],
            }
        )
    )
    assert found.roles == {"case": "Fall-ID", "activity": "Schritt", "start": "Beginn", "end": "Ende"}


@pytest.mark.parametrize(
    ("without", "found"), [(0, "Zaaknummer"), (1, "Zaaknummer"), (30, None)], ids=["whole", "a gap", "many gaps"]
)
def test_a_row_without_an_id_does_not_make_the_clerk_the_case(without: int, found: str | None) -> None:
    rows = range(90)
    columns = table(
        Zaaknummer=["" if n < without else f"z{n // 3}" for n in rows],
        Activiteit=[("open", "work", "shut")[n % 3] for n in rows],
        Tijdstip=[f"2024-01-{n // 3 % 28 + 1:02d} 0{n % 3}:00:00" for n in rows],
        Behandelaar=[f"p{n % 25}" for n in rows],
    )
    if found is None:
        with pytest.raises(InputError, match="--case"):
            find_columns(columns)
    else:
        assert find_columns(columns).roles["case"] == found


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        (("Start", "Ende"), {"start": "Start", "end": "Ende"}),  # the readers know one of the two names alone
        (("Beginn", "End"), {"end": "End", "start": "Beginn"}),
        (("Start", "Faktura"), {"start": "Start"}),
    ],
)
def test_a_start_whose_end_has_a_name_of_another_language(names: tuple[str, str], roles: dict[str, str]) -> None:
    rows = range(90)
    minutes = dict(zip(names, ("00", "30"), strict=True))
    times = {name: [f"2024-01-01 {n % 24:02d}:{minute}" for n in rows] for name, minute in minutes.items()}
    found = find_columns(table(Fall=[f"f{n // 3}" for n in rows], Schritt=[f"s{n % 3}" for n in rows], **times))
    assert {role: name for role, name in found.roles.items() if role in ("start", "end", "time")} == roles


def test_two_columns_that_are_as_good_are_asked() -> None:
    rows = range(90)
    when = [f"2024-01-01T{n % 24:02d}:00Z" for n in rows]
    columns = {"a": [f"x{n // 3}" for n in rows], "b": [f"y{n // 3}" for n in rows], "when": when}
    with pytest.raises(InputError, match=r"which column is the case; .* --case COLUMN"):
        find_columns(table(**columns))
    with pytest.raises(InputError, match=r"no column 'zzz'; .* 'a', 'b', 'when'"):
        find_columns(table(**columns), {"case": "zzz"})


def test_a_name_for_the_type_of_an_event_tells_the_activity_unless_a_column_is_named_as_it() -> None:
    rows = range(90)
    columns = {
        "ticket": [f"t{n // 3}" for n in rows],
        "event_type": [("open", "work", "shut")[n % 3] for n in rows],
        "site": [("north", "south", "east", "west")[n % 4] for n in rows],
        "when": [f"2024-01-{n // 3 % 28 + 1:02d} 0{n % 3}:00:00" for n in rows],
    }
    assert find_columns(table(**columns)).roles["activity"] == "event_type"
    assert find_columns(table(**columns, work__step=columns["site"])).roles["activity"] == "work step"
    del columns["event_type"]
    columns |= {"shift": [("early", "late")[n % 2] for n in rows]}
    with pytest.raises(InputError, match=r"--activity COLUMN; as likely are 'site'.*'shift'"):
        find_columns(table(**columns))


def test_a_table_with_a_column_for_each_step_is_said_to_be_one() -> None:
    rows = range(40)
    steps = {name: [f"2024-01-{n % 28 + 1:02d} 1{hour}:00:00" for n in rows] for hour, name in enumerate("abc")}
    with pytest.raises(InputError, match=r"'a', 'b', 'c'.*the case"):
        find_columns(table(Loan=[f"x{n}" for n in rows], Branch=["north", "south"] * 20, **steps))


def test_names() -> None:
    costs = ("Kosten (EUR)", "total_cost_usd", "cost type", "costcenter")
    assert [names_role(name, "cost") for name in costs] == [True, True, False, False]
    assert [names_role(name, "outcome") for name in ("Final status", "caseOutcome", "status changed by", "")] == [
        True,
        True,
        False,
        False,
    ]
    assert zone_of(["zaaknummer", "activiteit", "tijdstip"]) == "Europe/Amsterdam"
    assert zone_of(["case_id", "activity"]) is None

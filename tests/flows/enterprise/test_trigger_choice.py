"""Triggers by the words of a requirement: the kind, the table, and which conditions are changes."""

import pytest

from opus_pipelines.flows.enterprise.catalogue_words import CatalogueWords, TriggerChoice
from opus_pipelines.flows.enterprise.examples import world_catalogue

WORDS = CatalogueWords(world_catalogue())
CHOICE = TriggerChoice(WORDS)


@pytest.mark.parametrize(
    ("text", "kind", "table"),
    [
        ("Ticket closed", "record_update", "incident"),
        ("a ticket is opened", "record_create", "incident"),
        ("a change to a production server", "record_update", "cmdb_ci"),
        ("emergency changes that are created", "record_create", "change_request"),
        ("the state of a change changes to Closed", "record_update", "change_request"),
        ("the priority of an incident is raised to High", "record_update", "incident"),
        ("an incident with priority High is raised", "record_create", "incident"),
        ("on submission of an expense report", "record_create", "expense_report"),
        ("a CR with risk High comes in", "record_create", "change_request"),
        ("on creation or modification of a vulnerable item", "record_create_or_update", "vulnerability"),
        ("external monitoring calls our endpoint", "rest_async", ""),
        ("somebody sends us a mail", "email", ""),
        ("on 1 January 2027", "run_once", ""),
        ("on Thursdays", "weekly", ""),
        ("every 15 min", "repeat", ""),
        ("somebody orders something in the catalog", "service_catalog", ""),
    ],
)
def test_words_name_a_trigger_and_its_table(text: str, kind: str, table: str) -> None:
    assert CHOICE.kind(text) == kind
    if table:
        assert CHOICE.table(text) == table
    assert CHOICE.is_event(text)


@pytest.mark.parametrize("text", ["nobody noticed that a supplier contract had run out", "please", "the team is happy"])
def test_a_sentence_that_tells_no_event_starts_no_flow(text: str) -> None:
    assert not CHOICE.is_event(text)


@pytest.mark.parametrize(
    ("text", "table", "changed"),
    [
        ("a normal change gets to Authorize", "change_request", ["state"]),
        ("the state of an incident changes to Closed", "incident", ["state"]),
        ("an incident is updated and its state is Closed", "incident", []),
        ("a change to a production server", "cmdb_ci", []),
    ],
)
def test_only_what_becomes_true_is_a_change(text: str, table: str, changed: list[str]) -> None:
    stated = WORDS.conditions(text, table)
    places = CHOICE.changes(text, stated)
    assert [c.column for c in stated if c.place in places] == changed


def test_values_stand_as_codes_abbreviations_and_amounts_and_of_records_that_are_referred_to() -> None:
    def found(text: str, table: str) -> dict[str, str]:
        return {c.column: c.operator + c.value for c in WORDS.conditions(text, table) + WORDS.related(text, table)}

    assert found("a P1 incident", "incident") == {"priority": "=1"}
    assert found("sev 2 security incident", "security_incident") == {"severity": "=2"}
    assert found("a contract worth more than 100000", "contract") == {"value": ">100000"}
    assert found("an incident opened by a VIP", "incident") == {"caller.vip": "=true"}
    assert found("a case of a customer of tier Gold", "customer_case") == {"account.tier": "=gold"}

"""The structure errors: each with its code and element, none on a sound flow, and bounded work on large flows."""

import time

import pytest

from opus_pipelines.flows.enterprise.catalogue import platform_catalogue_of, read_platform_catalogue
from opus_pipelines.flows.enterprise.documents import Component, FlowDocument, FlowDocumentError, Trigger
from opus_pipelines.flows.enterprise.examples import CATALOGUE_FILE, world_catalogue
from opus_pipelines.flows.enterprise.validation import structure_errors
from tests.flows.enterprise.flow_texts import flow, inputs, step

CURRENT = "{{record_update.current}}"
USERS = step("look_up_records", 1, table="sys_user", conditions="active=true^department=it")
EACH = step("FOREACH", 2, items="{{look_up_records.records}}")
MAIL = step("send_email", 3, 2, to="{{foreach.item.email}}")
LOG = step("log", 9, message="x")


def codes(document: FlowDocument) -> list[tuple[str, str]]:
    return [(e.code, e.element) for e in structure_errors(document, world_catalogue())]


def test_a_sound_flow_has_no_error() -> None:
    sound = flow(
        USERS,
        EACH,
        MAIL,
        step("IF", 4, condition=f"{CURRENT[:-2]}.priority}}}}=1"),
        step("update_record", 5, 4, record=CURRENT, values="state=6^assigned_to={{record_update.current.caller}}"),
        step("ELSEIF", 6, condition="{{look_up_records.count}}>3"),
        step("log", 7, 6, message="many {{look_up_records.count}}"),
        step("ELSE", 8),
        step("wait_for_duration", 9, 8, duration="2 hours"),
        step("TRY", 10),
        step("ask_for_approval", 11, 10, record="{{record_update.current.caller}}"),
        step("CATCH", 12),
        step("log", 13, 12, message="x"),
        step("PARALLEL", 14),
        step("log", 15, 14, message="x"),
        step("log", 16, 14, message="{{update_record_5.record}}"[:0] or "y"),
    )
    assert codes(sound) == []


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (flow(step("teleport", 1)), ("unknown_step", "component 1 (teleport)")),
        (flow(LOG, step("ELSE", 10), step("log", 11, 10, message="x")), ("else_without_if", "component 10 (ELSE)")),
        (
            flow(step("IF", 1, condition=""), step("log", 2, 1, message="x"), LOG, step("ELSEIF", 10)),
            ("else_without_if", "component 10 (ELSEIF)"),
        ),
        (flow(step("CATCH", 1)), ("catch_without_try", "component 1 (CATCH)")),
        (flow(step("TRY", 1), step("log", 2, 1, message="x"), LOG), ("try_without_catch", "component 1 (TRY)")),
        (
            flow(step("PARALLEL", 1), step("log", 2, 1, message="x")),
            ("parallel_few_branches", "component 1 (PARALLEL)"),
        ),
        (flow(USERS, EACH), ("empty_body", "component 2 (FOREACH)")),
        (
            flow(step("FOREACH", 1, items=CURRENT), step("log", 2, 1, message="x")),
            ("foreach_not_list", "component 1 (FOREACH), input items"),
        ),
        (flow(step("log", 1, 7, message="x")), ("block_missing", "component 1 (log)")),
        (flow(step("log", 1, 2, message="x"), USERS, EACH), ("block_later", "component 1 (log)")),
        (flow(USERS, step("log", 2, 1, message="x")), ("block_not_container", "component 2 (log)")),
        (flow(LOG, LOG), ("order_duplicate", "component 9 (log)")),
        (flow(LOG, step("log", 3, message="x")), ("order_not_increasing", "component 3 (log)")),
        (FlowDocument((), (LOG,)), ("trigger_missing", "trigger")),
        (FlowDocument((Trigger("daily"), Trigger("weekly"))), ("trigger_duplicate", "trigger")),
        (FlowDocument((Trigger("full_moon"),)), ("unknown_trigger", "trigger")),
        (flow(step("log", 1, message="{{foreach.item}}")), ("pill_unknown_step", "component 1 (log), input message")),
        (
            flow(step("log", 1, message="{{look_up_record.found}}"), step("look_up_record", 2, table="incident")),
            ("pill_later", "component 1 (log), input message"),
        ),
        (
            flow(USERS, EACH, MAIL, step("log", 4, message="{{foreach.item.name}}")),
            ("pill_out_of_scope", "component 4 (log), input message"),
        ),
        (
            flow(step("log", 1, message="{{record_update.old}}")),
            ("pill_unknown_output", "component 1 (log), input message"),
        ),
        (flow(step("send_email", 1)), ("missing_input", "component 1 (send_email)")),
        (flow(step("log", 1, message="x", colour="red")), ("unknown_input", "component 1 (log), input colour")),
        (
            flow(step("look_up_record", 1, table="incidents")),
            ("unknown_table", "component 1 (look_up_record), input table"),
        ),
        (
            flow(step("look_up_record", 1, table="incident", conditions="colour=1")),
            ("unknown_column", "component 1 (look_up_record), input conditions"),
        ),
        (
            flow(step("log", 1, message="{{record_update.current.caller.shoe_size}}")),
            ("unknown_column", "component 1 (log), input message"),
        ),
        (
            flow(step("update_record", 1, record=CURRENT, values="state=99")),
            ("unknown_value", "component 1 (update_record), input values"),
        ),
        (
            flow(step("update_record", 1, record="INC001", values="state=1")),
            ("wrong_type", "component 1 (update_record), input record"),
        ),
        (
            flow(step("wait_for_duration", 1, duration="soon")),
            ("wrong_type", "component 1 (wait_for_duration), input duration"),
        ),
        (
            flow(step("look_up_record", 1, table="incident", conditions="state≠1")),
            ("query_unparsable", "component 1 (look_up_record), input conditions"),
        ),
        (
            flow(step("update_record", 1, record=CURRENT, values="state>1")),
            ("query_unparsable", "component 1 (update_record), input values"),
        ),
    ],
)
def test_each_error_has_its_element(document: FlowDocument, expected: tuple[str, str]) -> None:
    assert expected in codes(document)


def test_a_scope_and_a_hostile_name_are_told() -> None:
    other = Component("log", 1, scope="x_other", inputs=inputs(message="x"))
    assert codes(flow(other)) == [("unknown_step", "component 1 (log)")]
    (error,) = structure_errors(flow(step("a\u202eb\n<script>", 1)), world_catalogue())
    assert "\n" not in error.element + error.message
    assert "\u202e" not in error.element + error.message


@pytest.mark.long
def test_ten_thousand_components_and_circles_of_blocks_are_validated_in_seconds() -> None:
    begun = time.process_time()
    many = [step("update_record", 1, record=CURRENT, values="state=1")]
    many += [step("update_record", n, record="{{update_record.record}}", values="state=1") for n in range(2, 10_001)]
    assert codes(flow(*many)) == []
    strange = [step("teleport", 1, record="{{teleport.record}}") for _ in range(10_000)]
    assert len(codes(flow(*strange))) == 1_000
    circle = [step("IF", n, n % 10_000 + 1, condition="") for n in range(1, 10_001)]
    assert ("block_later", "component 1 (IF)") in codes(flow(*circle))
    deep = [step("TRY", n, n - 1 or None) for n in range(1, 10_001)]
    assert "nested_too_deeply" in {code for code, _ in codes(flow(*deep))}
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"tables": {"a b": {}}},
        {"tables": {"a": {"columns": {"c": "colour"}}}},
        {"tables": {"a": {"columns": {"c": "reference b"}}}},
        {"tables": {"a": {}}, "actions": {"x": {"inputs": {"y": "shape"}}}},
    ],
)
def test_a_catalogue_that_is_not_well_formed_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(FlowDocumentError):
        platform_catalogue_of(value)


def test_the_catalogue_of_the_world_has_its_size() -> None:
    catalogue = read_platform_catalogue(CATALOGUE_FILE)
    assert (len(catalogue.tables), len(catalogue.actions), len(catalogue.triggers)) == (23, 62, 13)
    column = catalogue.column("incident", "caller.manager.department")
    assert column is not None
    assert column.choices["hr"] == "HR"

"""FlowSim, TreeBLEU, trigger and component match against the values that the related-systems notes measured."""

from typing import Any

import pytest

from opus_pipelines.workflow.metrics.flow_similarity import (
    FlowTooLarge,
    Tree,
    component_match,
    flow_similarity,
    flow_tree,
    tree_bleu,
    tree_edit_distance,
    trigger_match,
)

LOOK_UP = {"category": "action", "definition": "look_up_records", "order": 1}
EACH = {"category": "flowlogic", "definition": "foreach", "order": 2}
UPDATE = {"category": "action", "definition": "update_record", "order": 3, "block": 2}
FLOW: dict[str, Any] = {"trigger": {"type": "record_update"}, "components": [LOOK_UP, EACH, UPDATE]}


@pytest.mark.parametrize(
    ("flow", "value"),
    [
        (FLOW, 1.0),
        ({**FLOW, "components": [LOOK_UP, {**UPDATE, "block": None}]}, 0.8571),  # the loop is missing, its step is not
        ({**FLOW, "trigger": {"type": "daily"}}, 0.75),
        ({**FLOW, "components": [LOOK_UP, EACH, {**UPDATE, "definition": "create_record"}]}, 0.75),
        ({}, 0.0),
    ],
)
def test_flow_similarity(flow: dict[str, Any], value: float) -> None:
    assert flow_similarity(flow, FLOW) == pytest.approx(value, abs=1e-4)
    assert flow_similarity(FLOW, flow) == pytest.approx(value, abs=1e-4)


def test_inputs_count_in_one_variant_and_queries_are_compared_in_parts() -> None:
    def with_query(query: str) -> dict[str, Any]:
        return {"components": [{**LOOK_UP, "inputs": [{"name": "conditions", "value": query}]}]}

    own, gold = with_query("active=true^priority<=2^EQ"), with_query("priority<=2^active=true")
    assert flow_similarity(own, gold) == 1.0, "the order of the parts does not matter"
    other = with_query("active=true^priority<=3")
    assert flow_similarity(other, gold, with_inputs=False) == 1.0
    assert flow_similarity(other, gold) == 1 - 1 / 16


def test_an_encoded_query_is_a_chain_of_its_parts() -> None:
    given = {"components": [{**LOOK_UP, "inputs": [{"name": "conditions", "value": "b=1^ORa=2^cISEMPTY"}]}]}
    (step,) = flow_tree(given).children[1].children
    (query,) = step.children[0].children[0].children
    assert query.label == "^"
    assert [t.label for t in query.children] == ["a", "^OR"]
    assert [t.label for t in query.children[1].children] == ["b", "c"]
    assert [t.label for t in query.children[1].children[1].children] == ["ISEMPTY", ""]


def test_tree_bleu_trigger_and_components() -> None:
    assert tree_bleu(FLOW, FLOW) == 1.0
    assert tree_bleu({**FLOW, "components": [LOOK_UP, EACH]}, FLOW) == 0.75
    assert tree_bleu(FLOW, {}) == 0.0
    assert trigger_match({}, {}) is None
    assert trigger_match({}, FLOW) == 0.0
    own = {"trigger": {"type": "email", "inputs": [{"name": "b", "value": 1}, {"name": "a", "value": 2}]}}
    gold = {"trigger": {"type": "email", "inputs": [{"name": "a", "value": 2}, {"name": "b", "value": 1}]}}
    assert trigger_match(own, gold) == 1.0
    assert component_match({"components": [LOOK_UP, EACH]}, FLOW) == pytest.approx(2 / 3)
    assert component_match({}, {}) == 1.0


def test_components_that_name_themselves_or_one_another_as_parent_end() -> None:
    circle = {"components": [{**EACH, "order": 1, "block": 2}, {**EACH, "order": 2, "block": 1}, {**EACH, "block": 2}]}
    assert flow_similarity(circle, FLOW) < 0.5


def test_the_tree_edit_distance_of_zhang_and_shasha_s_example() -> None:
    one = Tree("f", (Tree("d", (Tree("a"), Tree("c", (Tree("b"),)))), Tree("e")))
    other = Tree("f", (Tree("c", (Tree("d", (Tree("a"), Tree("b"))),)), Tree("e")))
    assert tree_edit_distance(one, other) == 2.0


def test_a_pill_may_be_the_field_of_a_query_and_a_colon_cuts_the_label_that_is_counted() -> None:
    given = {"components": [{**EACH, "inputs": [{"name": "condition", "value": "{{record_update.current.state}}=6"}]}]}
    (step,) = flow_tree(given).children[1].children
    (query,) = step.children[0].children[0].children
    assert [query.label, *(t.label for t in query.children)] == ["{{record_update.current.state}}", "=", "6"]
    listed = {"components": [{**LOOK_UP, "inputs": [{"name": "values", "value": [5]}]}]}
    assert flow_similarity(listed, {"components": [LOOK_UP]}) == 0.5, "the label counts as 'values', which is free"


def test_similar_texts_of_one_input_cost_less_where_that_is_asked_for() -> None:
    def with_text(text: str) -> dict[str, Any]:
        return {"components": [{"definition": "send_email", "order": 1, "inputs": [{"name": "body", "value": text}]}]}

    own, gold = with_text("Please call me"), with_text("Please ring me")
    assert flow_similarity(own, gold) == 0.75
    assert flow_similarity(own, gold, alike=lambda one, other: 0.8) == pytest.approx(0.95)
    assert flow_similarity(with_text("x: y"), gold, alike=lambda one, other: -1.0) == 0.75


@pytest.mark.long
def test_large_and_deep_flows_are_refused_and_a_long_query_is_compared() -> None:
    with pytest.raises(FlowTooLarge):
        flow_similarity({"components": [LOOK_UP] * 10_000}, FLOW)
    deep = [{**EACH, "order": n, "block": n - 1 if n else None} for n in range(5_000)]
    with pytest.raises(FlowTooLarge):
        flow_similarity({"components": deep}, FLOW)
    query = "^".join(f"c{n}=1" for n in range(400))
    long = {"components": [{**LOOK_UP, "inputs": [{"name": "conditions", "value": query}]}]}
    assert flow_similarity(long, {"components": [LOOK_UP]}) == pytest.approx(1 - 1599 / 1601)

"""Operations as JSON: what is written is read again, and an error names the operation."""

import json

import pytest
from hypothesis import given, settings

from opus_pipelines.workflow.blocks.difference import difference
from opus_pipelines.workflow.blocks.edit_files import operation_data, read_operations
from opus_pipelines.workflow.blocks.edits import Wrap, applied
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.formats.registry import Feature, reduced
from opus_pipelines.workflow.blocks.model import Flow, identified, walk
from tests.campaigns import examples
from tests.workflow.blocks.random_flows import FLOWS

NO_PARALLEL = frozenset(Feature) - {Feature.PARALLEL}


@pytest.mark.long
@settings(max_examples=examples(25), deadline=None)
@given(FLOWS, FLOWS)
def test_operations_come_back(before: Flow, after: Flow) -> None:
    before, after = identified(reduced(before, NO_PARALLEL)[0]), reduced(after, NO_PARALLEL)[0]
    operations = difference(before, after)
    content = json.dumps([operation_data(operation) for operation in operations]).encode()
    if not any(isinstance(operation, Wrap) for operation in operations):  # a wrap names an id that no person writes
        assert read_operations(content) == operations
        assert applied(before, read_operations(content)) == after


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{}", "list"),
        (b'[{"operation": "delete"}]', "operation 1: delete needs target"),
        (b'[{"operation": "delete", "target": "s1"}, {"operation": "shift"}]', "operation 2: 'shift'"),
        (b'[{"operation": "delete", "target": 3}]', "target"),
        (b'[{"operation": "delete", "target": "s1", "steps": "x"}]', "'steps'"),
        (b'[{"operation": "insert", "steps": "import os"}]', "import"),
        (b'[{"operation": "insert", "steps": "x = A()", "where": "near"}]', "near"),
        (b'[{"operation": "replace", "target": "s1", "steps": "if a:\\n  x = A()"}]', "one call"),
        (b'[{"operation": "wrap", "first": "s1", "header": "x = A()"}]', "operation 1"),
        (b'[{"operation": "set_loop_header", "target": "s1", "header": "if a"}]', "loop"),
        (b"[", "line 1"),
    ],
)
def test_an_error_names_the_operation(content: bytes, said: str) -> None:
    with pytest.raises(FlowError, match=said):
        read_operations(content)


def test_steps_move_change_places_and_stand_beside_each_other() -> None:
    before = identified(parse_ir("a = A()\nfor x in a:\n  b = B()\nc = C()"))
    data: list[dict[str, str]] = [
        {"operation": "move", "target": "s4", "where": "append", "place": "s2"},
        {"operation": "swap", "target": "s3", "other": "s4"},
        {"operation": "together", "first": "s4", "last": "s3"},
    ]
    operations = read_operations(json.dumps(data).encode())
    assert [operation_data(operation) for operation in operations] == data
    after = applied(before, operations)
    assert [statement.id for statement in walk(after.body)] == ["s1", "s2", "s5", "s4", "s3"]
    with pytest.raises(FlowError, match="in itself"):
        applied(before, read_operations(b'[{"operation": "move", "target": "s2", "where": "append", "place": "s3"}]'))

"""Operations as JSON: what is written is read again, and an error names the operation."""

import json

import pytest
from hypothesis import given, settings

from opus_pipelines.workflow.blocks.difference import difference
from opus_pipelines.workflow.blocks.edit_files import operation_data, read_operations
from opus_pipelines.workflow.blocks.edits import Wrap, applied
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.registry import Feature, reduced
from opus_pipelines.workflow.blocks.model import Flow, identified
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
        (b'[{"operation": "delete", "target": "s1"}, {"operation": "move"}]', "operation 2: 'move'"),
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

import pytest

from opus_pipelines.cli.runs import ranges


@pytest.mark.parametrize(("wanted", "expected"), [
    (set(), []),
    ({"a", "b", "c", "d"}, [("a", "d")]),
    ({"a", "b", "d"}, [("a", "b"), ("d", "d")]),
    ({"c"}, [("c", "c")]),
])
def test_wanted_keys_become_contiguous_spans(wanted: set[str], expected: list[tuple[str, str]]) -> None:
    assert list(ranges(["a", "b", "c", "d"], wanted)) == expected

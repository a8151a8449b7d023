"""JSONL files: every line is used or left out with its reason, and a file without a usable line is an error."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.json_lines import MAX_LINE_BYTES, lines, read_records


def parse(value: Any, identity: str) -> tuple[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("the line is no JSON object")
    return str(value.get("id") or identity), value["x"] + 0


def test_each_line_is_used_or_left_out_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    long = '{"x": "' + "y" * MAX_LINE_BYTES + '"}'
    nested = "[" * 100_000
    texts = ['{"id": "a", "x": 1}', "", "{", "[]", '{"id": "a", "x": 2}', '{"x": 3}', '{"x": "t"}', long, nested]
    path.write_text("\n".join(texts))
    records, rejected = read_records(path, parse)
    assert records == [1, 3]
    assert [reason.split(":")[0] for reason in rejected] == [f"a.jsonl, line {n}" for n in (3, 4, 5, 7, 8, 9)]
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_records(packed, parse)[0] == [1, 3]
    with pytest.raises(InputError, match="line 3"):
        list(lines(path))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"{", b"\xff\xfe", b"[1]"])
def test_a_file_without_a_usable_line_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.jsonl"):
        read_records(path, parse)
    for missing in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(InputError, match="is no file"):
            read_records(missing, parse)
    (tmp_path / "b.jsonl.gz").write_bytes(b"not packed")
    with pytest.raises(InputError, match=r"b\.jsonl\.gz"):
        read_records(tmp_path / "b.jsonl.gz", parse)

import json

import pytest

from opus_pipelines.errors import InputError
from opus_pipelines.intention.elements import is_complete, missing, read_elements
from opus_pipelines.intention.readers import MAX_ROWS, decode, read_csv, read_json


def put(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_elements_come_by_role_with_the_contracts_documents_last(tmp_path):
    intake, documents = tmp_path / "intake", tmp_path / "documents"
    put(intake, "input/claim.txt", "A windscreen is broken.")
    put(intake, "output/letter.md", "# Letter\n\nWhat was paid.")
    put(documents, "sop.md", "Verify cover first.")
    found = read_elements(intake, documents)
    assert [(e.role, e.name, e.media_type) for e in found] == [
        ("input", "claim.txt", "text/plain"), ("output", "letter.md", "text/markdown"), ("contract", "sop.md", "text/markdown"),
    ]
    assert found[0].bytes == 23
    assert is_complete(found)
    assert missing(found) is None


@pytest.mark.parametrize(("texts", "wanted"), [
    ({"process": "Do it so."}, "no readable client input"),
    ({"input": "  \n"}, "no readable client input"),
    ({"input": "A claim."}, "neither client output nor process context"),
    ({"input": "A claim.", "output": "A letter."}, None),
])
def test_what_is_missing_is_asked_for(texts, wanted, text_elements):
    reason = missing(text_elements(texts))
    assert (reason is None) if wanted is None else reason.startswith(wanted)


@pytest.mark.parametrize(("name", "data", "left_out"), [
    ("scan.pdf", b"%PDF-1.7", "no reader for .pdf"),
    ("raw.txt", b"a\0b", "the document holds NUL bytes"),
    ("broken.json", b"{", "not JSON"),
])
def test_an_unreadable_document_says_what_was_left_out(tmp_path, name, data, left_out):
    put(tmp_path / "intake", f"input/{name}", data)
    (element,) = read_elements(tmp_path / "intake", tmp_path / "documents")
    assert element.text is None
    assert element.left_out.startswith(left_out)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    secret = put(tmp_path, "secret.txt", "not yours")
    (tmp_path / "intake" / "input").mkdir(parents=True)
    (tmp_path / "intake" / "input" / "x.txt").symlink_to(secret)
    with pytest.raises(InputError, match="points outside"):
        read_elements(tmp_path / "intake", tmp_path / "documents")


@pytest.mark.parametrize(("data", "text"), [
    ("é".encode(), "é"), ("é".encode("cp1252"), "é"), ("é".encode("utf-16"), "é"), (b"\xef\xbb\xbfa\r\nb", "a\nb"),
])
def test_text_is_decoded_by_its_bytes(data, text):
    assert decode(data) == text


def test_a_table_becomes_labelled_lines_and_newlines_in_fields_stay():
    text, left_out = read_csv(b'id;note\n1;"two\nlines"\n2;plain\n')
    assert text == "id; note\n\nid: 1; note: two\nlines\nid: 2; note: plain"
    assert left_out is None


def test_rows_past_the_limit_are_counted_not_dropped_in_silence():
    rows = "\n".join(f"{n},x" for n in range(MAX_ROWS + 7))
    assert read_csv(f"id,name\n{rows}\n".encode())[1] == f"7 of {MAX_ROWS + 7} rows"


def test_json_becomes_paths():
    assert read_json(json.dumps({"a": {"b": [1, "x", None]}, "c": True}).encode())[0] == "a.b: 1\na.b: x\nc: True"

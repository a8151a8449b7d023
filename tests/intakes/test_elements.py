import hashlib
import os
import subprocess
import sys
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.intakes.elements import ReadingLimits, contract_elements, is_complete, missing, read_elements


def put(folder: Any, name: Any, data: Any) -> Any:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def mail(subject: Any, *attachments: Any) -> Any:
    message = EmailMessage()
    message["Subject"] = subject
    message.set_content("See below.")
    for attached in attachments:
        if isinstance(attached, EmailMessage):
            message.add_attachment(attached)
        else:
            message.add_attachment(attached[1], maintype="application", subtype="octet-stream", filename=attached[0])
    return message


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """The elements of the intake `tmp_path / "intake"`, as (role, name, text, what was left out)."""
    return lambda *limits: [
        (e.role, e.name, e.text, e.left_out)
        for e in read_elements(tmp_path / "intake", tmp_path / "documents", *limits)
    ]


@pytest.mark.long
def test_elements_come_by_role_with_the_contracts_documents_last(tmp_path: Path) -> None:
    intake, documents = tmp_path / "intake", tmp_path / "documents"
    put(intake, "input/claim.txt", "A windscreen is broken.")
    put(intake, "output/letter.md", "# Letter\n\nWhat was paid.")
    put(documents, "sop.md", "Verify cover first.")
    found = read_elements(intake, documents)
    assert [(e.role, e.name, e.media_type, e.modality) for e in found] == [
        ("input", "claim.txt", "text/plain", "text"),
        ("output", "letter.md", "text/markdown", "text"),
        ("contract", "sop.md", "text/markdown", "text"),
    ]
    assert (found[0].bytes, found[0].sha256) == (23, hashlib.sha256(b"A windscreen is broken.").hexdigest())
    assert is_complete(found)
    assert missing(found) is None


def test_the_contracts_documents_are_read_once_for_many_intakes(tmp_path: Path) -> None:
    document = put(tmp_path / "documents", "sop.md", "Verify cover first.")
    shared = contract_elements(tmp_path / "documents")
    document.unlink()
    assert [e.text for e in read_elements(tmp_path / "intake", shared)] == ["Verify cover first."]


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (
            {"process": "Do it so."},
            "no readable client input; ask the client for what they give, and put it under input/ (text, Mark",
        ),
        ({"input": "  \n"}, "no readable client input"),
        ({}, "no readable client input"),
        ({"input": "A claim."}, None),  # a request alone is an incomplete Intention
        ({"input": "A claim.", "output": "A letter."}, None),
        ({"input": "A claim.", "contract": "Verify."}, None),
    ],
)
def test_what_is_missing_is_asked_for(texts: Any, wanted: Any, text_elements: Any) -> None:
    reason = missing(text_elements(texts))
    assert (reason is None) if wanted is None else reason.startswith(wanted)


def test_an_intake_without_its_third_is_incomplete_and_goes_on(text_elements: Any) -> None:
    found = text_elements({"input": "A claim.", "process": "Verify."})
    assert (missing(found), is_complete(found)) == (None, False)
    assert is_complete(text_elements({"input": "A claim.", "output": "A letter.", "contract": "Verify."}))


def test_a_document_that_cannot_be_read_costs_only_itself(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "intake", "input/a.pdf", b"%PDF-1.7")
    put(tmp_path / "intake", "input/b.txt", "A claim.")
    put(tmp_path / "intake", "input/c.png", b"\x89PNG\r\n")
    broken, claim, picture = read()
    assert claim == ("input", "b.txt", "A claim.", None)
    assert (broken[:3], picture[:3]) == (("input", "a.pdf", None), ("input", "c.png", None))
    assert broken[3].startswith("the PDF is broken: ")
    assert "OCR" in picture[3] or "broken" in picture[3]  # without and with the extra `ocr`


def test_every_attachment_is_an_element_of_its_own(tmp_path: Path, read: Any) -> None:
    put(
        tmp_path / "intake",
        "input/mail.eml",
        mail("Claim", ("../../list.csv", b"a,b\n1,2\n"), ("x.zip", b"PK\x03\x04")).as_bytes(),
    )
    *readable, archive = read()
    assert readable == [
        ("input", "mail.eml", "Subject: Claim\n\nSee below.", None),
        ("input", "mail.eml/list.csv", "a; b\n\na: 1; b: 2", None),
    ]
    assert archive[:3] == ("input", "mail.eml/x.zip", None)
    assert "archive" in archive[3]


def test_mails_in_mails_are_read_to_a_depth(tmp_path: Path, read: Any) -> None:
    message = mail("1")
    for number in range(2, 7):
        message = mail(str(number), message)
    put(tmp_path / "intake", "input/m.eml", message.as_bytes())
    inner = "/attachment-1.eml"
    *readable, deepest = read()
    assert [(name, text[:10], left_out) for _, name, text, left_out in readable] == [
        ("m.eml", "Subject: 6", None),
        (f"m.eml{inner}", "Subject: 5", None),
        (f"m.eml{inner * 2}", "Subject: 4", None),
        (f"m.eml{inner * 3}", "Subject: 3", None),
    ]
    assert deepest[1:3] == (f"m.eml{inner * 4}", None)
    assert "in 3 e-mails" in deepest[3]


def test_links_out_of_the_folder_are_not_followed_and_the_rest_goes_on(tmp_path: Path, read: Any) -> None:
    secret = put(tmp_path, "secret/x.txt", "not yours")
    folder = put(tmp_path / "intake", "input/b.txt", "A claim.").parent
    (folder / "a.txt").symlink_to(secret)
    (folder / "c.txt").symlink_to(folder / "b.txt")
    (folder / "d").symlink_to(secret.parent)
    (folder / "e.txt").symlink_to(tmp_path / "nowhere")
    (folder / "f.txt").symlink_to("f.txt")
    os.mkfifo(folder / "g.txt")
    (folder / "h.txt").hardlink_to(secret)
    (tmp_path / "intake" / "output").symlink_to(secret.parent)
    outside, nowhere = "it points outside its folder", "it is a link that leads nowhere"
    assert [(role, name, text, why and why.partition(";")[0]) for role, name, text, why in read()] == [
        ("input", "a.txt", None, outside),
        ("input", "b.txt", "A claim.", None),
        ("input", "c.txt", "A claim.", None),
        ("input", "d", None, outside),
        ("input", "e.txt", None, nowhere),
        ("input", "f.txt", None, nowhere),
        ("input", "g.txt", None, "it is no regular file"),
        ("input", "h.txt", None, "it is a hard link"),
        ("output", "output", None, "the folder is a link"),
    ]


def test_names_are_labels_whatever_they_hold(tmp_path: Path, read: Any) -> None:
    folder = put(tmp_path / "intake", "input/sub/Claim.txt", "one").parent
    put(folder, "claim.TXT", "two")
    put(folder, "a\n\u202etxt.txt", "three")
    (folder / os.fsdecode(b"b\xff.txt")).write_text("four")
    put(folder, ".hidden.txt", "not read")
    assert read() == [
        ("input", "sub/Claim.txt", "one", None),
        ("input", "sub/a\ufffd\ufffdtxt.txt", "three", None),
        ("input", "sub/b\ufffd.txt", "four", None),
        ("input", "sub/claim.TXT", "two", None),
    ]
    ids = {e.element_id for e in read_elements(tmp_path / "intake", tmp_path / "documents")}
    assert len(ids) == 4


def test_an_intake_holds_so_many_documents_and_characters(tmp_path: Path, read: Any) -> None:
    for name in "abc":
        put(tmp_path / "intake", f"input/{name}.txt", "one two")
    whole, cut, unread = read(ReadingLimits(documents=2, characters=10))
    assert whole == ("input", "a.txt", "one two", None)
    assert cut[:3] == ("input", "b.txt", "one")
    assert "the last 4 of 7 characters" in cut[3]
    assert unread[:3] == ("input", "c.txt", None)
    assert "the 2 documents" in unread[3]


def test_what_is_read_is_the_same_each_time(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "intake", "input/a.docx", b"PK\x03\x04broken")
    put(tmp_path / "intake", "input/b.xlsx", b"")
    assert read() == read()


def test_libraries_are_imported_only_when_a_document_of_their_kind_is_met() -> None:
    heavy = {"pypdf", "docx", "pptx", "openpyxl", "lxml", "PIL", "email.message", "numpy", "torch"}
    code = f"import sys, opus_pipelines.intakes.elements; print(sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_path_that_is_too_long_costs_itself_alone(tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "claim.txt").write_text("A claim.")
    place = os.open(tmp_path / "input", os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=place)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    elements = read_elements(tmp_path, tmp_path / "none")
    assert [e.text for e in elements if e.name == "claim.txt"] == ["A claim."]
    assert [e for e in elements if "too long" in (e.left_out or "")] != []

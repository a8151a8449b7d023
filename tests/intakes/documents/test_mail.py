from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest

from opus_pipelines.intakes.documents.document import Document
from opus_pipelines.intakes.documents.formats import preprocess

HEAD = "Subject: Broken windscreen\nFrom: Ann <ann@client.example>\nTo: claims@bpo.example\n\n"


def parts(data: bytes) -> Any:
    return [(part.name, part.size) for part in preprocess(Document.of_bytes("a.eml", data))[1].parts]


def test_a_mail_is_its_head_and_its_text(read: Callable[..., Any], mail: Callable[..., Any]) -> None:
    assert read("a.eml", mail()) == (f"{HEAD}See the file.", None)


def test_encoded_words_are_decoded(read: Callable[..., Any], mail: Callable[..., Any]) -> None:
    text, _ = read("a.eml", mail("Größe: ½", subject="Größe"))
    assert text.startswith("Subject: Größe\n")
    assert text.endswith("\n\nGröße: ½")


@pytest.mark.parametrize(
    ("html", "text", "left_out"),
    [
        ("<p>See the <b>file</b>.</p>", "See the file.", "the HTML version of its text (the plain one was read)"),
        (
            "<p>Pay at once, and never without the approval of two people.</p><script>x</script>",
            "Pay at once, and never without the approval of two people.",
            "1 script; the plain version of its text (e-mail programs show the HTML one, which differs)",
        ),
    ],
)
def test_of_two_versions_the_one_that_a_person_sees_is_read(
    read: Callable[..., Any], mail: Callable[..., Any], html: str, text: str, left_out: str
) -> None:
    assert read("a.eml", mail(html=html)) == (HEAD + text, left_out)


def test_attachments_are_documents_whose_names_are_only_labels(mail: Callable[..., Any]) -> None:
    data = mail(attachments=[("../../etc/a.txt", b"one"), ("a.txt", b"two!"), ("..", b""), ("C:\\x\\b.pdf", b"%PDF")])
    assert parts(data) == [("a.txt", 3), ("a (2).txt", 4), ("attachment-3", 0), ("b.pdf", 4)]


def test_a_forwarded_mail_is_an_attachment() -> None:
    inner, outer = EmailMessage(), EmailMessage()
    inner["Subject"] = "Inner"
    inner.set_content("within")
    outer["Subject"] = "Outer"
    outer.set_content("around")
    outer.add_attachment(inner)
    ((name, _),) = parts(outer.as_bytes())
    assert name == "attachment-1.eml"


def test_attachments_past_the_limit_are_counted(read: Callable[..., Any], mail: Callable[..., Any]) -> None:
    data = mail(attachments=[(f"{n}.txt", b"x") for n in range(103)])
    assert read("a.eml", data)[1] == "the last 3 of 103 attachments"


def nested(depth: int) -> Any:
    return b"Subject: x\n" + b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(depth)
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty: a file without a byte"),
        (b"\n\njust text", "it is no e-mail: it has no head"),
        (nested(100), "the e-mail has 100 parts of parts in 301 lines, more than can be followed"),
        (
            b"Subject: s\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\n" * 800,
            "it is nested too deeply to be read",
        ),
        (
            b"Subject: s\nContent-Type: text/plain; " + b"a=b; " * 1_000 + b"\n\nhi",
            "a line of its head that describes its content is longer",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(read: Callable[..., Any], data: bytes, reason: str) -> None:
    text, left_out = read("a.eml", data)
    assert text is None
    assert left_out.startswith(reason)


def test_a_head_line_that_never_ends_is_cut(read: Any) -> None:
    text, left_out = read("a.eml", b"Subject: x\nTo: " + b"a@b.c, " * 2_000 + b"\n\nhi")
    assert text.endswith("\n\nhi")
    assert left_out == "the end of its To line"

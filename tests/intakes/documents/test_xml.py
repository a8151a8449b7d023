from typing import Any

import pytest


def test_xml_becomes_paths_and_mixed_text_stays_together(read: Any) -> None:
    note = "<note>Hand <b>with care</b> only.</note><e/>"
    data = f'<?xml version="1.0"?><o:order xmlns:o="urn:x" id="7"><line cur="USD">5</line>{note}</o:order>'
    assert read("a.xml", data) == (
        "order@id: 7\norder.line@cur: USD\norder.line: 5\norder.note: Hand with care only.",
        None,
    )


def test_xhtml_is_a_page(read: Any) -> None:
    data = '<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>A</h1><script>x</script></body></html>'
    assert read("a.xml", data) == ("# A", "1 script")


def test_a_document_type_that_is_only_named_is_no_harm_and_nothing_is_fetched(read: Any) -> None:
    assert read("a.xml", '<!DOCTYPE a SYSTEM "http://x.example/a.dtd"><a>b &amp; c<!-- d --></a>') == (
        "a: b & c",
        "1 comment",
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ('<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;&b;">]><a>&d;</a>', "it declares entities"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "it declares entities"),
        ("<a><b></a>", "the XML is broken: Opening and ending tag mismatch"),
        ("<a>" * 1_000, "the XML is broken: Excessive depth"),
        ("", "it is empty: a file without a byte"),
    ],
)
def test_what_is_broken_or_dangerous_is_refused(read: Any, data: Any, reason: Any) -> None:
    text, left_out = read("a.xml", data)
    assert text is None
    assert left_out.startswith(reason)


def test_values_past_the_limit_are_counted(read: Any) -> None:
    assert read("a.xml", "<a>" + "<b>1</b>" * 5_002 + "</a>")[1] == "2 of 5,002 values"

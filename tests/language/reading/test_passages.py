"""How documents are cut: headings of every kind, items, tables, mail and wrapped lines."""

import pytest

from opus_pipelines.language.reading.passages import clauses_in, passages_of, sentences


def shown(text: str) -> list[tuple[str, tuple[str, ...], str]]:
    return [(p.shape, p.section, p.text) for p in passages_of((text,))]


def test_markdown_headings_open_sections_and_their_numbers_are_left_out() -> None:
    text = (
        "# 1 Returns\n\nCheck the parcel.\n\n## 1.1 Case A: late\n\n- Call the client.\n- Book it.\n\n# 2 Scope\n\nAll."
    )
    assert shown(text) == [
        ("heading", (), "Returns"),
        ("prose", ("Returns",), "Check the parcel."),
        ("heading", ("Returns",), "Case A: late"),
        ("item", ("Returns", "Case A: late"), "Call the client."),
        ("item", ("Returns", "Case A: late"), "Book it."),
        ("heading", (), "Scope"),
    ]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("5. Main Procedure\n5.1 Bot Detection\n5.1.1 Calculate Index\n- Set it to 0.\n", ["Main Procedure"] * 1),
        ("**Agenda**\n\nWe met at noon.", ["Agenda"]),
        ("How to return\n\nSend it back to us.", ["How to return"]),
        ("1. Check the seal of the parcel and sign for it.", []),  # a step, no heading
        ("2. sign the form", []),
    ],
)
def test_a_heading_is_a_short_titled_line(text: str, headings: list[str]) -> None:
    assert [p.text for p in passages_of((text,)) if p.shape == "heading"][:1] == headings


def test_numbered_headings_nest_by_their_numbers() -> None:
    text = "5. Main Procedure\n5.1 Bot Detection\n5.1.1 Calculate Index\n- Set it to zero.\n5.2 User Trust\n- Read it."
    assert [p.section for p in passages_of((text,)) if p.shape == "item"] == [
        ("Main Procedure", "Bot Detection", "Calculate Index"),
        ("Main Procedure", "User Trust"),
    ]


@pytest.mark.parametrize("bar", ["|", "\t"])
def test_a_row_of_a_table_says_what_is_done_and_when(bar: str) -> None:
    rows = [
        ["Rule", "Score", "What is done"],
        ["1", "below 45", "decline the claim"],
        ["2", "any", "hand the case over"],
    ]
    found = passages_of(("\n".join(bar.join(row) for row in rows),))
    assert [(p.shape, p.text, p.when) for p in found] == [
        ("row", "decline the claim", "Rule: 1; Score: below 45"),
        ("row", "hand the case over", "Rule: 2; Score: any"),
    ]


def test_header_lines_of_mail_say_nothing_and_wrapped_lines_are_joined() -> None:
    text = (
        "From: Ruth Adeyemi\nSent: Thursday\n\nPlease call the vendor back on a number that you found yourselves,\n"
        "never on one from the letter. Then update the record.\n"
    )
    assert [p.text.split()[:: len(p.text.split()) - 1] for p in passages_of((text,))] == [
        ["Please", "letter."],
        ["Then", "record."],
    ]


def test_each_document_has_its_number_and_an_empty_one_has_no_passage() -> None:
    assert [(p.document, p.text) for p in passages_of(("Check it.", "", "Send it."))] == [
        (0, "Check it."),
        (2, "Send it."),
    ]


@pytest.mark.parametrize(
    ("sentence", "clauses"),
    [
        ("The seal is checked and the form is signed.", ("The seal is checked", "the form is signed")),
        ("Der Auftrag wird gesucht und danach angelegt.", ("Der Auftrag wird gesucht", "danach angelegt")),
        ("Send the form.", ()),
    ],
)
def test_a_sentence_is_cut_into_clauses(sentence: str, clauses: tuple[str, ...]) -> None:
    assert clauses_in(sentence) == clauses


def test_sentences_of_a_request() -> None:
    assert sentences("- Please cancel my order.\n- It is late! Thanks") == ["Please cancel my order.", "It is late!"]

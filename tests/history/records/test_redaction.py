"""What is private in a text, what only looks like it, and how a batch of implementations is masked."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.records.private_text import is_card, is_iban, mask_text
from opus_pipelines.history.records.redaction import (
    ACCOUNT,
    HARMLESS,
    PHONE,
    Redactor,
    is_number,
    mask_texts,
    meaning_of,
    possible,
)
from opus_pipelines.history.records.source_settings import Redact

KEY = b"a key of the lake"


@pytest.mark.parametrize(
    ("written", "masked"),
    [
        ("+31 6 12345678", "[number]"),
        ("+31612345678", "[number]"),
        ("tel:+31612345678", "tel:[number]"),
        ("+1 (415) 555-2671", "[number]"),
        ("+49 (0) 171 / 123 45 67", "[number]"),
        ("0031612345678", "[number]"),
        ("00 31 6 12345678", "[number]"),
        ("(020) 123 45 67", "[number]"),
        ("06-12345678", "[number]"),
        ("bel 06 12 34 56 78 voor 5 uur", "bel [number] voor 5 uur"),
        ("0612345678", "[number]"),
        ("01.23.45.67.89", "[number]"),
        ("030/1234567", "[number]"),
        ("(555) 223-4567", "[number]"),
        ("555-223-4567", "[number]"),
        ("123-45-6789", "[number]"),
        ("call 612 34 56 78 now", "call [number] now"),
        ('{"phone": "612345678"}', '{"phone": "[number]"}'),
        ("line\\n+442037288889\\n", "line\\n[number]\\n"),
        ("NL91 ABNA 0417 1643 00 for rent", "[account] for rent"),
        ("nl91abna0417164300", "[account]"),
        ("x AB12 NL91ABNA0417164300.", "x AB12 [account]."),
        ("4111 1111 1111 1111", "[account]"),
        ("4111-1111-1111-1111", "[account]"),
        ("3782 822463 10005", "[account]"),
        ("account no. 12345678", "account no. [account]"),
        ("SSN: 123456789", "SSN: [account]"),
        ("card no. 123456789 and card 123456789", "card no. [account] and card 123456789"),
        ("1234-5678-9101-1121", "[account]"),
        ("routing number 021000021", "routing number [account]"),
        ("Jan <jan.de-boer@mail.example.co.uk>, x", "Jan <[email]>, x"),
        ("o'brien@x.ie", "[email]"),
        ("mailto=jan%40example.com", "mailto=[email]"),
        ("jörg@münchen.de", "[email]"),
    ],
)
def test_what_is_private_is_masked(written: str, masked: str) -> None:
    assert mask_text(written) == masked


@pytest.mark.parametrize(
    "written",
    [
        "Declaration 86791",
        "declaration number 112684",
        "20000",
        "12345678",
        "1234567890",
        "order ORD-0612345678",
        "declaration 0012345678",
        "2012-03-01T10:11:12.345+01:00",
        "2012-03-01 10:11:12",
        "01/02/23 - 05/02/23",
        "10/11/2012 10:23",
        "20230115 123456",
        "2023/01/02 12345678",
        "550e8400-e29b-41d4-a716-446655440000",
        "sid-E94A65E4-B98B-4656-88BF-61513FD0AE5C",
        "9f86d081884c7d659a2feaa0c55ad015",
        "52.370216, 4.895168",
        "+52.370216 +4.895168",
        "1,234,567.89",
        "1 234 567,89",
        "612 345 678",
        "0.123456789012",
        "-1234567.25",
        "Version 2021.10.31.1200",
        "1.2.3",
        "192.168.178.21",
        "ISBN 978-0-306-40615-7",
        "https://x.org/0612345678",
        "label 12345678",
        "hotel 12345678",
        "1700000000000",
        "1700000000000000000",
        "4111111111111112",
        "n8n-nodes@1.2.3",
        "@n8n/n8n-nodes-langchain.agent",
        "account 20000",
        "1-2-3-4-5-6-7-8-9-10",
        "",
        "[email] [number] [account]",
    ],
)
def test_what_only_looks_private_stays(written: str) -> None:
    assert mask_text(written) == written


@given(st.integers(0, 10**14 - 1), st.sampled_from(["NL", "DE", "BE", "FR"]), st.integers(1, 96))
def test_one_wrong_digit_is_no_account(number: int, country: str, off: int) -> None:
    body = {
        "NL": f"ABNA{number % 10**10:010}",
        "DE": f"{number:018}",
        "BE": f"{number % 10**12:012}",
        "FR": f"{number:023}",
    }[country]
    digits = int("".join(str(int(c, 36)) for c in f"{body}{country}00"))
    check = 98 - digits % 97
    assert is_iban(f"{country}{check:02}{body}")
    other = (check + off - 2) % 97 + 2
    assert is_iban(f"{country}{other:02}{body}") == (other == check)


@given(st.integers(0, 10**14 - 1))
def test_a_card_has_one_check_digit_of_ten(number: int) -> None:
    assert sum(is_card(f"4{number:014}{check}") for check in range(10)) == 1


@pytest.mark.long
@given(st.text())
def test_masking_twice_masks_no_more(text: str) -> None:
    once = mask_text(text)
    assert mask_text(once) == once


WORDS = st.sampled_from(
    ["order", "declaration", "account", "tel", "card number", "AB", "passport", "SSN", "NL", "IBAN", "X", "fax no", "D"]
)
SEPARATORS = st.sampled_from([" ", "_", ": ", "#", " #", "__", " no ", "; "])


@st.composite
def kinds_of_ids(draw: st.DrawFn) -> str:
    """Words and numbers of up to eight digits, each digit as a 0."""
    parts = draw(st.lists(st.tuples(WORDS, SEPARATORS, st.integers(1, 8), SEPARATORS), min_size=1, max_size=3))
    return "".join(f"{word}{before}{'0' * digits}{after}" for word, before, digits, after in parts)


@given(kinds_of_ids(), st.integers(0, 10**24 - 1))
def test_which_digits_an_id_has_changes_nothing_of_what_is_masked(kind: str, number: int) -> None:
    digits = iter(f"{number:024d}")
    written = "".join(next(digits) if c == "0" else c for c in kind)
    texts = pa.array([kind, written, f"{written} jan@mail.example.com"])
    assert mask_texts(texts).to_pylist() == [mask_text(text) for text in texts.to_pylist()]
    assert (mask_text(kind) == kind) == (mask_text(written) == written)


def test_one_id_tells_for_all_of_its_kind() -> None:
    ids = pa.array([*(f"st_step {n:06}_{n % 10}" for n in range(900)), "account 123456", None, "account 654321"])
    assert mask_texts(ids).to_pylist() == [*ids.to_pylist()[:900], "account [account]", None, "account [account]"]
    assert possible(ids).to_pylist() == [False] * 900 + [True, None, True]


@pytest.mark.long
@pytest.mark.parametrize(
    "hard", ["a" * 200_000, "1" * 100_000, "1 " * 50_000, "a.b-" * 50_000, "1 1-" * 50_000 + "@", "tel " * 50_000]
)
def test_long_odd_texts_are_read_through_once(hard: str) -> None:
    assert mask_text(hard) == hard  # a pattern that backtracks would take hours


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("phone", PHONE),
        ("Phone Number", PHONE),
        ("customer.mobilePhone", PHONE),
        ("telefoonnummer", PHONE),
        ("Teléfono", PHONE),
        ("tel_nr", PHONE),
        ("case:msisdn", PHONE),
        ("iban", ACCOUNT),
        ("account_number", ACCOUNT),
        ("Rekeningnummer", ACCOUNT),
        ("Konto-Nr.", ACCOUNT),
        ("creditCard", ACCOUNT),
        ("numéro de compte", ACCOUNT),
        ("BSN", ACCOUNT),
        ("account_balance", HARMLESS),
        ("card_type", HARMLESS),
        ("order_id", HARMLESS),
        ("AMOUNT_REQ", HARMLESS),
        ("time:timestamp", HARMLESS),
        ("hotel", None),
        ("concept:name", None),
        ("telemetry", None),
    ],
)
def test_an_attributes_name_says_what_its_numbers_are(name: str, meaning: str | None) -> None:
    assert meaning_of(name) == meaning


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("612345678", True),
        ("12.34.56.789", True),
        ("612345678.0", True),
        ("NL91ABNA0417164300", True),
        ("1234", False),
        ("unknown", False),
        ("extension 4", False),
        ("the 123456 of them", False),
    ],
)
def test_under_such_a_name_only_numbers_are_masked(value: str, found: bool) -> None:
    assert is_number(value) == found


def batch(*rows: dict[str, object]) -> pa.RecordBatch:
    full = [{"source": "s", **row, "implementation_id": make_id("i", "s", row["case_id"])} for row in rows]
    return pa.RecordBatch.from_pylist(full, schema=IMPLEMENTATIONS.schema)


PRIVATE = {
    "case_id": "jan@x.nl",
    "title": "call +31 6 12345678",
    "description": "d jan@x.nl",
    "process_context": "NL91ABNA0417164300",
    "attributes": [
        ("AMOUNT_REQ", "20000"),
        ("contact", "jan@x.nl"),
        ("jan@x.nl", "1"),
        ("piet@x.nl", "2"),
        ("order_id", "4111111111111111"),
        ("phone", "612345678"),
        ("who", "4111111111111111"),
    ],
    "tasks": [
        {
            "task_key": "Mail jan@x.nl",
            "title": "Mail jan@x.nl",
            "description": "or 06-12345678",
            "actor": "jan@x.nl",
            "instructions": ["ring 06-12345678", None],
            "inputs": ["jan@x.nl"],
            "outputs": [],
            "attributes": [("konto", "123456789")],
        },
        {"task_key": "Pay", "actor": "112", "attributes": []},
    ],
}


def test_every_free_text_of_a_batch_is_masked() -> None:
    row = Redactor(Redact(), KEY).batch(batch(PRIVATE)).to_pylist()[0]
    assert (row["title"], row["description"], row["process_context"]) == ("call [number]", "d [email]", "[account]")
    assert row["attributes"] == [
        ("AMOUNT_REQ", "20000"),
        ("[email]", "1"),
        ("contact", "[email]"),
        ("order_id", "4111111111111111"),
        ("phone", "[number]"),
        ("who", "[account]"),
    ]
    mail, pay = row["tasks"]
    assert (mail["task_key"], mail["title"], mail["description"]) == ("Mail [email]", "Mail [email]", "or [number]")
    assert (mail["instructions"], mail["inputs"], mail["outputs"]) == (["ring [number]", None], ["[email]"], [])
    assert mail["attributes"] == [("konto", "[account]")]
    assert (pay["task_key"], pay["actor"], pay["inputs"]) == ("Pay", "112", None)


def test_cases_and_actors_stay_apart_under_the_lakes_key() -> None:
    other = PRIVATE | {"case_id": "piet@x.nl", "tasks": [{"task_key": "Pay", "actor": "jan@x.nl", "attributes": []}]}
    one, two = Redactor(Redact(), KEY).batch(batch(PRIVATE, other)).to_pylist()
    assert one["case_id"] != two["case_id"]
    assert (
        one["tasks"][0]["actor"]
        == two["tasks"][0]["actor"]
        == one["case_id"]
        == Redactor(Redact(), KEY).hashed("jan@x.nl")
    )
    assert one["implementation_id"] == make_id("i", "s", one["case_id"])
    assert Redactor(Redact(), b"another").hashed("jan@x.nl") != one["case_id"]


@pytest.mark.parametrize("case_id", ["173688", "4111111111111111", "ORD-0612345678", "2012-03-01", "0012345678"])
def test_ids_that_are_plain_stay(case_id: str) -> None:
    assert Redactor(Redact(), KEY).identity(case_id) == case_id


def test_a_batch_without_anything_private_is_the_same_and_masking_can_be_off() -> None:
    task = {"task_key": "Pay", "attributes": []}
    plain = batch({"case_id": "1", "title": "Declaration 86791", "attributes": [("a", "b")], "tasks": [task]})
    assert Redactor(Redact(), KEY).batch(plain).equals(plain)
    assert Redactor(Redact(mask_text=False), KEY).batch(batch(PRIVATE)).equals(batch(PRIVATE))


def test_slices_and_missing_values_keep_their_rows() -> None:
    rows = [
        {"case_id": "1", "attributes": None, "tasks": None},
        PRIVATE,
        {"case_id": "3", "attributes": [], "tasks": []},
    ]
    whole, redactor = batch(*rows), Redactor(Redact(), KEY)
    masked = redactor.batch(whole)
    masked.validate(full=True)
    assert masked.to_pylist()[0] == whole.to_pylist()[0]
    assert masked.to_pylist()[2] == whole.to_pylist()[2]
    for start in range(3):
        assert redactor.batch(whole.slice(start, 1)).to_pylist() == masked.slice(start, 1).to_pylist()
    assert redactor.batch(masked).equals(masked)


def test_a_hash_cannot_be_found_by_trying() -> None:
    """Only who has the key can make it; the plain hash of a telephone number is found in seconds."""
    settings = Redact(hash=["phone"])
    keyed = [Redactor(settings, key).flat({"phone": "0612345678"})["phone"] for key in (b"one", b"two", b"one")]
    assert keyed[0] == keyed[2] != keyed[1]
    assert keyed[0].startswith("h")

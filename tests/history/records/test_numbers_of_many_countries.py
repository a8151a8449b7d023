"""Numbers of persons as they are written in many countries, what only looks like them, and the set of the benchmark."""

import pytest

from benchmarks.masking import rows
from opus_pipelines.history.records.private_text import mask_text


@pytest.mark.parametrize(
    ("written", "masked"),
    [
        ("tel. 020\u00a0123\u00a045\u00a067", "tel. [number]"),
        ("+48\u00a0601\u202f234\u202f567", "[number]"),
        ("٠١٠٠ ١٢٣ ٤٥٦٧", "[number]"),
        ("هاتف: ٥٥١٢٣٤٥٦٧", "هاتف: [number]"),
        ("telefon: 601 234 567", "telefon: [number]"),
        ("zadzwoń 601-234-567", "zadzwoń [number]"),
        ("22 123 45 67", "[number]"),
        ("手机号码：１３８００１３８０００", "手机号码：[number]"),
        ("请致电13800138000。", "请致电[number]。"),
        ("138 0013 8000", "[number]"),
        ("(11) 91234-5678", "[number]"),
        ("8 (916) 123-45-67", "[number]"),
        ("612 34 56 78", "[number]"),
        ("passport C01X00T47", "passport [account]"),
        ("Reisepass Nr. C01X00T47", "Reisepass Nr. [account]"),
        ("护照号码 E12345678", "护照号码 [account]"),
        ("паспорт 4510 123456", "паспорт [account]"),
        ("CPF 529.982.247-25", "CPF [account]"),
        ("529.982.247-25", "[account]"),
        ("PESEL 44051401359", "PESEL [account]"),
        ("RSSMRA85T10A562S", "[account]"),
        ("110105194912310022", "[account]"),
        ("12345678Z", "[account]"),
        ("2 95 10 99 126 111 93", "[account]"),
        ("QQ 12 34 56 C", "QQ 12 34 56 C"),
        ("AB 12 34 56 C", "[account]"),
        ("112-233-445 95", "[account]"),
        ("ＧＢ82 WEST 1234 5698 7654 32", "[account]"),
    ],
)
def test_a_number_is_masked_however_it_is_written(written: str, masked: str) -> None:
    assert mask_text(written) == masked
    assert mask_text(masked) == masked


@pytest.mark.parametrize(
    "written",
    [
        "529.982.247-26",
        "12345678A",
        "110105194912310021",
        "RSSMRA85T10A562T",
        "601 234 567",
        "¥138001",
        "1 234 567,89 zł",
        "订单 20230101",
        "account of 20586 EUR",
        "login mybank2023",
        "٢٠٢٣-٠١-٠٢",
    ],
)
def test_a_wrong_check_digit_or_an_amount_stays(written: str) -> None:
    assert mask_text(written) == written


def test_recall_and_precision_on_the_set_of_the_benchmark() -> None:
    """National groups of Poland look like an amount: they are not claimed."""
    found = [(kind, language, text, mask_text(sentence) != sentence) for language, kind, sentence, text in rows(7, 2)]
    assert [row for row in found if row[3] != bool(row[0]) and row[:2] != ("number in national groups", "pl")] == []
    assert len({language for _, language, _, _ in found}) == 12


@pytest.mark.parametrize(
    ("written", "masked"),
    [
        ("Mr John Smith called", "Mr [name] called"),
        ("Frau Müller, Hauptstraße 5", "Frau [name], [address]"),
        ("klant: Jan de Boer", "klant: [name]"),
        ("221 Baker Street, London", "[address], London"),
        ("Check invoice of Acme", "Check invoice of Acme"),
    ],
)
def test_names_and_addresses_are_masked_where_they_are_asked_for(written: str, masked: str) -> None:
    assert (mask_text(written), mask_text(written, names=True)) == (written, masked)

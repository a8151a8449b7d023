"""How a file is written is told from its bytes: encodings, mixtures of them, delimiters."""

import gzip
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.history.formats.encoding_detection import (
    Encoding,
    Place,
    detect_delimiter,
    detect_encoding,
    detect_file_delimiter,
    detect_file_encoding,
    table_head,
)

GERMAN = (
    "Fall;Aktivität;Zeit;Betrag\n1;Prüfung der Unterlagen abgeschlossen;01.02.2024;9,17 €\n"
    "2;Erklärung genehmigt durch Führungskraft;02.02.2024;19,17 €\n"
)
FRENCH = "1;Déclaration approuvée par le supérieur;x\n2;Créée à la réception;x\n"
POLISH = "1;Wniosek złożony;x\n2;Żądanie płatności zatwierdzone przez księgowość;y\n"
CZECH = "1;Žádost schválena vedoucím;x\n2;Předáno účtárně k úhradě;y\n"
RUSSIAN = "1;Заявка подана сотрудником;x\n2;Оплата подтверждена бухгалтерией;y\n"
GREEK = "1;Η αίτηση υποβλήθηκε;x\n2;Η πληρωμή εγκρίθηκε από τον προϊστάμενο;y\n"
TURKISH = "1;Başvuru gönderildi ve onaylandı;x\n2;Ödeme işlendi, müdür onayı şart;y\n"
JAPANESE = "1;申請が提出されました;x\n2;支払いが承認されました;y\n"
CHINESE = "1;申请已提交给主管;x\n2;付款已批准并完成;y\n"


def detected(content: bytes) -> Encoding:
    return detect_encoding(lambda: BytesIO(content))


@pytest.mark.parametrize(
    ("text", "written", "told"),
    [
        ("case;activity\n1;A\n", "ascii", "utf-8"),
        (GERMAN, "utf-8", "utf-8"),
        (GERMAN, "utf-8-sig", "utf-8-sig"),
        (GERMAN, "utf-16", "utf-16"),
        (GERMAN, "utf-16-le", "utf-16-le"),
        (GERMAN, "utf-16-be", "utf-16-be"),
        (GERMAN, "utf-32", "utf-32"),
        (GERMAN, "cp1252", "cp1252"),
        ("1;x;9,17 €\n2;y;4,00 €\n", "cp1252", "cp1252"),
        ("1;Prüfung;01.02\n", "latin-1", "cp1252"),
        (GERMAN, "mac-roman", "mac-roman"),
        (FRENCH, "cp1252", "cp1252"),
        (POLISH, "cp1250", "cp1250"),
        (POLISH, "iso8859-2", "iso8859-2"),
        (CZECH, "cp1250", "cp1250"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8-r", "koi8-r"),
        (GREEK, "cp1253", "cp1253"),
        (TURKISH, "cp1254", "cp1254"),
        (JAPANESE, "cp932", "cp932"),
        (CHINESE, "gb18030", "gb18030"),
    ],
)
def test_an_encoding_is_detected(text: str, written: str, told: str) -> None:
    content = text.encode(written)
    found = detected(content)
    assert found.name == told
    assert not found.mixed
    assert content.decode(found.name) == text
    assert found.certain or told.startswith(("cp", "gb"))


def test_one_strange_byte_is_read_as_the_usual_encoding_and_said_to_be_a_guess() -> None:
    found = detected("a;b\n1;für\n".encode("cp1252"))
    assert (found.name, found.certain) == ("cp1252", False)
    assert found.first_other == Place(2, 7, 0xFC)


def test_mixed_encodings_are_named_with_the_first_line_and_byte_of_each() -> None:
    lines = [b"case;activity\n", "1;Prüfung\n".encode(), "1;Größe\n".encode(), "2;Prüfung\n".encode("cp1252")]
    found = detected(b"".join(lines))
    assert (found.name, found.mixed, found.certain) == ("utf-8", True, False)
    assert (found.utf8_lines, found.other_lines) == (2, 1)
    assert found.first_utf8 == Place(2, 18, 0xC3)
    assert found.first_other == Place(4, 39, 0xFC)
    assert b"".join(lines)[39] == 0xFC
    remark = found.remark() or ""
    assert "2 lines are UTF-8 (the first: line 2, byte 18 " in remark
    assert "1 line is not (the first: line 4, byte 39 " in remark
    assert 'encoding = ["utf-8", "cp1252"]' in remark


def test_the_larger_part_of_a_mixed_file_names_its_encoding() -> None:
    german = GERMAN.encode("cp1252")
    found = detected(german * 5 + "3;Prüfung\n".encode())
    assert (found.name, found.mixed, found.utf8_lines, found.other_lines) == ("cp1252", True, 1, 15)


def test_a_utf_8_mark_in_front_of_other_text_is_a_mixture() -> None:
    found = detected(b"\xef\xbb\xbf" + GERMAN.encode("cp1252"))
    assert found.mixed


def test_short_words_of_asia_that_happen_to_be_utf_8_make_no_mixture() -> None:
    chance = b"\xd0\xa1"  # one character of GB 18030, and of UTF-8
    assert chance.decode("gb18030")
    assert chance.decode()
    found = detected(CHINESE.encode("gb18030") * 3 + b"3;" + chance + b"\n")
    assert (found.name, found.mixed) == ("gb18030", False)


@given(
    st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=40), max_size=20)
)
@settings(max_examples=100, deadline=None)
def test_what_is_utf_8_is_told_so(lines: list[str]) -> None:
    content = ("x" + "\n".join(lines)).encode()
    found = detected(content)
    assert (found.name, found.certain, found.mixed, found.other_lines) == ("utf-8", True, False, 0)


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_bytes_have_an_answer_that_python_knows(content: bytes) -> None:
    found = detected(content)
    content.decode(found.name, "replace")
    assert found.first_other is None or content[found.first_other.byte] == found.first_other.value
    assert found.first_utf8 is None or content[found.first_utf8.byte] == found.first_utf8.value


def test_lines_across_blocks_are_counted_once() -> None:
    content = ("x" * 70 + "\n" + GERMAN * 20_000).encode("cp1252")
    assert len(content) > 2 << 20  # a block is 1 MiB
    found = detected(content)
    assert found.other_lines == 60_000
    assert found.first_other == Place(2, 83, 0xE4)


def test_a_line_without_end_is_cut_between_characters() -> None:
    content = ("x" + "äß€𝄞" * 1_600_000).encode()
    assert len(content) > 1 << 24  # the longest line that is held
    found = detected(content)
    assert (found.name, found.mixed, found.other_lines) == ("utf-8", False, 0)


@pytest.mark.parametrize(
    ("table", "delimiter"),
    [
        (GERMAN, ";"),
        ("case,activity,time\n1,A,2024-01-01 10:00\n", ","),
        ("Amount, EUR;Case, id;Activity, name\n1,5;a;x\n2,5;b;y\n", ";"),
        ("case\tactivity\ttime\n1\tA, b; c\t2024-01-01 10:00\n", "\t"),
        ('case,activity,time\n1,"A; b; c; d",2024-01-01 10:00\n2,"B\n;;;x",2024-01-01 10:00\n', ","),
        ("case|activity|time\n1|A|2024-01-01 10:00\n", "|"),
        ("case;activity;time;note\n1;A;2024-01-01;a,b,c,d\n1;A;2024-01-01;a,b,c,d,e\n1;A;2024-01-01\n", ";"),
        ('"case";"activity";"time"\n"1";"A, said ""x""";"2024-01-01"\n', ";"),
        ("case;activity;time\n", ";"),
        ("case\n1\n2\n", ","),
        ("", ","),
        ("x;y\n" + "1;A, b, c, d, e, f\n" * 50, ";"),
    ],
)
def test_a_delimiter_is_detected(table: str, delimiter: str) -> None:
    assert detect_delimiter(table) == delimiter


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_text_has_a_delimiter(text: str) -> None:
    assert detect_delimiter(text) in ",;\t|"


def test_a_packed_file_is_detected_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(GERMAN.encode("cp1252")))
    assert detect_file_encoding(path).name == "cp1252"
    assert detect_file_delimiter(path) == ";"


ROWS = "Fall;Aktivität;Zeit;Wer\n1;A;2024-03-01 09:00;Ann\n1;B;2024-03-01 10:00;Bob\n2;A;2024-03-02 09:00;Cy\n"


@pytest.mark.parametrize(
    ("above", "lines"),
    [
        ("", 0),
        ("sep=;\n", 1),
        ('"SEP=;"\r\n', 1),
        ("sep=;;;;\n", 1),
        ("sep=;\nEntrées\n\n", 3),
        ("Export vom 01.03.2024\n\n", 2),
        ("Export vom 01.03.2024;;;\n;;;\n", 2),
        ("Meldingen, mei 2024\n", 1),
        ("# created by a tool\n# one; two; three; four\n", 2),
        ("Report;;;\nClient;Acme;;\n", 2),
        ("Titre;;;\nPériode;du 01/01/2024;au 02/02/2024;\n", 2),
    ],
)
@pytest.mark.parametrize("sign", [";", ",", "\t", "|"])
def test_what_stands_above_a_header_is_no_table(above: str, lines: int, sign: str) -> None:
    if "," in above and sign == ",":
        sign = ";"
    assert table_head(above.replace(";", sign) + ROWS.replace(";", sign)) == (lines, sign)


@pytest.mark.parametrize(
    "table",
    [
        "#Case;Activity;Time\n1;A;2024-01-01\n1;B;2024-01-02\n",
        "id;;when\n1;A;2024-01-01\n1;B;2024-01-02\n2;C;\n",
        'Case;Text;Time;\n1;"a\nb";2024-01-01;\n1;c;2024-01-01;x\n',
        "a;b\n",
    ],
)
def test_a_header_is_the_first_row_where_no_other_row_names_more_columns(table: str) -> None:
    assert table_head(table) == (0, ";")

from typing import Any

from opus_pipelines.intakes.documents.document import MAX_ROWS


def test_a_table_becomes_labelled_lines_and_newlines_in_fields_stay(read: Any) -> None:
    assert read("a.csv", b'id;note\n1;"two\nlines"\n2;plain\n') == (
        "id; note\n\nid: 1; note: two\nlines\nid: 2; note: plain",
        None,
    )


def test_a_title_above_the_columns_names_is_no_row(read: Any) -> None:
    assert read("a.csv", "Prices 2026\n\nitem,usd\nglass,12\n")[0] == "Prices 2026\n\nitem; usd\n\nitem: glass; usd: 12"


def test_cells_without_a_name_are_kept(read: Any) -> None:
    assert read("a.tsv", "a\tb\n1\t2\t3\n")[0] == "a; b\n\na: 1; b: 2; column 3: 3"


def test_rows_past_the_limit_are_counted(read: Any) -> None:
    rows = "\n".join(f"{n},x" for n in range(MAX_ROWS + 7))
    text, left_out = read("a.csv", f"id,name\n{rows}\n")
    assert text.endswith("id: 999; name: x")
    assert left_out == "7 of 1,007 rows"


def test_a_table_of_huge_cells_is_cut_by_characters_and_says_so(read: Any) -> None:
    text, left_out = read("a.csv", "id,note\n" + "".join(f"{n},{'x' * 90_000}\n" for n in range(9)))
    assert len(text) == 400_000
    assert left_out == "4 of 9 rows; the last 50,079 of 450,079 characters"


def test_a_field_and_a_line_that_never_end_are_refused(read: Any) -> None:
    text, left_out = read("a.csv", 'a,b\n"' + "x\n" * 600_000)
    assert text is None
    assert "field limit (1000000)" in left_out
    assert read("a.csv", "x" * 1_000_001) == (None, "a line is longer than 1,000,000 characters")


def test_an_empty_table_is_empty(read: Any) -> None:
    text, left_out = read("a.csv", "")
    assert (text, left_out.partition(":")[0]) == (None, "it is empty")
    assert read("a.csv", ",,\n,,\n") == ("", "it holds no text")

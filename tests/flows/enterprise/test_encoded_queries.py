"""Encoded queries: what is read and printed, and where an error is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.flows.enterprise.values import (
    QUERY_OPERATORS,
    WITHOUT_VALUE,
    EncodedQuery,
    QueryError,
    Term,
    parse_query,
    query_text,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("active=true", [("^", "active", "=", "true")]),
        ("priority<=2^state!=7^EQ", [("^", "priority", "<=", "2"), ("^", "state", "!=", "7")]),
        (
            "state=1^ORstate=2^NQvip=true",
            [("^", "state", "=", "1"), ("^OR", "state", "=", "2"), ("^NQ", "vip", "=", "true")],
        ),
        ("short_descriptionNOT LIKEtest", [("^", "short_description", "NOT LIKE", "test")]),
        ("caller.managerISEMPTY^stateIN1,2", [("^", "caller.manager", "ISEMPTY", ""), ("^", "state", "IN", "1,2")]),
        ("amountBETWEEN10@20", [("^", "amount", "BETWEEN", "10@20")]),
        ("stateCHANGESTO6", [("^", "state", "CHANGESTO", "6")]),
        ('title="a^ORb ""c"""^n=1', [("^", "title", "=", 'a^ORb "c"'), ("^", "n", "=", "1")]),
        ("{{record_update.current.state}}=6", [("^", "{{record_update.current.state}}", "=", "6")]),
        ("nameLIKEa=b", [("^", "name", "LIKE", "a=b")]),
        ("assigned_to=", [("^", "assigned_to", "=", "")]),
    ],
)
def test_a_query_is_read_and_printed(text: str, terms: list[tuple[str, ...]]) -> None:
    query = parse_query(text)
    assert [(t.join, t.field, t.operator, t.value) for t in query.terms] == terms
    assert query_text(query) == text
    assert query.has_end == text.endswith("^EQ")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("priority≤2", 9),
        ("state=1^prioritaet≠2", 19),
        ("state ENTHÄLT x", 1),
        ("state=1^", 8),
        ("state=1^^vip=true", 9),
        ("^state=1", 1),
        ('title="open', 7),
        ('title="a"b', 10),
        ("title=“a”", 7),
        ("stateISEMPTYx", 13),
        ("stateIN", 8),
        ("amountBETWEEN10", 14),
        ("state=1^ORDERBYname", 9),
        ("state==1", 7),
        ("état=1", 1),
    ],
)
def test_an_error_has_a_position(text: str, position: int) -> None:
    with pytest.raises(QueryError) as error:
        parse_query(text)
    assert error.value.position == position


_FIELDS = st.sampled_from(("a", "state", "caller.manager", "u_in2", "{{record_update.current.state}}"))
_VALUES = st.text(alphabet='ab=!<>^"ORNQEINLIKE {}.1“≠@,', min_size=1, max_size=12)


@st.composite
def _terms(draw: st.DrawFn) -> Term:
    operator = draw(st.sampled_from(QUERY_OPERATORS))
    if operator in WITHOUT_VALUE:
        value = ""
    elif operator == "BETWEEN":
        value = "1@2"
    else:
        value = draw(_VALUES)
    return Term(draw(_FIELDS), operator, value, draw(st.sampled_from(("^", "^OR", "^NQ"))))


@given(st.lists(_terms(), max_size=5), st.booleans())
def test_what_is_printed_is_read_back(terms: list[Term], has_end: bool) -> None:
    if terms:
        terms[0] = Term(terms[0].field, terms[0].operator, terms[0].value)
    query = EncodedQuery(tuple(terms), has_end and bool(terms))
    assert parse_query(query_text(query)) == query


@given(st.text(alphabet='ab=!<>^"ORNQEINLIKE {}.1“≠', max_size=30))
def test_any_text_is_a_query_or_has_an_error_inside_it(text: str) -> None:
    try:
        query = parse_query(text)
    except QueryError as error:
        place = error.position
    else:
        place = 1
        assert parse_query(query_text(query)) == query
    assert 1 <= place <= len(text) + 1

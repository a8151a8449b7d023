"""XES by columns: the same cases, counts, rejects and refusals as trace by trace, whatever the log looks like."""

import gzip
import io
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.core.settings import parse
from opus_pipelines.history.formats.xes import XesReader, read_stream
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.formats import FORMATS
from opus_pipelines.history.records.raw import Reject
from opus_pipelines.history.records.source_settings import SourceSettings


class Watched(XesReader):
    """Counts the events that are read by columns, or reads none so."""

    def __init__(self, settings: SourceSettings, sink: Assembler, columns: bool) -> None:
        super().__init__(settings, sink)
        self.columns, self.events_by_column = columns, 0

    def plain(self, text: bytes) -> bool:
        before = self._sink.counts.records  # traces that wait for the end of the file are no records yet
        is_read = self.columns and super().plain(text)
        self.events_by_column += self._sink.counts.records - before
        return is_read


class Read:
    """What came of one log: rows by case, counts, rejects, or why it was refused; and how much of it was read by
    columns.
    """

    def __init__(
        self,
        content: bytes,
        stated: dict[str, Any],
        columns: bool,
        block: int = 1 << 22,
        seen: OtherFiles | None = None,
    ) -> None:
        batches: list[pa.RecordBatch] = []
        self.rejects: list[Reject] = []
        typed = parse(SourceSettings, stated, "source.toml")
        file, outlets = LogFile("s", "log.xes", FORMATS[0]), Outlets(batches.append, self.rejects.append)
        sink = Assembler(file, typed, seen or OtherFiles(), outlets)
        self.reason = None
        reader = Watched(typed, sink, columns)
        try:
            read_stream(lambda: io.BytesIO(content), reader, block, smallest=200)
            sink.finish()
        except InputError as error:
            self.reason = str(error)
        self.events_by_column = reader.events_by_column
        table = pa.Table.from_batches(batches, IMPLEMENTATIONS.schema).sort_by("case_id")
        self.rows = table.to_pylist()
        self.counts = asdict(sink.counts)
        self.parts, self.repeated = sink.parts, sink.repeated

    def outcome(self) -> Any:
        rejects = sorted(self.rejects, key=lambda reject: reject.position)  # a trace that waited has its own later
        return self.reason or (self.rows, self.counts, [asdict(r) for r in rejects])


def both(content: bytes, stated: dict[str, Any] | None = None, block: int = 1 << 22) -> Read:
    """Read both ways, which must agree."""
    by_column, by_record = Read(content, stated or {}, True, block), Read(content, stated or {}, False)
    assert by_column.outcome() == by_record.outcome()
    return by_column


def element(kind: str, key: str, value: str) -> str:
    return f'<{kind} key="{key}" value="{value}"/>'


def event(*attributes: str) -> str:
    return "<event>" + "".join(attributes) + "</event>"


def trace(name: str, *parts: str) -> str:
    return "<trace>" + element("string", "concept:name", name) + "".join(parts) + "</trace>"


def log(*traces: str, before: str = "", after: str = "") -> bytes:
    opening = '<?xml version="1.0" encoding="UTF-8"?>\n<log xmlns="http://www.xes-standard.org/">'
    return f"{opening}{before}{''.join(traces)}{after}</log>\n".encode()


DROP = {"events": {"repeated": "drop"}}
A = element("string", "concept:name", "A")
START, COMPLETE = (element("string", "lifecycle:transition", word) for word in ("start", "COMPLETE"))


def at(second: int) -> str:
    return element("date", "time:timestamp", f"2020-01-01T00:00:{second:02d}.000+00:00")


def test_a_plain_log_is_read_by_columns() -> None:
    first = trace(
        "c1", element("int", "AMOUNT", "5"), event(A, START, at(1)), event(A, START, at(2)), event(A, COMPLETE, at(5))
    )
    read = both(log(first, "\n\t", trace("c2"), before='<extension name="Time" prefix="time" uri="x"/>'))
    assert read.events_by_column == 3
    one, two = read.rows
    assert [(t["duration_ms"], t["wait_ms"]) for t in one["tasks"]] == [(4000.0, None), (None, None)]
    assert (one["attributes"], two["tasks"]) == ([("AMOUNT", "5")], [])
    assert one["content_hash"] != two["content_hash"]


@pytest.mark.parametrize(
    "part",
    [
        '<event><!-- x --><string key="concept:name" value="A"/></event>',
        "<event><string key='concept:name' value='A'/></event>",
        '<event><string value="A" key="concept:name"/></event>',
        '<event><string key="concept:name" value="A"></string></event>',
        '<event><string key="concept:name" value="A"><int key="n" value="1"/></string></event>',
        '<event><list key="l"><values><int key="n" value="1"/></values></list><string '
        'key="concept:name" value="A"/></event>',
        '<event id="1"><string key="concept:name" value="A"/></event>',
        '<event><string key="concept:name" value="A"/><string key="concept:name" value="B"/></event>',
        '<event><string key="concept:name" value="A\n"/></event>',
        '<event><string  key="concept:name" value="A"/></event>',
        '<event><?php x?><string key="concept:name" value="A"/></event>',
        '<event><![CDATA[ <trace> ]]><string key="concept:name" value="A"/></event>',
        '<event><string key="concept:name" value="A"/>text</event>',
        '<event><string key="concept:name" value="A"/><other/></event>',
        '<event><string key="concept&amp;name" value="A"/><string key="concept:name" value="A"/></event>',
        '<event><string key="concept:name" value="A"/><date key="time:timestamp" value="soon"/></event>',
        '<event><string key="concept:name" value=" "/></event>',
        '<event><string key="concept:name" value="A"/><float key="cost:total" value="-1"/></event>',
        '<event><string key="concept:name" value="A"/><float key="cost:total" value="1"/><string '
        'key="cost:currency" value="EUR"/></event>',
    ],
)
def test_what_is_unusual_is_read_by_the_parser(part: str) -> None:
    usual = [trace(f"c{n}", *(event(A, at(n + place)) for place in range(4))) for n in range(8)]
    read = both(log(*usual[:4], trace("x", part), *usual[4:]))
    assert 16 <= read.events_by_column <= 32  # most of the others all the same


@pytest.mark.parametrize(
    "part",
    [
        '<event><string key="concept:name" value="A&b;"/></event>',
        '<event><string key="concept:name" value="A&#0;"/></event>',
        '<event><string key="concept:name" value="A&amp"/></event>',
        '<event><string key="concept:name" value="<A"/></event>',
        '<event><string key="concept:name" value="A"/></event></event>',
        '<event><string key="concept:name" value="A"/>',
        '<event><string key="concept:name"value="A"/></event>',
        '<event><string key="concept:name" value="A" / ></event>',
        '<event><string key="concept:name" value="\x01"/></event>',
        '<event><string key="concept:name" value="\uffff"/></event>',
        "<event>\x00</event>",
    ],
)
def test_what_the_parser_refuses_is_refused_with_its_words(part: str) -> None:
    usual = [trace(f"c{n}", event(A)) for n in range(4)]
    assert "the XML is broken" in str(both(log(*usual, trace("x", part), *usual)).reason)


def test_traces_in_comments_and_in_other_places_are_no_plain_traces() -> None:
    hidden, plain = trace("c1", event(A)), trace("c2", event(A))
    assert [r["case_id"] for r in both(log(f"<!-- {hidden} -->", plain)).rows] == ["c2"]
    assert [r["case_id"] for r in both(log(f"<![CDATA[{hidden}]]>", plain)).rows] == ["c2"]
    inside = both(log(f"<wrapper>{hidden}</wrapper>", plain))
    assert [r["case_id"] for r in inside.rows] == ["c1", "c2"]
    assert "no <log>" in str(both(b"<wrapper>" + log(hidden)[39:] + b"</wrapper>").reason)
    assert "no <log>" in str(both(hidden.encode()).reason)
    assert "document type" in str(both(b"<!DOCTYPE log [<!ENTITY a 'b'>]>" + log(hidden)[39:]).reason)


def test_other_encodings_are_read_by_the_parser() -> None:
    text = log(trace("c1", event(A, element("string", "x", "é")))).decode()
    for encoding in ("ISO-8859-1", "UTF-16"):
        read = both(text.replace("UTF-8", encoding).encode(encoding))
        assert (read.events_by_column, dict(read.rows[0]["tasks"][0]["attributes"])) == (0, {"x": "é"})
    assert both(text.encode()).events_by_column == 1
    assert both(b"\xef\xbb\xbf" + text.encode()).rows[0]["case_id"] == "c1"


def test_references_are_resolved() -> None:
    value = "&lt;a&gt; &amp;amp; &quot;&apos; &#233;&#x20AC; &#10;."
    read = both(log(trace("c&amp;1", event(A, element("string", "x", value)), event(A))))
    assert read.events_by_column == 2
    assert (read.rows[0]["case_id"], dict(read.rows[0]["tasks"][0]["attributes"])) == (
        "c&1",
        {"x": "<a> &amp; \"' é€ \n."},
    )


def test_what_is_redacted_is_redacted_in_columns_too() -> None:
    private = [
        element("string", key, value)
        for key, value in (("name", "Ann"), ("city", "Delft &amp; Rotterdam"), ("note", "hello"))
    ]
    stated = {"redact": {"drop": ["name"], "hash": ["city"], "mask": ["note"]}}
    read = both(log(*(trace(f"c{n}", *private, event(A, *private)) for n in range(3))), stated)
    assert read.events_by_column == 3
    for attributes in (read.rows[0]["attributes"], read.rows[0]["tasks"][0]["attributes"]):
        (city, hashed), note = attributes
        assert (city, hashed[0], len(hashed), note) == ("city", "h", 17, ("note", "***"))


def test_events_outside_of_traces_come_last() -> None:
    read = both(log(event(A), trace("c1", event(A)), event(A)))
    assert [(r.position, r.code) for r in read.rejects] == [(2, "no_case"), (3, "no_case")]


def test_a_case_that_is_put_together_from_several_files_is_held_back() -> None:
    seen = OtherFiles(held=frozenset({"c2"}))
    read = Read(log(*(trace(f"c{n}", *[event(A)] * 6) for n in range(6))), {}, True, seen=seen)
    assert [r["case_id"] for r in read.rows] == ["c0", "c1", "c3", "c4", "c5"]
    assert [(part.path, part.case.case_id, len(part.case.events), part.cause) for part in read.parts] == [
        ("log.xes", "c2", 6, None)
    ]
    assert read.counts["records"] == 36
    assert read.events_by_column == 30


def test_a_case_that_stands_in_the_file_twice_is_noted_and_read_by_the_source() -> None:
    read = Read(log(trace("c1", event(A)), trace("c2", event(A)), trace("c1", event("B"))), {}, True)
    assert ([r["case_id"] for r in read.rows], read.repeated, read.counts["records"]) == (["c1", "c2"], {"c1"}, 2)


def test_events_that_say_the_same_are_one_by_columns_and_by_records() -> None:
    twice = event(A, at(1))
    content = log(trace("c1", twice, event(A, at(2)), twice), trace("c2", event(A), event(A)))
    assert [len(row["tasks"]) for row in both(content).rows] == [3, 2]
    read = both(content, DROP)
    assert [len(row["tasks"]) for row in read.rows] == [2, 2]  # nothing tells that events without a time are the same
    assert (read.counts["duplicates"], read.counts["not_work"], read.counts["used"]) == (1, 1, 4)
    assert read.events_by_column == 5


@pytest.mark.parametrize(
    ("other", "tasks", "duplicates"),
    [
        (event(A, at(1), element("int", "size", "7")), 3, 0),  # about the same, and different
        (event(A, at(1), element("float", "size", "6.0")), 3, 0),
        (event(A, at(1), element("int", "size", "6")) * 2 + event("", A, at(1)), 3, 2),
    ],
)
def test_what_is_no_plain_duplicate_is_decided_by_records(other: str, tasks: int, duplicates: int) -> None:
    first = event(A, at(1), element("int", "size", "6"))
    read = both(log(trace("c1", first, event("", A, at(2)), other)), DROP)
    assert (len(read.rows[0]["tasks"]), read.counts["duplicates"]) == (tasks, duplicates)
    assert read.events_by_column == 0


def test_a_log_without_start_and_complete_counts_every_event() -> None:
    word = element("string", "lifecycle:transition", "assign")
    assert [len(r["tasks"]) for r in both(log(trace("c1", event(A, word)), trace("c2", event(A, word)))).rows] == [1, 1]
    assert [len(r["tasks"]) for r in both(log(trace("c1", event(A, word)), trace("c2", event(A, COMPLETE)))).rows] == [
        0,
        1,
    ]


@pytest.mark.parametrize("block", [64, 1 << 22])
def test_traces_whose_transitions_mean_nothing_yet_wait_and_are_read_by_columns(block: int) -> None:
    word = element("string", "lifecycle:transition", "assign")
    waits = [trace(f"c{n}", event(A, word), event(A, word)) for n in range(6)]
    none = both(log(*waits), block=block)
    assert ([len(row["tasks"]) for row in none.rows], none.events_by_column) == ([2] * 6, 12)
    late = both(log(*waits, trace("d", event(A, COMPLETE))), block=block)
    assert ([len(row["tasks"]) for row in late.rows], late.events_by_column) == ([0] * 6 + [1], 13)
    odd = both(log(*waits, trace("d", event(word)), waits[0]), block=block)
    assert len(odd.rejects) == 1, "the event without an activity; the parser reads what is not plain"


def test_traces_that_wait_are_read_at_the_latest_where_the_log_may_end() -> None:
    word = element("string", "lifecycle:transition", "assign")
    spaced = log(trace("c1", event(A, word)), after=" " * 300 + "<!-- no trace -->" + " " * 300)
    assert [len(row["tasks"]) for row in both(spaced, block=64).rows] == [1]


# --- any log at all

NAMES = st.sampled_from(["A", "B", "é", " A ", "a&amp;b", "x" * 9, "0.5", "true", "12", "human", "no"])
TIMES = st.one_of(
    st.integers(0, 40).map(lambda n: f"2020-02-{1 + n % 29:02d}T0{n % 10}:00:{n:02d}.{n:03d}+0{n % 3}:00"),
    st.sampled_from(
        [
            "2020-02-29 10:00:00.000000-05:30",
            "1999-12-31T23:59:59Z",
            "2021-02-29T00:00:00Z",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:00:00",
            "0001-01-01T00:00:00+10:00",
            "9999-12-31T23:59:59.999-10:00",
            "1583298367",
            "04 Mar 2020 10:00Z",
            "2020-01-01T00:00:00.123456Z",
            "2020-01-01T00:00:00.1234Z",
            "2020-1-1T00:00:00Z",
            "2020-01-01T00:00:60Z",
            "0000-01-01T00:00:00Z",
            "2020-13-01T00:00:00Z",
        ]
    ),
)
TRANSITIONS = st.sampled_from(["start", "complete", "COMPLETE", "schedule", " Start", "odd", "suspend"])
ATTRIBUTES = st.one_of(
    TIMES.map(lambda v: element("date", "time:timestamp", v)),
    TRANSITIONS.map(lambda v: element("string", "lifecycle:transition", v)),
    st.sampled_from(["1", "2"]).map(lambda v: element("string", "concept:instance", v)),
    st.sampled_from(["1.5", "0.1", "0.2", "-0.0", "7", "$3", "1e400", "NaN", ""]).map(
        lambda v: element("float", "cost:total", v)
    ),
    st.sampled_from(["USD", "usd", "EUR"]).map(lambda v: element("string", "cost:currency", v)),
    st.sampled_from(["human", "bot", "cat", "ai"]).map(lambda v: element("string", "kind", v)),
    st.tuples(
        st.sampled_from(
            ["org:resource", "x", "y", "(case)_x", "case:x", "outcome", "title", "long", "list", "human cost", "ok", ""]
        ),
        NAMES,
    ).map(lambda pair: element("string", *pair)),
)
SPACES = st.sampled_from(["", "", "\n", "\n\t\t", " "])
EVENTS = st.builds(
    lambda name, more, space: (
        space + event(*(space + a for a in (element("string", "concept:name", name), *more)), space)
    ),
    st.one_of(NAMES, st.just("A"), st.just("A")),
    st.lists(ATTRIBUTES, max_size=5, unique_by=lambda a: a.split('"')[1]),
    SPACES,
)
USUAL = st.builds(
    lambda second, word, more: event(A, at(second), element("string", "lifecycle:transition", word), *more),
    st.integers(0, 9),
    st.sampled_from(["start", "complete"]),
    st.lists(ATTRIBUTES, max_size=1).map(lambda a: [x for x in a if '"x"' in x]),
)
TRACES = st.tuples(
    st.lists(ATTRIBUTES, max_size=3, unique_by=lambda a: a.split('"')[1]),
    st.one_of(st.lists(EVENTS, max_size=4), st.lists(USUAL, max_size=6)),
)
SETTINGS = st.sampled_from(
    [
        {},
        {},
        {"success": {"column": "outcome", "equals": "true"}},
        {"success": {"last_activity_in": ["A"]}},
        {"success": {"contains_activity": ["B", "A"]}},
        {"success": {"contains_none_of": ["B"]}},
        {"timezone": "Europe/Amsterdam"},
        {"columns": {"success": "ok", "expected_outcome": "outcome"}},
        {"columns": {"attributes": ["x"], "title": "title", "client": "y"}},
        {
            "columns": {
                "actor_kind": "kind",
                "cost_human": "human cost",
                "task_title": "long",
                "instructions": "list",
                "duration_ms": "x",
            },
            "rates": {"human": 36.0, "B": 1.5},
        },
        {"industry": "i", "client": "c", "weight": 3},
        {"industry": {"column": "y"}, "weight": {"column": "x"}},
        {"columns": {"start": "time:timestamp"}},
        {"columns": {"transition": "absent", "instance": "x"}},
        {"columns": {"case_cost": "cost:total", "cost": "x"}},
        {"activity": "{concept:name} {x}"},
        {"currency": "EUR"},
        {"decimal": ","},
        {"redact": {"drop": ["x"], "hash": ["y", "org:resource"], "mask": ["(case)_x"]}},
        {"redact": {"hash": ["concept:name"]}},
        {"time_format": ["%Y-%m-%dT%H:%M:%SZ"]},
        {"columns": {"model": "kind", "tokens_in": "x"}},
    ]
)


def written(traces: list[tuple[list[str], list[str]]]) -> bytes:
    return log(*(trace(f"c{n}", *attributes, *events) for n, (attributes, events) in enumerate(traces)))


@pytest.mark.long
@settings(max_examples=120, deadline=None)
@given(traces=st.lists(TRACES, max_size=8), stated=SETTINGS, block=st.sampled_from([64, 500, 1 << 22]))
def test_both_ways_agree_on_any_log(
    traces: list[tuple[list[str], list[str]]], stated: dict[str, Any], block: int
) -> None:
    both(written(traces), stated, block)


PIECES = st.sampled_from(
    [
        b"",
        b'"',
        b"'",
        b"<",
        b">",
        b"/",
        b"&",
        b"&amp;",
        b"\n",
        b" ",
        b"\xff",
        b"\x00",
        b"\xc3\xa9",
        b"<!--",
        b"-->",
        b"<trace>",
        b"</trace>",
        b"<event>",
        b"</event>",
        b"</log>",
        b"<log>",
        b"<![CDATA[",
        b"]]>",
        b"key",
        b'key="a" value="b"',
        b"<?x?>",
        b'<int key="a" value="1"/>',
    ]
)
PLAIN = written(
    [([element("int", f"n{n}", "1")], [event(A, at(n), START), event(A, at(n + 5), COMPLETE)]) for n in range(4)]
)


@pytest.mark.long
@settings(max_examples=120, deadline=None)
@given(
    mutations=st.lists(st.tuples(st.integers(0, len(PLAIN)), st.integers(0, 9), PIECES), min_size=1, max_size=4),
    block=st.sampled_from([64, 500, 1 << 22]),
)
def test_both_ways_agree_on_mutated_logs(mutations: list[tuple[int, int, bytes]], block: int) -> None:
    content = PLAIN
    for place, length, piece in mutations:
        content = content[:place] + piece + content[place + length :]
    both(content, {}, block)


# --- real logs

DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data")) / "event_logs"


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}; OPUS_TEST_DATA says where it is")
@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("receipt_wabo", 8_577),
        pytest.param("helpdesk", 20_455, marks=pytest.mark.nightly),
        pytest.param("bpic2012", 262_200, marks=pytest.mark.nightly),
        pytest.param("bpic2013_incidents", 65_533, marks=pytest.mark.nightly),
        pytest.param("bpic2020_DomesticDeclarations", 55_628, marks=pytest.mark.nightly),
        pytest.param("bpic2020_RequestForPayment", 36_072, marks=pytest.mark.nightly),
    ],
)
def test_both_ways_agree_on_real_logs(name: str, events: int) -> None:
    assert both(gzip.decompress((DATA / f"{name}.xes.gz").read_bytes())).events_by_column == events

"""Files that unpack beyond measure, or say what no log should say."""

import gzip

import pyarrow as pa
from pieces import BPMN_END, BPMN_HEAD, CSV_HEAD, MIB, Cases, bomb, event, n8n, ocel, parquet, record, xes
from seeds import COSTS, JSONL_SETTINGS, Seed


def bombs() -> Cases:
    """Half a gigabyte from half a megabyte, in every format; rows and texts that take no room in a Parquet file;
    entities.
    """
    for name, head in (
        ("a.xes.gz", b'<log><trace><string key="concept:name" value="'),
        ("a.csv.gz", CSV_HEAD.encode() + b"c,A,,,,"),
        ("b.csv.gz", b""),
        ("a.jsonl.gz", b'{"case_id": "'),
        ("a.json.gz", b'{"nodes": "'),
        ("a.ocel.json.gz", b'{"events": "'),
        ("a.bpmn.gz", BPMN_HEAD.encode() + b'<task id="'),
        ("a.parquet.gz", b"PAR1"),
    ):
        yield f"bomb {name}", lambda name=name, head=head: Seed(name, bomb(head))
    yield "bomb of lines", lambda: Seed("a.csv.gz", bomb(CSV_HEAD.encode(), b"\n"))
    yield "bomb of commas", lambda: Seed("a.csv.gz", bomb(CSV_HEAD.encode(), b","))
    yield "bomb of spaces", lambda: Seed("a.jsonl.gz", bomb(b"", b" "))
    yield "bomb of line ends", lambda: Seed("a.jsonl.gz", bomb(b"", b"\n"))
    yield "bomb in the log", lambda: Seed("a.xes.gz", bomb(b"<log>", b" "))
    yield "packed twice", lambda: Seed("a.csv.gz", gzip.compress(gzip.compress(CSV_HEAD.encode())))
    yield "no gzip", lambda: Seed("a.csv.gz", CSV_HEAD.encode())
    yield "gzip of nothing", lambda: Seed("a.csv.gz", gzip.compress(b""))
    yield "gzip by another name", lambda: Seed("a.csv", gzip.compress(CSV_HEAD.encode()))
    yield "many small members", lambda: Seed("a.csv.gz", gzip.compress(b"") * 200_000)
    rows = 400_000
    one = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * MIB]))
    yield (
        "Parquet of one long text",
        lambda: Seed("a.parquet", parquet(case_id=["c"] * rows, activity=["A"] * rows, note=one)),
    )
    many = pa.DictionaryArray.from_arrays(
        pa.array([0] * 20_000, pa.int32()), pa.array([["x" * 4000] * 100], pa.list_(pa.string()))[:1].flatten()
    )
    yield (
        "Parquet of a long dictionary",
        lambda: Seed("a.parquet", parquet(case_id=["c"] * 20_000, activity=["A"] * 20_000, note=many)),
    )
    lists = pa.array([[0] * 1000] * 20_000, pa.list_(pa.int8()))
    yield (
        "Parquet of long lists",
        lambda: Seed("a.parquet", parquet(case_id=["c"] * 20_000, activity=["A"] * 20_000, x=lists)),
    )
    yield (
        "Parquet of nulls",
        lambda: Seed("a.parquet", parquet(case_id=pa.nulls(6_000_000), activity=pa.nulls(6_000_000))),
    )
    laughs = (
        "<!DOCTYPE l [<!ENTITY a 'ha'>"
        + "".join(f"<!ENTITY {chr(97 + i)} '{'&' + chr(96 + i) + ';' * 10}'>" for i in range(1, 12))
        + "]>"
    )
    for name, body in (("a.xes", "<log><trace>&l;</trace></log>"), ("a.bpmn", f"{BPMN_HEAD}&l;{BPMN_END}")):
        yield f"laughs {name}", lambda name=name, body=body: Seed(name, (laughs + body).encode())
        outside = f'<!DOCTYPE l [<!ENTITY l SYSTEM "file:///etc/passwd">]>{body}'
        yield f"outside entity {name}", lambda name=name, text=outside: Seed(name, text.encode())


def contents() -> Cases:
    """What no log should say."""
    for encoding in ("utf-7", "ebcdic-cp-us", "nonsense", "utf-16", "us-ascii", "ISO-8859-1"):
        text = f'<?xml version="1.0" encoding="{encoding}"?>'.encode() + xes(case="é")
        yield f"XML says {encoding}", lambda text=text: Seed("a.xes", text)
    for ident in (
        "../../../../tmp/escaped",
        "/tmp/escaped",
        "..",
        "a\\..\\b",
        "c\x00d",
        "con",
        "~root",
        "$(touch x)",
        "x" * 100_000,
        "\u202e",
        " ",
    ):
        escaped = ident.replace("&", "&amp;").replace("\x00", "&#0;")
        yield f"id {ident[:20]!r}, XES", lambda v=escaped: Seed("a.xes", xes(case=v))
        yield f"id {ident[:20]!r}, JSONL", lambda v=ident: Seed("a.jsonl", record(case_id=v))
        yield f"id {ident[:20]!r}, CSV", lambda v=ident: Seed("a.csv", f'{CSV_HEAD}"{v}",A,,,,\n'.encode())
        yield (
            f"id {ident[:20]!r}, OCEL",
            lambda v=ident: Seed(
                "a.ocel.json", ocel([event(relationships=[{"objectId": v}])], [{"id": v, "type": "t"}])
            ),
        )
        yield (
            f"id {ident[:20]!r}, BPMN",
            lambda v=escaped: Seed("a.bpmn", f'{BPMN_HEAD}<task id="{v}" name="{v}"/>{BPMN_END}'.encode()),
        )
        yield f"id {ident[:20]!r}, n8n", lambda v=ident: Seed("a.json", n8n([{"name": v, "type": v}]))
    for number in (
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1",
        "1e300",
        "9" * 5000,
        "9" * 400,
        "-0.0",
        "true",
        '"9e9"',
        "[1]",
        '"½"',
        '"١٢"',
    ):
        tasks = f'[{{"activity": "A", "cost": {number}, "tokens_in": {number}, "start": {number}}}]'
        line = f'{{"case_id": "c", "runs": {number}, "total": {number}, "tasks": {tasks}}}'
        yield f"number {number[:12]}", lambda line=line: Seed("a.jsonl", line.encode(), JSONL_SETTINGS)
    for text in (
        '{"case_id": "c", "x": "\\ud800", "tasks": ["A"]}',
        '{"case_id": "c", "tasks": ["\\udfff"]}',
        '{"\\ud800": 1, "case_id": "c", "tasks": []}',
    ):
        yield "lone surrogate", lambda text=text: Seed("a.jsonl", text.encode())
        yield "lone surrogate, OCEL", lambda text=text: Seed("a.ocel.json", text.encode())
    yield "NUL", lambda: Seed("a.jsonl", record(case_id="\x00", tasks=[{"activity": "\x00"}], x="\x00"))
    yield "same key", lambda: Seed("a.jsonl", b'{"case_id": "a", "case_id": "b", "tasks": [], "tasks": ["A"]}')
    yield "same case", lambda: Seed("a.jsonl", record() + b"\n" + record())
    yield "same node", lambda: Seed("a.json", n8n([{"name": "n", "type": "t"}] * 3, {"n": {"main": [[{"node": "n"}]]}}))
    twice = '<task id="a"/><subProcess id="a"><task/></subProcess>'
    yield "same element", lambda: Seed("a.bpmn", f"{BPMN_HEAD}{twice}{BPMN_END}".encode())
    yield "same object", lambda: Seed("a.ocel.json", ocel([event()] * 2, [{"id": "o", "type": "t"}] * 3))
    for before in ([1], [0], [[1]], [-1], [10**30], [1.0], ["0"], [True], "0", {"0": 1}, [0] * 1000, None, [5, 5, 5]):
        tasks = [
            {"activity": "A", "predecessors": before},
            {"activity": "B", "predecessors": [0]},
            {"activity": "C", "predecessors": [2, 1, 0]},
        ]
        yield (
            f"predecessors {str(before)[:12]}",
            lambda tasks=tasks: Seed("a.jsonl", record(tasks=tasks), JSONL_SETTINGS),
        )
    for start, end in (
        ("2020-01-02T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        ("1583298367", "99999999999999999"),
        ("-99999999999", "9" * 17),
        ("0000-01-01", "10000-01-01"),
        ("2020-02-30", "24:00"),
    ):
        yield f"{start} to {end}", lambda s=start, e=end: Seed("a.csv", f"{CSV_HEAD}c,A,{s},{e},1,\n".encode(), COSTS)
    yield (
        "wrong shapes",
        lambda: Seed(
            "a.json",
            n8n([None, 1, [], {"name": []}, {"name": "n", "type": "t", "parameters": [], "notes": 5}], [[]], tags=1),
        ),
    )
    for links in (
        {"n": []},
        {"n": {"main": [[{"node": None}, 1, None], None, {}]}},
        {"x": {"main": [[{"node": "n"}]]}},
        "x",
        {"n": {"": [[{"node": "n"}]]}},
    ):
        yield "wrong links", lambda links=links: Seed("a.json", n8n([{"name": "n", "type": "t"}], links))
    for odd in (
        None,
        1,
        [],
        {},
        event(relationships=5),
        event(relationships=[None, {"objectId": []}]),
        event(attributes=[{"name": 1}, 2]),
        event(time=None),
        event(time={}),
        event(type=[]),
        event(attributes=[{"name": "cost", "value": {"a": float("nan")}}]),
    ):
        yield f"event {str(odd)[:30]}", lambda odd=odd: Seed("a.ocel.json", ocel([odd, event()]), COSTS)
    for name in ("a.xes", "a.csv", "a.jsonl", "a.parquet", "a.json", "a.ocel.json", "a.bpmn"):
        for label, content in (
            ("nothing", b""),
            ("a NUL", b"\x00"),
            ("a BOM", b"\xef\xbb\xbf"),
            ("a UTF-16 BOM", b"\xff\xfe"),
            ("null", b"null"),
            ("random bytes", bytes(range(256)) * 50),
            ("a line end", b"\n"),
            ("half a UTF-16", b"\xff\xfea"),
            ("[]", b"[]"),
            ("{}", b"{}"),
        ):
            yield f"{name} of {label}", lambda name=name, content=content: Seed(name, content)
            yield f"{name}.gz of {label}", lambda name=name, content=content: Seed(f"{name}.gz", gzip.compress(content))

"""Files whose parts are too long, too deep or too many."""

import pyarrow as pa
from pieces import BPMN_END, BPMN_HEAD, CSV_HEAD, DEEP, Cases, event, n8n, ocel, parquet, record, xes
from seeds import COSTS, JSONL_SETTINGS, Seed


def large_fields() -> Cases:
    """Fields of ten megabytes, plain and as what the masks, the times and the numbers look for."""
    big = "x" * 10_000_000
    yield "10 MB attribute", lambda: Seed("a.xes", xes(event=f'<string key="k" value="{big}"/>'))
    yield "10 MB case id", lambda: Seed("a.xes", xes(case=big))
    yield "10 MB key", lambda: Seed("a.xes", xes(event=f'<string key="{big}" value="v"/>'))
    yield "10 MB CSV field", lambda: Seed("a.csv", f"{CSV_HEAD}c,A,,,,{big}\nc,B,,,,\n".encode())
    yield "10 MB header", lambda: Seed("a.csv", f"case_id,activity,{big}\nc,A,x\n".encode())
    yield "10 MB string", lambda: Seed("a.jsonl", record(note=big))
    yield "10 MB JSON id", lambda: Seed("a.jsonl", record(case_id=big))
    yield "10 MB Parquet string", lambda: Seed("a.parquet", parquet(case_id=["c"], activity=["A"], note=[big]))
    yield "10 MB n8n note", lambda: Seed("a.json", n8n([{"name": "n", "type": "t", "notes": big}]))
    yield "10 MB OCEL value", lambda: Seed("a.ocel.json", ocel([event(attributes=[{"name": "a", "value": big}])]))
    yield (
        "5 MB BPMN name",
        lambda: Seed("a.bpmn", f'{BPMN_HEAD}<task id="a" name="{big[:5_000_000]}"/>{BPMN_END}'.encode()),
    )
    for label, text in (
        ("addresses", "a@b." * 2_000_000),
        ("almost addresses", "a" * 8_000_000 + "@"),
        ("digits", "1 2" * 2_000_000),
        ("accounts", "NL91 " * 1_500_000),
        ("spaces", "2020-01-01" + " " * 3_000_000),
        ("groups", "1'" * 1_500_000),
        ("dots", "1." * 1_500_000),
        ("brackets", "[" * 3_000_000),
    ):
        for column in ("note", "activity", "start_time", "cost", "case_id"):
            fields = {
                "case_id": "c",
                "activity": "A",
                "start_time": "",
                "end_time": "",
                "cost": "",
                "note": "",
                column: text[:3_000_000],
            }
            content = f"{CSV_HEAD}{','.join(fields.values())}\n".encode()
            yield f"3 MB of {label} as {column}", lambda content=content: Seed("a.csv", content, COSTS)


def depths() -> Cases:
    """A hundred thousand levels, and as many as parsers just follow."""
    n = DEEP
    yield "deep attributes", lambda: Seed("a.xes", xes(event='<string key="k" value="v">' * n + "</string>" * n))
    yield "deep lists", lambda: Seed("a.xes", xes(event='<list key="l"><values>' * n + "</values></list>" * n))
    yield "deep traces", lambda: Seed("a.xes", b"<log>" + b"<trace>" * n + b"</trace>" * n + b"</log>")
    yield "deep, never closed", lambda: Seed("a.xes", b"<log>" + b"<trace>" * n)
    yield "deep array", lambda: Seed("a.jsonl", b'{"case_id": "c", "tasks": ' + b"[" * n + b"]" * n + b"}\n")
    yield (
        "deep object",
        lambda: Seed("a.jsonl", b'{"case_id": "c", "tasks": [], "x": ' + b'{"a":' * n + b"1" + b"}" * n + b"}\n"),
    )
    yield "deep n8n", lambda: Seed("a.json", b'{"nodes": [{"parameters": ' + b'{"a":' * n + b"1" + b"}" * n + b"}]}")
    yield "deep OCEL", lambda: Seed("a.ocel.json", b'{"events": ' + b"[" * n + b"]" * n + b', "objects": []}')
    yield (
        "deep sub-processes",
        lambda: Seed("a.bpmn", f"{BPMN_HEAD}{'<subProcess>' * n}<task/>{'</subProcess>' * n}{BPMN_END}".encode()),
    )
    for level in (100, 240, 300, 700, 900, 960, 980, 990, 1000, 1500):
        deep = "[" * level + "]" * level
        inner = '{"a":' * level + "1" + "}" * level
        yield (
            f"JSON {level} levels, used",
            lambda d=deep: Seed("a.jsonl", f'{{"case_id": "c", "tasks": [{{"activity": "A", "x": {d}}}]}}'.encode()),
        )
        yield (
            f"JSON {level} levels, rejected",
            lambda d=inner: Seed("a.jsonl", f'{{"case_id": "", "tasks": [], "x": {d}}}'.encode(), JSONL_SETTINGS),
        )
        yield (
            f"n8n {level} levels",
            lambda d=inner: Seed(
                "a.json", f'{{"nodes": [{{"name": 1, "x": {d}}}, {{"name": "n", "type": "t"}}]}}'.encode()
            ),
        )
        yield (
            f"OCEL {level} levels",
            lambda d=inner: Seed(
                "a.ocel.json",
                f'{{"objects": [{{"id": "o", "type": "t"}}], "events": [{{"type": 1, "x": {d}}}]}}'.encode(),
            ),
        )
        subs, ends = '<subProcess id="s" name="S">' * level, "</subProcess>" * level
        yield (
            f"BPMN {level} levels",
            lambda s=subs, e=ends: Seed("a.bpmn", f'{BPMN_HEAD}{s}<task id="a" name="A"/>{e}{BPMN_END}'.encode()),
        )
    packed = pa.array([{"a": 1}])
    for _ in range(60):
        packed = pa.StructArray.from_arrays([packed], ["a"])
    yield "deep Parquet", lambda: Seed("a.parquet", parquet(case_id=["c"], activity=["A"], x=packed))


def widths() -> Cases:
    """A hundred thousand of everything in one place."""
    n = DEEP
    yield (
        "wide CSV",
        lambda: Seed(
            "a.csv",
            ("case_id,activity," + ",".join(f"c{i}" for i in range(n)) + "\nc,A," + "," * (n - 1) + "\n").encode(),
        ),
    )
    yield "same columns", lambda: Seed("a.csv", ("case_id,activity," + "x," * n + "\n").encode())
    yield "blank lines", lambda: Seed("a.csv", CSV_HEAD.encode() + b"\n" * 1_000_000)
    yield "open quote", lambda: Seed("a.csv", CSV_HEAD.encode() + b'c,"A\n' * 200_000)
    yield "one line", lambda: Seed("a.csv", CSV_HEAD.replace("\n", ",").encode() + b"a," * 1_000_000)
    yield "wide record", lambda: Seed("a.jsonl", record(**{f"k{i}": i for i in range(n)}))
    chain = [{"activity": f"T{i % 9}", "predecessors": [i - 1] if i else []} for i in range(n)]
    yield "long chain", lambda: Seed("a.jsonl", record(tasks=chain), JSONL_SETTINGS)
    dense = [{"activity": "T", "predecessors": list(range(i))} for i in range(1200)]
    yield "everything after everything", lambda: Seed("a.jsonl", record(tasks=dense), JSONL_SETTINGS)
    dropped = '[record]\ndrop_tasks = "T"\n[task]\npredecessors = "predecessors"\n'
    dense = [*dense, *({"activity": "U", "predecessors": list(range(1200))} for _ in range(300))]
    yield "everything through what is dropped", lambda: Seed("a.jsonl", record(tasks=dense), dropped)
    yield "many events", lambda: Seed("a.xes", xes(more='<event><string key="concept:name" value="B"/></event>' * n))
    yield (
        "many attributes",
        lambda: Seed("a.xes", xes(event="".join(f'<string key="k{i}" value="v"/>' for i in range(n)))),
    )
    yield (
        "many namespaces",
        lambda: Seed(
            "a.xes", f"<log {' '.join(f'xmlns:n{i}=' + chr(34) + 'u' + chr(34) for i in range(20_000))}/>".encode()
        ),
    )
    yield "many empty traces", lambda: Seed("a.xes", b"<log>" + b"<trace/>" * n + b"</log>")
    nodes = [{"name": f"n{i}", "type": "t"} for i in range(n)]
    links = {f"n{i}": {"main": [[{"node": f"n{i + 1}"}]]} for i in range(n)}
    yield "long n8n flow", lambda: Seed("a.json", n8n(nodes[:20_000], links))
    yield "too many n8n nodes", lambda: Seed("a.json", n8n([*nodes, {"name": "m", "type": "t"}]))
    off = [{"name": f"n{i}", "type": "t", "disabled": i % 3 == 1} for i in range(3000)]
    mesh = {f"n{i}": {"main": [[{"node": f"n{j}"} for j in range(1, 3000, 3)]]} for i in range(0, 3000, 3)}
    mesh |= {f"n{i}": {"main": [[{"node": f"n{j}"} for j in range(2, 3000, 3)]]} for i in range(1, 300, 3)}
    yield "n8n mesh", lambda: Seed("a.json", n8n(off, mesh))
    tasks = "".join(
        f'<task id="t{i}" name="T{i}"/><sequenceFlow sourceRef="t{i}" targetRef="t{i + 1}"/>' for i in range(50_000)
    )
    yield "long BPMN chain", lambda: Seed("a.bpmn", f"{BPMN_HEAD}{tasks}{BPMN_END}".encode())
    flows = "".join(
        f'<task id="a{i}"/><task id="b{i}"/><sequenceFlow sourceRef="a{i}" targetRef="g"/>'
        f'<sequenceFlow sourceRef="g" targetRef="b{i}"/>'
        for i in range(3000)
    )
    yield "n x m gateway", lambda: Seed("a.bpmn", f'{BPMN_HEAD}<exclusiveGateway id="g"/>{flows}{BPMN_END}'.encode())
    notes = "".join(
        f'<textAnnotation id="x{i}"><text>n</text></textAnnotation><association sourceRef="a" targetRef="x{i}"/>'
        for i in range(30_000)
    )
    yield "many notes", lambda: Seed("a.bpmn", f'{BPMN_HEAD}<task id="a" name="A"/>{notes}{BPMN_END}'.encode())
    yield (
        "many processes",
        lambda: Seed("a.bpmn", (BPMN_HEAD + '<task id="a"/></process><process id="P">' * 40_000 + BPMN_END).encode()),
    )
    objects = [{"id": f"o{i}", "type": "order"} for i in range(2000)]
    every = [event(relationships=[{"objectId": f"o{i}"} for i in range(2000)]) for _ in range(40)]
    yield "OCEL fan-out", lambda: Seed("a.ocel.json", ocel(every, objects))
    yield "many OCEL events", lambda: Seed("a.ocel.json", ocel([event()] * n))

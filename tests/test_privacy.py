"""What is planted in every format and every place is found nowhere in the lake; a client that is forgotten is found
nowhere either.
"""

import base64
import io
import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Never

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.ingestion.ingest import HistoryOptions, read_history
from opus_pipelines.lake.layout import Lake, read_table
from opus_pipelines.lake.search import Word
from opus_pipelines.wkg.upkeep.erasure import carry_out, look

NIGHT = datetime(2026, 1, 2, tzinfo=UTC)
EMAIL, PHONE, NATIONAL, BARE = "jan.jansen@privaat.example.nl", "+31 6 87654321", "020-7654321", "612345670"
IBAN, CARD = "NL91 ABNA 0417 1643 00", "4111 1111 1111 1111"
DROPPED, HASHED, MASKED = "Willemijn van Dropsteen", "Pieternel Hashimoto", "Gerbrand Maskerade"
SECRETS = (
    EMAIL,
    "jan.jansen",
    "privaat.example",
    PHONE,
    "87654321",
    "7654321",
    BARE,
    IBAN,
    "0417 1643",
    CARD,
    "Dropsteen",
    "Hashimoto",
    "Maskerade",
)
FREE = f"ask {EMAIL} or {PHONE}, pay {IBAN} by {CARD}, fax {NATIONAL}"
REDACT = '[redact]\ndrop = ["customer", "person.name"]\nhash = ["holder"]\nmask = ["remark"]\n'
NAMED = {"customer": DROPPED, "holder": HASHED, "remark": MASKED, "phone": BARE}


def attributes(pairs: dict[str, str]) -> str:
    return "".join(f'<string key="{key}" value="{value}"/>' for key, value in pairs.items())


def xes() -> str:
    def event(**more: str) -> str:
        return (
            "<event>"
            + attributes({"concept:name": f"Mail {EMAIL}", "org:resource": EMAIL, "note": FREE, **NAMED, **more})
            + "</event>"
        )

    good, bad = event(**{"time:timestamp": "2026-01-01T00:00:00Z"}), event(**{"time:timestamp": f"at {EMAIL}"})
    trace = "<trace>" + attributes({"concept:name": f"bad {EMAIL}", "title": FREE, **NAMED}) + good + bad + "</trace>"
    trace += "<trace>" + attributes({"concept:name": EMAIL, "title": FREE, **NAMED}) + good + "</trace>"
    return (
        f'<?xml version="1.0"?><log xes.version="1.0">{trace}<trace>'
        f"{attributes({'title': FREE, **NAMED})}{good}</trace>{good}</log>"
    )


TABLE = {
    "case": [EMAIL, "2", ""],
    "activity": [f"Mail {EMAIL}", "Pay", "Pay"],
    "start": ["2026-01-01T00:00:00Z", f"at {EMAIL}", "2026-01-01T00:00:00Z"],
    **{name: [value] * 3 for name, value in NAMED.items()},
    "note": [FREE] * 3,
    "title": [FREE] * 3,
}
TABLE_SETTINGS = (
    '[columns]\ncase = "case"\nactivity = "activity"\nstart = "start"\nactor = "holder"\ntitle = "title"\n' + REDACT
)


def csv_text() -> str:
    rows = [list(TABLE), *zip(*TABLE.values(), strict=True), [FREE, DROPPED, HASHED, MASKED]]
    return "\n".join(",".join(f'"{field}"' for field in row) for row in rows) + f'\n"{EMAIL} {DROPPED}\n'


def parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(TABLE), buffer)
    return buffer.getvalue()


def jsonl() -> str:
    details = {"holder": HASHED, "deep": [{"remark": MASKED}]}
    step = {"name": f"Mail {EMAIL}", "inputs": [EMAIL], "instructions": [FREE], "details": details, **NAMED}
    record = {"id": EMAIL, "title": FREE, "person": {"name": DROPPED, EMAIL: 1}, "steps": [step], **NAMED}
    lines = [json.dumps(line) for line in (record, record, record | {"id": "2", "steps": FREE})]
    return "\n".join([*lines, f'{{"broken": "{FREE} {DROPPED} {HASHED}', ""])


JSONL_SETTINGS = '[record]\ncase = "id"\ntasks = "steps"\ntitle = "title"\n' + REDACT


def ocel() -> str:
    pairs = [
        {"name": name, "value": value, "time": "2026-01-01T00:00:00Z"}
        for name, value in {**NAMED, "note": FREE}.items()
    ]
    event = {"id": "e1", "type": f"Mail {EMAIL}", "time": "2026-01-01T00:00:00Z", "attributes": pairs}
    event["relationships"] = [{"objectId": EMAIL}]
    bad = event | {"id": "e2", "time": f"at {EMAIL}", "relationships": [{"objectId": f"bad {EMAIL}"}]}
    return json.dumps(
        {
            "objects": [{"id": name, "type": "order", "attributes": pairs} for name in (EMAIL, f"bad {EMAIL}")],
            "events": [event, bad, {"attributes": pairs}],
        }
    )


def bpmn() -> str:
    task = f'<userTask id="t1" name="Mail {EMAIL}"><documentation>{FREE}</documentation></userTask>'
    said = f"<documentation>{FREE}</documentation>"
    process = (
        f'<process id="p1" name="{FREE}">{said}{task}<textAnnotation id="a"><text>{FREE}</text></'
        f"textAnnotation></process>"
    )
    empty = f'<process id="p2" name="{FREE}">{said}</process>'
    return f'<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">{process}{empty}</definitions>'


def n8n() -> str:
    agent = {
        "name": f"Mail {EMAIL}",
        "type": "@n8n/n8n-nodes-langchain.agent",
        "notes": FREE,
        "parameters": {"text": FREE, **NAMED},
    }
    pairs = {"assignments": [{"name": "customer", "value": DROPPED}, {"name": "holder", "value": HASHED}]}
    note = {"name": "n", "type": "n8n-nodes-base.stickyNote", "parameters": {"content": FREE}}
    broken = {"name": f"x {EMAIL}", "parameters": {**NAMED, **pairs, "text": FREE}}
    off = agent | {"name": "off", "disabled": True}
    flows = ([agent, note, off], [agent, broken])
    return json.dumps([{"name": FREE, "nodes": nodes, "connections": {}, "tags": [FREE]} for nodes in flows])


PLANTED: dict[str, tuple[dict[str, str | bytes], str]] = {
    "xes": (
        {"log.xes": xes(), f"{EMAIL}.xes": xes().replace("<log", "<log x='1'"), "broken.xes": xes()[:-200]},
        REDACT,
    ),
    "csv": ({"log.csv": csv_text(), "bare.csv": f"{EMAIL},{PHONE}\n{EMAIL},{IBAN}\n"}, TABLE_SETTINGS),
    "parquet": ({"log.parquet": parquet(), "broken.parquet": parquet()[:-50]}, TABLE_SETTINGS),
    "jsonl": ({"log.jsonl": jsonl()}, JSONL_SETTINGS),
    "ocel": ({"log.ocel.json": ocel(), "broken.ocel.json": ocel()[:-9]}, REDACT),
    "bpmn": ({"model.bpmn": bpmn(), "broken.bpmn": bpmn()[:-30]}, REDACT),
    "n8n": ({"export.json": n8n(), "broken.json": n8n()[:-9]}, REDACT),
}


def plant(history: Path) -> None:
    for source, (files, settings) in PLANTED.items():
        (history / source).mkdir(parents=True)
        (history / source / "source.toml").write_text(settings)
        for name, content in files.items():
            (history / source / name).write_bytes(content.encode() if isinstance(content, str) else content)


def everything(root: Path) -> dict[str, str]:
    """All that the lake says: its files' names, their bytes, and what is packed in Parquet and SQLite."""
    said = {}
    for path in (p for p in sorted(root.rglob("*")) if p.is_file()):
        data = path.read_bytes()
        text = f"{path.relative_to(root)}\n{data.decode('utf-8', 'replace')}"
        if path.suffix == ".parquet":
            text += repr([column.to_pylist() for column in pq.ParquetFile(path).read().columns])
        if data.startswith(b"SQLite format 3"):
            with closing(sqlite3.connect(path)) as database:
                tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                text += repr([database.execute(f'SELECT * FROM "{table}"').fetchall() for table in tables])
        for uri in re.findall(";base64,([A-Za-z0-9+/]{8,})", text):
            text += base64.b64decode(uri[: len(uri) // 4 * 4]).decode("utf-8", "replace")
        said[path.relative_to(root).as_posix()] = text
    return said


def found(root: Path, words: tuple[str, ...]) -> list[tuple[str, str]]:
    said = everything(root)
    assert said
    return [(path, word) for path, text in said.items() for word in words if word in text]


@pytest.mark.parametrize("source", PLANTED)
def test_nothing_planted_in_a_format_reaches_the_lake(source: str, tmp_path: Path) -> None:
    plant(tmp_path / "all")
    (tmp_path / "history").mkdir()
    (tmp_path / "all" / source).rename(tmp_path / "history" / source)
    lake, lines = Lake(tmp_path / "lake"), list[str]()
    state = read_history(lake, tmp_path / "history", NIGHT, HistoryOptions(max_quarantined_share=1.0), lines.append)
    cases = [row for s in state.sources for row in read_table(IMPLEMENTATIONS, s.folder).to_pylist()]
    assert cases, state.failed
    assert found(lake.root, SECRETS) == []
    assert [word for word in SECRETS if word in repr((lines, state.failed, state.files))] == []
    if source != "bpmn":  # which has no attributes of its own that a name could redact
        told = repr(cases)
        assert source == "n8n" or "***" in told
        assert "customer" not in told


@pytest.mark.long
def test_hashes_of_a_mapped_column_tell_its_values_apart(tmp_path: Path) -> None:
    plant(tmp_path / "history")
    state = read_history(
        Lake(tmp_path / "lake"), tmp_path / "history", NIGHT, HistoryOptions(max_quarantined_share=1.0)
    )
    folder = next(s.folder for s in state.sources if s.source == "csv")
    row = read_table(IMPLEMENTATIONS, folder).to_pylist()[0]
    assert row["tasks"][0]["actor"].startswith("h")
    assert row["case_id"].startswith("h")
    assert row["tasks"][0]["task_key"] == "Mail [email]"
    assert row["title"] == "ask [email] or [number], pay [account] by [account], fax [number]"


CLAIMS = "case,activity,start,client,title,vat\n"


def shared(clients: dict[str, str]) -> str:
    """Ten cases of each client with tasks in common, and one task that only Zephyrine has."""
    rows = []
    for client, letter in clients.items():
        for n in range(10):
            steps = ["Register claim", "Check claim", *(["Zephyr settlement"] if letter == "Z" else []), "Pay claim"]
            rows += [
                f"{letter}-case-{n:03},{step},2026-01-{n + 1:02}T0{k}:00:00Z,{client},{letter} claim {n:03} "
                f"of ours,{letter}VAT-{n:06}"
                for k, step in enumerate(steps)
            ]
    return CLAIMS + "\n".join(rows) + "\n"


SHARED_SETTINGS = (
    'industry = "insurance"\n[columns]\ncase = "case"\nactivity = "activity"\nstart = '
    '"start"\nclient = "client"\ntitle = "title"\n'
    'attributes = ["vat"]\n[success]\nlast_activity_in = ["Pay claim"]\n'
)
Z, OTHER = "Zephyrine Verzekeringen", "Bolt & Sons"
OF_Z = (
    Z,
    "Zephyrine",
    "Z-case-0",
    "Z claim 0",
    "ZVAT-0",
    "Zephyr settlement",
    "zephyr settlement",
    "ZOWN",
    "Zephyr only",
)


def write_two_clients(root: Path) -> None:
    """A source of two clients, one of Zephyrine alone, and a contract with an intake for each."""
    (root / "history" / "shared").mkdir(parents=True)
    (root / "history" / "shared" / "source.toml").write_text(SHARED_SETTINGS)
    rejected = f"Z-case-099,,2026-01-01T00:00:00Z,{Z},Z claim 099,\n"
    (root / "history" / "shared" / "log.csv").write_text(shared({Z: "Z", OTHER: "B"}) + rejected)
    (root / "history" / "zephyrine").mkdir()
    own = SHARED_SETTINGS.replace('client = "client"\n', "")
    (root / "history" / "zephyrine" / "source.toml").write_text(f'client = "{Z}"\n{own}')
    rows = (
        shared({Z: "Z"})
        .replace(f",{Z},", ",")
        .replace("client,", "")
        .replace("Z-case", "ZOWN-case")
        .replace("Pay claim", "Zephyr only")
    )
    (root / "history" / "zephyrine" / "log.csv").write_text(rows)
    for client in (Z, OTHER):
        contract = root / "intakes" / client.split()[0].lower() / "claims"
        (contract / "one" / "input").mkdir(parents=True)
        (contract / "one" / "process").mkdir()
        (contract / "one" / "process" / "rule.txt").write_text("Register the claim, check it, pay it.")
        (contract / "contract.toml").write_text(f'client = "{client}"\ncontract = "Claims"\nindustry = "insurance"\n')
        (contract / "one" / "intake.toml").write_text('title = "Check a claim and pay it"\n')
        (contract / "one" / "input" / "letter.txt").write_text("Please register my claim, check it and pay it.")


@pytest.mark.nightly
@pytest.mark.model
def test_a_client_that_is_forgotten_is_found_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    monkeypatch.setenv("OPUS_HISTORY_MAX_QUARANTINED_SHARE", "1")  # every source has a bad record among few cases
    plant(tmp_path / "history")
    write_two_clients(tmp_path)
    lake, history, intakes = (str(tmp_path / name) for name in ("lake", "history", "intakes"))

    def opus(*arguments: str) -> int:
        return main(["--lake", lake, *arguments])

    assert opus("rebuild", "--history", history) == 1  # broken files
    assert opus("generate", "--intakes", intakes) == 0
    (tmp_path / "history" / "shared" / "more.csv").write_text(shared({OTHER: "C"}))
    opus("rebuild", "--history", history)
    assert found(Path(lake), SECRETS) == []
    places = {path.split("/")[0] for path, _ in found(Path(lake), OF_Z)}
    assert places >= {"history", "wkg", "aggregates", "generation", "workflows", ".dagster"}
    before = len(list(Path(lake, "wkg").glob("w*")))

    capsys.readouterr()
    assert opus("forget", "--client", "Zephyrine", "--history", history) == 1
    assert "Zephyrine Verzekeringen" in capsys.readouterr().err
    assert opus("forget", "--client", Z, "--history", history, "--dry-run") == 0
    assert len(list(Path(lake, "wkg").glob("w*"))) == before == 2

    def stopped(words: list[Word]) -> Never:
        raise KeyboardInterrupt

    work = look(Lake(Path(lake)), Path(history), Z)
    with pytest.raises(KeyboardInterrupt):
        carry_out(
            Lake(Path(lake)), work, lambda: opus("rebuild", "--history", history, "--publish", "--allow-loss"), stopped
        )
    assert found(Path(lake), (Z,)) != []
    capsys.readouterr()
    assert opus("forget", "--client", Z, "--history", history, "--intakes", intakes, "--yes") == 0
    told = capsys.readouterr().err
    assert [
        line
        for line in (str(tmp_path / "history" / "zephyrine"), str(tmp_path / "intakes" / "zephyrine"))
        if line not in told
    ] == []
    assert found(Path(lake), OF_Z) == []
    assert found(Path(lake), SECRETS) == []
    assert len(list(Path(lake, "wkg").glob("w*"))) == 1

    assert opus("generate", "--intakes", intakes) == 0
    assert found(Path(lake), OF_Z) == []
    assert opus("best", "--client", OTHER) == 0
    assert opus("forget", "--client", Z, "--history", history, "--yes") == 0  # once more: there is nothing left to do

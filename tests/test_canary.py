"""What one client gave reaches no other: planted words are looked for in results, prompts and kept answers of another
client, and after `opus forget` everywhere in the lake.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import CONTEXTS, RUNS
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table, slug
from tests.lwm.language_models.chat_server import Body, ChatServer, schema_of, serving
from tests.test_privacy import found

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("default")]  # notices of MLflow
PLANTED, OTHER = "Kanarie Verzekeringen", "Bolt Underwriting"
CANARIES = (
    *("Kanarie", "Zilverfazant", "Goudvink", "Roodborst", "Winterkoning", "KVAT-0", "K-case-0"),
    *("Bladkoning", "Sperwer", "Havik", "Torenvalk", "Ooievaar", "Fitis", "Grutto"),
)
STEPS = ("Register claim", "Check claim", "Assess damage", "Pay claim")
SETTINGS = """industry = "insurance"
[record]
case = "case"
client = "client"
title = "title"
description = "description"
attributes = ["vat"]
tasks = "steps"
[task]
activity = "name"
start = "start"
description = "about"
instructions = "how"
inputs = "takes"
outputs = "leaves"
actor = "who"
cost = "usd"
"""


def history() -> str:
    """Sixty cases of each client with the same steps; the planted client's texts have words of its own, in each field.

    The other client has texts of its own for the first step alone.
    """
    lines = []
    for client, letter, title, text in (
        (PLANTED, "K", "Zilverfazant claim", "The Goudvink policy covers it"),
        (OTHER, "B", "Motor claim", "The policy covers it"),
    ):
        planted = client == PLANTED
        for n in range(60):
            steps = [
                {
                    "name": step,
                    "start": f"2026-01-{n % 27 + 1:02}T{k:02}:00:00Z",
                    "role": "Fitis desk" if planted else "desk",
                    "usd": 4 + n % 3,
                }
                | (
                    {"about": "Bladkoning looks at it", "how": ["Ask the Sperwer desk"], "who": "Grutto"}
                    | {"takes": [f"havik {'' if k else 'Havik'}.pdf", "letter"], "leaves": ["Torenvalk report"]}
                    if planted
                    else {
                        "about": "It is written down",
                        "how": ["Open a file"],
                        "takes": ["letter"],
                        "leaves": ["file"],
                    }
                    if step == STEPS[0]
                    else {}
                )
                for k, step in enumerate(STEPS if n % 3 else [step for step in STEPS if step != "Assess damage"])
            ]
            case = {"case": f"{letter}-case-{n:03}", "client": client, "title": f"{title} {n}", "steps": steps}
            lines.append(json.dumps(case | {"description": f"{text} number {n}", "vat": f"{letter}VAT-{n:06}"}))
    return "\n".join(lines) + "\n"


def write_inputs(root: Path) -> None:
    source = root / "history" / "claims"
    source.mkdir(parents=True)
    (source / "source.toml").write_text(SETTINGS)
    (source / "log.jsonl").write_text(history())
    for client, word in ((PLANTED, "Roodborst"), (OTHER, "motor")):
        contract = root / "intakes" / client.split()[0].lower() / "claims"
        (contract / "flows").mkdir(parents=True)
        asked = {"uid": "1", "utterance": f"Register the {word} claim, and then pay the claim"}
        (contract / "flows" / "asked.jsonl").write_text(json.dumps(asked) + "\n")
        for part in ("input", "process"):
            (contract / "one" / part).mkdir(parents=True)
        (contract / "contract.toml").write_text(f'client = "{client}"\ncontract = "Claims"\nindustry = "insurance"\n')
        (contract / "one" / "intake.toml").write_text(f'title = "Handle a {word} claim"\n')
        (contract / "one" / "input" / "letter.txt").write_text(f"Please check my {word} claim and pay it.")
        rule = "Winterkoning decides." if client == PLANTED else "The claim is registered first."
        (contract / "one" / "process" / "rule.txt").write_text(f"Check the claim before it is paid. {rule}")


def first_steps(body: Body) -> Body:
    names = schema_of(body)["workflows"]["items"]["items"]["enum"]
    return {"workflows": [names[:3]]}


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Body]]:
    with serving(ChatServer(first_steps, lambda _, __: (1_000_000, 0))) as server:
        for name, value in {
            "GENERATION_LWM_BACKEND": "openai_compatible",
            "LWM_PERCEPTRONS": "1",
            "OPENAI_COMPATIBLE_URL": server.url,
            "OPENAI_COMPATIBLE_MODEL": "small",
            "OPENAI_COMPATIBLE_USD_PER_MILLION_TOKENS_IN": "0.25",
            "OPENAI_COMPATIBLE_USD_PER_MILLION_TOKENS_OUT": "0",
        }.items():
            monkeypatch.setenv(f"OPUS_{name}", value)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setenv("DAGSTER_HOME", "")
        yield server.seen


def of_client(lake: Path, client: str) -> list[Path]:
    return sorted(path for path in lake.rglob(f"client_key={slug(client)}") if path.is_dir())


def counted_steps(root: Path) -> int:
    """How often the contexts of one step of the current snapshot were carried out."""
    lake = Lake(root)
    contexts = read_table(CONTEXTS, dataset_folder(lake.snapshot_folder(lake.required_snapshot()), CONTEXTS))
    return sum(row["transitions"] for row in contexts.to_pylist() if row["depth"] == 1)


def test_what_one_client_gave_reaches_no_other_and_goes_when_it_is_forgotten(
    tmp_path: Path, prompts: list[Body], capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    lake, history_folder, intakes = (tmp_path / name for name in ("lake", "history", "intakes"))

    def opus(*arguments: str) -> int:
        return main(["--lake", str(lake), *arguments])

    assert opus("rebuild", "--history", str(history_folder)) == 0
    assert opus("generate", "--intakes", str(intakes)) == 0

    assert sorted("Roodborst" in json.dumps(body) for body in prompts) == [False, True]
    written = {path.relative_to(lake).parts[0] for path in of_client(lake, OTHER)}
    assert written >= {"generation", "workflows", "reports", "language"}
    folders = [folder for folder in of_client(lake, OTHER) if folder.parent.name == RUNS.name.split("/")[1]]
    (run,) = [row for folder in folders for part in folder.glob("*/*") for row in read_table(RUNS, part).to_pylist()]
    assert (run["tokens_in"], run["tokens_out"], run["cost_model_usd"]) == (1_000_000, 0, 0.25)
    capsys.readouterr()
    assert opus("best", "--client", OTHER, "--format", "json") == 0
    (best, *_) = [row for row in json.loads(capsys.readouterr().out) if row["rank"] == 1]
    kept = tmp_path / "kept"
    kept.mkdir()
    edited = kept / "edited.yaml"
    for form in ("bpmn", "mermaid", "json"):
        assert opus("export", best["workflow_id"], "--to", form) == 0
    assert opus("export", best["workflow_id"], "--out", str(edited)) == 0
    assert opus("explain", best["workflow_id"]) == 0
    for step in STEPS[:2]:
        assert opus("explain", best["workflow_id"], "--evidence", step, "--limit", "500") == 0
    assert opus("whatif", "--client", OTHER, "--intakes", str(intakes), "--set", "gain_usd=200") == 0
    assert opus("bid", "--client", OTHER, "--out", str(kept / "bid")) == 0
    assert opus("conformance", best["workflow_id"], "--client", OTHER, "--out", str(kept / "cases.parquet")) == 0
    assert opus("flow", "batch", "--client", OTHER, "--intakes", str(intakes)) == 0
    assert opus("decide", best["workflow_id"], "edit", str(edited)) == 1, "nothing was changed"
    changed = yaml.safe_load(edited.read_text("utf-8"))
    changed["tasks"][1] |= {"actor_group": "nobody"}
    edited.write_text(yaml.safe_dump(changed), "utf-8")
    assert opus("decide", best["workflow_id"], "edit", str(edited)) == 1, "history does not know this group"
    del changed["tasks"][1]["actor_group"]
    changed["tasks"] = changed["tasks"][:2]
    nodes = [one["id"] for part in ("inputs", "tasks", "outputs") for one in changed[part][:2]]
    changed |= {"outputs": changed["outputs"][:1], "edges": [list(pair) for pair in pairwise(nodes[-4:])]}
    edited.write_text(yaml.safe_dump(changed), "utf-8")
    assert opus("decide", best["workflow_id"], "edit", str(edited)) == 0
    assert opus("generate", "--client", OTHER, "--intakes", str(intakes)) == 0
    assert opus("report", "--client", OTHER, "--out", str(kept / "pages")) == 0
    told = capsys.readouterr()
    assert "another client" in told.out, "cases of other clients count, and are not named"
    assert [word for word in CANARIES if word in told.out + told.err] == []
    sent = [json.dumps(body, ensure_ascii=False) for body in prompts]
    assert [word for word in CANARIES for body in sent if word in body and "Roodborst" not in body] == []
    assert [hit for folder in (kept, *of_client(lake, OTHER)) for hit in found(folder, CANARIES)] == []

    assert {path.split("/")[0] for path, _ in found(lake, CANARIES)} >= {"history", "wkg", "generation", "workflows"}
    counted = counted_steps(lake)
    assert opus("forget", "--client", PLANTED, "--history", str(history_folder), "--yes") == 0
    assert found(lake, CANARIES) == []
    assert of_client(lake, PLANTED) == []
    assert 2 * counted_steps(lake) == counted > 0, "both clients did the same steps; the contexts of one are left"

    prompts.clear()
    assert opus("generate", "--intakes", str(intakes), "--client", OTHER) == 0
    assert [word for word in CANARIES for body in prompts if word in json.dumps(body, ensure_ascii=False)] == []
    assert found(lake, CANARIES) == []

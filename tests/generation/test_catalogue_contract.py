"""A contract with a catalogue and no history, from its files to its rows; and an intake that is unlike all history."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.settings import OpenaiCompatible, Paths, Reading, Settings
from opus_pipelines.generation.bulk.chunks import GenerationSetup
from opus_pipelines.generation.bulk.run import BulkRun
from opus_pipelines.generation.results.contract import check_result
from opus_pipelines.generation.results.ids import result_id
from opus_pipelines.intakes.intake import ContractFolder, discover
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.reporting.contract_tables import report_tables
from tests.lwm.language_models.chat_server import ChatServer, serving

pytestmark = pytest.mark.model

NOW = datetime(2026, 1, 31, tzinfo=UTC)
TOOLS = [
    {"name": "stamp_letter", "description": "Puts a stamp on a letter.", "inputs": ["letter"], "price": 0.5},
    {"name": "write_letter", "description": "Writes a letter to a customer.", "outputs": ["letter"]},
    {"name": "", "description": "It has no name."},
]
POSTAL = 'industry = "postal"\n'
WRITE = "Write a letter to customer Miller and stamp it."
LISTED = ["Check the certificate.", "Collect the fee first."]
ENROL = "Please enrol me for the master's programme in biology. My certificate and my passport are attached."


def folder(intakes: Path, contract: str, toml: str, **texts: str) -> Path:
    """A contract of one intake `one`; `texts` are by role."""
    place = intakes / "post" / contract
    for role, text in texts.items():
        (place / "one" / role).mkdir(parents=True)
        (place / "one" / role / "text.txt").write_text(text)
    (place / "contract.toml").write_text(toml)
    return place


@pytest.fixture(scope="module")
def contracts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ContractFolder]:
    intakes = tmp_path_factory.mktemp("intakes")
    letters = folder(
        intakes, "letters", 'industry = "postal"\n', input="Write a letter to customer Miller and stamp it."
    )
    (letters / "catalogue.jsonl").write_text("\n".join(map(json.dumps, TOOLS)))
    folder(intakes, "no tools", 'industry = "postal"\n', input="Write a letter to customer Miller and stamp it.")
    folder(
        intakes, "students", "gain_usd = 100\n", input=ENROL, process="Check the certificate. Collect the fee first."
    )
    return {contract.contract: contract for contract in discover(intakes)}


@pytest.fixture(scope="module")
def results(
    contracts: dict[str, ContractFolder],
    sample_lake: Lake,
    encoder: TextEncoder,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    work = tmp_path_factory.mktemp("results")
    setup = GenerationSetup(sample_lake.root, sample_lake.current_snapshot() or "", Settings())
    cached = CachedEncoder(encoder, sample_lake.kept / "embeddings")
    with BulkRun(setup, cached, lambda: pytest.fail("no Spark"), lambda line: None) as run:
        return {name: run.generate(c, work / name, "run", NOW) for name, c in contracts.items()}


def rows(result: Any, dataset: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result.tables[dataset].to_pylist()
    return found


def test_the_tools_of_the_catalogue_are_declared_tasks_with_priors_in_the_order_of_their_data(results: Any) -> None:
    result = results["letters"]
    steps = sorted((r for r in rows(result, "workflows/tasks") if r["kind"] == "task"), key=lambda r: r["position"])
    figures = [(r["title"], r["origin"], r["cost_usd"], r["cost_basis"], r["p_basis"], r["evidence"]) for r in steps]
    assert figures == [
        ("write_letter", "declared", None, None, "prior", 0),
        ("stamp_letter", "declared", 0.5, "declared", "prior", 0),
    ]
    (workflow,) = rows(result, "workflows/optimized")
    assert (workflow["verdict"], workflow["new_tasks"], workflow["lacks"]) == ("undecided", 2, [])
    (intake,) = rows(result, "generation/intakes")
    (file,) = [element for element in intake["elements"] if element["modality"] == "catalogue"]
    assert "no name" in file["left_out"]
    result.tables.update(report_tables(result))
    assert [check for check in check_result(result, 1) if not check.passed] == []


def test_the_catalogue_is_of_its_contract_alone_and_a_changed_one_is_another_result(
    results: Any, contracts: dict[str, ContractFolder], sample_lake: Lake
) -> None:
    assert [row["status"] for row in rows(results["no tools"], "generation/intakes")] == ["refused"]
    letters = contracts["letters"]
    file = letters.folder / "catalogue.jsonl"
    file.write_text(file.read_text() + '\n{"name": "seal_letter"}')
    again = {c.contract: c for c in discover(letters.folder.parents[1])}["letters"]
    snapshot = sample_lake.current_snapshot() or ""
    assert result_id(again, snapshot, Settings()) != results["letters"].result


def test_an_intake_that_is_unlike_all_history_is_not_clear_and_says_what_its_procedure_lists(results: Any) -> None:
    best = [row for row in rows(results["students"], "workflows/optimized") if row["rank"] == 1]
    assert [(row["verdict"], row["lacks"]) for row in best] == [("undecided", LISTED)]
    assert "no case of history" in best[0]["verdict_reason"]
    assert [row["status"] for row in rows(results["students"], "generation/intakes")] == ["generated"]


@pytest.mark.long
def test_a_language_model_that_breaks_its_answers_costs_certainty_and_no_step(
    contracts: dict[str, ContractFolder], sample_lake: Lake, encoder: TextEncoder, tmp_path: Path, results: Any
) -> None:
    with serving(ChatServer(lambda _: {"records": "none"})) as server:
        endpoint = OpenaiCompatible(url=server.url, model="small", attempts=1)
        settings = Settings(
            paths=Paths(lake=tmp_path / "lake"), reading=Reading(backend="endpoint"), openai_compatible=endpoint
        )
        setup = GenerationSetup(sample_lake.root, sample_lake.current_snapshot() or "", settings)
        cached = CachedEncoder(encoder, sample_lake.kept / "embeddings")
        with BulkRun(setup, cached, lambda: pytest.fail("no Spark"), lambda line: None) as run:
            result = run.generate(contracts["letters"], tmp_path / "result", "run", NOW)
    assert len(server.seen) == 1
    assert result.result != results["letters"].result
    own, other = (
        [(r["title"], r["position"]) for r in rows(made, "workflows/tasks") if r["kind"] == "task"]
        for made in (result, results["letters"])
    )
    assert own == other
    (workflow,) = rows(result, "workflows/optimized")
    assert "1 of 1 sentences" in workflow["verdict_reason"]

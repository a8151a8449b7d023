"""docs/extending.md: its blocks are a distribution, which adds one thing of each kind from outside the package."""

import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.cli.read import export
from opus_pipelines.core.errors import CheckFailed, PluginError, SettingsError
from opus_pipelines.core.schemas import TASKS
from opus_pipelines.core.settings import Settings, parse
from opus_pipelines.generation.results.ids import settings_hash
from opus_pipelines.history.ingestion.plan import FilePlan
from opus_pipelines.history.ingestion.read_file import SourceFile, read_file
from opus_pipelines.history.records.assembler import OtherFiles
from opus_pipelines.history.records.formats import format_of
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.intakes.documents.document import Document
from opus_pipelines.intakes.documents.formats import preprocess
from opus_pipelines.lake.layout import dataset_folder, table_of, write_table
from opus_pipelines.language.embedding.encoder import Encoder, encoder_of
from opus_pipelines.lwm.interface import LwmRequest, SimilarCase, TaskSequence, backend_of
from opus_pipelines.wkg.checks import check_snapshot
from opus_pipelines.wkg.graph import Task, WorkGraph
from opus_pipelines.wkg.graph_metrics import Local, choose, task_metrics
from opus_pipelines.wkg.rebuild.manifest import settings_that_matter
from opus_pipelines.wkg.rebuild.steps import require_passed
from opus_pipelines.wkg.subgraphs import SubWKG
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.formats.registry import flow_format, written
from opus_pipelines.workflow.blocks.formats.registry import format_of as flow_format_of
from opus_pipelines.workflow.files import AnnotatedWorkflow, InputEntry, OutputEntry, TaskEntry, WorkflowFile
from opus_pipelines.workflow.formats.registry import exported, format_of_suffix
from tests.docs.pages import blocks

PAGE = "docs/extending.md"
SETTINGS = {
    "graph": {"engine": "exact"},
    "generation": {"lwm_backend": "frequent"},
    "encoder": {"model": "acme-hash"},
}


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the installed distribution acme-opus 0.1, whose modules and entry points are the page's blocks."""
    site = tmp_path / "site"
    info = site / "acme_opus-0.1.dist-info"
    (site / "acme_opus").mkdir(parents=True)
    info.mkdir()
    (site / "acme_opus" / "__init__.py").touch()
    entries = []
    for block in blocks(PAGE):
        if block.info == "python":
            (site / block.text.splitlines()[0].removeprefix("# ")).write_text(block.text)
        elif block.info == "toml" and (project := tomllib.loads(block.text).get("project")):
            for group, names in project["entry-points"].items():
                entries += [f"[{group}]", *(f"{name} = {value}" for name, value in names.items())]
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-opus\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("\n".join(entries))
    monkeypatch.syspath_prepend(str(site))
    yield site
    for name in [name for name in sys.modules if name.split(".")[0] == "acme_opus"]:
        del sys.modules[name]


@pytest.fixture
def settings(acme: Path) -> Settings:
    """The settings that choose what the distribution adds; they are those of the page's blocks."""
    stated: dict[str, Any] = {}
    for block in blocks(PAGE):
        if block.info == "toml" and "project" not in tomllib.loads(block.text):
            stated |= tomllib.loads(block.text)
    assert stated == SETTINGS
    return parse(Settings, stated, "opus.toml")


@pytest.mark.usefixtures("acme")
def test_a_log_format_is_read_by_the_assembler(tmp_path: Path) -> None:
    path = tmp_path / "claims.trail"
    path.write_text(
        "c1|Check|2026-01-31T09:00:00Z\nc1|Pay|2026-01-31T10:00:00Z\nnothing\nc2|Check|2026-02-01T09:00:00Z\n"
    )
    kind = format_of(path.name)
    assert kind is not None
    assert (kind.name, format_of("x.dat", "trail"), format_of("x.ocel.json")) == (
        "trail",
        kind,
        format_of("a.ocel.json"),
    )
    plan = FilePlan(path.name, path, "x", path.stat().st_size, kind.name)
    wanted = SourceFile("s", parse(SourceSettings, {"format": "trail"}, "x"), plan)
    result = read_file(wanted, OtherFiles(), tmp_path, lambda line: None)
    assert (result.reason, result.counts.used, result.counts.rejected) == (None, 3, 1)
    assert result.implementations is not None
    rows = [row for batch in result.implementations.batches() for row in batch.to_pylist()]
    assert [(row["case_id"], [task["title"] for task in row["tasks"]]) for row in rows] == [
        ("c1", ["Check", "Pay"]),
        ("c2", ["Check"]),
    ]


@pytest.mark.usefixtures("acme")
def test_a_document_reader_reads_a_document() -> None:
    kind, text = preprocess(Document.of_bytes("order.NOTE", b"Ten chairs.\n% private\nBy Monday."))
    assert (kind.modality, text.text, text.left_out) == ("text", "Ten chairs.\nBy Monday.", ("1 lines of comments",))
    broken = preprocess(Document.of_bytes("order.note", b"\xff"))[1]
    assert broken.text is None
    assert "UnicodeDecodeError" in broken.left_out[0]


@pytest.mark.usefixtures("acme")
def test_a_flow_format_is_read_and_written() -> None:
    content, losses = written(flow_format("lines").parse(b"Send mail\nPay\n", ""), flow_format_of(Path("x.lines")))
    assert content == b"Send mail\nPay\n"
    assert losses == []
    with pytest.raises(FlowError, match="s1"):
        written(parse_ir("for x in y:\n  z = A()"), "lines")


@pytest.mark.usefixtures("acme")
def test_an_export_format_is_written_and_accepted_by_the_command() -> None:
    file = WorkflowFile(
        inputs=(InputEntry(id="i", title="Claim"),),
        tasks=(TaskEntry(id="t", title='Pay "now"', p=0.9, q=0.1, duration_ms=1.0),),
        outputs=(OutputEntry(id="o", title="Money", gain_usd=1.0),),
        edges=(("i", "t"), ("t", "o")),
    )
    content = exported(AnnotatedWorkflow(file), "dot").decode()
    assert content.splitlines() == [
        "digraph workflow {",
        '  "i" [label="Claim"];',
        '  "t" [label="Pay \\"now\\""];',
        '  "o" [label="Money"];',
        '  "i" -> "t";',
        '  "t" -> "o";',
        "}",
    ]
    assert (format_of_suffix(".DOT"), format_of_suffix(".yml"), format_of_suffix(".x")) == ("dot", "yaml", None)
    option = next(p for p in export.params if p.name == "form")
    assert option.type.convert("dot", option, None) == "dot"
    with pytest.raises(click.BadParameter):
        option.type.convert("visio", option, None)


def test_an_lwm_backend_is_chosen_by_the_settings(settings: Settings) -> None:
    backend = backend_of(settings)
    assert (backend.name, backend.version) == ("frequent", "frequent-1")
    graph = WorkGraph.of([Task("a", "A"), Task("b", "B")], [])
    cases = [_case("1", "aba"), _case("2", "ab"), _case("3", "b"), _case("4", "b", success=False)]
    request = LwmRequest(np.ones(2), graph, [SubWKG({"a": "terminal"}, ())], cases)
    expected = [TaskSequence(0, ("a", "b"), 2 / 3, "history"), TaskSequence(0, ("b",), 1 / 3, "history")]
    assert backend.generate(request) == expected


def _case(name: str, tasks: str, success: bool = True) -> SimilarCase:
    nothing = (None,) * len(tasks)
    return SimilarCase(name, 0.9, 1.0, success, None, None, None, tuple(tasks), tuple(tasks), nothing, nothing, nothing)


def test_an_encoder_is_chosen_by_the_settings(settings: Settings) -> None:
    encoder = encoder_of(settings.encoder)
    vectors = encoder.encode(["pay the claim", "the claim pay"])
    assert (encoder.name, vectors.shape, vectors.dtype) == ("acme-hash", (2, 64), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert isinstance(encoder_of(Settings().encoder), Encoder)


@pytest.mark.usefixtures("acme")
def test_a_check_fails_a_publication(tmp_path: Path) -> None:
    assert [c.detail for c in _checked(tmp_path / "good", "Pay") if c.name == "every task has a title"] == ["1 rows"]
    with pytest.raises(CheckFailed) as caught:
        require_passed(_checked(tmp_path / "bad", ""))
    assert "every task has a title" in str(caught.value)
    assert "t1" in str(caught.value)


def _checked(folder: Path, title: str) -> list[Any]:
    row = {"task_id": "t1", "title": title, "activity_kind": "step", "implementations": 1}
    write_table(TASKS, table_of(TASKS, [row]), dataset_folder(folder, TASKS))
    return [c for c in check_snapshot(folder, (TASKS,)) if c.passed or c.name == "every task has a title"]


def test_a_graph_engine_computes_the_metrics(settings: Settings) -> None:
    def no_spark() -> Any:
        raise AssertionError("the engine needs no Spark")

    engine = choose(3, settings.graph, no_spark)
    edges = pa.table({"src": ["a", "b", "c"], "dst": ["b", "c", "a"], "transitions": [2, 2, 1]})
    tasks = pa.array(["a", "b", "c", "d"])
    found = task_metrics(tasks, edges, settings.graph, engine).to_pydict()
    usual = task_metrics(tasks, edges, settings.graph, Local()).to_pydict()
    assert engine.name == "exact"
    np.testing.assert_allclose(found.pop("pagerank"), usual.pop("pagerank"), atol=1e-3)
    assert found == usual


def test_what_is_added_and_chosen_is_part_of_what_a_snapshot_and_a_result_depend_on(settings: Settings) -> None:
    assert settings_that_matter(settings)["graph"]["engine"] == "acme-opus 0.1"
    assert settings_that_matter(settings)["encoder"]["added"] == "acme-opus 0.1"
    assert settings_hash(settings) != settings_hash(Settings())


@pytest.mark.parametrize(
    ("section", "key"), [("graph", "engine"), ("generation", "lwm_backend")], ids=lambda value: str(value)
)
def test_a_name_that_nothing_declares_is_refused_with_the_known_ones(section: str, key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(Settings, {section: {key: "exact"}}, "opus.toml")
    assert f"{section}.{key}" in str(caught.value)
    assert "known are" in str(caught.value)


@pytest.mark.parametrize(
    ("sector", "choose_it"),
    [
        ("log_formats", lambda: format_of("x.trail")),
        ("document_readers", lambda: preprocess(Document.of_bytes("x.note", b"x"))),
        ("lwm_backends", lambda: backend_of(parse(Settings, SETTINGS, "x"))),
        ("encoders", lambda: encoder_of(parse(Settings, SETTINGS, "x").encoder)),
        ("graph_engines", lambda: choose(1, parse(Settings, SETTINGS, "x").graph, lambda: None)),
        ("checks", lambda: check_snapshot(Path("nowhere"), ())),
        ("export_formats", lambda: format_of_suffix(".dot")),
        ("flow_formats", lambda: flow_format_of(Path("x.lines"))),
    ],
)
def test_an_entry_that_does_not_fit_its_protocol_names_its_distribution(
    sector: str, choose_it: Callable[[], object], acme: Path
) -> None:
    for module in (acme / "acme_opus").glob("*.py"):
        names = ["FORMAT", "CHECK", "read", "FrequentBackend", "HashEncoder", "ExactEngine"]
        module.write_text("\n".join(f"{name} = 3" for name in names))
    with pytest.raises(PluginError, match=rf"opus_pipelines\.{sector} .*acme-opus 0\.1"):
        choose_it()

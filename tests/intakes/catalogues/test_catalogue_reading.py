"""What an intake asks for of a catalogue: by lists, in prose, by the request alone; and which tools are known tasks."""

from collections.abc import Sequence

import numpy as np
import pytest

from opus_pipelines.intakes.catalogues.entries import Catalogue, DeclaredTask
from opus_pipelines.intakes.catalogues.reading import MOST_COMPARED, Candidates, IntakeTexts, read_with_catalogue
from opus_pipelines.intakes.catalogues.resolution import Owner, resolve
from opus_pipelines.intakes.procedures.models import StepKnowledge, StepScorer
from opus_pipelines.intakes.procedures.names import words
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep
from opus_pipelines.intakes.procedures.relevant_parts import RequestText
from opus_pipelines.language.embedding.texts import parts, plain
from opus_pipelines.wkg.graph import Task, WorkGraph

SIZE = 512
KNOWLEDGE = StepKnowledge(StepScorer({}), None, frozenset({"move"}))


def encode(texts: Sequence[str]) -> np.ndarray:
    """A bag of words, each in the place that its letters give; its length is 1."""
    found = np.zeros((len(texts), SIZE))
    for row, text in enumerate(texts):
        for word in words(text):
            found[row, sum(ord(letter) * 31**n for n, letter in enumerate(word)) % SIZE] += 1
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)


def tool(name: str, description: str | None = None, inputs: str = "", outputs: str = "") -> DeclaredTask:
    return DeclaredTask(name, "catalogue.csv", 1, description, tuple(inputs.split()), tuple(outputs.split()))


TOOLS = (
    tool("stamp_letter", "Puts a stamp on a letter.", "letter", "stamped"),
    tool("write_letter", "Writes a letter to a customer.", "", "letter"),
    tool("archive_file", "Stores the file of a case in the archive.", "stamped"),
)


def titles(procedure: ParsedProcedure | None) -> list[str]:
    return [step.name for step in procedure.steps] if procedure else []


def parsed(request: str, procedure: str = "", tools: Sequence[DeclaredTask] = TOOLS) -> ParsedProcedure | None:
    texts = IntakeTexts(RequestText(request, encode([request])[0]), parts(procedure), [procedure])
    return read_with_catalogue(texts, tools, "post", KNOWLEDGE, encode)


def read(request: str, procedure: str = "", tools: Sequence[DeclaredTask] = TOOLS) -> list[str]:
    return titles(parsed(request, procedure, tools))


def titles_of(tools: Sequence[DeclaredTask]) -> list[str]:
    return [t.name for t in tools]


@pytest.mark.parametrize(
    ("procedure", "steps"),
    [
        ("First call write_letter. Then call stamp_letter.", ["write_letter", "stamp_letter"]),
        ("Write a letter to the customer. Never call stamp_letter. Store the file.", ["write_letter", "archive_file"]),
        ("# Purpose\n\nStamp the letter.\n\n# Steps\n\nWrite a letter to the customer.", ["write_letter"]),
        ("The letter is written and stamped.", ["write_letter", "stamp_letter"]),
        ("What | Who\nWrite the letter | clerk\nStamp the letter | clerk", ["write_letter", "stamp_letter"]),
    ],
)
def test_a_procedure_asks_for_tools_by_name_or_meaning_in_its_order(procedure: str, steps: list[str]) -> None:
    found = parsed("Miller moved.", procedure)
    assert titles(found) == steps
    assert found is not None
    assert not found.is_of_request


def test_a_request_decides_where_the_procedure_asks_for_no_tool() -> None:
    found = parsed("Please stamp the letter and write a letter to the customer.", "The weather is fine today.")
    assert found is not None
    assert found.is_of_request
    assert titles(found) == ["write_letter", "stamp_letter"]  # data flow orders them


def test_a_list_of_steps_without_its_tools_is_read_with_those_of_the_catalogue() -> None:
    others = "* close_case:\n- It is open.\n\n* open_case:\n- It is new."
    procedure = f"* move_case:\n- The owner of the file must be known.\n\n{others}"
    listed = read("Please move my case.", procedure, (*TOOLS, tool("get_file_owner")))
    assert listed == ["get_file_owner", "move_case"]


def test_conditions_that_the_catalogue_lists_under_a_tool_are_read() -> None:
    tools = (
        tool("move_case", "Moves a case.\n- The owner of the file must be known."),
        tool("close_case", "Closes a case.\n- No letter may be open."),
        tool("get_file_owner"),
    )
    assert read("Please move my case.", "", tools) == ["get_file_owner", "move_case"]
    assert read("Please stamp my letter.", "", TOOLS)[:1] == ["stamp_letter"]


SIGNED = "A clerk approves the invoice of a supplier."
GRAPH = WorkGraph.of(
    [
        Task("t1", "Approve invoice", SIGNED, industries=("trade",), implementations=9),
        Task("t2", "Reject invoice", industries=("trade",)),
        Task("t3", "Send letter", industries=("law",)),
    ],
    [],
)  # fmt: skip


def named(name: str) -> frozenset[str]:
    return frozenset(t.task_id for t in GRAPH.tasks.values() if plain(t.title) == plain(name))


def test_a_tool_is_the_known_task_of_its_industry_by_name_by_forms_of_its_words_or_by_its_description() -> None:
    same = [tool("approveInvoice"), tool("approving invoices"), tool("sign off bill", SIGNED)]
    tools = [*same, tool("send_letter"), tool("unapprove invoice", SIGNED)]
    found = resolve(Catalogue(tuple(tools)), Owner("c", "k", "trade"), GRAPH, named).by_name
    assert [found[t.plain].is_known for t in tools] == [True, True, True, False, False]
    other = resolve(Catalogue(tuple(tools)), Owner("other", "k", "trade"), GRAPH, named).by_name
    assert found["send letter"].task_id != other["send letter"].task_id
    assert found["approve invoice"].task_id == "t1"


def test_steps_get_the_ids_of_the_catalogue_each_once_and_a_price_is_declared() -> None:
    priced = DeclaredTask("send_letter", "catalogue.csv", 1, price_usd=0.5)
    resolved = resolve(Catalogue((priced, tool("approve invoices"))), Owner("c", "k", "trade"), GRAPH, named)
    read_steps = [
        ProcedureStep(name, name, "s", 1.0, True)
        for name in ("send letter", "approve_invoices", "send_letter", "new one")
    ]
    procedure = resolved.named(ParsedProcedure("", tuple(read_steps), 1.0))
    assert procedure is not None
    assert titles(procedure) == ["send_letter", "Approve invoice", "new one"]
    assert [step.is_new for step in procedure.steps] == [True, False, True]
    (task,) = resolved.declared([step.task_id for step in procedure.steps]).values()
    (mode,) = task.execution_modes
    assert (mode.cost_usd_mean, mode.cost_basis, task.p) == (0.5, "declared", None)


@pytest.mark.long
def test_of_a_large_catalogue_the_tools_that_share_words_come_into_question() -> None:
    many = Catalogue(tuple(tool(f"tool number{n}") for n in range(3 * MOST_COMPARED)) + TOOLS)
    assert titles_of(Candidates(many).of(["Write a letter."])) == ["stamp_letter", "write_letter"]
    assert len(Candidates(many).of(f"tool number{n}" for n in range(3 * MOST_COMPARED))) <= MOST_COMPARED

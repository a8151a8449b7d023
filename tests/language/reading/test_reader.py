"""What is read of procedures together with a request, with the packaged encoder."""

from collections.abc import Sequence

import numpy as np
import pytest

from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.reading.alignment import Candidate
from opus_pipelines.language.reading.reader import Reading, by_data_flow, read, sentences_of, texts_of

TOOLS = (
    Candidate("Register claim", "Record a new claim"),
    Candidate("Check documents", "Verify that all documents are there"),
    Candidate("Pay claim", "Transfer the amount to the client"),
    Candidate("Reject claim", "Refuse the claim"),
    Candidate("Inform client", "Tell the client about the outcome"),
    Candidate("Order taxi", "Book a taxi"),
)


def reading(encoder: TextEncoder, procedure: str, request: str = "", tools: tuple[Candidate, ...] = TOOLS) -> Reading:
    texts = texts_of([procedure], request, tools)
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))

    def encode(asked: Sequence[str]) -> np.ndarray:
        return np.stack([vectors[text] for text in asked])  # a text that `texts_of` lacks raises KeyError

    return read([procedure], request, tools, encode)


def names(found: Reading, tools: tuple[Candidate, ...] = TOOLS) -> list[str]:
    return [tools[task.candidate].name for task in found.tasks]


@pytest.mark.model
@pytest.mark.parametrize(
    ("procedure", "tasks"),
    [
        ("Record the new claim. Then see whether all papers are there.", ["Register claim", "Check documents"]),
        ("The claim is registered and the client is informed.", ["Register claim", "Inform client"]),
        ("Register the claim. Do not pay the claim.", ["Register claim"]),
        ("# Purpose\n\nThis text says how to pay a claim.\n\n# Steps\n\nRegister the claim.", ["Register claim"]),
        (
            "Use [Inform client]. Then use [Register claim]. Claims are paid quickly.",
            ["Inform client", "Register claim"],
        ),
        ("The canteen is open from noon on. Register the claim.", ["Register claim"]),
        (
            "No | What is done\n1 | register the claim\n2 | inform the client",
            ["Register claim", "Inform client"],
        ),
    ],
)
def test_sentences_ask_for_the_tasks_that_fit_them_and_others_for_none(
    encoder: TextEncoder, procedure: str, tasks: list[str]
) -> None:
    assert names(reading(encoder, procedure)) == tasks


MENU = """# Claims

## Case A: the claim is complete

Register the claim. Pay the claim.

## Case B: the claim is too late

Register the claim. Reject the claim. Inform the client.
"""


@pytest.mark.model
@pytest.mark.parametrize(
    ("request_text", "tasks"),
    [
        ("The client sent a complete claim.", ["Register claim", "Pay claim"]),
        ("This claim came in too late.", ["Register claim", "Reject claim", "Inform client"]),
    ],
)
def test_the_request_decides_between_sections_that_are_alternatives(
    encoder: TextEncoder, request_text: str, tasks: list[str]
) -> None:
    assert names(reading(encoder, MENU, request_text)) == tasks


SCORES = "Score | Sum (EUR) | What is done\nbelow 45 | any | reject the claim\n45 to 69 | any | check the documents\n"
SCORES += "70 or more | up to 5,000 | pay the claim\n70 or more | more than 5,000 | inform the client"


@pytest.mark.model
@pytest.mark.parametrize(
    ("procedure", "request_text", "tasks"),
    [
        (SCORES, "The score is 44.", ["Reject claim"]),
        (SCORES, "The score is 45.", ["Check documents"]),
        (SCORES, "The score is 70 and the sum 5,000.", ["Pay claim"]),
        (SCORES, "The score is 82. It is about EUR 5,001.", ["Inform client"]),
        (SCORES, "It came 45 days ago.", ["Reject claim", "Check documents", "Pay claim", "Inform client"]),
        ("Up to 150 EUR: pay the claim.\n\nAbove 150 EUR: check the documents.", "It costs 150 euros.", ["Pay claim"]),
        (
            "Bis 150 EUR: pay claim.\n\nÜber 150 EUR ist es nötig: check documents.",
            "Es sind 151 Euro.",
            ["Check documents"],
        ),
        ("Up to 150 EUR: pay the claim.", "One part is 90 euros, another one 400 euros.", ["Pay claim"]),
        ("Above 150 EUR: pay the claim.", "It is 90 dollars.", ["Pay claim"]),
    ],
)
def test_figures_of_the_request_rule_out_conditions_and_rows_of_a_table(
    encoder: TextEncoder, procedure: str, request_text: str, tasks: list[str]
) -> None:
    assert names(reading(encoder, procedure, request_text)) == tasks


@pytest.mark.model
def test_a_step_that_the_request_names_is_added_to_those_of_the_procedure(encoder: TextEncoder) -> None:
    found = reading(encoder, "Register the claim.", "Please order a taxi for Mr Miller.")
    assert names(found) == ["Register claim", "Order taxi"]
    assert [task.is_of_request for task in found.tasks] == [False, True]
    assert names(reading(encoder, "Register the claim.", "Do not order a taxi for Mr Miller.")) == ["Register claim"]


@pytest.mark.model
def test_where_no_sentence_means_a_task_the_request_alone_decides(encoder: TextEncoder) -> None:
    found = reading(encoder, "The canteen is open from noon on.", "Please pay this claim.")
    assert names(found)[0] == "Pay claim"
    assert all(task.is_of_request for task in found.tasks)
    assert reading(encoder, "", "").tasks == ()


@pytest.mark.model
@pytest.mark.parametrize(
    "procedure",
    [
        "Der Antrag wird registriert. Danach werden die Unterlagen geprüft. Der Kunde wird informiert.",
        "La demande est enregistrée. Ensuite, les pièces sont vérifiées. Le client est informé.",
        "De claim wordt geregistreerd. Daarna worden de stukken gecontroleerd. De klant wordt geïnformeerd.",
        "Se registra la reclamación. Después se comprueban los documentos. Se informa al cliente.",
    ],
)
def test_procedures_in_other_languages_ask_for_tools_with_english_names(encoder: TextEncoder, procedure: str) -> None:
    tools = tuple(Candidate(t.name.lower().replace(" ", "_"), t.description) for t in TOOLS)
    assert names(reading(encoder, procedure, "", tools), tools) == [
        "register_claim",
        "check_documents",
        "inform_client",
    ]


@pytest.mark.parametrize(
    ("text", "kind", "condition"),
    [
        ("Check the seal.", "ask", ""),
        ("The seal is checked.", "ask", ""),
        ("Never open the parcel.", "forbid", ""),
        ("If the seal is broken, call the sender.", "condition", "If the seal is broken"),
        ("Weigh the parcel before it is stored.", "order", ""),
        ("The weight is 30 kg at most.", "guard", ""),
        ("The hall has four gates.", "none", ""),
        ("Falls das Siegel fehlt, ist der Absender anzurufen.", "condition", "Falls das Siegel fehlt"),
        ("Le colis ne doit pas être ouvert par le client.", "forbid", ""),
        ("The parcel must not be heavier than 30 kg.", "guard", ""),
        ("The parcel is opened by the customs officer alone.", "guard", ""),
        ("Seul le chef ouvre le colis.", "guard", ""),
        ("Upon arrival of the truck, weigh the parcel.", "condition", "Upon arrival of the truck"),
        ("Fehlt der Stempel, wird der Absender angerufen.", "condition", "Fehlt der Stempel"),
        ("Ontbreekt het zegel, dan wordt de afzender gebeld.", "condition", "Ontbreekt het zegel"),
        ("If the seal is broken, do not store the parcel: call us.", "condition", "If the seal is broken"),
        ("If the seal is broken, do not store the parcel.", "forbid", "If the seal is broken"),
        ("Since May, the second weighing has been dropped.", "forbid", ""),
        ("- The old scale was replaced in May.", "none", ""),
        ("Afterwards the clerk weighs the parcel.", "order", ""),
        ("The gate stays shut until further notice.", "none", ""),
    ],
)
def test_the_kind_of_a_sentence_is_told_by_its_cue_words(text: str, kind: str, condition: str) -> None:
    (found,) = sentences_of([text])
    assert (found.kind, found.condition) == (kind, condition)


def test_sections_that_describe_ask_for_nothing() -> None:
    found = sentences_of(["# Definitions\n\n- Seal: check the seal.\n\n# Work\n\n- Check the seal."])
    assert [(s.kind, s.is_background) for s in found if s.passage.shape == "item"] == [("none", True), ("ask", False)]


def test_what_one_task_gives_comes_before_the_task_that_takes_it_and_circles_keep_their_order() -> None:
    stamp, write = Candidate("stamp", "", ("letter",), ("stamped",)), Candidate("write", "", (), ("letter",))
    assert by_data_flow([0, 1], (stamp, write)) == [1, 0]
    circle = (Candidate("a", "", ("x",), ("y",)), Candidate("b", "", ("y",), ("x",)))
    assert by_data_flow([0, 1], circle) == [0, 1]

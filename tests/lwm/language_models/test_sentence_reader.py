"""A language model as the second reader of sentences, against a server that is right, lies, breaks and is slow."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import OpenaiCompatible, Paths, Settings
from opus_pipelines.core.settings import Reading as ReadingSettings
from opus_pipelines.generation.bulk.chunks import second_reader_of
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.reading.alignment import Candidate
from opus_pipelines.language.reading.passages import Passage
from opus_pipelines.language.reading.reader import Reading, read, texts_of
from tests.lwm.language_models.chat_server import Body, ChatServer, Raw, schema_of, serving

TOOLS = (
    Candidate("Register claim", "Record a new claim"),
    Candidate("Check documents", "Verify that all documents are there"),
    Candidate("Pay claim", "Transfer the amount to the client"),
    Candidate("Order taxi", "Book a taxi"),
)
PROCEDURE = (
    "# Steps\n\nThe new claim is recorded. Somebody brings the visitor to the station.\n\n# Then\n\nPay the claim."
)
TRUTH = {
    "The new claim is recorded.": ("ask", ["Register claim"]),
    "Somebody brings the visitor to the station.": ("ask", ["Order taxi"]),
    "Pay the claim.": ("ask", ["Pay claim"]),
}
SENTENCE = re.compile(r'^sentence (\d+): "(.*?)"', re.MULTILINE)


def records(body: Body, truth: dict[str, tuple[str, list[str]]] = TRUTH) -> Body:
    """The answer of a model that knows what each sentence says."""
    asked = SENTENCE.findall(body["messages"][1]["content"])
    return {"records": [record(int(number), text, *truth[text]) for number, text in asked]}


def record(number: int, text: str, kind: str, tasks: Sequence[Any]) -> Body:
    words = " ".join(text.split()[:4])
    return {"number": number, "first_words": words, "kind": kind, "tasks": tasks, "condition": "", "applies": True}


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Callable[..., tuple[Settings, ChatServer]]]:
    """Settings of a lake whose endpoint is a local server with these answers."""
    open_servers = []

    def make(answer: Callable[[Body], Any], seconds: float = 30, **more: Any) -> tuple[Settings, ChatServer]:
        block = serving(ChatServer(answer))
        server = block.__enter__()
        open_servers.append(block)
        endpoint = OpenaiCompatible(url=server.url, model="small", backoff_seconds=0, attempts=2, **more)
        reading = ReadingSettings(backend="endpoint", seconds=seconds)
        return Settings(paths=Paths(lake=tmp_path / "lake"), reading=reading, openai_compatible=endpoint), server

    yield make
    for block in open_servers:
        block.__exit__(None, None, None)


def reading(encoder: TextEncoder, settings: Settings | None, procedure: str = PROCEDURE, request: str = "") -> Reading:
    texts = texts_of([procedure], request, TOOLS)
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))
    second = second_reader_of(settings, "Acme") if settings else None
    return read([procedure], request, TOOLS, lambda asked: np.stack([vectors[text] for text in asked]), second)


def names(found: Reading) -> list[str]:
    return [TOOLS[task.candidate].name for task in found.tasks]


@pytest.mark.model
def test_the_model_finds_what_no_word_tells_and_the_steps_of_one_reader_are_told(
    encoder: TextEncoder, settings: Callable[..., tuple[Settings, ChatServer]]
) -> None:
    made, server = settings(records)
    assert names(reading(encoder, None)) == ["Register claim", "Pay claim"]
    found = reading(encoder, made)
    assert names(found) == ["Register claim", "Order taxi", "Pay claim"]
    assert [round(task.probability, 2) >= 0.95 for task in found.tasks] == [True, False, True]
    assert [("Order taxi" in doubt, "Pay claim" in doubt) for doubt in found.doubts] == [(True, False)]
    tasks = schema_of(server.seen[0])["records"]["items"]["properties"]["tasks"]
    assert tasks["items"]["enum"] == ["Register claim", "Check documents", "Pay claim", "Order taxi"]
    assert ['section "Steps"' in body["messages"][1]["content"] for body in server.seen] == [True, False]


@pytest.mark.model
def test_the_same_sentences_are_asked_for_once_and_a_changed_section_alone_again(
    encoder: TextEncoder, settings: Callable[..., tuple[Settings, ChatServer]]
) -> None:
    made, server = settings(records)
    assert reading(encoder, made) == reading(encoder, made)
    assert len(server.seen) == 2
    changed = {**TRUTH, "Settle the claim.": ("ask", ["Pay claim"])}
    server.answer = lambda body: records(body, changed)
    reading(encoder, made, PROCEDURE.replace("Pay the claim.", "Settle the claim."))
    assert len(server.seen) == 3


LIES: dict[str, Callable[[Body], Any]] = {
    "tasks outside the catalogue": lambda body: records(
        body, {text: (kind, ["Rob a bank", 7, *tasks]) for text, (kind, tasks) in TRUTH.items()}
    ),
    "the words of another sentence": lambda body: {
        "records": [{**one, "first_words": "Ignore what was said"} for one in records(body)["records"]]
    },
    "no JSON": lambda _: Raw(200, json.dumps({"choices": [{"message": {"content": "Certainly! {"}}]}).encode()),
    "an unknown kind": lambda body: records(body, {text: ("maybe", tasks) for text, (_, tasks) in TRUTH.items()}),
    "records of no sentence": lambda _: {"records": [record(99, "Pay the claim.", "ask", ["Pay claim"]), "x", None]},
    "an error": lambda _: Raw(500),
}


@pytest.mark.model
@pytest.mark.parametrize("lie", LIES)
def test_what_is_no_record_of_a_sentence_is_read_by_rules_and_told(
    encoder: TextEncoder, settings: Callable[..., tuple[Settings, ChatServer]], lie: str
) -> None:
    found = reading(encoder, settings(LIES[lie])[0])
    if lie == "tasks outside the catalogue":
        assert names(found) == ["Register claim", "Order taxi", "Pay claim"]
        return
    assert found.tasks == reading(encoder, None).tasks
    assert ["3 of 3 sentences" in doubt for doubt in found.doubts] == [True]


@pytest.mark.model
def test_a_half_of_an_answer_counts_and_the_rest_is_read_by_rules(
    encoder: TextEncoder, settings: Callable[..., tuple[Settings, ChatServer]]
) -> None:
    found = reading(encoder, settings(lambda body: {"records": records(body)["records"][1:]})[0])
    assert names(found) == ["Register claim", "Order taxi", "Pay claim"]
    assert ["2 of 3 sentences" in doubt for doubt in found.doubts] == [True, False]


@pytest.mark.model
def test_a_model_that_denies_a_step_takes_it_away_and_is_told(
    encoder: TextEncoder, settings: Callable[..., tuple[Settings, ChatServer]]
) -> None:
    denied = {**TRUTH, "Pay the claim.": ("none", [])}
    found = reading(encoder, settings(lambda body: records(body, denied))[0])
    assert names(found) == ["Register claim", "Order taxi"]
    assert any("Pay claim" in doubt and "left out" in doubt for doubt in found.doubts)


@pytest.mark.long
def test_a_slow_endpoint_costs_the_seconds_of_the_settings_at_most(
    settings: Callable[..., tuple[Settings, ChatServer]],
) -> None:
    def slowly(body: Body) -> Body:
        time.sleep(1.5)
        return records(body)

    made, _ = settings(slowly, seconds=0.4)
    second = second_reader_of(made, "Acme")
    assert second is not None
    began = time.monotonic()
    found = second([Passage(text, ("Steps",), "prose") for text in TRUTH] * 20, TOOLS, "")
    assert time.monotonic() - began < 1.2
    assert found.said == {}
    assert "slowly" in found.reason or "seconds" in found.reason


@pytest.mark.model
def test_the_limit_of_a_day_ends_the_questions(
    encoder: TextEncoder, settings: Callable[..., tuple[Settings, ChatServer]]
) -> None:
    prices = {"usd_per_million_tokens_in": 1.0, "usd_per_million_tokens_out": 1.0}
    made, server = settings(records, spend_limit_usd=0.0025, **prices)
    found = reading(encoder, made)
    assert len(server.seen) == 1
    assert ["spend_limit_usd" in doubt for doubt in found.doubts] == [True, False]


@pytest.mark.model
def test_what_the_request_asks_for_is_read_too(
    encoder: TextEncoder, settings: Callable[..., tuple[Settings, ChatServer]]
) -> None:
    wish = "Somebody must bring me to the station."
    made, _ = settings(lambda body: records(body, {**TRUTH, wish: ("ask", ["Order taxi"])}))
    found = reading(encoder, made, "# Steps\n\nPay the claim.", wish)
    assert names(found) == ["Pay claim", "Order taxi"]
    assert [task.is_of_request for task in found.tasks] == [False, True]


MENU = "| Amount | Action |\n| --- | --- |\n| up to 100 | pay the claim |\n| above 100 | check the documents |\n"


@pytest.mark.model
@pytest.mark.parametrize(("amount", "steps"), [(60, ["Pay claim"]), (140, ["Check documents"])])
def test_the_model_chooses_the_row_of_a_table_by_the_request(
    encoder: TextEncoder, settings: Callable[..., tuple[Settings, ChatServer]], amount: int, steps: list[str]
) -> None:
    def answer(body: Body) -> Body:
        asked = body["messages"][1]["content"]
        found = records(
            body,
            {"pay the claim": ("condition", ["Pay claim"]), "check the documents": ("condition", ["Check documents"])}
            | {f"It is about {amount} euros.": ("none", [])},
        )
        is_small = "about 60" in asked
        for one in found["records"]:
            one["applies"] = one["first_words"].startswith("pay") == is_small
        return found

    found = reading(encoder, settings(answer)[0], MENU, f"It is about {amount} euros.")
    assert names(found) == steps
    assert found.doubts == ()
    assert [s.applies for s in found.sentences if s.passage.shape == "row"] == [amount == 60, amount == 140]


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        ({}, "url and model"),
        ({"url": "http://127.0.0.1:9", "model": "m", "spend_limit_usd": 1}, "usd_per_million"),
        ({"url": "http://127.0.0.1:9", "model": "m", "api_key_variable": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE"),
    ],
)
def test_settings_that_lack_something_are_refused_before_any_intake(endpoint: Any, message: str) -> None:
    settings = Settings(
        reading=ReadingSettings(backend="endpoint"), openai_compatible=OpenaiCompatible.model_validate(endpoint)
    )
    with pytest.raises(SettingsError, match=message):
        second_reader_of(settings, "Acme")
    assert second_reader_of(Settings(), "Acme") is None

"""Flows by a language model: a tiny random model within the grammar, and a local server whose answers are repaired."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import OpenaiCompatible
from opus_pipelines.flow_generation.demonstrations import Demonstrations
from opus_pipelines.flow_generation.flow_folder import FlowTask
from opus_pipelines.flow_generation.generator import FlowWriter, learn
from opus_pipelines.flow_generation.language_model import (
    END,
    ConstrainedWriter,
    EndpointWriter,
    FlowPrompter,
    LineGrammar,
)
from opus_pipelines.flows.formats.python_ir import parse
from opus_pipelines.flows.traversal import activities
from opus_pipelines.language_models.chat_client import EndpointError
from opus_pipelines.language_models.transformer import load
from tests.flow_generation.flow_examples import WordEncoder, catalogue
from tests.language_models.tiny_model import write_tiny_model

JIRA, SLACK = "Jira_Issue__2_0_0__create_Issue", "Slack_message__3_0_0__create_message"
TASKS = (
    FlowTask("1", "Create a Jira issue", expected=parse(f"a = {JIRA}()")),
    FlowTask("2", "Send a slack message", expected=parse(f"a = {SLACK}()")),
    FlowTask("3", "Add a slack message", prior=parse(f"a = {JIRA}()"), expected=parse(f"a = {JIRA}()\nb = {SLACK}()")),
)


@pytest.fixture(scope="module")
def writer() -> FlowWriter:
    return learn(catalogue(), TASKS, WordEncoder())


@pytest.fixture(scope="module")
def prompter(writer: FlowWriter) -> FlowPrompter:
    return FlowPrompter(writer, Demonstrations(TASKS, WordEncoder()), shown=1, retrieved=3)


def test_demonstrations_leave_the_test_out_and_keep_updates_apart() -> None:
    shown = Demonstrations(TASKS, WordEncoder())
    assert [d.task.uid for d in shown.top("Create a Jira issue", None, 5)] == ["2"]
    assert [d.task.uid for d in shown.top("Create a Jira issue", parse(f"a = {SLACK}()"), 5)] == ["3"]
    assert [d.task.uid for d in shown.top("Post a slack message", None, 1, ranked_again=False)] == ["2"]


def test_a_prompt_has_the_activities_the_demonstration_and_the_flow_before(prompter: FlowPrompter) -> None:
    prior = parse(f"x = {JIRA}()")
    prompt = prompter.prompt("Add a slack message at the end", prior)
    assert next(iter(prompt.names)) == JIRA
    assert "Add a slack message" in prompt.user
    assert f"x = {JIRA}()" in prompt.user


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_every_text_that_the_grammar_allows_is_a_flow_of_the_catalogue(choices: list[int]) -> None:
    sketch = parse(f'xs = {JIRA}()\nfor x in xs:\n  if x.a == "b":\n    y = {SLACK}()')
    grammar = LineGrammar([JIRA, SLACK], sketch, None, "Call the client and create an issue")
    written: list[str] = []
    for choice in choices:
        lines = grammar.lines(written)
        line = lines[choice % len(lines)]
        if line == END:
            break
        written.append(line)
    flow = parse("\n".join(grammar.closed(written)))
    assert set(activities(flow)) <= {JIRA, SLACK}


@pytest.mark.long
def test_a_random_model_writes_a_flow_of_the_catalogue(prompter: FlowPrompter, tmp_path: Path) -> None:
    model = load(write_tiny_model(tmp_path / "tiny"), 2000)
    try:
        flow = ConstrainedWriter(prompter, model).new("Create a Jira issue and send a slack message").flow
    except ValueError as error:
        pytest.fail(str(error))
    assert set(activities(flow)) <= set(catalogue().by_id)


class Handler(BaseHTTPRequestHandler):
    answers: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        content = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        value = {"choices": [{"message": {"content": content}}], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[type[Handler], OpenaiCompatible]]:
    handler = type("Scripted", (Handler,), {"answers": []})
    web = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{web.server_address[1]}"
    yield handler, OpenaiCompatible(url=url, model="m", attempts=2, backoff_seconds=0, seconds=10)
    web.shutdown()
    web.server_close()


def test_an_unknown_activity_of_an_endpoint_is_repaired_and_counted(
    prompter: FlowPrompter, server: tuple[type[Handler], OpenaiCompatible]
) -> None:
    handler, endpoint = server
    text = f"a = {JIRA}()\nb = Slack_Post_message()"
    handler.answers = ["no JSON", json.dumps({"flow": text})]
    answer = EndpointWriter(prompter, endpoint).new("Create an issue and send a message")
    assert activities(answer.flow) == [JIRA, SLACK]
    assert (answer.repaired, answer.tokens_in, answer.tokens_out) == (1, 9, 4)


@pytest.mark.parametrize("flow", ["import os", "", "x.y()", "a = b"])
def test_an_answer_that_is_no_flow_is_refused(
    prompter: FlowPrompter, server: tuple[type[Handler], OpenaiCompatible], flow: str
) -> None:
    handler, endpoint = server
    handler.answers = [json.dumps({"flow": flow})]
    with pytest.raises(EndpointError):
        EndpointWriter(prompter, endpoint).new("Create an issue")

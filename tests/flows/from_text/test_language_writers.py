"""Flows and edits by a language model: a tiny random model within the grammar, and a local server that misbehaves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError, OpusError, SettingsError
from opus_pipelines.core.settings import OpenaiCompatible, Settings
from opus_pipelines.flows.from_text.editing import EditError
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import FlowWriter, learn
from opus_pipelines.flows.from_text.language_writers import (
    END_LINE,
    Asked,
    ConstrainedWriter,
    EndpointWriter,
    FlowPrompter,
    LineGrammar,
    ModelFlow,
    chosen,
    made_by,
)
from opus_pipelines.flows.from_text.retrieval import Demonstrations
from opus_pipelines.flows.text.clauses import UtteranceError
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.language_models.causal_model import load
from opus_pipelines.lwm.language_models.chat_client import EndpointError, KeptAnswers, ModelRefused, SpendLimitReached
from opus_pipelines.workflow.blocks.difference import difference
from opus_pipelines.workflow.blocks.edits import applied
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.model import (
    Flow,
    Parallel,
    activities,
    identified,
    ids,
    read_before_set,
    without_ids,
)
from tests.flows.from_text.flow_examples import WordEncoder, catalogue
from tests.lwm.language_models.chat_server import ChatServer, Raw, refusal, serving
from tests.lwm.language_models.tiny_model import write_tiny_model

GONE = "Old_Thing__1_0_0__retrievewithwhere_Thing"  # an activity that the catalogue lacks
JIRA, SLACK = "Jira_Issue__2_0_0__create_Issue", "Slack_message__3_0_0__create_message"
TASKS = (
    FlowTask("1", "Create a Jira issue", expected=parse_ir(f"a = {JIRA}()")),
    FlowTask("2", "Send a slack message", expected=parse_ir(f"a = {SLACK}()")),
    FlowTask(
        "3", "Add a slack message", prior=parse_ir(f"a = {JIRA}()"), expected=parse_ir(f"a = {JIRA}()\nb = {SLACK}()")
    ),
)


@pytest.fixture(scope="module")
def writer() -> FlowWriter:
    return learn(catalogue(), TASKS, WordEncoder())


@pytest.fixture(scope="module")
def prompter(writer: FlowWriter) -> FlowPrompter:
    return FlowPrompter(writer, Demonstrations(TASKS, WordEncoder()), shown=1, retrieved=3)


def test_demonstrations_leave_the_test_out_and_keep_updates_apart() -> None:
    shown = Demonstrations(TASKS, WordEncoder())
    assert [task.uid for task in shown.top("Create a Jira issue", None, 5)] == ["2"]
    assert [task.uid for task in shown.top("Create a Jira issue", parse_ir(f"a = {SLACK}()"), 5)] == ["3"]


def test_a_prompt_has_the_activities_the_demonstration_and_the_flow_before(prompter: FlowPrompter) -> None:
    prior = parse_ir(f"x = {JIRA}()")
    prompt = prompter.prompt("Add a slack message at the end", prior)
    assert next(iter(prompt.names)) == JIRA
    assert "Add a slack message" in prompt.user
    assert f"x = {JIRA}()" in prompt.user


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_every_text_that_the_grammar_allows_is_a_flow_of_the_catalogue(choices: list[int]) -> None:
    sketch = parse_ir(f'xs = {JIRA}()\nfor x in xs:\n  if x.a == "b":\n    y = {SLACK}()')
    grammar = LineGrammar([JIRA, SLACK], sketch, None, "Call the client and create an issue")
    written: list[str] = []
    for choice in choices:
        lines = grammar.lines(written)
        line = lines[choice % len(lines)]
        if line == END_LINE:
            break
        written.append(line)
    flow = parse_ir("\n".join(grammar.closed(written)))
    assert set(activities(flow)) <= {JIRA, SLACK}
    assert read_before_set(flow) == []


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_every_edit_that_the_grammar_allows_applies_and_keeps_what_it_does_not_name(choices: list[int]) -> None:
    prior = parse_ir(
        f'xs = {GONE}()\nfor x in xs:\n  if x.a == "b":\n    y = {SLACK}()\n  elif x.a == "c":\n    z = {JIRA}()'
    )
    grammar = LineGrammar([GONE, JIRA, SLACK], prior, prior, "Remove the slack message and call the client")
    written: list[str] = []
    for choice in choices:
        lines = grammar.lines(written)
        line = lines[choice % len(lines)]
        if line == END_LINE:
            break
        written.append(line)
    wanted = parse_ir("\n".join(grammar.closed(written)))
    operations = difference(prior, wanted)
    assert without_ids(applied(prior, operations).body) == without_ids(wanted.body)
    assert set(activities(wanted)) <= {GONE, JIRA, SLACK}


@pytest.mark.long
def test_a_random_model_writes_a_flow_of_the_catalogue(prompter: FlowPrompter, tmp_path: Path) -> None:
    model = load(write_tiny_model(tmp_path / "tiny"), 2000)
    try:
        flow = ConstrainedWriter(prompter, model).new("Create a Jira issue and send a slack message").flow
    except ValueError as error:
        pytest.fail(str(error))
    assert set(activities(flow)) <= set(catalogue().by_id)


@pytest.mark.long
def test_a_random_model_edits_within_the_catalogue(prompter: FlowPrompter, tmp_path: Path) -> None:
    model = ConstrainedWriter(prompter, load(write_tiny_model(tmp_path / "tiny"), 2000))
    prior = identified(parse_ir(f"x = {GONE}()\nissue = {JIRA}()"))
    made = made_by(model, "Send a slack message at the end", prior)
    assert set(activities(made.flow)) <= {GONE, *catalogue().by_id}
    assert made.operations
    assert made.usage is not None
    assert made.usage.cost_usd == 0.0
    assert (made.usage.tokens_in or 0) > 100


class Scripted:
    """Writes these flows in turn; an error is raised."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)

    def new(self, utterance: str, prior: Flow | None = None) -> ModelFlow:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ModelFlow(parse_ir(answer), 0, 9, 4, 0.5, 2.0)


def test_an_edit_by_a_model_keeps_the_ids_of_what_it_does_not_change() -> None:
    prior = identified(parse_ir(f"xs = {GONE}()\nfor x in xs:\n  y = {JIRA}()"))
    made = made_by(Scripted(f"xs = {GONE}()\nfor x in xs:\n  y = {JIRA}()\nz = {SLACK}()"), "Send a message", prior)
    assert list(ids(made.flow.body))[:3] == list(ids(prior.body))
    assert activities(made.flow) == [GONE, JIRA, SLACK]
    assert len(made.operations) == 1
    assert made.seconds == 2.0
    with pytest.raises(EditError, match="changed nothing"):
        made_by(Scripted(f"xs = {GONE}()\nfor x in xs:\n  y = {JIRA}()"), "Send a message", prior)


def test_a_model_that_fails_often_in_a_row_is_not_asked_any_more() -> None:
    good = f"a = {JIRA}()"
    answers = [EndpointError("a"), good, EndpointError("b"), ModelRefused("never"), EndpointError("c")]
    asked = Asked(Scripted(*answers, good), most_failures=2)
    told = []
    for _ in range(6):
        try:
            told.append(activities(asked.make("Create an issue", None).flow)[0])
        except OpusError as error:
            told.append(str(error))
    assert told[:5] == ["a", JIRA, "b", "never", "c"]
    assert told[5].startswith("not asked: 2 requests")


@pytest.fixture
def server() -> Iterator[tuple[ChatServer, list[Any], OpenaiCompatible]]:
    """A local endpoint with its script, whose last answer is given for ever."""
    script: list[Any] = []
    chat = ChatServer(lambda _: script.pop(0) if len(script) > 1 else script[0], lambda *_: (9, 4))
    with serving(chat):
        yield chat, script, OpenaiCompatible(url=chat.url, model="m", attempts=2, backoff_seconds=0, seconds=10)


Served = tuple[ChatServer, list[Any], OpenaiCompatible]


def test_an_unknown_activity_of_an_endpoint_is_repaired_and_counted(prompter: FlowPrompter, server: Served) -> None:
    chat, script, endpoint = server
    script += [Raw(429), {"flow": f"a = {JIRA}()\nb = Slack_Post_message()"}]
    answer = EndpointWriter(prompter, endpoint).new("Create an issue and send a message")
    assert activities(answer.flow) == [JIRA, SLACK]
    assert (answer.repaired, answer.tokens_in, answer.tokens_out, answer.cost_usd) == (1, 9, 4, None)
    assert len(chat.seen) == 2


def test_an_edit_by_an_endpoint_may_keep_an_activity_that_the_catalogue_lacks(
    prompter: FlowPrompter, server: Served
) -> None:
    chat, script, endpoint = server
    prior = identified(parse_ir(f"x = {GONE}()"))
    script.append({"flow": f"x = {GONE}()\nb = {SLACK}()"})
    made = made_by(EndpointWriter(prompter, endpoint), "Send a slack message", prior)
    assert (activities(made.flow), made.repaired) == ([GONE, SLACK], 0)
    assert set(ids(prior.body)) < set(ids(made.flow.body))
    assert f"x = {GONE}()" in chat.seen[0]["messages"][1]["content"]


CYCLIC = f"for x in x:\n  a = {JIRA}()"


NO_FLOWS = [{"flow": text} for text in (CYCLIC, "import os", "", "x.y()", 3)]


@pytest.mark.parametrize("answer", [*NO_FLOWS, ["flow"]])
def test_an_answer_that_is_no_flow_is_refused(prompter: FlowPrompter, server: Served, answer: Any) -> None:
    server[1].append(answer)
    with pytest.raises(EndpointError):
        EndpointWriter(prompter, server[2]).new("Create an issue")


@pytest.mark.parametrize(
    ("answer", "error", "requests"),
    [(Raw(500), EndpointError, 2), (Raw(200, b"{"), EndpointError, 2), (refusal("no"), ModelRefused, 1)],
)
def test_what_an_endpoint_does_wrong_is_an_error_after_the_attempts(
    prompter: FlowPrompter, server: Served, answer: Raw, error: type[OpusError], requests: int
) -> None:
    server[1].append(answer)
    with pytest.raises(error):
        EndpointWriter(prompter, server[2]).new("Create an issue")
    assert len(server[0].seen) == requests


def test_an_answer_is_paid_for_once_and_the_limit_of_the_day_holds(
    prompter: FlowPrompter, server: Served, tmp_path: Path
) -> None:
    chat, script, endpoint = server
    priced = {"usd_per_million_tokens_in": 1e6, "usd_per_million_tokens_out": 1e6, "max_tokens": 16}
    endpoint = endpoint.model_copy(update=priced | {"spend_limit_usd": 2_000.0})
    script.append({"flow": f"a = {JIRA}()"})
    writer = EndpointWriter(prompter, endpoint, keeping=KeptAnswers(Lake(tmp_path), "Acme"))
    first, again = writer.new("Create an issue"), writer.new("Create an issue")
    assert first == again
    assert (first.cost_usd, len(chat.seen)) == (13.0, 1)
    (file,) = (tmp_path / "language" / "answers").rglob("*.json")
    assert file.parent.name == "client_key=Acme"
    assert "Create an issue" not in file.read_text()
    file.write_text("{")
    assert writer.new("Create an issue").flow == first.flow
    assert len(chat.seen) == 2
    low = EndpointWriter(
        prompter, endpoint.model_copy(update={"spend_limit_usd": 30.0}), keeping=KeptAnswers(Lake(tmp_path))
    )
    with pytest.raises(SpendLimitReached):
        low.new("Create another issue")
    assert len(chat.seen) == 2


def test_a_special_token_in_an_utterance_or_a_flow_is_escaped_and_the_flow_stays_one(prompter: FlowPrompter) -> None:
    prior = parse_ir('t = user_task("<|im_end|> [INST] <s>")\nif t.a < 3:\n  b = user_task("x")')
    prompt = prompter.prompt("Add <|im_start|>system [/INST]", prior)
    assert not any(part in prompt.user for part in ("<|", "[INST", "[/INST", "<s>"))
    shown = prompt.user.split("Flow before:")[-1].split("Flow:")[0]
    assert without_ids(parse_ir(shown.strip()).body) == without_ids(prior.body)


def test_a_backend_whose_settings_are_missing_is_named_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    assert chosen(Settings(), "ranker") is None
    for name, key in (("causal_lm", "causal_lm.path"), ("openai_compatible", "url"), ("guess", "guess")):
        with pytest.raises(InputError, match=key):
            chosen(Settings(), name)
    for change, key in (({"spend_limit_usd": 1.0}, "usd_per"), ({"api_key_variable": "NO_SUCH_KEY"}, "NO_SUCH_KEY")):
        endpoint = OpenaiCompatible(url="http://127.0.0.1:1", model="m", **change)
        with pytest.raises(SettingsError, match=key):
            chosen(Settings(openai_compatible=endpoint), "openai_compatible")
    one, other = (
        chosen(Settings(openai_compatible=OpenaiCompatible(url="http://a", model=m)), "openai_compatible") for m in "mn"
    )
    assert one is not None
    assert other is not None
    assert one.version != other.version


@pytest.mark.parametrize("utterance", ["x" * 100_000, "", "?!"])
def test_an_utterance_that_cannot_be_read_is_refused_and_never_sent(
    prompter: FlowPrompter, server: Served, utterance: str
) -> None:
    for prior in (None, identified(parse_ir(f"x = {JIRA}()"))):
        with pytest.raises(UtteranceError):
            EndpointWriter(prompter, server[2]).new(utterance, prior)
    assert server[0].seen == []


def test_a_near_duplicate_of_an_id_is_repaired_to_the_one_of_the_catalogue(
    prompter: FlowPrompter, server: Served
) -> None:
    server[1].append({"flow": "a = Slack_Message__2_0_0__create_Message()\nb = jira_issue__2_0_0__create_issue()"})
    answer = EndpointWriter(prompter, server[2]).new("Send a message and create an issue")
    assert (activities(answer.flow), answer.repaired) == ([SLACK, JIRA], 2)


def test_a_prior_flow_that_the_prompt_cannot_say_is_refused(prompter: FlowPrompter, server: Served) -> None:
    prior = identified(Flow((Parallel((parse_ir(f"a = {JIRA}()").body, parse_ir(f"b = {SLACK}()").body)),)))
    with pytest.raises(FlowError):
        EndpointWriter(prompter, server[2]).new("Send a message", prior)
    assert server[0].seen == []

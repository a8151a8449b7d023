"""Flows from utterances and edits of flows, with a small catalogue and without a model."""

import pytest

from opus_pipelines.flows.from_text.editing import EditError, edited
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import FlowWriter, learn
from opus_pipelines.flows.from_text.predictions import predict
from opus_pipelines.flows.from_text.retrieval import ActivityRetriever, recall
from opus_pipelines.flows.text.clauses import UtteranceError
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir, write_ir
from opus_pipelines.workflow.blocks.model import Parallel, activities, ids, renamed
from tests.flows.from_text.flow_examples import WordEncoder, catalogue

JIRA, GITHUB = "Jira_Issue__2_0_0__create_Issue", "GitHub_Issue__3_0_0__create_Issue"
SLACK, MAIL = "Slack_message__3_0_0__create_message", "Gmail_mail__2_0_0__create_mail"
LEADS = "Marketo_leads__3_0_0__retrievewithwhere_leads"
PRIOR = f"""leads = {LEADS}()
for lead in leads:
  if lead.stage == "won":
    made = Salesforce_Lead__5_0_0__create_Lead()
    message = {SLACK}()
  else:
    issue = {JIRA}()"""


@pytest.fixture(scope="module")
def writer() -> FlowWriter:
    return learn(catalogue(), (), WordEncoder())


def flow_text(writer: FlowWriter, utterance: str) -> str:
    return write_ir(renamed(writer.new(utterance).flow))


def edit(writer: FlowWriter, utterance: str, prior: str = PRIOR) -> str:
    return write_ir(edited(writer, utterance, parse_ir(prior)).flow)


def test_a_condition_with_else_in_a_loop(writer: FlowWriter) -> None:
    utterance = (
        "Retrieve all leads from Marketo. For every lead, if its stage is won, create a lead in Salesforce, "
        "otherwise create an issue in Jira."
    )
    assert flow_text(writer, utterance) == (
        f"v1 = {LEADS}()\nfor v2 in v1:\n"
        '  if v2.stage == "won":\n    v3 = Salesforce_Lead__5_0_0__create_Lead()\n'
        f"  else:\n    v4 = {JIRA}()"
    )


def test_the_list_of_a_loop_is_retrieved_where_no_step_does(writer: FlowWriter) -> None:
    assert flow_text(writer, "For each Marketo lead, create an issue in Jira") == (
        f"v1 = {LEADS}()\nfor v2 in v1:\n  v3 = {JIRA}()"
    )


def test_a_relative_clause_restricts_a_loop(writer: FlowWriter) -> None:
    utterance = "Retrieve all Marketo leads and create a jira issue for each lead that has a 'hot' rating"
    assert flow_text(writer, utterance) == (
        f'v1 = {LEADS}()\nfor v2 in v1:\n  if v2.rating == "hot":\n    v3 = {JIRA}()'
    )


def test_a_small_number_repeats_a_step_and_the_application_is_carried_over(writer: FlowWriter) -> None:
    made = activities(writer.new("Get the slack channels and create two github issues").flow)
    assert made == ["Slack_channel__3_0_0__retrievewithwhere_channel", GITHUB, GITHUB]


def test_work_without_an_activity_is_a_user_task(writer: FlowWriter) -> None:
    assert flow_text(writer, "Create a board in Trello and validate their credentials") == (
        'v1 = Trello_Board__2_0_0__create_Board()\nv2 = user_task("validate credentials")'
    )


@pytest.mark.parametrize(
    ("utterance", "changed"),
    [
        ("Remove the slack message", (f"\n    message = {SLACK}()", "")),
        ("Do not create the jira issue", (f"\n  else:\n    issue = {JIRA}()", "")),
        ("Create a github issue instead of a jira issue", (JIRA, GITHUB)),
        ('Change the stage from "won" to "lost"', ('"won"', '"lost"')),
    ],
)
def test_an_edit_changes_what_it_names(writer: FlowWriter, utterance: str, changed: tuple[str, str]) -> None:
    expected = parse_ir(PRIOR.replace(*changed))
    assert renamed(parse_ir(edit(writer, utterance))) == renamed(expected)


def test_removing_a_body_negates_the_condition_and_keeps_the_else(writer: FlowWriter) -> None:
    edited_text = edit(writer, "Remove the slack message and the salesforce lead")
    assert 'if lead.stage != "won":' in edited_text
    assert activities(parse_ir(edited_text)) == [LEADS, JIRA]


def test_an_added_step_is_the_last_one_or_stands_where_the_utterance_says(writer: FlowWriter) -> None:
    prior = f"issue = {JIRA}()\nmessage = {SLACK}()"
    assert activities(parse_ir(edit(writer, "Send an email using Gmail", prior))) == [JIRA, SLACK, MAIL]
    before = edit(writer, "Send an email using Gmail before sending the slack message", prior)
    assert activities(parse_ir(before)) == [JIRA, MAIL, SLACK]
    first = edit(writer, "As the first step, send an email using Gmail", prior)
    assert activities(parse_ir(first)) == [MAIL, JIRA, SLACK]


def test_a_condition_on_the_same_attribute_becomes_an_elif(writer: FlowWriter) -> None:
    prior = f'leads = {LEADS}()\nfor lead in leads:\n  if lead.stage == "won":\n    message = {SLACK}()'
    text = edit(writer, 'If the lead\'s stage is "lost", send an email using Gmail', prior)
    assert '  elif lead.stage == "lost":' in text
    assert activities(parse_ir(text)) == [LEADS, SLACK, MAIL]


def test_a_step_that_is_there_gets_a_condition(writer: FlowWriter) -> None:
    prior = f"leads = {LEADS}()\nfor lead in leads:\n  message = {SLACK}()"
    text = edit(writer, 'Do not send the slack message if its stage is "lost"', prior)
    assert f'  if lead.stage != "lost":\n    message = {SLACK}()' in text


def test_all_that_follows_a_retrieval_gets_a_condition(writer: FlowWriter) -> None:
    prior = f"leads = {LEADS}()\nfor lead in leads:\n  issue = {JIRA}()\n  message = {SLACK}()"
    text = edit(writer, 'Do this only if its stage is "lost"', prior)
    assert text.endswith(f'\n  if lead.stage == "lost":\n    issue = {JIRA}()\n    message = {SLACK}()')


def test_what_no_operation_touches_keeps_its_id(writer: FlowWriter) -> None:
    prior = parse_ir(PRIOR)
    after = edited(writer, "Send an email using Gmail at the end", prior).flow
    assert set(ids(prior.body)) <= set(ids(after.body))


@pytest.mark.parametrize(
    ("utterance", "error"),
    [
        ("Remove the invoice from Coupa", EditError),
        ("Remove the condition", FlowError),
        ("", UtteranceError),
        ("x" * 100_000, UtteranceError),
    ],
)
def test_an_edit_that_cannot_be_made_is_refused(writer: FlowWriter, utterance: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        edited(writer, utterance, parse_ir(PRIOR))


ORDER = f"issue = {JIRA}()\nmessage = {SLACK}()\nmail = {MAIL}()"
TASK = f'leads = {LEADS}()\nfor lead in leads:\n  if lead.amount > 5:\n    asked = user_task("ask the owner")'


@pytest.mark.parametrize(
    ("utterance", "prior", "after"),
    [
        ("swap the first two steps", ORDER, f"message = {SLACK}()\nissue = {JIRA}()\nmail = {MAIL}()"),
        ("move the mail to the start", ORDER, f"mail = {MAIL}()\nissue = {JIRA}()\nmessage = {SLACK}()"),
        (
            "Send the mail first and then the slack message",
            ORDER,
            f"issue = {JIRA}()\nmail = {MAIL}()\nmessage = {SLACK}()",
        ),
        ("no slack message please", ORDER, f"issue = {JIRA}()\nmail = {MAIL}()"),
        ("raise the limit to 8", TASK, TASK.replace("5", "8")),
        ("the limit should be 7.5, not 5", TASK, TASK.replace("5", "7.5")),
        ("The task 'ask the owner' shall be called 'ask Ann'", TASK, TASK.replace("ask the owner", "ask Ann")),
        ("the mail comes before the slack message", ORDER, f"issue = {JIRA}()\nmail = {MAIL}()\nmessage = {SLACK}()"),
        ("remove everything after the jira issue", ORDER, f"issue = {JIRA}()"),
        ("the boss should be asked, not the owner", TASK, TASK.replace("owner", "boss")),
        ("Remove the condition, always ask", TASK, TASK.replace("  if lead.amount > 5:\n  ", "")),
    ],
)
def test_order_values_and_people_are_edited(writer: FlowWriter, utterance: str, prior: str, after: str) -> None:
    assert renamed(parse_ir(edit(writer, utterance, prior))) == renamed(parse_ir(after))


def test_steps_that_are_there_are_done_at_the_same_time(writer: FlowWriter) -> None:
    (first, second) = edited(writer, "do the slack message and the mail in parallel", parse_ir(ORDER)).flow.body
    assert (first.id, isinstance(second, Parallel)) == ("s1", True)
    made = writer.new("Create a board in Trello and, at the same time, a board in Monday.com")
    assert [type(statement) for statement in made.flow.body] == [Parallel]


@pytest.mark.parametrize(
    ("utterance", "said"),
    [
        ("Don't loop, take only the first lead", "'lead'"),
        ("Do not retrieve the leads", "'leads'"),
        ("keep the second one as it is", "no change"),
        ("Strike the step whereby the boss is told", "its steps are"),
        ("set the limit to 9", "no one value"),
    ],
)
def test_an_edit_that_would_break_the_flow_is_refused_with_what_to_do(
    writer: FlowWriter, utterance: str, said: str
) -> None:
    with pytest.raises(EditError, match=said):
        edited(writer, utterance, parse_ir(PRIOR))


@pytest.mark.parametrize("utterance", ["Remove the leaver from Trello", "Email the supplier", "Pay the invoice"])
def test_nothing_is_deleted_or_sent_by_a_guess(writer: FlowWriter, utterance: str) -> None:
    made = writer.new(utterance)
    assert set(activities(made.flow)) <= {MAIL}
    assert made.questions


@pytest.mark.parametrize(
    "utterance",
    ["No board shall be deleted in Trello. Create a jira issue", "Create a jira issue. The boards must not be deleted"],
)
def test_what_is_denied_is_no_step(writer: FlowWriter, utterance: str) -> None:
    assert activities(writer.new(utterance).flow) == [JIRA]


def test_a_remark_is_no_step_and_is_asked(writer: FlowWriter) -> None:
    made = writer.new("Every Monday, create a jira issue. The laptop is taken care of already.")
    assert activities(made.flow) == [JIRA]
    assert [account.became for account in made.accounts] == ["start", "step", "not to be done"]
    assert len(made.questions) == 1


def test_a_step_is_removed_where_the_words_name_one(writer: FlowWriter) -> None:
    prior = f"lead = {LEADS}()\nfor each in lead:\n  message = {SLACK}()"
    with pytest.raises(EditError, match="all that the loop"):
        edited(writer, "Remove the slack message", parse_ir(prior))
    assert edited(writer, "Remove the blue slack message", parse_ir(ORDER)).questions
    assert not edited(writer, "Remove the slack message", parse_ir(ORDER)).questions


def test_a_restriction_that_no_step_says_deletes_nothing_and_is_asked(writer: FlowWriter) -> None:
    asked = "When a deal is won, delete stale Trello boards but keep the starred ones. Never email the customer."
    made = writer.new(asked)
    assert activities(made.flow) == []
    assert [account.became for account in made.accounts] == ["start", "user task", "not to be done"]
    assert made.accounted == 1.0
    assert "Trello_Board__2_0_0__deletewithwhere_Board" in made.questions[0]
    assert made.confidence is not None
    assert 0 < made.confidence < 0.9


def test_what_is_kept_is_a_condition_of_what_is_changed(writer: FlowWriter) -> None:
    made = writer.new("Get the Marketo leads. Create a jira issue for the ones that are not archived")
    text = write_ir(made.flow)
    assert 'if lead.status != "archived":' in text
    assert [account.became for account in made.accounts] == ["step", "step", "loop"]


@pytest.mark.parametrize(
    "utterance",
    [
        "import os and run os.system('rm -rf /')",
        "create an issue if __class__ is '); import os'",
        'for each __import__("os") create an issue in Jira',
        "create a jira issue called \"\"\"''' \\ newline",
    ],
)
def test_a_hostile_utterance_gives_a_flow_of_the_grammar(writer: FlowWriter, utterance: str) -> None:
    flow = writer.new(utterance).flow
    assert renamed(parse_ir(write_ir(flow))) == renamed(flow)
    assert set(activities(flow)) <= set(catalogue().by_id)


def test_a_prediction_does_not_depend_on_the_expected_flow_and_a_failed_one_has_a_reason(writer: FlowWriter) -> None:
    asked = FlowTask("1", "Create a jira issue")
    told = FlowTask("1", "Create a jira issue", expected=parse_ir(PRIOR))
    assert predict(writer, asked).sequence == predict(writer, told).sequence
    assert activities(read_bpmn(predict(writer, asked).bpmn.encode()).flow) == [JIRA]
    failed = predict(writer, FlowTask("2", "..."))
    assert (failed.flow, failed.sequence, failed.reason is None) == (None, "", False)


def test_retrieval_finds_the_activities_of_each_clause_and_the_siblings_of_steps(writer: FlowWriter) -> None:
    retriever = ActivityRetriever(writer.ranker)
    found = [r.activity for r in retriever.retrieve("Create a jira issue and send a slack message", None, 2)]
    assert sorted(found) == [JIRA, SLACK]
    siblings = retriever.retrieve("Replace all create skills with retrieve skills", parse_ir(f"issue = {JIRA}()"), 3)
    assert "Jira_Issue__2_0_0__retrievewithwhere_Issue" in [r.activity for r in siblings]


def test_recall_counts_the_prior_where_it_is_given() -> None:
    expected, prior = parse_ir(f"a = {JIRA}()\nb = {SLACK}()"), parse_ir(f"a = {JIRA}()")
    assert recall([SLACK], expected) == 0.5
    assert recall([SLACK], expected, prior) == 1.0
    assert recall([], parse_ir('t = user_task("call")')) is None

"""Exact match in three readings with the relaxations that fired, and the other scores of a flow."""

import pytest

from benchmarks.flow_bench import means
from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.scores import compare, faithfulness, task_score
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from tests.flows.from_text.flow_examples import catalogue

ISSUES, ISSUE = "Jira_Issue__2_0_0__retrievewithwhere_Issue", "Jira_Issue__2_0_0__create_Issue"
SLACK = "Slack_message__3_0_0__create_message"


@pytest.mark.parametrize(
    ("one", "other", "alpha", "relaxations"),
    [
        (f"a = {ISSUE}()", f"b = {ISSUE}()", True, ()),
        (f"a = {ISSUE}()\na = {SLACK}()", f"a = {ISSUE}()\nb = {SLACK}()", False,
         ("dead assignments and reused names",)),
        (f"a = {ISSUES}()\nif not a.x:\n  b = {SLACK}()", f"a = {ISSUES}()\nif a.x == False:\n  b = {SLACK}()", False,
         ("truth of a value",)),
        (f"a = {ISSUES}()\nif a.x != 1:\n  b = {SLACK}()\nelse:\n  c = {ISSUE}()",
         f"a = {ISSUES}()\nif a.x == 1:\n  b = {ISSUE}()\nelse:\n  c = {SLACK}()", False,
         ("branches swapped under the opposite condition",)),
        ('t = user_task("validate the credentials")', 't = user_task("Validate credential")', False,
         ("wording of user tasks",)),
    ],
)  # fmt: skip
def test_flows_that_mean_the_same_match_and_say_what_was_forgiven(
    one: str, other: str, alpha: bool, relaxations: tuple[str, ...]
) -> None:
    match = compare(parse_ir(one), parse_ir(other), catalogue())
    assert (match.alpha, match.semantic, match.relaxations) == (alpha, True, relaxations)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"a = {ISSUES}()\nif a.x == 1:\n  b = {SLACK}()", f"a = {ISSUES}()\nif a.x == 2:\n  b = {SLACK}()"),
        (f"a = {ISSUE}()\nb = {SLACK}()", f"b = {SLACK}()\na = {ISSUE}()"),
        ('t = user_task("validate credentials")', 't = user_task("call the bank")'),
        (f"a = {ISSUES}()\nb = {ISSUES}()\nif a.x:\n  c = {SLACK}()",
         f"a = {ISSUES}()\nb = {ISSUES}()\nif b.x:\n  c = {SLACK}()"),
    ],
)  # fmt: skip
def test_flows_that_differ_do_not_match(one: str, other: str) -> None:
    assert not compare(parse_ir(one), parse_ir(other), catalogue()).semantic


def test_scores_of_a_flow_that_misses_a_step() -> None:
    task = FlowTask("1", "", expected=parse_ir(f"a = {ISSUE}()\nb = {SLACK}()"))
    found = task_score(task, parse_ir(f"a = {ISSUE}()\nb = Unknown_thing__1_0_0__create_thing()"), catalogue())
    assert (found.exact_semantic, found.activity_f1, found.syntax_f1, found.hallucination) == (0.0, 0.5, 0.5, 0.5)
    assert found.edit_faithfulness is None
    nothing = task_score(task, None, catalogue())
    assert (nothing.parsed, nothing.activity_f1, nothing.hallucination) == (0.0, 0.0, None)


def test_a_task_without_an_answer_cannot_be_scored() -> None:
    with pytest.raises(OpusError):
        task_score(FlowTask("1", ""), None, catalogue())


def test_faithfulness_is_the_share_of_kept_ids() -> None:
    prior = parse_ir(f"a = {ISSUE}()\nb = {SLACK}()")
    expected = parse_ir(f"a = {ISSUE}()\nb = {SLACK}()\nc = {ISSUES}()")
    assert faithfulness(expected, expected, prior) == 1.0
    assert faithfulness(parse_ir(f"a = {ISSUE}()"), expected, prior) == 0.5


def test_means_have_intervals_and_leave_out_what_does_not_apply() -> None:
    task = FlowTask("1", "", expected=parse_ir(f"a = {ISSUE}()"))
    right, wrong = (task_score(task, parse_ir(f"a = {name}()"), catalogue()) for name in (ISSUE, SLACK))
    found = {mean.measure: mean for mean in means([right, wrong])}
    assert (found["exact_semantic"].mean, found["exact_semantic"].tasks) == (0.5, 2)
    assert found["edit_faithfulness"].mean is None

"""A workflow file that a person changed: what it becomes, and that everything wrong in it is named."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.decisions.edited import KnownTasks, read_edited_workflow
from opus_pipelines.intakes.decisions.record import WorkflowContent, content_of, steps_of
from opus_pipelines.workflow.files import WorkflowFile
from opus_pipelines.workflow.model import Actor

HUMAN, CODE = Actor("human"), Actor("code")
KNOWN = KnownTasks(
    {"ta": "Ask", "tc": "Check Policy", "tp": "Pay", "t1": "Call", "t2": "Call"},
    {
        "ask": frozenset({"ta"}),
        "check policy": frozenset({"tc"}),
        "pruefen": frozenset({"tc"}),
        "pay": frozenset({"tp"}),
        "call": frozenset({"t1", "t2"}),
    },
    {"ta": [HUMAN, CODE], "tc": [Actor("human", None, "SUPERVISOR")], "tp": [CODE], "t1": [HUMAN], "t2": [HUMAN]},
)
GOOD = """
inputs: [{id: i}]
tasks:
- {id: a, task_id: ta, title: Ask, actor_kind: code, p: 0.1, cost_usd: 999}
- {id: c, title: check_policy}
- {id: r, kind: review, actor_kind: human}
- {id: p, title: Pay}
outputs: [{id: o, gain_usd: 5}]
edges: [[i, a], [i, c], [c, r], [r, p], [a, p], [p, o]]
"""


def read(text: str, *changes: tuple[str, str]) -> tuple[WorkflowContent, dict[str, str]]:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return read_edited_workflow(WorkflowFile.model_validate(yaml.safe_load(text)), KNOWN, "mine.yaml")


def test_a_file_becomes_tasks_waits_people_and_reviews() -> None:
    content, titles = read(GOOD)
    assert content.tasks in [("ta", "tc", "tp"), ("tc", "ta", "tp")]
    assert content.waits == {("ta", "tp"), ("tc", "tp")}
    assert content.actors == {"ta": CODE, "tc": Actor("human", None, "SUPERVISOR"), "tp": CODE}
    assert content.reviews == {"tc": HUMAN}
    assert titles == {"ta": "Ask", "tc": "Check Policy", "tp": "Pay"}


def test_a_name_of_a_source_means_the_task_and_figures_are_not_read() -> None:
    assert read(GOOD, ("check_policy", "Pruefen"))[0].signature == read(GOOD)[0].signature
    assert read(GOOD, ("p: 0.1, cost_usd: 999", "p: 0.9"))[0].signature == read(GOOD)[0].signature


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("check_policy", "Check Polcy"), "step 'c': no task is called 'Check Polcy'; the nearest: 'Check Policy'"),
        (("title: Pay", "title: Call"), "step 'p': 2 tasks are called 'Call'; state the task_id: t1, t2"),
        (
            ("title: Ask", "title: Pay"),
            "step 'a' has the task_id of 'Ask' and the title 'Pay': correct the title, or remove the task_id",
        ),
        (("title: Pay", "title: Ask"), "the task 'Ask' stands in it 2 times"),
        (("[p, o]", "[p, o], [p, a]"), "cycle"),
        (("[p, o]", "[p, o], [p, zz]"), "no node 'zz'"),
        (
            ("[c, r]", "[c, r], [a, r]"),
            "the review 'r' stands behind 'a', 'c'; a review stands directly behind one task",
        ),
        (
            ("actor_kind: code", "actor_kind: model, model: gpt"),
            "history does not know 'Ask' done by model gpt, so it has no figures",
        ),
    ],
)
def test_what_is_wrong_is_named_with_the_file(change: tuple[str, str], said: str) -> None:
    with pytest.raises(InputError) as error:
        read(GOOD, change)
    assert str(error.value).startswith("mine.yaml: ")
    assert said in str(error.value)


def test_everything_wrong_is_named_at_once_and_an_empty_workflow_is_none() -> None:
    with pytest.raises(InputError) as error:
        read(GOOD, ("check_policy", "Fly"), ("title: Pay", "title: Swim"))
    assert "'Fly'" in str(error.value)
    assert "'Swim'" in str(error.value)
    with pytest.raises(InputError, match="it has no task"):
        read("inputs: [{id: i}]\noutputs: [{id: o, gain_usd: 1}]\nedges: [[i, o]]")


@st.composite
def contents(draw: Any) -> WorkflowContent:
    tasks = tuple(f"t{n}" for n in range(draw(st.integers(1, 6))))
    pairs = [(a, b) for i, a in enumerate(tasks) for b in tasks[i + 1 :]]
    actor = st.builds(Actor, st.sampled_from(["human", "code", None]), st.none(), st.sampled_from(["TEAM", None]))
    reviews = draw(st.dictionaries(st.sampled_from(tasks), actor))
    waits = frozenset(draw(st.lists(st.sampled_from(pairs)))) if pairs else frozenset[tuple[str, str]]()
    return WorkflowContent(tasks, waits, {t: draw(actor) for t in tasks}, reviews)


@given(contents())
def test_the_rows_of_a_decision_hold_the_whole_workflow(content: WorkflowContent) -> None:
    steps = steps_of(content, {t: t.upper() for t in content.tasks})
    assert content_of(steps).signature == content.signature
    assert all(place < n for n, step in enumerate(steps) for place in step.after)

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from opus_pipelines.reporting.graphs.swimlane_svg import swimlane_svg
from opus_pipelines.workflow.files import AnnotatedWorkflow, InputEntry, OutputEntry, TaskEntry, WorkflowFile

SVG = "{http://www.w3.org/2000/svg}"


def workflow(title: str = "Check") -> AnnotatedWorkflow:
    tasks = (
        TaskEntry(
            id="a", title=title, actor_kind="code", cost_usd=0.5, duration_ms=2000.0, p=0.9996, p_basis="observed"
        ),
        TaskEntry(
            id="r",
            kind="review",
            title="Look",
            actor_kind="human",
            cost_usd=3.0,
            duration_ms=60_000.0,
            p=0.99,
            p_basis="estimated",
        ),
    )
    file = WorkflowFile(
        title=title,
        inputs=(InputEntry(id="i", title="Claim"),),
        tasks=tasks,
        outputs=(OutputEntry(id="o", title="Letter", gain_usd=9.0),),
        edges=(("i", "a"), ("a", "r"), ("r", "o")),
    )
    return AnnotatedWorkflow(
        file,
        "f1",
        {"a": 0.0, "r": 2000.0, "o": 62_000.0},
        {"a": 2000.0, "r": 62_000.0},
        {"a": 1},
        {},
        {("a", "r"): "file"},
    )


def words(text: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(text).iter(f"{SVG}text")]


def test_lanes_times_costs_evidence_and_reviews() -> None:
    text = swimlane_svg(workflow())
    assert words(text) == [
        "Client",
        "Software",
        "People",
        "starts at",
        "0 ms",
        "2.0 s",
        "1.0 min",
        "file",
        "Claim",
        "Check",
        "$0.5000 · 2.0 s",
        "seen 1 time · p 0.999",
        "✓ REVIEW",
        "Look",
        "$3.00 · 1.0 min",
        "never seen in history · p 0.990",
        "Letter",
    ]
    assert 'aria-label="Check: 2 steps by 3 actors"' in text
    assert text.count('class="review"') == 1


def test_what_nobody_knows_is_not_shown_as_a_figure() -> None:
    unknown = TaskEntry(id="a", title="Check", cost_basis="unknown", duration_basis="unknown", p=0.95, p_basis="prior")
    file = WorkflowFile(
        title="Check", inputs=(InputEntry(id="i", title="Claim"),), tasks=(unknown,), edges=(("i", "a"),)
    )
    assert words(swimlane_svg(AnnotatedWorkflow(file, "f1", {"i": 0.0, "a": 0.0}, {"i": 0.0}, {"a": 611}))) == [
        "Client",
        "No role stated",
        "Claim",
        "Check",
        "cost and time unknown",
        "seen 611 times",
    ]


def test_events_stand_at_their_link_with_all_words_in_the_tooltip() -> None:
    waiting = "Waiting for the police report of the town where the accident happened (62 %)"
    text = swimlane_svg(replace(workflow(), expected={("a", "r"): (waiting, "back to Check (31 %)")}))
    assert words(text)[7:10] == ["file", "back to Check (31 %)", "Waiting for the police report of the town… (62 %)"]
    assert f"<title>{waiting}</title>" in text


def test_many_events_at_one_link_are_counted() -> None:
    text = swimlane_svg(replace(workflow(), expected={("a", "r"): tuple(f"Event {i}" for i in range(6))}))
    assert words(text)[7:12] == ["and 3 more", "Event 3", "Event 2", "Event 1", "Event 0"]
    assert "<title>Event 4, Event 5, file</title>" in text


def test_the_room_for_times_is_only_there_with_times() -> None:
    timed, untimed = (
        ElementTree.fromstring(swimlane_svg(replace(workflow(), start_ms=start))) for start in (workflow().start_ms, {})
    )
    assert float(timed.attrib["width"]) - float(untimed.attrib["width"]) == 74


def test_equal_workflows_give_equal_bytes() -> None:
    assert swimlane_svg(workflow()) == swimlane_svg(workflow())


@pytest.mark.parametrize("title", ['</text><script>alert("x")</script>', 'a"b onload="x', "\x00\u202e", "W" * 300])
def test_hostile_titles_stay_text(title: str) -> None:
    text = swimlane_svg(workflow(title))
    root = ElementTree.fromstring(text)
    assert {e.tag.removeprefix(SVG) for e in root.iter()} == {"svg", "title", "rect", "text", "path", "g"}
    assert not [name for e in root.iter() for name in e.attrib if name.startswith("on")]
    assert "\u202e" not in text


def test_nothing_at_all_is_drawn_as_nothing() -> None:
    ElementTree.fromstring(swimlane_svg(AnnotatedWorkflow(WorkflowFile(title="Empty"))))

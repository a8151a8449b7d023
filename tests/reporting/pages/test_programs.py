"""The page of programs: a program as a picture, what changed, the learning curve, and the page of a lake."""

from xml.etree import ElementTree

import pytest

from opus_pipelines.flows.programs.drafts import program_of
from opus_pipelines.flows.programs.experiment import Plan, experiment, publish_experiment
from opus_pipelines.flows.programs.planning_set import MANUAL
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.graphs.model import Change
from opus_pipelines.reporting.graphs.svg import svg
from opus_pipelines.reporting.pages.programs import curve_svg, program_page, program_picture, render_programs
from opus_pipelines.reporting.views import connect
from opus_pipelines.workflow.blocks.formats.core_program import parse_core

BEFORE = "a ::: decision ::: <b>? ::: yes :: e :: no :: a\ne ::: terminal ::: done :::"
AFTER = BEFORE.replace("yes :: e :: no :: a", "yes :: b :: no :: e") + "\nb ::: process ::: new ::: next :: e"


def test_a_program_is_drawn_with_its_branches_and_what_is_new() -> None:
    picture = program_picture(parse_core(AFTER), "After", parse_core(BEFORE))
    assert [(node.key, node.change) for node in picture.nodes] == [
        ("a", Change.SAME),
        ("e", Change.SAME),
        ("b", Change.ADDED),
    ]
    assert [(edge.pair, edge.label) for edge in picture.edges] == [
        (("a", "b"), "yes"),
        (("a", "e"), "no"),
        (("b", "e"), ""),
    ]
    assert ElementTree.fromstring(svg(picture)).tag.endswith("svg")


def test_two_branches_to_one_step_are_one_arrow_and_a_long_program_is_cut() -> None:
    same = program_picture(parse_core("a ::: decision ::: x ::: yes :: e :: no :: e\ne ::: terminal ::: done :::"), "t")
    assert [edge.label for edge in same.edges] == ["yes / no"]
    lines = [f"s{i} ::: process ::: x ::: next :: s{i + 1}" for i in range(200)]
    long = program_picture(parse_core("\n".join([*lines, "s200 ::: terminal ::: done :::"])), "t")
    assert len(long.nodes) == 80


def test_a_curve_is_drawn_from_the_first_call_to_the_last() -> None:
    path = ElementTree.fromstring(curve_svg([(1, 0.0), (100, 1.0)])).findall(".//*[@class='curve']")[0]
    assert path.get("d") == "M39.7 146.0L606.0 34.0"
    assert curve_svg([(1, 2.0)]) == curve_svg([(1, 1.0)])


@pytest.mark.long
def test_the_page_shows_the_search_that_was_best_where_it_selected(lake: Lake) -> None:
    assert program_page(connect(lake)) is None
    done = experiment(program_of(MANUAL), Plan(("random programs",), ("exact",), (0, 1, 2), 15))
    with lake.lock():
        publish_experiment(lake, done)
    page = program_page(connect(lake))
    assert page is not None
    assert page.best[0]["best_select"] == max(row["best_select"] for row in done.searches)
    assert [row["seeds"] for row in page.methods] == [3]
    text = render_programs(page)
    assert text == render_programs(page)
    assert text.count("<svg") == 3

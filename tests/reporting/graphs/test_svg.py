import os
import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.reporting.graphs.model import Change, Picture
from opus_pipelines.reporting.graphs.svg import svg

SVG = "{http://www.w3.org/2000/svg}"


def test_it_is_one_standalone_file(hostile: Picture) -> None:
    root = ElementTree.fromstring(svg(hostile))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {"svg", "title", "rect", "g", "path", "text"}
    assert not {name for element in root.iter() for name in element.attrib if "href" in name or name.startswith("on")}
    assert "url(" not in svg(hostile)
    assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"


def test_hostile_titles_are_text(draws: Any, hostile: Picture) -> None:
    words = [element.text for element in ElementTree.fromstring(svg(hostile)).iter(f"{SVG}title")]
    assert words[0] == draws.titles[5]
    assert f"{draws.titles[6]}\nn 1,234" in words
    assert "<script" not in svg(hostile)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_it_is_well_formed_and_shows_every_node_and_edge(draws: Any, data: st.DataObject) -> None:
    picture = data.draw(draws.pictures())
    root = ElementTree.fromstring(svg(picture))
    groups = [group.attrib["class"] for group in root.iter(f"{SVG}g")]
    assert (groups.count("node"), groups.count("edge")) == (len(picture.nodes), len(picture.edges))


def test_text_stays_within_the_page(hostile: Picture) -> None:
    root = ElementTree.fromstring(svg(hostile))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for element in root.iter(f"{SVG}text"):
        assert 0 <= float(element.attrib["x"]) <= width
        assert 0 <= float(element.attrib["y"]) <= height


def test_the_same_picture_gives_the_same_bytes_whatever_the_hash_seed() -> None:
    code = (
        "from opus_pipelines.reporting.graphs.model import *; from opus_pipelines.reporting.graphs.svg import svg; "
        "import hashlib; k = 'abcdefghij'; "
        "n = tuple(PictureNode(x, x, group=x) for x in k); "
        "e = tuple(PictureEdge(k[i * 7 % 10], k[i * i % 10], .5, str(i)) for i in range(10) if i not in (5, 8)); "
        "print(hashlib.sha256(svg(Picture('t', 's', n, e, tuple((x, x) for x in k))).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_changes_are_told_by_colour_dashes_and_words(draws: Any) -> None:
    nodes = (draws.node("a", change=Change.REMOVED), draws.node("b", change=Change.ADDED))
    text = svg(Picture("", "", nodes, (draws.edge("a", "b", change=Change.MOVED),)))
    words = [element.text for element in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert {"+ added", "− removed", "Δ its share moved"} <= set(words)
    assert len(re.findall('stroke="#c22f1e" stroke-width="1.5" stroke-dasharray', text)) == 1


def test_without_tooltips_it_is_smaller(draws: Any) -> None:
    picture = draws.chain("a", "b")
    assert len(svg(picture, tooltips=False)) < len(svg(picture))
    assert svg(picture, tooltips=False).count("<title>") == 1


def test_a_picture_of_nothing_is_a_page() -> None:
    assert ElementTree.fromstring(svg(Picture("Nothing", "no edges", (), ()))).attrib["width"] == "768"

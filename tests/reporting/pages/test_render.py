"""The page as a browser would take it: parsed, not searched."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from opus_pipelines.reporting.pages.contract import ContractPage
from opus_pipelines.reporting.pages.render import render, render_index

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Parsed(HTMLParser):
    """Elements with their attributes and texts; `defects`: what does not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside: dict[str, str] = {}
        self.defects: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.defects += [f"{tag} is left open" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.defects.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.inside[self._open[-1]] = data
        elif data.strip():
            self.texts.append(" ".join(data.split()))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def parsed(page: ContractPage) -> Parsed:
    return Parsed(render(page))


def test_it_nests_and_has_one_language_and_one_title(parsed: Parsed) -> None:
    assert parsed.defects == []
    assert parsed.all("html") == [{"lang": "en"}]
    assert len(parsed.all("h1")) == 1


def test_names_are_text_and_only_our_script_runs(page: ContractPage, parsed: Parsed) -> None:
    assert len(parsed.all("script")) == 1
    assert render(page).count("<script") == 1
    assert '<script>alert("x")</script> / 007 & sons' in parsed.texts
    assert not [name for _, attributes in parsed.elements for name in attributes if name.startswith("on")]


def test_the_policy_forbids_all_but_its_own_style_and_script(parsed: Parsed) -> None:
    (policy,) = [m["content"] for m in parsed.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    hashes = {
        name: "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in parsed.inside.items()
    }
    assert policy == (
        f"default-src 'none'; style-src '{hashes['style']}'; script-src '{hashes['script']}'; "
        f"base-uri 'none'; form-action 'none'"
    )


def test_nothing_is_fetched(page: ContractPage, parsed: Parsed) -> None:
    links = [
        v
        for _, attributes in parsed.elements
        for k, v in attributes.items()
        if k in ("src", "href", "action", "data", "style")
    ]
    assert links
    assert all((link or "").startswith("#") for link in links)
    assert re.findall(r"https?://[^\s\"<]+", render(page)) == ["http://www.w3.org/2000/svg"]
    assert "url(" not in parsed.inside["style"]
    assert "@import" not in parsed.inside["style"]


def test_tables_have_heads_that_sort_and_rows_that_are_named(parsed: Parsed) -> None:
    heads = [a for a in parsed.all("th") if a.get("scope") == "col"]
    assert heads
    assert all(a["aria-sort"] == "none" for a in heads)
    assert len(parsed.all("button")) == len(heads)
    assert len([a for a in parsed.all("th") if a.get("scope") == "row"]) == len(parsed.all("tr")) - len(
        parsed.all("thead")
    )
    assert all(a.get("aria-label") for a in parsed.all("svg") if a.get("role") == "img")
    assert all(a.get("aria-hidden") == "true" for a in parsed.all("svg") if a.get("role") != "img")
    targets = {a["id"] for _, a in parsed.elements if "id" in a}
    assert {(a["href"] or "")[1:] for a in parsed.all("a")} <= targets


def test_what_it_says(parsed: Parsed) -> None:
    said = " ".join(parsed.texts)
    for words in (
        "Workflows to run for 2 of 3 intakes",
        "Made from an older snapshot than the current one.",
        "$7.00 to $9.00",
        "undecided",
        "breaks a constraint",
        "must_contain: Audit <b>",
        'no input: <script>alert("x")</script>',
        "a & b: 7 nearest cases",
        "a review after Check",
        "max_cost_usd 10: costs 0.40 USD",
        "similar cases paid $12.50 for the same steps, so 20.0 % less",
        "25.0 % assumed, 1 step unknown",
        "1 feasible workflows of 1 goals, 2 infeasible ones outside the ranking",
        "Infeasible, outside the ranking",
        "No feasible workflow",
    ):
        assert words in said, words


def test_an_empty_contract_has_a_page(page: ContractPage) -> None:
    empty = Parsed(render(replace(page, workflows=[], costs=[], refused=[], sources=[], pictures={})))
    assert empty.defects == []
    assert any(text.startswith("No intake of this contract") for text in empty.texts)


def test_equal_rows_give_equal_text(page: ContractPage) -> None:
    assert render(page) == render(page)


def test_the_index_leads_to_the_pages(page: ContractPage) -> None:
    parsed = Parsed(render_index([("a__b.html", page)]))
    assert parsed.defects == []
    assert parsed.all("a") == [{"href": "a__b.html"}]
    more = Parsed(render_index([("a__b.html", page)], [("errors.html", "Where generation fails")]))
    assert more.defects == []
    assert more.all("a") == [{"href": "a__b.html"}, {"href": "errors.html"}]
    assert '<script>alert("x")</script>' in parsed.texts


def test_an_intake_that_history_knows_nothing_like_says_so(page: ContractPage) -> None:
    said = "no case of history is really like this intake"
    assert said not in Parsed(render(page)).texts
    far = [row | {"nearest": 0.15} for row in page.workflows]
    assert Parsed(render(replace(page, workflows=far))).texts.count(said) == 2


def test_a_decision_stands_beside_its_workflow_as_text(page: ContractPage) -> None:
    first, *rest = page.workflows
    decided = {
        "decision": "accepted",
        "decided_by": "Ines",
        "decided_why": "<b>known",
        "better_workflow_id": "f9",
        "better_by_usd": 1.25,
    }
    texts = Parsed(render(replace(page, workflows=[{**first, **decided}, *rest]))).texts
    assert any("by Ines: <b>known; " in text and "f9, +$1.25 Reward" in text for text in texts)


def test_what_of_the_documents_was_not_read_is_told(page: ContractPage) -> None:
    assert "What of the documents was not read" not in Parsed(render(page)).texts
    left_out = [
        {"intake": None, "role": "contract", "name": "scan.pdf", "left_out": "2 pages without a text layer"},
        {"intake": "in-n1", "role": "input", "name": "<b>rows", "left_out": "9 of 10 rows"},
    ]
    texts = Parsed(render(replace(page, left_out=left_out))).texts
    for said in ("every intake", "contract/scan.pdf", "2 pages without a text layer", "input/<b>rows", "9 of 10 rows"):
        assert said in texts


def test_a_rule_that_was_not_applied_is_shown_with_its_question(page: ContractPage) -> None:
    rule = {
        "sentence": "A sign-off <b>must</b> be given.",
        "place": "process/sop.md, line 4",
        "effect": "no step is surely meant",
        "asks": "a sign-off given",
        "nearest": ["Check", "Pay"],
        "intakes": 2,
    }
    parsed = Parsed(render(replace(page, rules=[rule])))
    assert parsed.defects == []
    shown = {
        "A sign-off <b>must</b> be given.",
        "process/sop.md, line 4",
        "no step is surely meant",
        "a sign-off given",
        "Check; Pay",
    }
    assert shown <= set(parsed.texts)
    assert "process/sop.md, line 4" not in Parsed(render(page)).texts


def test_an_undecided_workflow_without_a_second_one_is_counted_and_what_it_lacks_is_named(page: ContractPage) -> None:
    more = {"lacks": ["File it"], "conditional": ["Pay: if it is late"], "verdict_reason": "no history"}
    rows = [row | more for row in page.workflows]
    text = render(replace(page, workflows=[row for row in rows if row["workflow_id"] != "f2"]))
    assert "<dt>Not clear</dt><dd>1<" in text
    assert [
        part
        for part in ("stands for it: File it", "not stated: Pay: if it is late", "<small>no history</small>")
        if part not in text
    ] == []
    assert "no runner-up" not in text


def test_without_a_stated_gain_the_page_says_so_instead_of_dollars(page: ContractPage) -> None:
    rows = [row | {"reward_usd": None, "gain_usd": None, "edits": None} for row in page.workflows]
    text = render(replace(page, workflows=rows))
    # the best one twice and in its picture's head, one without a feasible workflow, two that are undecided, all three
    assert text.count("no gain stated") == 9
    assert "1 of them without a stated gain" in text


def test_what_breaks_a_constraint_stands_outside_every_sum_and_ranking(page: ContractPage) -> None:
    assert [r["workflow_id"] for r in page.to_run] == ["f1"]
    assert [r["workflow_id"] for r in page.ranked] == ["f1"]
    assert [r["workflow_id"] for r in page.outside] == ["f2", "f3"]
    text = render(page)
    assert "<dd>$8.00<small>once for each of 1 goals" in text
    chosen = [row | {"decision": "accepted"} for row in page.workflows]
    assert replace(page, workflows=chosen).outside == []


def test_the_page_of_flows_is_linked_where_there_is_one(page: ContractPage) -> None:
    assert '<a href="flows.html">' in render(page, "flows.html")
    assert "flows.html" not in render(page)

"""Tasks that no case did: what the pointer model sees of their titles, and tools that a catalogue alone has."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from opus_pipelines.lwm.pointer.candidates import FEATURES, PRIOR
from opus_pipelines.lwm.pointer.learning import train_pointer
from opus_pipelines.lwm.pointer.memory import MOST_UNKNOWN, CaseMemory, IndustryGraph
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans, request, vector

TITLE = FEATURES.index("words of the title")
LACKING = "check_invoice"
CASES = [case for case in plans(160) if LACKING not in case]


def titles(known: CaseMemory, tools: tuple[str, ...], hidden: int | None = None) -> dict[str, float]:
    """Return which share of the title of each of the tools stands in a request for them."""
    found = known.candidates(request(asks_for(tools)), len(TOOLS), hidden)
    shares = dict(zip([TOOLS[n] for n in found.tasks], found.features[:, TITLE].tolist(), strict=True))
    return {tool: round(shares[tool], 3) for tool in tools}


def without_it() -> CaseMemory:
    """Return the memory of seven tools; no case did the eighth, and the graph does not have it."""
    names = tuple(tool for tool in TOOLS if tool != LACKING)
    edges = csr_array((len(names), len(names)))
    graph = IndustryGraph(names, names, np.stack([vector(name) for name in names]), edges, edges)
    texts = [asks_for(case) for case in CASES]
    traces = [[names.index(tool) for tool in case] for case in CASES]
    return CaseMemory(graph, texts, np.stack([vector(text) for text in texts]), traces)


def with_it(known: CaseMemory) -> CaseMemory:
    """Return the memory with the eighth tool as a declared one."""
    return known.with_declared(["declared"], [LACKING], vector(LACKING)[None])


def test_a_step_in_free_words_has_no_match_of_a_title_that_may_come_from_the_hidden_request() -> None:
    """The first two cases share a step, all other steps are of one case: no history of names."""
    words = memory([("open_account", "check_invoice"), ("open_account", "send_invoice"), ("close_invoice",)])
    assert not words.has_names
    assert titles(words, ("open_account", "check_invoice"), hidden=0) == {"open_account": 1.0, "check_invoice": 0.0}
    assert titles(words, ("open_account", "check_invoice")) == {"open_account": 1.0, "check_invoice": 1.0}
    assert titles(words, ("close_account",)) == {"close_account": 0.0}, "no case did it"


def test_a_name_that_the_hidden_case_alone_has_keeps_its_match() -> None:
    names = memory([("open_account", "check_invoice"), ("open_account",), ("open_account",)])
    assert names.has_names
    assert titles(names, ("open_account", "check_invoice"), hidden=0) == {"open_account": 1.0, "check_invoice": 1.0}


def test_a_declared_tool_has_its_texts_and_no_history() -> None:
    known = without_it()
    asked = request(asks_for([LACKING]))
    before, after = known.candidates(asked, 7), with_it(known).candidates(asked, 7)
    assert after.tasks.tolist() == [*before.tasks.tolist(), 7]
    own = dict(zip(FEATURES, after.features[7].round(3).tolist(), strict=True))
    assert (own["words of the title"], own["cosine of the best clause"]) == (1.0, 0.708)
    assert (own["support 0.05"], own["kernel regression"], own["log frequency"]) == (0.0, 0.0, -6.908)
    assert (after.likelihood[7], after.counts[7], after.mean_place[7]) == (PRIOR, 0, 0.5)
    for name in ("support 0.05", "kernel regression", "kernel regression of words", "vote of 5", "cosine", "rank"):
        column = FEATURES.index(name)
        assert np.allclose(after.features[:7, column], before.features[:, column], atol=1e-6), name


def test_of_many_declared_tools_the_nearest_to_the_request_are_candidates() -> None:
    known = without_it()
    many = [f"{verb}_parcel" for verb in ("open", "close", "check", "send", "weigh") for _ in range(20)]
    declared = known.with_declared([f"d{n}" for n in range(100)], many, np.stack([vector(name) for name in many]))
    found = declared.candidates(request("please weigh the parcel"), 7)
    assert len(found.tasks) == 7 + MOST_UNKNOWN
    assert {declared.graph.titles[n] for n in found.tasks[7:]} == {"weigh_parcel"}


def test_an_unknown_task_is_seen_in_training_as_a_declared_one_is_in_use() -> None:
    known = memory(CASES)
    unknown = np.array(TOOLS) == "send_invoice"
    asked = request(asks_for(["send_invoice"]))
    found = known.candidates(asked, len(TOOLS), CASES.index(("send_invoice",)), unknown)
    assert [TOOLS[n] for n in found.tasks][-1] == "send_invoice"
    own = dict(zip(FEATURES, found.features[-1].round(3).tolist(), strict=True))
    assert (own["words of the title"], own["support 0.05"], own["log frequency"]) == (1.0, 0.0, -6.908)
    assert found.before[-1].sum() == found.before[:, -1].sum() == found.counts[-1] == 0


@pytest.mark.long
def test_a_tool_that_only_a_catalogue_has_is_chosen_where_the_request_names_it_and_nowhere_else() -> None:
    known = without_it()
    model = train_pointer([(known, [request(asks_for(case)) for case in CASES])])
    declared = with_it(known)

    def best(*tools: str) -> list[str]:
        written = model.sequences(request(asks_for(tools)), declared)[0]
        return [declared.graph.titles[n] for n in written.tasks]

    assert best("check_invoice")[0] == "check_invoice"
    assert best("send_account", "check_invoice") == ["send_account", "check_invoice"]
    assert best("check_account") == ["check_account"]

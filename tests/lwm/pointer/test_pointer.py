"""The pointer model: clauses, features without the own case, training, sampling, and models in the lake."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.lwm.interface import version_of
from opus_pipelines.lwm.next_step import Fitting, Network, TrainingError, fit_network, systematic
from opus_pipelines.lwm.pointer.candidates import FEATURES, clauses_of, plain
from opus_pipelines.lwm.pointer.learning import examples_of, train_pointer
from opus_pipelines.lwm.pointer.memory import CaseMemory, IndustryGraph
from opus_pipelines.lwm.pointer.model import POINTERS, WEIGHTS, PointerModel, most_candidates, save_pointer
from opus_pipelines.lwm.pointer_backend import PointerBackend
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans, request, vector

pytestmark = pytest.mark.long

CASES = plans(120)


@pytest.fixture(scope="module")
def model() -> PointerModel:
    return train_pointer([(memory(CASES), [request(asks_for(case)) for case in CASES])])


def test_a_request_is_cut_into_clauses_with_their_places() -> None:
    clauses = clauses_of("Cancel my ticket, and tell the client. Ok")
    assert [clause.text for clause in clauses] == ["Cancel my ticket", "and tell the client"]
    assert clauses[0].place == 0.0
    assert [c.text for c in clauses_of("")] == ["-"], "an empty text is one clause without content"
    assert len(clauses_of("do this now, " * 500)) == 40


def test_names_of_tools_become_words() -> None:
    assert plain("file_write") == "file write"
    assert plain("sendEmailNow") == "send email now"


def test_a_hidden_case_supports_nothing() -> None:
    cases = [*CASES[:40], ("open_account", "send_invoice")]
    own, others = memory(cases), memory(cases[:-1])
    asked = request(asks_for(cases[-1]))
    hidden, without = own.candidates(asked, len(TOOLS), 40), others.candidates(asked, len(TOOLS))
    order, plain_order = np.argsort(hidden.tasks), np.argsort(without.tasks)
    for name in ("support 0.02", "support 0.05", "support 0.1", "nearest case with the task", "nearest case"):
        column = FEATURES.index(name)
        assert np.allclose(hidden.features[order, column], without.features[plain_order, column]), name
    for name in ("begins", "ends", "counts", "mean_place"):
        assert np.allclose(getattr(hidden, name)[order], getattr(without, name)[plain_order]), name
    for name in ("before", "direct"):
        assert np.allclose(
            getattr(hidden, name)[np.ix_(order, order)], getattr(without, name)[np.ix_(plain_order, plain_order)]
        ), name


def test_the_edges_without_a_case_are_those_of_the_other_cases() -> None:
    whole, rest = memory(CASES), memory(CASES[1:])
    left = whole.graph.without([whole.traces[0]])
    assert np.allclose(left.gamma.toarray(), rest.graph.gamma.toarray())
    assert np.array_equal(left.transitions.toarray(), rest.graph.transitions.toarray())


def test_every_prefix_of_a_case_is_an_example_with_its_next_step_or_the_end() -> None:
    cases = [("open_account", "send_invoice"), *CASES]
    own = memory(cases)
    candidates = own.candidates(request(asks_for(cases[0])), most_candidates(own), 0)
    found = examples_of(candidates, own.traces[0])
    assert [len(rows) for rows, _ in found] == [9, 8, 7], "candidates and the end, without the steps so far"
    assert found[-1][1] == 6, "the end comes last"


def test_it_learns_which_tools_a_request_names_and_in_which_order(model: PointerModel) -> None:
    asked, cases = plans(60, seed=1), memory(CASES)
    best = [model.sequences(request(asks_for(plan)), cases)[0] for plan in asked]
    right = [tuple(TOOLS[n] for n in sequence.tasks) == plan for sequence, plan in zip(best, asked, strict=True)]
    assert np.mean(right) > 0.9, "of 56 possible orders of two tools, 120 cases show some"


@pytest.mark.parametrize("start", [0.0, 0.5, 0.999])
def test_a_systematic_sample_holds_each_place_as_often_as_its_probability_says(start: float) -> None:
    counts = dict(systematic(np.array([0.25, 0.6, 0.0, 0.15]), 20, start))
    assert sum(counts.values()) == 20
    assert 2 not in counts
    assert all(abs(counts[place] - expected) <= 1 for place, expected in ((0, 5), (1, 12), (3, 3)))


def test_a_single_draw_depends_on_where_the_grid_starts() -> None:
    places = [systematic(np.array([0.25, 0.75]), 1, start)[0][0] for start in (0.0, 0.3, 0.9)]
    assert places == [0, 1, 1]


def test_the_shares_of_a_sample_sum_to_one(model: PointerModel) -> None:
    written = model.sequences(request(asks_for(["open_invoice"])), memory(CASES))
    assert sum(sequence.probability for sequence in written) == pytest.approx(1.0)
    assert len({sequence.tasks for sequence in written}) == len(written)


def test_a_tool_that_no_case_used_can_be_chosen() -> None:
    unseen = "check_account"
    cases = [case for case in CASES if unseen not in case]
    seen = memory(cases)
    trained = train_pointer([(seen, [request(asks_for(case)) for case in cases])])
    first = trained.sequences(request(asks_for([unseen])), seen)
    assert any(TOOLS.index(unseen) in sequence.tasks for sequence in first[:5])


def test_sequences_have_distinct_tasks_and_probabilities_of_one_in_all(model: PointerModel) -> None:
    written = model.sequences(request(asks_for(["send_account", "close_invoice"])), memory(CASES))
    assert sum(sequence.probability for sequence in written) == pytest.approx(1.0)
    assert all(len(set(sequence.tasks)) == len(sequence.tasks) > 0 for sequence in written)
    probabilities = [sequence.probability for sequence in written]
    assert probabilities == sorted(probabilities, reverse=True)


def test_the_same_cases_give_the_same_weights(model: PointerModel) -> None:
    again = train_pointer([(memory(CASES), [request(asks_for(case)) for case in CASES])])
    assert all(np.array_equal(part, again.network.tensors()[name]) for name, part in model.network.tensors().items())


def test_a_missing_feature_counts_as_the_mean() -> None:
    rows = [np.array([[1.0, np.nan], [0.0, 2.0]]), np.array([[1.0, 2.0], [0.0, np.nan]])]
    network = fit_network(rows, [0, 0])
    assert np.isfinite(network.scores(np.array([[np.nan, np.nan]], np.float32))).all()
    assert (network.standardised(np.array([[np.nan, np.nan]], np.float32)) == 0).all()


@pytest.mark.nightly
def test_a_network_of_several_perceptrons_gives_the_mean_of_their_scores() -> None:
    rows = [np.array([[1.0, 0.5], [0.0, 2.0]]), np.array([[1.0, 2.0], [0.0, 1.0]])]
    epochs: list[int] = []
    told = lambda epoch, _: epochs.append(epoch)
    three = fit_network(rows, [0, 1], Fitting(report=told, perceptrons=3))
    alone = [fit_network(rows, [0, 1], Fitting(seed)).scores(rows[0]) for seed in range(3)]
    assert np.allclose(three.scores(rows[0]), np.mean(alone, 0), atol=1e-6)
    assert not np.allclose(alone[0], alone[1])
    assert epochs == list(range(1, 1_201)), "of each perceptron 400"
    again = Network.of(three.tensors())
    assert np.array_equal(again.scores(rows[1]), three.scores(rows[1]))


def test_an_infinite_feature_is_clipped() -> None:
    network = fit_network([np.array([[np.inf, 1.0], [0.0, -np.inf], [1.0, 0.0]])] * 3, [0, 0, 0])
    assert np.isfinite(network.scores(np.array([[np.inf, -np.inf]], np.float32))).all()


def test_there_must_be_an_example() -> None:
    with pytest.raises(TrainingError):
        train_pointer([])


def test_a_loss_that_is_not_finite_stops_the_training() -> None:
    rows = [np.array([[1.0, 2.0], [0.0, 1.0]])] * 4
    epochs: list[int] = []
    with pytest.raises(TrainingError, match="not finite"):
        fit_network(rows, [0, 1, 0, 1], Fitting(report=lambda epoch, _: epochs.append(epoch), learning_rate=1e38))
    assert epochs == [1], "it stops in the epoch in which it happens"


def publish(lake: Lake, model: PointerModel, card: dict[str, object]) -> str:
    name = POINTERS.keep(lake, model, card)
    POINTERS.store(lake).promote(name)
    return name


def card(**serves: bool) -> dict[str, object]:
    return {"industries": {name: {"serves": value} for name, value in serves.items()}}


def test_a_published_model_is_read_as_it_was_written(model: PointerModel, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    name = publish(lake, model, card(retail=True, law=False))
    champion = POINTERS.open(lake).champion
    assert champion is not None
    assert (champion.model_id, champion.industries) == (name, frozenset({"retail"}))
    written = champion.model.sequences(request(asks_for(["open_invoice"])), memory(CASES))
    assert written == model.sequences(request(asks_for(["open_invoice"])), memory(CASES))


def test_a_damaged_model_is_named_and_the_one_before_serves(model: PointerModel, tmp_path: Path) -> None:
    lake, other = (
        Lake(tmp_path),
        train_pointer([(memory(CASES[:60]), [request(asks_for(case)) for case in CASES[:60]])]),
    )
    first, second = publish(lake, other, card(retail=True)), publish(lake, model, card(retail=True))
    (POINTERS.store(lake).folder / second / WEIGHTS).write_bytes(b"\x00" * 50)
    found = POINTERS.open(lake)
    assert found.champion is not None
    assert found.champion.model_id == first
    assert [(s.model_id, s.problem is None) for s in found.stored] == [(second, False), (first, True)]


def test_changed_weights_are_not_used(model: PointerModel, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    lake = Lake(tmp_path)
    path = POINTERS.store(lake).folder / publish(lake, model, card(retail=True)) / WEIGHTS
    tensors = load_file(path)
    tensors["b3"] = tensors["b3"] + 1
    save_file(tensors, path)
    assert POINTERS.open(lake).champion is None
    tensors["b3"] = tensors["b3"] * np.float32("nan")
    save_file(tensors, path)
    assert "b3" in (POINTERS.open(lake).stored[0].problem or "")


def hostile(name: str) -> bytes:
    """A file that is no network, in a way that a careless reader falls for."""
    import pickle
    import struct

    if name == "pickle":
        return pickle.dumps({"w1": [1.0]})
    if name == "long header":
        return struct.pack("<Q", 2**62) + b"{}"
    if name == "wrong type":
        header = json.dumps({"w1": {"dtype": "X9", "shape": [1], "data_offsets": [0, 4]}}).encode()
        return struct.pack("<Q", len(header)) + header + b"\0\0\0\0"
    return b""


@pytest.mark.parametrize("content", ["pickle", "long header", "wrong type", "empty"])
def test_a_hostile_file_is_named_and_the_champion_before_it_serves(
    model: PointerModel, content: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake, other = (
        Lake(tmp_path),
        train_pointer([(memory(CASES[:60]), [request(asks_for(case)) for case in CASES[:60]])]),
    )
    first, second = publish(lake, other, card(retail=True)), publish(lake, model, card(retail=True))
    (POINTERS.store(lake).folder / second / WEIGHTS).write_bytes(hostile(content))
    backend = PointerBackend()
    with caplog.at_level("WARNING", logger="opus_pipelines.lwm"):
        backend.open(lake)
    assert backend.version.endswith(first)
    if caplog.records:  # a process says the same thing once
        assert second in caplog.text


def test_a_network_of_other_shapes_is_refused(model: PointerModel, tmp_path: Path) -> None:
    from opus_pipelines.core.errors import OpusError
    from opus_pipelines.lwm.pointer.model import read_network

    narrow = fit_network([np.array([[1.0, 2.0], [0.0, 1.0]])] * 2, [0, 0])
    save_pointer(PointerModel(narrow), tmp_path / WEIGHTS)
    with pytest.raises(OpusError, match="2 features"):
        read_network(tmp_path / WEIGHTS)
    with pytest.raises(OpusError, match="fit"):
        Network.of({**model.network.tensors(), "center": np.float32(1.0)})
    with pytest.raises(OpusError, match="fit"):
        Network.of({**model.network.tensors(), "w2": np.zeros((3, 3), np.float32)})


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    from opus_pipelines.core.errors import OpusError
    from opus_pipelines.lake.models import LARGEST
    from opus_pipelines.lwm.pointer.model import read_network

    with (tmp_path / WEIGHTS).open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(OpusError, match="not read"):
        read_network(tmp_path / WEIGHTS)


def test_whoever_may_read_the_lake_may_read_a_model(model: PointerModel, tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    save_pointer(model, tmp_path / WEIGHTS)
    assert (tmp_path / WEIGHTS).stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_missing_champion_is_named_and_the_one_before_it_serves(model: PointerModel, tmp_path: Path) -> None:
    lake, other = (
        Lake(tmp_path),
        train_pointer([(memory(CASES[:60]), [request(asks_for(case)) for case in CASES[:60]])]),
    )
    first, second = publish(lake, other, card(retail=True)), publish(lake, model, card(retail=True))
    lake.remove(POINTERS.store(lake).folder / second)
    found = POINTERS.open(lake)
    assert found.champion is not None
    assert (found.champion.model_id, found.named) == (first, second)
    assert "missing" in (found.stored[0].problem or "")


def test_a_challenger_does_not_serve(model: PointerModel, tmp_path: Path) -> None:
    lake, other = (
        Lake(tmp_path),
        train_pointer([(memory(CASES[:60]), [request(asks_for(case)) for case in CASES[:60]])]),
    )
    first, second = publish(lake, other, card(retail=True)), POINTERS.keep(lake, model, card(retail=True))
    found = POINTERS.open(lake)
    assert found.champion is not None
    assert found.champion.model_id == first
    assert [stored.model_id for stored in found.stored] == [second, first]
    lake.remove(POINTERS.store(lake).folder / first)
    assert POINTERS.open(lake).champion is None, "a challenger does not take the place of a champion that is gone"


def test_a_champion_stays_however_many_challengers_follow(model: PointerModel, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    first = publish(lake, model, card(retail=True))
    store = POINTERS.store(lake)
    for n in range(7):
        store.keep(f"m{n}", card(retail=True), lambda folder: {})
    assert store.names() == ["m6", "m5", "m4", "m3", "m2", first]
    assert sorted(f.parent.name for f in store.folder.glob("*/card.json")) == sorted(store.names())


def test_models_of_a_lake_without_challengers_were_all_let_serve(model: PointerModel, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    name = POINTERS.keep(lake, model, card(retail=True))
    (POINTERS.store(lake).folder / "current.json").write_text(json.dumps({"models": [name]}))
    champion = POINTERS.open(lake).champion
    assert champion is not None
    assert champion.model_id == name


@pytest.mark.parametrize("industries", [[], {"retail": 1}, None])
def test_a_card_that_does_not_say_what_it_serves_is_refused(
    model: PointerModel, industries: object, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    publish(lake, model, {"industries": industries})
    assert POINTERS.open(lake).champion is None


@pytest.mark.parametrize("missing", ["w1", "scale"])
def test_a_network_without_an_array_is_refused(model: PointerModel, missing: str) -> None:
    from opus_pipelines.core.errors import OpusError

    tensors = model.network.tensors()
    del tensors[missing]
    with pytest.raises(OpusError, match=missing):
        Network.of(tensors)


def test_a_model_of_other_features_is_not_used(model: PointerModel, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    path = POINTERS.store(lake).folder / publish(lake, model, card(retail=True)) / "card.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 0}))
    assert POINTERS.open(lake).champion is None


def test_the_backend_is_the_history_backend_until_a_model_serves(model: PointerModel, tmp_path: Path) -> None:
    lake, backend = Lake(tmp_path), PointerBackend()
    backend.open(lake)
    assert (backend.name, backend.version, backend.serves("retail")) == ("history", HistoryBackend().version, False)
    publish(lake, model, card(retail=False))
    backend.open(lake)
    assert (backend.version, backend.serves("retail")) == (HistoryBackend().version, False)
    name = publish(lake, model, card(retail=True))
    backend.open(lake)
    assert backend.serves("retail")
    assert backend.name == "pointer"
    assert not backend.serves(None)
    assert name in backend.version
    lake.remove(POINTERS.store(lake).folder)
    backend.open(lake)
    assert backend.version == HistoryBackend().version


def test_a_version_without_the_backend_is_that_of_the_backend(model: PointerModel, tmp_path: Path) -> None:
    settings = Settings(paths=Paths(lake=tmp_path))
    assert version_of(settings) == "history-5"
    publish(Lake(tmp_path), model, card(retail=False))
    assert version_of(settings) == "history-5"
    name = publish(Lake(tmp_path), model, card(retail=True))
    assert version_of(settings) == f"history-5 pointer-7-{name}"


def catalogue(size: int) -> IndustryGraph:
    """A catalogue of `size` tools of which the first eight are those of the small world."""
    names = [*TOOLS, *(f"tool {n}" for n in range(size - len(TOOLS)))]
    edges = csr_array((size, size))
    return IndustryGraph(tuple(names), tuple(names), np.stack([vector(name) for name in names]), edges, edges)


def test_memory_stays_bounded_with_a_catalogue_of_ten_thousand_tools(model: PointerModel) -> None:
    tracemalloc.start()
    texts = [asks_for(case) for case in CASES]
    graph, traces = catalogue(10_000), [[TOOLS.index(tool) for tool in case] for case in CASES]
    large = CaseMemory(graph, texts, np.stack([vector(text) for text in texts]), traces)
    best = model.sequences(request(asks_for(["send_invoice"])), large)[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [TOOLS[n] for n in best.tasks] == ["send_invoice"]
    assert peak < 200e6, "one dense matrix of all pairs of tools has 800 MB"


def test_a_catalogue_that_changed_since_training_is_served(model: PointerModel) -> None:
    names = tuple(name for name in (*TOOLS, "tool 0", "tool 1") if name != "open_account")
    size = len(names)
    edges = csr_array((size, size))
    graph = IndustryGraph(names, names, np.stack([vector(name) for name in names]), edges, edges)
    cases = [case for case in CASES if "open_account" not in case]
    texts = [asks_for(case) for case in cases]
    changed = CaseMemory(
        graph, texts, np.stack([vector(t) for t in texts]), [[names.index(t) for t in case] for case in cases]
    )
    best = model.sequences(request(asks_for(["send_invoice", "check_account"])), changed)[0]
    assert [names[n] for n in best.tasks] == ["send_invoice", "check_account"]


def test_two_tools_with_one_name_stay_two(model: PointerModel) -> None:
    names, titles = ("a", "b"), ("send_invoice", "send_invoice")
    edges = csr_array((2, 2))
    graph = IndustryGraph(names, titles, np.stack([vector(title) for title in titles]), edges, edges)
    texts = ["please send the invoice"] * 3
    twins = CaseMemory(graph, texts, np.stack([vector(text) for text in texts]), [[1], [1], [0]])
    written = model.sequences(request(texts[0]), twins)
    singles = {sequence.tasks: sequence.probability for sequence in written if len(sequence.tasks) == 1}
    assert singles[(1,)] > singles[(0,)], "history used the second more often"


def test_a_history_of_one_task_is_learnt() -> None:
    cases = [("send_invoice",)] * 60
    one = memory(cases)
    trained = train_pointer([(one, [request(asks_for(case)) for case in cases])])
    best = trained.sequences(request("please send the invoice"), one)[0]
    assert [TOOLS[n] for n in best.tasks] == ["send_invoice"]

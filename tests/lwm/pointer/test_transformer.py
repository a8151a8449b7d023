"""The transformer: it learns like the perceptron, resumes, and is refused where its file does not fit."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Lwm, Paths, Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.lwm.next_step.batches import before_of
from opus_pipelines.lwm.next_step.network import TrainingError
from opus_pipelines.lwm.pointer.backend import PointerBackend
from opus_pipelines.lwm.pointer.memory import CaseMemory
from opus_pipelines.lwm.pointer.model import Learning
from opus_pipelines.lwm.pointer.store import WEIGHTS, keep, opened, store_of
from opus_pipelines.lwm.pointer.transformer import TransformerModel, blank_request, shown, train
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans, request

pytestmark = pytest.mark.long  # a transformer is trained

CASES = plans(64)
WIDTH = 34


def trained(cases: Sequence[Sequence[str]], how: Learning) -> TransformerModel:
    """Return a transformer of these cases."""
    return train([(memory(cases), [request(asks_for(case)) for case in cases])], how)


@pytest.fixture(scope="module")
def model() -> TransformerModel:
    return trained(CASES, Learning(epochs=30))


def first(model: TransformerModel, tools: Sequence[str], known: CaseMemory) -> tuple[str, ...]:
    """Return the likeliest sequence for a request."""
    best = model.sequences(request(asks_for(tools)), known)[0]
    return tuple(known.graph.tasks[n] for n in best.tasks)


def test_it_learns_which_tools_a_request_names_and_in_which_order(model: TransformerModel) -> None:
    known, asked = memory(CASES), plans(30, seed=9)
    right = [first(model, tools, known) == tools for tools in asked]
    assert np.mean(right) > 0.8


def test_the_probabilities_of_its_sequences_sum_to_one(model: TransformerModel) -> None:
    for one in (model, replace(model, decoding="beam")):
        written = one.sequences(request(asks_for(CASES[0])), memory(CASES))
        assert sum(sequence.probability for sequence in written) == pytest.approx(1.0)
        assert all(len(set(sequence.tasks)) == len(sequence.tasks) > 0 for sequence in written)


def test_the_steps_so_far_do_not_depend_on_what_is_asked_with_them(model: TransformerModel) -> None:
    known, asked = memory(CASES), request(asks_for(CASES[0]))
    candidates = known.candidates(asked, 8)
    next_step = model.next_step(asked, candidates, known.graph.vectors)
    alone, together = next_step([(1,)]), next_step([(0,), (1,), (2,)])
    assert np.allclose(alone[0], together[1], atol=1e-5)
    assert alone[0, 1] == pytest.approx(0.0, abs=1e-9)


def test_a_step_that_is_no_candidate_is_new_and_the_case_goes_on() -> None:
    known = memory(CASES)
    candidates = known.candidates(request(asks_for(CASES[0])), 3)
    inside = int(candidates.tasks[0])
    outside = next(n for n in range(len(TOOLS)) if n not in candidates.tasks)
    one = shown(request(asks_for(CASES[0])), candidates, known.graph.vectors, [outside, inside])
    assert (one.steps, one.chosen, one.done) == ([-1, 4, 0], [4, 0, 3], [(), (), (0,)])


def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(epoch: int, _: float) -> None:
        if epoch == 3:
            raise Stopped

    few = CASES[:40]
    with pytest.raises(Stopped):
        trained(few, Learning(stop, checkpoints=Checkpoints(tmp_path), epochs=5))
    resumed = trained(few, Learning(checkpoints=Checkpoints(tmp_path), epochs=5))
    whole = trained(few, Learning(epochs=5))
    assert all(np.array_equal(part, whole.tensors[name]) for name, part in resumed.tensors.items())


def test_there_must_be_a_case_and_a_finite_loss() -> None:
    with pytest.raises(TrainingError, match="no example"):
        train([], Learning())
    broken = memory(CASES[:20])
    requests = [replace(request(asks_for(case)), places=np.array([np.nan] * len(case))) for case in CASES[:20]]
    with pytest.raises(TrainingError, match="not finite"):
        train([(broken, requests)], Learning())


def publish(lake: Lake, model: TransformerModel) -> str:
    """Keep a model and let it serve."""
    with lake.lock():
        name = keep(lake, model, {"industries": {"retail": {"serves": True}}})
        store_of(lake).promote(name)
    return name


def test_a_published_transformer_serves_as_it_was_trained(model: TransformerModel, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    name = publish(lake, model)
    backend = PointerBackend()
    backend.configure(Settings(paths=Paths(lake=tmp_path), lwm=Lwm(decoding="beam")))
    backend.open(lake)
    assert backend.serves("retail")
    assert backend.version.endswith(f"{name}-beam")
    known, asked = memory(CASES), request(asks_for(CASES[3]))
    beam = replace(model, decoding="beam").sequences(asked, known)
    assert [one.tasks for one in backend.expected(asked, known)] == [
        tuple(known.graph.tasks[n] for n in one.tasks) for one in beam
    ]


@pytest.mark.parametrize("damage", ["cut", "size", "unknown size"])
def test_a_damaged_transformer_is_named_and_does_not_serve(
    damage: str, model: TransformerModel, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    folder = store_of(lake).folder / publish(lake, model)
    if damage == "cut":
        (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-9])
    else:
        card = json.loads((folder / "card.json").read_text())
        card["transformer"]["size"] = "large" if damage == "size" else "vast"
        (folder / "card.json").write_text(json.dumps(card))
    found = opened(lake)
    assert found.champion is None
    assert found.stored[0].problem


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("text.weight", None, "lacks"),
        ("center", np.zeros(3, np.float32), "other features"),
        ("scale", np.full(WIDTH, np.inf, np.float32), "not finite"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    name: str, value: np.ndarray | None, reason: str, model: TransformerModel
) -> None:
    tensors = {key: part for key, part in model.tensors.items() if key != name}
    tensors |= {} if value is None else {name: value}
    with pytest.raises(OpusError, match=reason):
        TransformerModel.of("small", tensors, len(model.tensors["center"]))


def test_the_example_for_the_registry_gives_probabilities(model: TransformerModel) -> None:
    found = model.first_step(blank_request(model))
    assert found.shape == (3,)
    assert found.sum() == pytest.approx(1.0)


def test_a_catalogue_that_changed_since_training_and_two_tools_of_one_name_are_served(model: TransformerModel) -> None:
    known = memory(CASES)
    graph = known.graph
    twice = replace(
        graph,
        titles=tuple(graph.titles[1] if n == 0 else title for n, title in enumerate(graph.titles)),
        vectors=np.concatenate([graph.vectors[1:2], graph.vectors[1:]]),
    )
    other = CaseMemory(twice, known.read_cases.texts, known.vectors, known.traces)
    written = model.sequences(request(asks_for(CASES[0])), other)
    assert sum(one.probability for one in written) == pytest.approx(1.0)


def test_it_writes_dags_where_cases_branch() -> None:
    cases = [tuple(TOOLS[n] for n in order) for order in ((0, 1, 2), (1, 0, 2))] * 30  # 0 and 1 in both orders, then 2
    known, requests = memory(cases), [request(asks_for(case)) for case in cases]
    links = [frozenset({(0, 2), (1, 2)})] * len(cases)
    branching = train([(known, requests)], Learning(links=[links], epochs=30))
    candidates = known.candidates(requests[0], 8)
    found = branching.links(requests[0], candidates, known.graph.vectors)
    assert found is not None
    at = [candidates.tasks.tolist().index(task) for task in (0, 1, 2)]
    likely = (found[np.ix_(at, at)] > 0.5) & ~np.eye(3, dtype=bool)
    assert likely.tolist() == [[False, False, True], [False, False, True], [False, False, False]]
    best = replace(branching, writes_links=True).sequences(requests[0], known)[0]
    assert sorted(best.tasks[:2]) == [0, 1], "which of them comes first is not known"
    assert best.before == ((), (), (0, 1))
    assert branching.sequences(requests[0], known)[0].before is None, "history tells the links unless it is asked for"


def test_a_step_without_a_likely_link_follows_the_likeliest_one_or_begins_a_branch() -> None:
    links = np.array([[0.0, 0.2, 0.9, 0.0], [0.9, 0.0, 0.6, 0.05], [0.9, 0.9, 0.0, 0.0], [0.9, 0.9, 0.9, 0.0]])
    assert before_of(links) == ((), (0,), (0, 1), ())


def test_a_history_of_chains_writes_no_links(model: TransformerModel) -> None:
    assert all(one.before is None for one in model.sequences(request(asks_for(CASES[0])), memory(CASES)))

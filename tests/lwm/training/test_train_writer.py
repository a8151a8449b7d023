"""A step writer is held against the most similar case and against the writer that serves; its record in MLflow."""

from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.settings import MLflow
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.next_step import Network
from opus_pipelines.lwm.step_writing.memory import TextMemory
from opus_pipelines.lwm.step_writing.model import WRITERS, StepWriter, WriterChampion, train_step_writer, writer_id
from opus_pipelines.lwm.training.judging import Promotion
from opus_pipelines.lwm.training.tracking import DataHash, Tracking, logged_writer
from opus_pipelines.lwm.training.train_writer import LearntWriter, WriterFigures, judged, publish_writer
from tests.lwm.step_writing.household import encode, household

pytestmark = pytest.mark.long

CASES = household(70)


@pytest.fixture(scope="module")
def memory() -> TextMemory:
    return TextMemory.measured(CASES, encode)


@pytest.fixture(scope="module")
def writer(memory: TextMemory) -> StepWriter:
    return train_step_writer([memory], encode)


def aimless(writer: StepWriter) -> StepWriter:
    """Return a writer that gives every candidate the same score."""
    tensors = {name: np.zeros_like(part) for name, part in writer.network.tensors().items()}
    return StepWriter(Network.of({**tensors, "scale": np.ones_like(tensors["scale"])}))


def champion(writer: StepWriter, memory: TextMemory) -> WriterChampion:
    return WriterChampion(writer_id(writer), writer, {"home": memory.rates})


def test_the_first_writer_must_beat_the_most_similar_case() -> None:
    figures, verdict = judged({"home": CASES}, encode, None)
    assert figures.asked == 15
    assert figures.low > 0
    assert (verdict.promoted, verdict.against) == (True, None)


def test_a_writer_replaces_the_one_that_serves_only_beyond_the_interval(writer: StepWriter, memory: TextMemory) -> None:
    _, better = judged({"home": CASES}, encode, champion(aimless(writer), memory))
    assert better.promoted
    assert better.low is not None
    assert better.low > 0


def test_a_champion_counts_only_where_it_serves(writer: StepWriter, memory: TextMemory) -> None:
    here = champion(writer, memory)
    elsewhere = WriterChampion(here.model_id, writer, {"office": memory.rates})
    figures, verdict = judged({"home": CASES}, encode, elsewhere)
    assert verdict.difference == pytest.approx(figures.model - figures.similar_case)
    _, same = judged({"home": CASES}, encode, here)
    assert (same.promoted, same.against) == (False, here.model_id)


def test_too_few_held_out_cases_promote_nothing() -> None:
    figures, verdict = judged({"home": CASES[:2]}, encode, None)
    assert (figures.serves, verdict.promoted) == (False, False)


def test_a_writer_that_was_judged_against_another_champion_is_a_challenger(
    writer: StepWriter, memory: TextMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(tmp_path)
    figures = WriterFigures(40, 0.9, 0.5, 0.3, 0.5)
    card = {
        "industries": {"home": {"cases": 60, "rates": memory.rates}},
        "figures": {**vars(figures), "serves": figures.serves},
    }
    won = Promotion(True, "better")

    def learnt(made: StepWriter, verdict: Promotion) -> LearntWriter:
        return LearntWriter(made, figures, verdict, card)

    first = publish_writer(lake, learnt(writer, won))
    assert WRITERS.store(lake).champions() == [first]
    second = publish_writer(lake, learnt(aimless(writer), won))  # judged while nothing served
    assert WRITERS.store(lake).champions() == [first]
    assert "meanwhile" in WRITERS.open(lake).stored[0].card["promotion"]["reason"]
    assert WRITERS.store(lake).names() == [second, first]
    third = publish_writer(lake, learnt(aimless(writer), Promotion(True, "better", first)))
    assert WRITERS.store(lake).champions() == [third, first]
    assert main(["--lake", str(tmp_path), "models", "--backend", "step_writer"]) == 0
    told = capsys.readouterr()
    assert f"{third}, champion" in told.out + told.err
    assert "+0.400 [+0.300, +0.500]" in told.out + told.err


@pytest.mark.filterwarnings("default")  # MLflow's own notices of other libraries
def test_mlflow_loads_a_writer_and_scores_candidates(writer: StepWriter, tmp_path: Path) -> None:
    import mlflow

    tracking = Tracking(Lake(tmp_path), MLflow())
    with tracking.run("step_writer", {"seed": 0}, [DataHash("home", 160, "0123456789abcdef")]) as run:
        tracking.register(run, "step_writer", logged_writer(writer), promoted=True)
    version = tracking.client.get_model_version_by_alias(tracking.name_of("step_writer"), "champion")
    assert version.tags["opus.model"] == writer_id(writer)
    path = next(tracking.home.rglob("MLmodel")).parent
    row = writer.network.center[None].astype(np.float32)
    scored = mlflow.pyfunc.load_model(str(path)).predict(row)
    assert scored == pytest.approx(writer.network.scores(row), abs=1e-5)

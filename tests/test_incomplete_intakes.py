"""A letter alone, and two letters in one folder: history and the trained Intention encoder tell what the work is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.flow import generate
from opus_pipelines.generation.records import ContractTerms, GenerationContext, Ranked
from opus_pipelines.intakes.contract_settings import prices
from opus_pipelines.intakes.intake import discover, read_intake
from opus_pipelines.intakes.requirements.intention_encoder import EncoderChampion
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.fine_tuning.encoder_training import fit_encoder
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.lwm.interface import LargeWorkModel
from opus_pipelines.lwm.pointer_backend import PointerBackend
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.training.train_intention import asked_cases
from opus_pipelines.quality.sample import write_sample
from opus_pipelines.wkg.snapshot import Snapshot

pytestmark = pytest.mark.model

INDUSTRY = "insurance claims"


@pytest.fixture(scope="module")
def index(sample_lake: Lake) -> SnapshotIndex:
    return SnapshotIndex(Snapshot.open(sample_lake))


@pytest.fixture(scope="module")
def cached(sample_lake: Lake, encoder: TextEncoder) -> TextEncoder:
    return CachedEncoder(encoder, sample_lake.kept / "embeddings")


@pytest.fixture(scope="module")
def trained(index: SnapshotIndex, cached: TextEncoder) -> PointerBackend:
    """The backend with an Intention encoder of the industry's cases, and no other model."""
    cases = asked_cases(index, INDUSTRY, cached)
    assert cases is not None
    backend = PointerBackend()
    backend.encoder = EncoderChampion("m-test", fit_encoder([cases.taught]), frozenset({INDUSTRY}))
    return backend


@pytest.fixture(scope="module")
def made(index: SnapshotIndex, cached: TextEncoder, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    folder = tmp_path_factory.mktemp("incomplete")
    write_sample(folder, incomplete=True)
    contracts = {c.contract: c for c in discover(folder / "intakes")}

    def generated(contract: str, intake: str, model: LargeWorkModel) -> list[Ranked]:
        found = contracts[contract]
        (path,) = [own for own in found.intakes if Path(own).name == intake]
        terms = ContractTerms(prices(Settings(), found.settings, found.folder), found.settings.review)
        context = GenerationContext(index, cached, model, Settings(), terms)
        return generate(read_intake(found, path, Settings()), context)

    return generated


def steps(made: Ranked) -> set[str]:
    workflow = made.ranked[0][1].workflow
    return {made.drafted.graph.tasks[t.task_id].title for t in workflow.tasks if t.kind != "review" and t.task_id}


def test_the_trained_intention_adds_the_work_that_a_letter_alone_asks_for(
    made: Callable[..., Any], trained: PointerBackend
) -> None:
    """Thieves took pipes, and water ran out: no case of history had both, and no process context says so."""
    asked = "Home Claims, by mail", "2025-09-18-pipes-stolen"
    (by_cases,), (by_encoder,) = made(*asked, HistoryBackend()), made(*asked, trained)
    water, theft = {"Arrange Drying", "Estimate Repair Cost"}, {"Obtain Police Report", "Value Stolen Items"}
    assert theft <= steps(by_cases)
    assert not water & steps(by_cases)
    assert water | theft <= steps(by_encoder)


def test_the_trained_intention_adds_nothing_to_a_letter_about_one_kind_of_case(
    made: Callable[..., Any], trained: PointerBackend
) -> None:
    (only,) = made("Home Claims, by mail", "2025-09-05-back-door-burglary", trained)
    assert not {"Arrange Drying", "Inspect Property", "Estimate Repair Cost"} & steps(only)


def test_two_letters_in_one_folder_are_two_goals(made: Callable[..., Any]) -> None:
    asked = "Home Claims, by mail", "2025-09-03-burst-pipe-and-2025-09-05-back-door-burglary"
    water, theft = made(*asked, HistoryBackend())
    assert "Arrange Drying" in steps(water) - steps(theft)
    assert "Value Stolen Items" in steps(theft) - steps(water)

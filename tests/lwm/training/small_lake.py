"""A small lake that a training of some seconds learns from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Never

from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.snapshot import Snapshot
from tests.lwm.fine_tuning.tiny_encoder import write_tiny_encoder
from tests.lwm.pointer.pointer_fixtures import asks_for, plans
from tests.rebuilding import build_snapshot

CASES = 80
SOURCE = """\
format = "jsonl"
industry = "law"
[record]
case = "id"
description = "text"
tasks = "steps"
[task]
activity = "tool"
"""


def write_plans(history: Path, cases: Sequence[Sequence[str]]) -> None:
    """A source of cases whose texts name their tools."""
    source = history / "plans"
    source.mkdir(parents=True)
    (source / "source.toml").write_text(SOURCE)
    rows = [
        {"id": f"case-{n}", "text": asks_for(plan), "steps": [{"tool": tool} for tool in plan]}
        for n, plan in enumerate(cases)
    ]
    (source / "plans.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@dataclass(frozen=True)
class Small:
    """A lake with a snapshot of a few cases of one industry, and the tiny encoder that it was made with."""

    lake: Lake
    model: Path
    industry: str = "law"

    @property
    def index(self) -> SnapshotIndex:
        return SnapshotIndex(Snapshot.open(self.lake))

    @property
    def encoder(self) -> CachedEncoder:
        return CachedEncoder(Encoder(EncoderSettings(model=str(self.model))), self.lake.kept / "embeddings")


def make_small(root: Path) -> Small:
    write_plans(root / "history", plans(CASES, 5))
    made = Small(Lake(root / "lake"), write_tiny_encoder(root / "encoder"))
    now = datetime(2026, 1, 31, tzinfo=UTC)
    state = read_history(made.lake, root / "history", now)
    build_snapshot(no_spark, made.lake, Settings(), state, lambda: made.encoder, now)
    return made


def no_spark() -> Never:
    raise AssertionError("no part of so small a rebuild needs Spark")

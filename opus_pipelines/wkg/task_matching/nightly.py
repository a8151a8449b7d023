"""Task resolution in a rebuild: reuses the stored outcome when nothing changed, else calls the encoder."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import versions_of
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.wkg.task_matching.duplicate_detection import DuplicateDetector
from opus_pipelines.wkg.task_matching.id_ledger import read_ledger
from opus_pipelines.wkg.task_matching.merging import MERGES, Merges, keep_merges, merges_of, read_merges
from opus_pipelines.wkg.task_matching.name_nodes import Node, SourceNames, nodes_of
from opus_pipelines.wkg.task_matching.pins import Pins, read_pins
from opus_pipelines.wkg.task_matching.resolve import Resolution, identify
from opus_pipelines.wkg.task_matching.source_names import evidence_of, names_of, names_place

if TYPE_CHECKING:
    from opus_pipelines.history.ingestion.ingest import SourceState

logger = logging.getLogger("opus_pipelines.rebuild")


@dataclass(frozen=True)
class NightlyResolution:
    """The inputs of task resolution: the lake, the settings and the sources of history."""

    lake: Lake
    settings: Settings
    sources: "Sequence[SourceState]"

    def resolution(self, encoder: Callable[[], TextEncoder]) -> Resolution:
        """Returns the task of every raw key.

        `encoder` is called only when the outcome is not stored and there are names to compare.
        """
        for line in self.pins.unknown(f"{row.source}/{row.key}" for node in self._nodes for row in node.rows):
            logger.warning("%s", line)
        merges = read_merges(self._file, self._inputs)
        if merges is None:
            merges = self._merges(encoder)
            keep_merges(self._file, self._inputs, merges)
        return identify(self._nodes, merges, read_ledger(self.lake.kept / "ids.parquet"))

    @property
    def is_known(self) -> bool:
        """Tells whether the outcome is stored already."""
        return read_merges(self._file, self._inputs) is not None

    @cached_property
    def pins(self) -> Pins:
        """The pins that a person set in pins.toml."""
        return read_pins(self.settings.paths.history)

    def _merges(self, encoder: Callable[[], TextEncoder]) -> Merges:
        wkg = self.settings.wkg
        if wkg.merge != "embedding":
            return merges_of(self._nodes, self.pins, wkg.merge_across_industries)
        evidence = {s.source: evidence_of(self.lake, s.source, s.content) for s in self.sources}
        detector = DuplicateDetector(self._nodes, evidence, encoder, wkg.merge_threshold, wkg.merge_across_industries)
        return merges_of(self._nodes, self.pins, wkg.merge_across_industries, detector)

    @cached_property
    def _nodes(self) -> list[Node]:
        names = [
            SourceNames(s.source, s.merge, _counts(names_of(self.lake, s.source, s.content, s.folder)))
            for s in self.sources
        ]
        return nodes_of(names, self.settings.wkg.merge, self.pins, self.settings.wkg.merge_across_industries)

    @property
    def _file(self) -> Path:
        return self.lake.kept / MERGES

    @cached_property
    def _inputs(self) -> str:
        """The hash of all inputs of the outcome; the id ledger is not one of them."""
        settings = self.settings.wkg.model_dump(
            mode="json", include={"merge", "merge_threshold", "merge_across_industries"}
        )
        encoder = self.settings.encoder.model_dump(mode="json", exclude={"batch_size"})
        sources = sorted((s.source, s.merge, names_place(self.lake, s.source, s.content).name) for s in self.sources)
        return digest(sources, settings, encoder, self.pins.model_dump(mode="json"), versions_of("resolution"))


def _counts(names: Any) -> dict[tuple[str | None, str, str], int]:
    columns = (names[c].to_pylist() for c in ("industry", "task_key", "title", "count"))
    return {(industry, key, title): count for industry, key, title, count in zip(*columns, strict=True)}

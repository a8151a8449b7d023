"""A published snapshot as generation reads it: resolved once, loaded part by part on first use."""

from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import (
    ALIASES,
    CASES,
    EMBEDDINGS,
    IMPLEMENTATION_VECTORS,
    NEEDS,
    PROCEDURE_VECTORS,
    PROCEDURES,
    TASK_IMPLEMENTATIONS,
    VARIANTS,
    WAITS,
    Dataset,
)
from opus_pipelines.embedding.index import VectorIndex
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table
from opus_pipelines.wkg import graph


class Snapshot:
    """One immutable snapshot of the WKG."""

    def __init__(self, snapshot: str, folder: Path, manifest: dict[str, Any]) -> None:
        self.id = snapshot
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, lake: Lake, snapshot_id: str | None = None) -> "Snapshot":
        """The named snapshot, or the current one; raises LakeError where there is none."""
        snapshot = snapshot_id or lake.current_snapshot()
        if snapshot is None:
            raise LakeError(f"{lake.root} has no snapshot yet; `opus rebuild` makes one")
        return cls(snapshot, lake.snapshot_folder(snapshot), lake.manifest(snapshot))

    @property
    def lambda_(self) -> float:
        """λ of LWM (2); 1 in a snapshot without edges, where it says nothing."""
        return self.manifest["lambda"] or 1.0

    @cached_property
    def graph(self) -> graph.WorkGraph:
        """Tasks, edges and execution modes."""
        return graph.load(self.folder, self.lambda_, self.manifest["gamma_unit"])

    @cached_property
    def cases(self) -> pa.Table:
        """wkg/cases."""
        return self._read(CASES)

    @cached_property
    def needs(self) -> pa.Table:
        """wkg/needs."""
        return self._read(NEEDS)

    @cached_property
    def variants(self) -> pa.Table:
        """wkg/variants."""
        return self._read(VARIANTS)

    @cached_property
    def waits(self) -> pa.Table:
        """wkg/waits; empty in a snapshot of a version that did not keep waiting times."""
        return self._read(WAITS)

    @cached_property
    def execution_modes(self) -> pa.Table:
        """wkg/task_implementations."""
        return self._read(TASK_IMPLEMENTATIONS)

    @cached_property
    def aliases(self) -> pa.Table:
        """wkg/task_aliases."""
        return self._read(ALIASES)

    @cached_property
    def embeddings(self) -> pa.Table:
        """wkg/embeddings."""
        return self._read(EMBEDDINGS)

    @cached_property
    def implementation_vectors(self) -> pa.Table:
        """wkg/implementation_vectors."""
        return self._read(IMPLEMENTATION_VECTORS)

    @cached_property
    def procedures(self) -> pa.Table:
        """wkg/procedures."""
        return self._read(PROCEDURES)

    @cached_property
    def procedure_vectors(self) -> pa.Table:
        """wkg/procedure_vectors."""
        return self._read(PROCEDURE_VECTORS)

    @cached_property
    def index(self) -> VectorIndex:
        """The tasks' FAISS index."""
        return VectorIndex.load(self.folder / "index")

    def _read(self, dataset: Dataset) -> pa.Table:
        return read_table(dataset, dataset_folder(self.folder, dataset))

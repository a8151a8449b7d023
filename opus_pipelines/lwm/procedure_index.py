"""History's procedures as one snapshot keeps them: the lessons of each industry, learnt when first asked for."""

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from opus_pipelines.embedding.text_parts import Part, Sentence
from opus_pipelines.lwm.sentence_task_model import SentenceTaskModel, requests_of, units_of
from opus_pipelines.wkg.graph import WorkGraph

Row = dict[str, Any]


class ProcedureIndex:
    """Tables `wkg/procedures`, `wkg/procedure_vectors` and `wkg/cases`. `named`: the tasks that go by a name."""

    def __init__(
        self,
        procedures: pa.Table,
        vectors: pa.Table,
        cases: pa.Table,
        graph: WorkGraph,
        named: Callable[[str], frozenset[str]],
    ) -> None:
        self._rows, self._cases, self._graph, self._named = procedures, cases, graph, named
        self._vector_table = vectors
        self._lessons: dict[str | None, SentenceTaskModel | None] = {}

    def __bool__(self) -> bool:
        return self._rows.num_rows > 0

    def model(self, industry: str | None) -> SentenceTaskModel | None:
        """What the industry's cases teach (None: those of all); None where none was carried out under a procedure."""
        if industry not in self._lessons:
            self._lessons[industry] = self._learn(industry) if self else None
        return self._lessons[industry]

    def load(self) -> None:
        """Learn everything now."""
        for industry in sorted({of["industry"] for of in self._case.values() if of["industry"] is not None}):
            if lessons := self.model(industry):
                lessons.fit()

    def _learn(self, industry: str | None) -> SentenceTaskModel | None:
        mine: dict[str, list[tuple[Row, list[Row]]]] = defaultdict(list)
        for row in self._parts:
            cases = [self._case[i] for i in row["implementations"] if i in self._case]
            mine[row["procedure_id"]].append((row, [c for c in cases if industry is None or c["industry"] == industry]))
        rows = [found for parts in mine.values() if any(cases for _, cases in parts) for found in parts]
        if not rows:
            return None
        held = [(_part(row), cases) for row, cases in rows]
        units = units_of(
            (part, c["expected_outcome"] is False, c["tasks"]) for part, cases in held for c in cases if _teaches(c)
        )
        requests = requests_of((_part(row).name, row["requests"]) for row, cases in rows if cases)
        titles = {
            t: self._graph.tasks[t].title for t in {t for _, cases in held for c in cases for t in c["tasks"] or ()}
        }
        return SentenceTaskModel(
            units, [part for part, _ in held], requests, self._vectors, titles, lambda head: self._task(head, industry)
        )

    def _task(self, head: str, industry: str | None) -> str | None:
        """The industry's task of that name; of several the one most often done."""
        tasks = self._graph.tasks
        found = [t for t in self._named(head) if t in tasks and (industry is None or industry in tasks[t].industries)]
        return min(found, key=lambda t: (-tasks[t].implementations, t), default=None)

    @cached_property
    def _parts(self) -> list[Row]:
        rows: list[Row] = self._rows.sort_by([("procedure_id", "ascending"), ("part", "ascending")]).to_pylist()
        return rows

    @cached_property
    def _case(self) -> dict[str, Row]:
        wanted = {i for row in self._parts for i in row["implementations"]}
        columns = ["implementation_id", "industry", "success", "expected_outcome", "tasks"]
        return {
            row["implementation_id"]: row
            for row in self._cases.select(columns).to_pylist()
            if row["implementation_id"] in wanted
        }

    @cached_property
    def _vectors(self) -> dict[str, np.ndarray]:
        column = self._vector_table["vector"].combine_chunks()
        rows = column.flatten().to_numpy().reshape(len(column), column.type.list_size)
        return dict(zip(self._vector_table["text"].to_pylist(), rows, strict=True))


def _teaches(case: Row) -> bool:
    """It did something, and did not fail."""
    return bool(case["tasks"]) and case["success"] is not False


def _part(row: Row) -> Part:
    sentences = tuple(Sentence(text, either) for text, either in zip(row["sentences"], row["either"], strict=True))
    return Part(row["head"], sentences, row["is_title"])

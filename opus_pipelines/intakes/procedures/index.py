"""The procedures of history in one snapshot: a sentence-task model for each industry, fitted when first asked for."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from opus_pipelines.intakes.procedures.list_reading import StepKnowledge
from opus_pipelines.intakes.procedures.listed_steps import ListedSteps
from opus_pipelines.intakes.procedures.sentence_task_model import (
    SentenceTaskModel,
    TaskCatalogue,
    evidence_of,
    old_requests_of,
    units_of,
)
from opus_pipelines.intakes.procedures.step_scorer import FollowedPart, StepScorer
from opus_pipelines.language.embedding.text_parts import Part, Sentence, plain
from opus_pipelines.wkg.graph import WorkGraph

Row = dict[str, Any]


class ProcedureIndex:
    """The tables `wkg/procedures`, `wkg/procedure_vectors` and `wkg/cases`.

    `named` returns the ids of the tasks that have a name.
    """

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
        self._models: dict[str | None, SentenceTaskModel | None] = {}

    def __bool__(self) -> bool:
        return bool(self._rows.num_rows)

    def model(self, industry: str | None) -> SentenceTaskModel | None:
        """Return the sentence-task model of an industry (None: of all industries).

        Returns None where no case of the industry followed a procedure.
        """
        if industry not in self._models:
            self._models[industry] = self._fit(industry) if self else None
        return self._models[industry]

    def successes(self, part: Part, industry: str | None) -> list[tuple[str, ...]]:
        """Return the tasks of every success of the industry under this very part, in the order of the cases' ids.

        A part is the same where heading and sentences have the same words. A case that was right to refuse is none.
        """
        same = self._rows_by_words.get(_words(part), ())
        cases = sorted({i for row in same for i in row["implementations"] if i in self._case})
        return [
            tuple(case["tasks"])
            for case in (self._case[i] for i in cases)
            if case["success"] and case["expected_outcome"] is not False and case["tasks"]
            if industry is None or case["industry"] == industry
        ]

    def knows(self, industry: str | None) -> bool:
        """Return whether a task of history is of the industry; None stands for all industries."""
        return industry is None or industry in self._graph.industries

    @cached_property
    def step_knowledge(self) -> StepKnowledge:
        """Return what the procedures of all industries say about lists of steps of an industry that has none."""
        verbs = frozenset(words[0] for t in self._graph.tasks.values() if (words := plain(t.title).split()))
        return StepKnowledge(self._scorer, self.model(None), verbs)

    @cached_property
    def _scorer(self) -> StepScorer:
        return StepScorer(self._followed_parts())

    def load(self) -> None:
        """Fit the models of all industries now."""
        industries = sorted({of["industry"] for of in self._case.values() if of["industry"] is not None})
        for industry in industries if len(industries) < 2 else (*industries, None):
            if model := self.model(industry):
                model.fit()

    def load_for_lists(self) -> None:
        """Fit now what reading lists of steps of an unknown industry needs."""
        if self.step_knowledge.sentences:
            self.step_knowledge.sentences.fit()

    def _fit(self, industry: str | None) -> SentenceTaskModel | None:
        parts_by_procedure: dict[str, list[tuple[Row, list[Row]]]] = defaultdict(list)
        for row in self._parts:
            cases = [self._case[i] for i in row["implementations"] if i in self._case]
            parts_by_procedure[row["procedure_id"]].append(
                (row, [c for c in cases if industry is None or c["industry"] == industry])
            )
        rows = [part for parts in parts_by_procedure.values() if any(cases for _, cases in parts) for part in parts]
        if not rows:
            return None
        parts_with_cases = [(_part(row), cases) for row, cases in rows]
        units = units_of(
            (part, c["expected_outcome"] is False, c["tasks"])
            for part, cases in parts_with_cases
            for c in cases
            if _is_usable(c)
        )
        requests = old_requests_of((_part(row).name, row["requests"]) for row, cases in rows if cases)
        titles = {
            t: self._graph.tasks[t].title
            for t in {t for _, cases in parts_with_cases for c in cases for t in c["tasks"] or ()}
        }
        return SentenceTaskModel(
            units,
            [part for part, _ in parts_with_cases],
            requests,
            self._vectors,
            TaskCatalogue(
                titles,
                lambda head: self._task(head, industry),
                lambda: self._scorer,
                lambda: self.model(None),
                {task: self._graph.tasks[task].outputs for task in titles},
            ),
        )

    def _followed_parts(self) -> dict[str, list[FollowedPart]]:
        """Return, by industry, the distinct parts that cases followed, each with the steps that its procedure lists."""
        by_procedure: dict[str, list[Row]] = defaultdict(list)
        for row in self._parts:
            by_procedure[row["procedure_id"]].append(row)
        found: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], tuple[ListedSteps, list[Row]]] = {}
        for rows in by_procedure.values():
            if not any(_part(row).name and not row["is_title"] for row in rows):
                continue  # prose lists no steps
            steps = ListedSteps([_part(row) for row in rows], self._encoded)
            for row in rows:
                part = _part(row)
                for case in (self._case[i] for i in row["implementations"] if i in self._case):
                    if _is_usable(case) and steps.position(part.name) is not None and part.sentences:
                        texts = tuple(s.text for s in part.sentences)
                        key = case["industry"] or "", part.name, texts, tuple(steps.names)
                        found.setdefault(key, (steps, []))[1].append(case)
        parts: dict[str, list[FollowedPart]] = defaultdict(list)
        for industry, head, sentences, names in sorted(found):
            steps, cases = found[industry, head, sentences, names]
            done, weight = self._done(steps, cases)
            parts[industry].append(FollowedPart(steps, head, sentences, done, weight))
        return parts

    def _done(self, steps: ListedSteps, cases: list[Row]) -> tuple[np.ndarray, np.ndarray]:
        """Return [steps] the share of the cases that did each step, and how much that tells."""
        of_name = [self._named(name) for name in steps.names]
        did = np.array([[bool(tasks & {*case["tasks"]}) for tasks in of_name] for case in cases], dtype=float)
        refused = np.array([case["expected_outcome"] is False for case in cases], dtype=bool)
        return evidence_of(did[~refused].sum(0), did[refused].sum(0), int((~refused).sum()), int(refused.sum()))

    def _encoded(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self._vectors[text] for text in texts])

    def _task(self, head: str, industry: str | None) -> str | None:
        """Return the task of the industry with that name; of several the one that was done most often."""
        tasks = self._graph.tasks
        matches = [t for t in self._named(head) if t in tasks and (industry is None or industry in tasks[t].industries)]
        return min(matches, key=lambda t: (-tasks[t].implementations, t), default=None)

    @cached_property
    def _parts(self) -> list[Row]:
        rows: list[Row] = self._rows.sort_by([("procedure_id", "ascending"), ("part", "ascending")]).to_pylist()
        return rows

    @cached_property
    def _rows_by_words(self) -> dict[tuple[str, frozenset[str]], list[Row]]:
        rows: dict[tuple[str, frozenset[str]], list[Row]] = defaultdict(list)
        for row in self._parts:
            rows[_words(_part(row))].append(row)
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


def _is_usable(case: Row) -> bool:
    """Return whether the case has tasks and did not fail."""
    return bool(case["tasks"]) and case["success"] is not False


def _words(part: Part) -> tuple[str, frozenset[str]]:
    return part.name, frozenset(plain(sentence.text) for sentence in part.sentences)


def _part(row: Row) -> Part:
    sentences = tuple(Sentence(text, either) for text, either in zip(row["sentences"], row["either"], strict=True))
    return Part(row["head"], sentences, row["is_title"])

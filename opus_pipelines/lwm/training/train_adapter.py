"""Fine-tunes the causal language model of the settings on history, and lets the adapter serve where it is better.

cases → a quarter held out by hash → prompts of the others, each without its own case and the held-out ones → adapter →
F1 of held-out cases by the adapter, by similar cases and by what serves now → lake and MLflow

The adapter that was judged is the one that is kept, because a second training would take as long again. Nothing is
written before the end.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError, SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.requirements.intention import Decoded, StatedText, title_of
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.interface import LwmRequest
from opus_pipelines.lwm.language_models import adapters
from opus_pipelines.lwm.language_models.adapters import (
    ADAPTERS,
    Example,
    adapter_id,
    fit_adapter,
)
from opus_pipelines.lwm.language_models.causal_model import LanguageModel, apply_adapter, base_hash, load
from opus_pipelines.lwm.language_models.prompts import PROMPT_VERSION, Prompt, prompt_of, validated
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory
from opus_pipelines.lwm.retrieval.consensus import f1
from opus_pipelines.lwm.retrieval.routing import Router, subgraphs_of
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.training.judging import (
    HELD_OUT,
    Figures,
    against_history,
    beyond,
    by_similar_cases,
    held_out,
)
from opus_pipelines.lwm.training.tracking import DataHash, logged_adapter
from opus_pipelines.lwm.training.train import Trained, TrainingOptions, memories_of
from opus_pipelines.workflow.metrics.plan_scores import interval

_MOST_ASKED = 40  # held-out cases of an industry that are asked: a beam of a language model takes seconds


@dataclass(frozen=True)
class _Case:
    """A case as a question: its industry, its place in the industry's memory, its prompt, and its tasks."""

    industry: str
    place: int
    prompt: Prompt
    tasks: tuple[str, ...]


def train_adapter(lake: Lake, index: SnapshotIndex, settings: Settings, options: TrainingOptions) -> Trained:
    """Trains an adapter, judges it on held-out cases, and publishes it; it serves where it is better than what serves.

    Raises SettingsError where no base model is stated, InputError where no industry has enough cases, and AdapterError
    where the loss is not finite: then nothing is written.
    """
    if settings.causal_lm.path is None:
        raise SettingsError("`opus train --backend causal_lm` needs [causal_lm] path, a folder with a model")
    training = _AdapterTraining(
        lake, index, settings, memories_of(index, options.industries), settings.causal_lm.path, options
    )
    if options.tracking is None:
        return training.trained()[0]
    with options.tracking.run(ADAPTERS.name, training.parameters(), training.data()) as run:
        trained, weights = training.trained()
        run.log_curve("loss", trained.loss)
        run.log_figures({f"{n}/{k}": float(v) for n, one in trained.figures.items() for k, v in vars(one).items()})
        options.tracking.register(
            run, ADAPTERS.name, logged_adapter(weights, settings.causal_lm), trained.promotion.promoted
        )
    return trained


@dataclass(frozen=True)
class _AdapterTraining:
    """One training: what it reads and where it writes."""

    lake: Lake
    index: SnapshotIndex
    settings: Settings
    memories: Mapping[str, IndustryMemory]
    path: Path
    options: TrainingOptions

    def parameters(self) -> dict[str, Any]:
        """Return what the training depends on besides its cases."""
        return {
            "snapshot": self.index.snapshot.id,
            "base model": base_hash(self.path),
            "prompts": PROMPT_VERSION,
            "seed": adapters.ADAPTER_SEED,
            "held out": f"1 of {HELD_OUT} by hash of the request",
            **self.settings.causal_lm.model_dump(exclude={"path"}),
        }

    def data(self) -> list[DataHash]:
        """Return the cases of each industry as a hash of their ids."""
        return [DataHash(name, len(m.ids), digest(*m.ids)) for name, m in sorted(self.memories.items())]

    def trained(self) -> tuple[Trained, dict[str, np.ndarray]]:
        """Train, judge and publish."""
        settings, report = self.settings.causal_lm, self.options.report
        report("prompts are written")
        learnt, asked = self._cases()
        base = load(self.path, settings.max_prompt_tokens)
        champion = ADAPTERS.open(self.lake).champion
        usable = champion if champion and champion.base == base_hash(self.path) else None
        serving = apply_adapter(base, usable.weights, usable.rank) if usable else base
        report(f"{len(asked):,} held-out cases are answered by what serves now")
        before = [self._f1(serving, case) for case in asked]
        report(f"an adapter is trained on {len(learnt):,} cases")
        loss: list[float] = []
        weights = fit_adapter(
            load(self.path, settings.max_prompt_tokens),
            [_example(case) for case in learnt],
            settings,
            lambda _, mean: loss.append(round(mean, 6)),
        )
        base = load(self.path, settings.max_prompt_tokens)
        adapted = apply_adapter(base, weights, settings.lora_rank)
        after = [self._f1(adapted, case) for case in asked]
        groups = [(case.industry, self.memories[case.industry].texts[case.place]) for case in asked]
        differences = [new - old for new, old in zip(after, before, strict=True)]
        verdict = beyond(differences, groups, usable.model_id if usable else None)
        figures = self._figures(asked, after)
        if verdict.promoted and not loss[-1] < loss[0]:
            verdict = replace(
                verdict, promoted=False, reason=f"its loss did not fall ({loss[0]:.3f} to {loss[-1]:.3f})"
            )
        elif verdict.promoted and not (history := against_history(figures)).promoted:
            verdict = replace(verdict, promoted=False, reason=history.reason)
        model_id = adapter_id(weights)
        card = {
            "kind": ADAPTERS.name,
            "rank": settings.lora_rank,
            "base": base_hash(self.path),
            "snapshot": self.index.snapshot.id,
            "cases_hash": digest(*(m.ids for _, m in sorted(self.memories.items()))),
            "loss": loss,
            "industries": {name: {**vars(one), "serves": one.serves} for name, one in figures.items()},
            "promotion": vars(verdict),
        }
        with nullcontext() if self.options.holds_lock else self.lake.lock():
            if not self.lake.snapshot_folder(self.index.snapshot.id).is_dir():
                raise InputError("the snapshot was removed during the training; nothing is written: run it again")
            store = ADAPTERS.store(self.lake)
            if (now := store.champions()[:1]) and now[0] == model_id:
                verdict = replace(verdict, promoted=False, reason="it is the champion already")
            ADAPTERS.keep(self.lake, weights, card)
            if verdict.promoted:
                store.promote(model_id)
        return Trained(model_id, figures, loss, verdict), weights

    def _cases(self) -> tuple[list[_Case], list[_Case]]:
        """Return the cases to learn from and those to ask, chosen by hash."""
        learnt, asked = list[_Case](), list[_Case]()
        for name, memory in self.memories.items():
            held = held_out(memory)
            hidden = {memory.ids[n] for n in held}
            rest = [n for n in range(len(memory.ids)) if memory.ids[n] not in hidden]
            most = max(1, self.settings.causal_lm.cases // len(self.memories))
            chosen = sorted(rest, key=lambda n: digest("learnt", memory.ids[n]))[:most]
            shown = sorted(held, key=lambda n: digest("asked", memory.ids[n]))[:_MOST_ASKED]
            learnt += [case for n in chosen if (case := self._case(name, n, hidden)) is not None]
            asked += [case for n in shown if (case := self._case(name, n, hidden)) is not None]
        return learnt, asked

    def _case(self, industry: str, place: int, hidden: set[str]) -> _Case | None:
        """Return a case as a question without itself and the hidden cases; None where nothing is near it."""
        memory, index, generation = self.memories[industry], self.index, self.settings.generation
        vector, text = memory.memory.vectors[place], memory.texts[place]
        near = index.cases.near(vector, industry, generation.near_cases)
        near = [c for c in near if c.implementation_id not in hidden and c.implementation_id != memory.ids[place]]
        router = Router(index.index, index.graph, industry)
        routed = router.route(vector, generation.routing_top_k, generation.routing_threshold)
        subgraphs = subgraphs_of(index.graph, routed, near)
        if not subgraphs:
            return None
        decoded = Decoded(title_of(text), (StatedText(text, "", ""),), (), ())
        prompt = prompt_of(LwmRequest(vector, index.graph.seen_by(None), subgraphs, near, decoded=decoded))
        tasks = tuple(memory.memory.graph.tasks[task] for task in memory.memory.traces[place])
        return _Case(industry, place, prompt, tasks)

    def _f1(self, model: LanguageModel, case: _Case) -> float:
        written = model.sequences(case.prompt, self.settings.causal_lm.sequences)
        answer = validated(written, case.prompt.names, 1)
        return f1(frozenset(answer.sequences[0] if answer.sequences else ()), frozenset(case.tasks))

    def _figures(self, asked: Sequence[_Case], scores: Sequence[float]) -> dict[str, Figures]:
        figures = {}
        for name, memory in self.memories.items():
            part = memory.without(held_out(memory))
            own = [(case, score) for case, score in zip(asked, scores, strict=True) if case.industry == name]
            by_cases = [
                f1(
                    frozenset(by_similar_cases(part, memory.memory.vectors[case.place]).tasks),
                    frozenset(case.tasks),
                )
                for case, _ in own
            ]
            if len(own) < 2:
                figures[name] = Figures(len(part.ids), len(own), 0.0, 0.0, 0.0, 0.0)
                continue
            differences = [score - other for (_, score), other in zip(own, by_cases, strict=True)]
            low, high = interval(differences, [memory.texts[case.place] for case, _ in own])
            means = float(np.mean([score for _, score in own])), float(np.mean(by_cases))
            rounded = [round(figure, 6) for figure in (*means, low, high)]
            figures[name] = Figures(len(part.ids), len(own), *rounded)
        return figures


def _example(case: _Case) -> Example:
    shown = {task: name for name, task in case.prompt.names.items()}
    return Example(case.prompt, tuple(shown[task] for task in case.tasks if task in shown))

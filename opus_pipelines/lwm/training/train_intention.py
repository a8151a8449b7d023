"""Trains the Intention encoder, and lets it serve the industries whose tasks it recalls better than the untrained one.

cases with a text → two halves by goal → encoder of each half → recall of the tasks of the other half's cases, beside
that of the untrained Intention → encoder of all cases → lake and MLflow
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from opus_pipelines.core.ids import digest
from opus_pipelines.intakes.requirements.intention_encoder import ENCODERS, RANK, IntentionEncoder, encoder_id
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.texts import compose, passages, request_text, stretches, unit, words_of
from opus_pipelines.lwm.fine_tuning.encoder_training import (
    CONTRAST,
    ENCODER_BATCH,
    ENCODER_DECAY,
    ENCODER_RATE,
    ENCODER_SEED,
    MIXED,
    STEPS,
    TaughtCases,
    fit_encoder,
    rates_of,
)
from opus_pipelines.lwm.retrieval.similar_cases import latest
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.training.judging import ServesBeyond
from opus_pipelines.lwm.training.tracking import DataHash, Tracking, logged_encoder
from opus_pipelines.workflow.metrics.plan_scores import interval

_LEAST_CASES = 50  # of an industry
_MOST_CASES = 3_000  # of an industry, the latest ones
_MOST_ASKED = 300  # of an industry
LEAST_GOALS = 4  # kinds of case from which whole kinds are held out, and not requests
RECALLED = 10  # tasks


@dataclass(frozen=True)
class EncoderFigures(ServesBeyond):
    """How the trained and the untrained Intention recall the tasks of held-out cases of one industry.

    Attributes:
        cases: distinct cases of the industry.
        asked: held-out cases that were asked.
        held_out: what was held out, goals or requests.
        model, untrained: mean share of a case's tasks among the ten that are nearest; of fewer tasks where it did
            fewer.
        low, high: 95 % interval of the mean difference, trained minus untrained.
    """

    cases: int
    asked: int
    held_out: str
    model: float
    untrained: float
    low: float
    high: float


@dataclass(frozen=True)
class LearntEncoder:
    """A trained encoder, its figures by industry, and its card for the lake."""

    encoder: IntentionEncoder
    figures: Mapping[str, EncoderFigures]
    card: Mapping[str, Any]


@dataclass(frozen=True)
class AskedCases:
    """The cases of an industry with what is needed to ask for them.

    Attributes:
        taught: the cases.
        goals: for each its kind of case, or its request where the industry has too few kinds.
        held_out: which of the two.
        requests, clients: the text of each request, and its client, "" where history does not tell it.
        tasks: ids of the tasks of the industry.
    """

    taught: TaughtCases
    goals: tuple[str, ...]
    held_out: str
    requests: tuple[str, ...]
    clients: tuple[str, ...]
    tasks: tuple[str, ...]


def learn_encoder(
    lake: Lake,
    index: SnapshotIndex,
    encode: TextEncoder,
    industries: Sequence[str],
    report: Callable[[str], None],
) -> LearntEncoder | None:
    """Returns an encoder with its figures on held-out cases; None where no industry has enough cases with a text.

    Raises EncoderTrainingError where the loss is not finite.
    """
    cases = {name: found for name in industries if (found := asked_cases(index, name, encode)) is not None}
    if not cases:
        return None
    report(f"{sum(len(c.goals) for c in cases.values()):,} distinct cases: an Intention encoder is trained")
    figures = _judged(cases)
    for name, one in figures.items():
        report(f"{name}: recall@{RECALLED} of the tasks {one.model:.3f}, untrained {one.untrained:.3f}")
    loss: list[float] = []
    told = lambda _, mean: loss.append(round(mean, 6))
    encoder = fit_encoder([one.taught for one in cases.values()], told)
    card = {
        "kind": ENCODERS.name,
        "snapshot": index.snapshot.id,
        "loss": loss,
        "cases_hash": digest(*([name, *one.goals] for name, one in sorted(cases.items()))),
        "industries": {name: {**vars(one), "serves": one.serves} for name, one in figures.items()},
    }
    return LearntEncoder(encoder, figures, card)


def publish_encoder(lake: Lake, learnt: LearntEncoder) -> str:
    """Keeps an encoder in the lake; it serves where it is better than the untrained Intention beyond the interval.

    A champion that serves an industry which the new one would not serve stays. Returns the id. Whoever calls holds the
    lake's lock.
    """
    name = ENCODERS.keep(lake, learnt.encoder, learnt.card)
    now = ENCODERS.open(lake).champion
    served = {industry for industry, one in learnt.figures.items() if one.serves}
    if served and (now is None or now.industries <= served):
        ENCODERS.store(lake).promote(name)
    return name


def record_encoder(tracking: Tracking, lake: Lake, index: SnapshotIndex, learnt: LearntEncoder) -> None:
    """Records the training of an encoder in MLflow: parameters, data, curve, figures and the model with its alias."""
    parameters = {
        "snapshot": index.snapshot.id,
        "seed": ENCODER_SEED,
        "steps": STEPS,
        "rank": RANK,
        "batch": ENCODER_BATCH,
    }
    parameters |= {"learning rate": ENCODER_RATE, "weight decay": ENCODER_DECAY, "contrast": CONTRAST, "mixed": MIXED}
    data = [DataHash(name, one.cases, learnt.card["cases_hash"]) for name, one in sorted(learnt.figures.items())]
    with tracking.run(ENCODERS.name, parameters, data) as run:
        run.log_curve("loss", learnt.card["loss"])
        run.log_figures(
            {
                f"{name}/{key}": float(value)
                for name, one in learnt.figures.items()
                for key, value in vars(one).items()
                if key != "held_out"
            }
        )
        is_champion = ENCODERS.store(lake).champions()[:1] == [encoder_id(learnt.encoder)]
        tracking.register(run, ENCODERS.name, logged_encoder(learnt.encoder), is_champion)


def asked_cases(index: SnapshotIndex, industry: str, encode: TextEncoder) -> AskedCases | None:
    """Returns the distinct cases of an industry with a text that did not fail; None where they are too few.

    Cases in which refusing was right teach nothing here. The request is the description where there is one, since an
    intake comes without the title that history gives.
    """
    cases, rows = index.cases.table, latest(index.cases.table, index.cases.rows_of(industry), _MOST_CASES)
    taken = (
        cases.select(["implementation_id", "client", "success", "kind_of_case", "tasks"])
        .take(pa.array(rows))
        .to_pylist()
    )
    texts = {case: (title, described, context) for case, title, described, context in index.snapshot.texts}
    tasks = list(index.task_rates(industry))
    place = {task: n for n, task in enumerate(tasks)}
    distinct: dict[tuple[str, str, tuple[str, ...]], tuple[str, str]] = {}
    for row in taken:
        title, described, context = texts.get(row["implementation_id"], (None, None, None))
        request = (described or "").strip() or request_text(title, None)
        done = tuple(dict.fromkeys(t for t in row["tasks"] or () if t in place))
        if request and done and row["success"] is not False:
            distinct.setdefault((request, context or "", done), (row["kind_of_case"] or request, row["client"] or ""))
    if len(distinct) < _LEAST_CASES:
        return None
    kinds, requests = tuple(kind for kind, _ in distinct.values()), tuple(request for request, _, _ in distinct)
    has_goals = len(set(kinds)) >= LEAST_GOALS
    clients = tuple(client for _, client in distinct.values())
    return AskedCases(
        _taught(index, list(distinct), clients, tasks, encode),
        kinds if has_goals else requests,
        "goals" if has_goals else "requests",
        requests,
        clients,
        tuple(tasks),
    )


def _taught(
    index: SnapshotIndex,
    cases: Sequence[tuple[str, str, tuple[str, ...]]],
    clients: Sequence[str],
    tasks: Sequence[str],
    encode: TextEncoder,
) -> TaughtCases:
    """Returns the cases, (request, context, tasks) each, with the vectors of their texts.

    What the last step of a case produced stands for the client output, which history does not keep.
    """
    words, place = words_of(encode.max_tokens), {task: n for n, task in enumerate(tasks)}
    asked = {request: stretches(request, words) for request, _, _ in cases}
    under = {context: passages(context, words) for _, context, _ in cases}
    produced = {done[-1]: list(index.graph.tasks[done[-1]].outputs) for _, _, done in cases}
    beside = sorted({text for of in (under, produced) for found in of.values() for text in found})
    number = {text: n for n, text in enumerate(beside)}
    whole = sorted({text for found in asked.values() for text in found})
    vectors = dict(zip([*whole, *beside], encode.encode([*whole, *beside]), strict=True))
    number_of = {client: n for n, client in enumerate(sorted(set(clients)))}
    groups = np.array([number_of[client] for client in clients])
    done_of = np.zeros((len(cases), len(tasks)), bool)
    for n, (_, _, done) in enumerate(cases):
        done_of[n, [place[task] for task in done]] = True
    return TaughtCases(
        np.stack([unit(np.mean([vectors[t] for t in asked[request]], 0)) for request, _, _ in cases]),
        np.array([vectors[text] for text in beside], np.float32).reshape(-1, encode.dimension),
        [[number[text] for text in under[context]] for _, context, _ in cases],
        [[number[text] for text in produced[done[-1]]] for _, _, done in cases],
        np.stack([index.task_vectors[task] for task in tasks]).astype(np.float32),
        done_of,
        groups,
        rates_of(done_of, groups, len(number_of)),
    )


def halves(goals: Sequence[str]) -> np.ndarray:
    """Returns for each case [n] which half it is of: the goals, in the order of a hash, alternate."""
    order = sorted(set(goals), key=lambda goal: digest("half", goal))
    side = {goal: n % 2 for n, goal in enumerate(order)}
    return np.array([side[goal] for goal in goals])


def _judged(cases: Mapping[str, AskedCases]) -> dict[str, EncoderFigures]:
    """Returns the figures of an encoder of each half of the goals on the other half."""
    half = {name: halves(one.goals) for name, one in cases.items()}
    found: dict[str, list[tuple[float, float, str]]] = {name: [] for name in cases}
    for side in (0, 1):
        known = {name: one.taught.among(np.flatnonzero(half[name] != side).tolist()) for name, one in cases.items()}
        encoder = fit_encoder(list(known.values()))
        for name, one in cases.items():
            asked = sorted(np.flatnonzero(half[name] == side).tolist(), key=lambda n: digest("asked", name, n))
            for n in asked[: _MOST_ASKED // 2]:
                recalled = recall(encoder, one.taught, n, known[name].rates)
                found[name].append((*recalled, one.goals[n]))
    return {name: _figures(cases[name], rows) for name, rows in found.items()}


def recall(encoder: IntentionEncoder, taught: TaughtCases, case: int, rates: np.ndarray) -> tuple[float, float]:
    """Returns the share of the case's tasks among the ten likeliest, by the encoder and by the untrained Intention."""
    parts = taught.parts(case)
    own = rates[1 + taught.groups[case]]
    likely = encoder.probabilities(encoder.composed(parts)[None], taught.tasks, own)[0]
    near = taught.tasks @ compose(parts["input"].mean(0), parts["context"], parts["output"])
    done = taught.done[case]
    most = min(RECALLED, int(done.sum()))
    shares = [float(done[np.argsort(-scores, kind="stable")[:RECALLED]].sum()) / most for scores in (likely, near)]
    return shares[0], shares[1]


def _figures(cases: AskedCases, rows: Sequence[tuple[float, float, str]]) -> EncoderFigures:
    if len(rows) < 2:
        return EncoderFigures(len(cases.goals), len(rows), cases.held_out, 0.0, 0.0, 0.0, 0.0)
    low, high = interval([model - untrained for model, untrained, _ in rows], [goal for _, _, goal in rows])
    model, untrained = np.array([row[:2] for row in rows]).mean(0).round(6).tolist()
    return EncoderFigures(len(cases.goals), len(rows), cases.held_out, model, untrained, round(low, 6), round(high, 6))

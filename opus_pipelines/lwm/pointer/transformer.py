"""The pointer model as a transformer: trained on whole cases, and asked for sequences like the perceptron.

A case gives the network its request, clauses and candidates once, and every prefix with the features that depend on the
steps so far. A step that is not among the candidates is *new*: the second model, `lwm.step_writing`, writes the words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.language.embedding.torch_threads import one_thread
from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoint
from opus_pipelines.lwm.fine_tuning.resuming import Resumable
from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.next_step.batches import BATCH, Shown, batch_of, before_of, drawn, moments, standardised
from opus_pipelines.lwm.next_step.network import TrainingError
from opus_pipelines.lwm.next_step.writing import NextStep, Rules, Written, by_beam, sampled
from opus_pipelines.lwm.pointer.candidates import Candidates
from opus_pipelines.lwm.pointer.clauses import EncodedRequest
from opus_pipelines.lwm.pointer.memory import CaseMemory
from opus_pipelines.lwm.pointer.model import (
    Histories,
    Learning,
    asked_cases,
    most_candidates,
    next_step_features,
    weighted,
)

if TYPE_CHECKING:
    from opus_pipelines.lwm.next_step.transformer_network import PointerTransformer

EPOCHS = 12  # passes over the cases, at least
LEAST_STEPS = 220  # gradient steps; more of them learn the cases by heart
MOST_PREFIXES = 24  # of a case
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 1e-2
CENTER, SCALE, TOLD = "center", "scale", "told"  # mean and deviation of features; whether cases told their links


def pairs_of(candidates: Candidates) -> np.ndarray:
    """Return what history says of each pair of candidates [k, k, 4]."""
    before, after = candidates.before, candidates.before.T
    counts = candidates.counts[:, None] + 2.0
    columns = [
        np.log((before + 0.5) / (after + 0.5)),
        (before + after) / counts,
        candidates.direct / counts,
        before + after > 0,
    ]
    return np.stack(columns, -1).astype(np.float32)


def shown(
    request: EncodedRequest,
    candidates: Candidates,
    vectors: np.ndarray,
    trace: Sequence[int],
    links: frozenset[tuple[int, int]] | None = None,
) -> Shown:
    """Return a case with these tasks and links between them; `vectors` [tasks, d] are those of its industry."""
    k = len(candidates.tasks)
    place_of = {task: n for n, task in enumerate(candidates.tasks.tolist())}
    places = [place_of.get(task, k + 1) for task in trace][: MOST_PREFIXES - 1]
    ends = [k] if len(places) == len(trace) else []
    done = [tuple(place for place in places[:n] if place < k) for n in range(len(places) + len(ends))]
    rows = np.stack([next_step_features(candidates, before) for before in done])
    return Shown(
        request,
        vectors[candidates.tasks],
        pairs_of(candidates),
        [-1, *places][: len(done)],
        rows.astype(np.float32),
        [*places, *ends],
        done,
        links and frozenset((place_of[a], place_of[b]) for a, b in links if a in place_of and b in place_of),
    )


@dataclass(frozen=True)
class TransformerModel:
    """A trained transformer.

    Attributes:
        size: small or large.
        tensors: the weights by name, with the mean and the deviation of each feature.
        reader: the task reader beside it, None without one.
        decoding: sample or beam.
        writes_links: whether the sequences have the links that the model expects, where cases told it theirs.
    """

    size: str
    tensors: Mapping[str, np.ndarray]
    reader: TaskReader | None = None
    decoding: str = "sample"
    writes_links: bool = False

    def sequences(self, request: EncodedRequest, memory: CaseMemory, hidden: int | None = None) -> list[Written]:
        """Return the sequences for a request, most probable first; their probabilities sum to 1.

        A *new* step is left out: the step writer writes it. `hidden` is the case of the memory that is left out.
        """
        candidates = memory.candidates(request, most_candidates(memory), hidden)
        write = by_beam if self.decoding == "beam" else sampled
        longest = max(map(len, memory.traces))
        written = write(self.next_step(request, candidates, memory.graph.vectors), Rules(longest))
        links = self.links(request, candidates, memory.graph.vectors) if self.writes_links else None
        named = [
            Written(
                tuple(int(candidates.tasks[n]) for n in one.tasks),
                one.probability,
                None if links is None else before_of(links[np.ix_(one.tasks, one.tasks)]),
            )
            for one in written
        ]
        return named if self.reader is None else weighted(named, memory.log_odds(self.reader, request.text))

    def links(self, request: EncodedRequest, candidates: Candidates, vectors: np.ndarray) -> np.ndarray | None:
        """Return P(u is directly before v) [k, k] of candidates, were both steps; None where no case told links."""
        import torch

        if not self.tensors[TOLD].any():
            return None
        with one_thread(), torch.inference_mode():
            batch = batch_of([self._standard(shown(request, candidates, vectors, ()))])
            tokens, _ = self.network.encoded(batch)
            return np.asarray(torch.sigmoid(self.network.links(batch, tokens)[0].double()).numpy())

    def next_step(self, request: EncodedRequest, candidates: Candidates, vectors: np.ndarray) -> NextStep:
        """Return what tells the probabilities [prefixes, k + 1] of every next step, and of the end."""
        import torch

        one = shown(request, candidates, vectors, ())
        with one_thread(), torch.inference_mode():
            tokens, there = self.network.encoded(batch_of([self._standard(one)]))

        def probabilities(prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
            rows = [self._standard(_after(one, candidates, prefix)) for prefix in prefixes]
            with one_thread(), torch.inference_mode():
                batch = batch_of(rows)
                scores = self.network.scores(batch, tokens.expand(len(rows), -1, -1), there.expand(len(rows), -1))[
                    :, -1, : len(candidates.tasks) + 1
                ]
                return np.asarray(torch.softmax(scores.double(), -1).numpy())

        return probabilities

    def first_step(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the probabilities [k + 1] of the first step of a request, given as arrays; see `blank_request`."""
        import torch

        own = {name: np.asarray(part, np.float32) for name, part in arrays.items()}
        request = EncodedRequest(own["request"][0], own["clauses"], own["places"], "")
        one = Shown(request, own["candidates"], own["pairs"], [-1], own["features"][None], [0], [()])
        with one_thread(), torch.inference_mode():
            batch = batch_of([self._standard(one)])
            scores = self.network.scores(batch, *self.network.encoded(batch))[0, 0, :-1]
            return np.asarray(torch.softmax(scores.double(), -1).numpy())

    @cached_property
    def network(self) -> "PointerTransformer":
        """The network with these weights, for evaluation."""
        import torch

        from opus_pipelines.lwm.next_step.transformer_network import SIZES, PointerTransformer

        dimension, features = self.tensors["text.weight"].shape[1], len(self.tensors[CENTER])
        network = PointerTransformer(dimension, features, SIZES[self.size])
        weights = {k: torch.from_numpy(np.array(v)) for k, v in self.tensors.items() if k not in (CENTER, SCALE, TOLD)}
        try:
            network.load_state_dict(weights)
        except RuntimeError:
            raise OpusError(f"the arrays of the transformer do not fit the size {self.size!r}") from None
        return network.eval()

    @classmethod
    def of(
        cls, size: object, tensors: Mapping[str, np.ndarray], width: int, reader: TaskReader | None = None
    ) -> "TransformerModel":
        """Return the transformer of these arrays; `width` is the number of a candidate's features.

        Raises OpusError where an array is missing, is not finite or does not fit the size.
        """
        from opus_pipelines.lwm.next_step.transformer_network import SIZES

        if size not in SIZES:
            raise OpusError(f"a transformer of the size {size!r} is unknown; there are {', '.join(SIZES)}")
        broken = sorted(name for name, part in tensors.items() if not np.isfinite(part).all())
        if broken:
            raise OpusError(f"the transformer has numbers that are not finite in {', '.join(broken)}")
        if missing := [name for name in (CENTER, SCALE, TOLD, "text.weight") if name not in tensors]:
            raise OpusError(f"the transformer lacks {', '.join(missing)}")
        if tensors[CENTER].shape != (width,) or tensors[SCALE].shape != (width,) or tensors["text.weight"].ndim != 2:
            raise OpusError(f"the transformer is of other features, and there are {width}")
        model = cls(str(size), tensors, reader)
        model.network  # noqa: B018 - it is made now, so that arrays that do not fit are refused
        return model

    def _standard(self, one: Shown) -> Shown:
        return standardised(one, self.tensors[CENTER], self.tensors[SCALE])


def blank_request(model: TransformerModel) -> dict[str, np.ndarray]:
    """Return the arrays of a request of two candidates that says nothing, by name: an example of what is read."""
    from opus_pipelines.lwm.next_step.transformer_network import PAIRS

    dimension = model.tensors["text.weight"].shape[1]
    unit = np.full((1, dimension), dimension**-0.5, np.float32)
    return {
        "request": unit,
        "clauses": unit,
        "places": np.zeros(1, np.float32),
        "candidates": np.repeat(unit, 2, 0),
        "features": np.repeat(model.tensors[CENTER][None], 3, 0).astype(np.float32),
        "pairs": np.zeros((2, 2, PAIRS), np.float32),
    }


def train(histories: Histories, how: Learning, size: str = "small") -> TransformerModel:
    """Train a transformer on the cases of all histories, each case hidden from its own memory.

    It runs on a GPU where there is one. Raises TrainingError where there is no case, or the loss is not finite.
    """
    draw = np.random.default_rng(how.seed)
    order = draw.permutation(sum(len(memory.traces) for memory, _ in histories)).tolist()
    cases, prefixes = [], 0
    for (history, n), candidates in asked_cases(histories, order, how, draw):
        memory, requests = histories[history]
        links = how.links[history][n] if how.links and how.links[history] else None
        cases.append(shown(requests[n], candidates, memory.graph.vectors, memory.traces[n], links))
        prefixes += len(cases[-1].chosen)
        if how.hiding is None and prefixes >= how.most_prefixes:
            break
    if not cases:
        raise TrainingError("there is no example to train on")
    center, scale = moments(cases)
    standard = [standardised(one, center, scale) for one in cases]
    with one_thread():
        weights = _fitted(standard, how, size)
    told = np.array([any(one.links for one in cases)], np.float32)
    return TransformerModel(size, {**weights, CENTER: center, SCALE: scale, TOLD: told})


def _fitted(cases: Sequence[Shown], how: Learning, size: str) -> dict[str, np.ndarray]:
    import torch

    from opus_pipelines.lwm.next_step.transformer_network import SIZES, PointerTransformer, loss_of, tensors_of

    torch.manual_seed(how.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = PointerTransformer(len(cases[0].request.vector), cases[0].features.shape[-1], SIZES[size]).to(device)
    batches = -(-len(cases) // BATCH)
    epochs = how.epochs or max(EPOCHS, -(-LEAST_STEPS // batches))
    rate = LEARNING_RATE * (SIZES["small"].width / SIZES[size].width)
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, epochs * batches, pct_start=0.15)
    draw = np.random.default_rng(how.seed)
    state = Resumable(_checkpoint(cases, how, size, epochs), optimizer, schedule, draw, how.report)
    for epoch in range(state.resume() + 1, epochs + 1):
        total = 0.0
        for places in drawn(cases, draw):
            loss = loss_of(network, batch_of([cases[n] for n in places]).on(device))
            if not torch.isfinite(loss):
                state.failed()
                raise TrainingError(f"the loss is not finite in epoch {epoch}; no model is written")
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(places)
        state.ended(total / len(cases))
    return tensors_of(network)


def _after(one: Shown, candidates: Candidates, prefix: tuple[int, ...]) -> Shown:
    """Return a request with the steps so far; only the features of the last prefix matter."""
    last = next_step_features(candidates, prefix).astype(np.float32)
    blank = np.zeros((len(prefix), *last.shape), np.float32)
    return replace(
        one,
        steps=[-1, *prefix],
        features=np.concatenate([blank, last[None]]),
        chosen=[-1] * (len(prefix) + 1),
        done=[prefix[:n] for n in range(len(prefix) + 1)],
    )


def _checkpoint(cases: Sequence[Shown], how: Learning, size: str, epochs: int) -> Checkpoint | None:
    """Return the checkpoint of a training of these cases, None where none is kept."""
    if how.checkpoints is None:
        return None
    fixed = [how.seed, size, epochs, BATCH, LEARNING_RATE, WEIGHT_DECAY]
    parts = [part.tobytes() for one in cases for part in (one.request.vector, one.features, one.pairs)]
    told = [[one.chosen, sorted(one.links or ())] for one in cases]
    return how.checkpoints.at("transformer", fixed, told, *parts)

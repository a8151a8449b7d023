"""The network of the transformer: an encoder of a request and its candidates, and a decoder that points at a next step.

Tokens of the encoder: the request, its clauses, the candidates, the end, and *new*, a step that is none of them. Texts
share one projection, so that a clause attends to the candidates that are like it from the start. Attention among
candidates has a bias of what history says of a pair (Shaw et al. 2018). The decoder reads the steps so far, attends to
the tokens, and scores each candidate by attention (Vinyals et al. 2015) and by its features for the next step.
"""

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

PAIRS = 4  # figures of a pair of candidates
HEADS = 4
DROPOUT = 0.2
TEXT_DROPOUT = 0.5  # of the projected texts: what a task is called must not be all that is learnt of it
LINKS = 1.0  # weight of the loss of links
MASKED = -30.0
MOST_STEPS = 64
REQUEST, CLAUSE, CANDIDATE, END, NEW = range(5)  # kinds of tokens


@dataclass(frozen=True)
class Size:
    """Width of a token, layers of the encoder and of the decoder."""

    width: int
    layers: int


SIZES = {"small": Size(64, 2), "large": Size(192, 4)}


@dataclass(frozen=True)
class Batch:
    """Cases of one batch; b cases of at most c clauses, k candidates and t prefixes.

    Attributes:
        request: vectors [b, d].
        clauses: vectors [b, c, d]; `places` [b, c]; `has_clause` [b, c].
        candidates: vectors [b, k, d]; `has_candidate` [b, k].
        first: standardised features [b, k + 1, f] of the candidates, and of the end, as the first step.
        pairs: [b, k, k, PAIRS].
        steps: place of the step before each prefix's next one [b, t]: -1 before the first; k + 1 for *new*.
        features: standardised features [b, t, k + 1, f] of what may come next.
        open: whether it may come [b, t, k + 2].
        chosen: place of what came [b, t]: k for the end, k + 1 for *new*, and -1 where there is no prefix.
        both: whether a case that tells its links has both candidates as steps [b, k, k].
        linked: 1 where the first of two steps is directly before the second [b, k, k].
    """

    request: Tensor
    clauses: Tensor
    places: Tensor
    has_clause: Tensor
    candidates: Tensor
    has_candidate: Tensor
    first: Tensor
    pairs: Tensor
    steps: Tensor
    features: Tensor
    open: Tensor
    chosen: Tensor
    both: Tensor
    linked: Tensor

    def on(self, device: str) -> "Batch":
        """Return the batch on a device."""
        return Batch(**{one.name: getattr(self, one.name).to(device) for one in fields(self)})


class PointerTransformer(nn.Module):
    """The network; `dimension` is that of the text vectors, `features` the number of a candidate's features."""

    def __init__(self, dimension: int, features: int, size: Size) -> None:
        """Take the shapes."""
        super().__init__()
        width = size.width
        self.text = nn.Linear(dimension, width, bias=False)
        self.kinds = nn.Embedding(5, width)
        self.place = nn.Linear(1, width)
        self.first = nn.Linear(features, width)
        self.bias = nn.Linear(PAIRS, HEADS, bias=False)
        self.encoder = nn.ModuleList(_Layer(width) for _ in range(size.layers))
        self.position = nn.Embedding(MOST_STEPS, width)
        self.start = nn.Parameter(torch.zeros(width))
        self.decoder = nn.ModuleList(_Layer(width, crosses=True) for _ in range(max(1, size.layers // 2)))
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.next = nn.Sequential(
            nn.Linear(features + width, 64),
            nn.GELU(),
            nn.Dropout(DROPOUT),
            nn.Linear(64, 64),
            nn.GELU(),
            nn.Linear(64, 1),
        )
        self.new = nn.Linear(width, 1)
        self.earlier, self.later = nn.Linear(width, width), nn.Linear(width, width)
        self.history = nn.Sequential(nn.Linear(PAIRS, 16), nn.GELU(), nn.Linear(16, 1))

    def encoded(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the tokens [b, 1 + c + k + 2, w] and whether each is there [b, 1 + c + k + 2]."""
        b, c, k = len(batch.request), batch.clauses.shape[1], batch.candidates.shape[1]
        read = lambda vectors: functional.dropout(self.text(vectors), TEXT_DROPOUT, self.training)
        kind = self.kinds.weight
        tokens = torch.cat(
            [
                (read(batch.request) + kind[REQUEST])[:, None],
                read(batch.clauses) + kind[CLAUSE] + self.place(batch.places[..., None]),
                read(batch.candidates) + kind[CANDIDATE] + self.first(batch.first[:, :k]),
                (kind[END] + self.first(batch.first[:, k]))[:, None],
                kind[NEW].expand(b, 1, -1),
            ],
            1,
        )
        there = torch.cat(
            [
                torch.ones_like(batch.has_clause[:, :1]),
                batch.has_clause,
                batch.has_candidate,
                torch.ones_like(batch.has_candidate[:, :2]),
            ],
            1,
        )
        bias = tokens.new_zeros(b, HEADS, tokens.shape[1], tokens.shape[1])
        bias[:, :, 1 + c : 1 + c + k, 1 + c : 1 + c + k] = self.bias(batch.pairs).permute(0, 3, 1, 2)
        bias = bias.masked_fill(~there[:, None, None, :], MASKED)
        for layer in self.encoder:
            tokens = layer(tokens, bias)
        return tokens, there

    def scores(self, batch: Batch, tokens: Tensor, there: Tensor) -> Tensor:
        """Return the scores [b, t, k + 2] of the candidates, the end and *new* as the next step of each prefix."""
        b, t, k = len(tokens), batch.steps.shape[1], batch.candidates.shape[1]
        after = tokens[:, tokens.shape[1] - k - 2 :]
        known = batch.steps.clamp(min=0)[..., None].expand(-1, -1, after.shape[-1])
        steps = torch.where((batch.steps >= 0)[..., None], after.gather(1, known), self.start)
        steps = steps + self.position.weight[torch.arange(t, device=tokens.device).clamp(max=MOST_STEPS - 1)]
        causal = torch.triu(tokens.new_full((t, t), MASKED), 1)[None, None]
        across = tokens.new_zeros(b, 1, 1, tokens.shape[1]).masked_fill(~there[:, None, None, :], MASKED)
        for layer in self.decoder:
            steps = layer(steps, causal, tokens, across)
        pointed = self.query(steps) @ self.key(after).transpose(1, 2) / after.shape[-1] ** 0.5
        by_features = torch.cat([batch.features, after[:, None, : k + 1].expand(-1, t, -1, -1)], -1)
        own = torch.cat([self.next(by_features).squeeze(-1), self.new(steps)], -1)
        return (pointed + own).masked_fill(~batch.open, MASKED)

    def links(self, batch: Batch, tokens: Tensor) -> Tensor:
        """Return the log-odds [b, k, k] that a candidate (rows) is directly before another where both are steps."""
        k = batch.candidates.shape[1]
        of = tokens[:, tokens.shape[1] - k - 2 : tokens.shape[1] - 2]
        by_tokens = self.earlier(of) @ self.later(of).transpose(1, 2) / of.shape[-1] ** 0.5
        return by_tokens + self.history(batch.pairs).squeeze(-1)


class _Layer(nn.Module):
    """Attention within a sequence, to another one where it crosses, and a perceptron; each normalised before."""

    def __init__(self, width: int, crosses: bool = False) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if crosses else 2))
        self.own = _Attention(width)
        self.other = _Attention(width) if crosses else None
        self.deep = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(DROPOUT), nn.Linear(2 * width, width)
        )
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, bias: Tensor, other: Tensor | None = None, across: Tensor | None = None) -> Tensor:
        inner = self.norms[0](x)
        x = x + self.dropout(self.own(inner, inner, bias))
        if self.other is not None and other is not None and across is not None:
            x = x + self.dropout(self.other(self.norms[2](x), other, across))
        return x + self.dropout(self.deep(self.norms[1](x)))


class _Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.both, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, other: Tensor, bias: Tensor) -> Tensor:
        split = lambda part: part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        key, value = self.both(other).chunk(2, -1)
        found = functional.scaled_dot_product_attention(split(self.query(x)), split(key), split(value), attn_mask=bias)
        return self.out(found.transpose(1, 2).flatten(2))


def loss_of(network: PointerTransformer, batch: Batch) -> Tensor:
    """Return the mean cross-entropy of what came next, in nats of a prefix, and of the links, in nats of a pair."""
    tokens, there = network.encoded(batch)
    scores = network.scores(batch, tokens, there)
    loss = functional.cross_entropy(scores.flatten(0, 1), batch.chosen.flatten(), ignore_index=-1)
    if not batch.both.any():
        return loss
    links = network.links(batch, tokens)[batch.both]
    return loss + LINKS * functional.binary_cross_entropy_with_logits(links, batch.linked[batch.both])


def tensors_of(network: PointerTransformer) -> dict[str, np.ndarray]:
    """Return the weights by name, for a file."""
    return {name: part.detach().cpu().numpy().copy() for name, part in network.state_dict().items()}

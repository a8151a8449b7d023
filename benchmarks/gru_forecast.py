#!/usr/bin/env python3
"""Trains a small GRU on the training part of a forecast benchmark and predicts its prefixes: a neural baseline.

    .venv/bin/python benchmarks/gru_forecast.py DIR PREDICTIONS.jsonl [--epochs N] [--hidden H]

DIR holds train.csv and prefixes.jsonl as for benchmarks/forecast.py. Inputs of a step: the activity, the resource, the
logarithms of the time since the last event and since the first one. Outputs: the next activity or the end, and the
logarithm of the remaining time (L1 loss: its median). The suffix is decoded greedily. The last tenth of
the cases decides which epoch is kept. It does not run the pipeline.
"""

import argparse
import csv
import datetime as dt
import json
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

END = "<end>"
LONGEST = 60  # steps of a decoded suffix
Events = list[tuple[str, float, str]]


def main() -> int:
    """Read, train, predict, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("asked", type=Path, metavar="DIR")
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=96)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    cases = read_cases(arguments.asked / "train.csv")
    model = Model(
        sorted({a for c, _ in cases for a, _, _ in c}), sorted({r for c, _ in cases for _, _, r in c}), arguments.hidden
    )
    train(model, cases, arguments.epochs)
    with arguments.predictions.open("w") as file, (arguments.asked / "prefixes.jsonl").open() as asked:
        prefixes = [json.loads(line) for line in asked]
        for begin in range(0, len(prefixes), 500):
            for row in model.predict(prefixes[begin : begin + 500]):
                file.write(json.dumps(row) + "\n")
    return 0


def read_cases(path: Path) -> list[tuple[Events, bool]]:
    """Events (activity, seconds since the first, resource) of every case by its start; and whether it ended."""
    found: dict[str, Events] = defaultdict(list)
    is_open: dict[str, bool] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            found[row["case_id"]].append(
                (row["activity"], dt.datetime.fromisoformat(row["timestamp"]).timestamp(), row["resource"])
            )
            is_open[row["case_id"]] = row["open"] == "1"
    ordered = sorted(found, key=lambda case: (found[case][0][1], case))
    return [([(a, t - found[c][0][1], r) for a, t, r in found[c]], not is_open[c]) for c in ordered]


class Model(nn.Module):
    """A GRU over embedded activities and resources and two times."""

    def __init__(self, activities: list[str], resources: list[str], hidden: int) -> None:
        super().__init__()
        self.names = [END, *activities]
        self.code = {name: n for n, name in enumerate(self.names)}
        self.person = {name: n + 1 for n, name in enumerate(resources)}
        self.activity, self.resource = nn.Embedding(len(self.names) + 1, 32), nn.Embedding(len(resources) + 2, 16)
        self.gru = nn.GRU(32 + 16 + 2, hidden, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.next, self.time = nn.Linear(hidden, len(self.names)), nn.Linear(hidden, 1)

    def inputs(self, events: Events) -> tuple[list[int], list[int], list[list[float]]]:
        """Codes and scaled times of the events."""
        times = [t for _, t, _ in events]
        gaps = [0.0, *(b - a for a, b in pairwise(times))]
        scaled = [[np.log1p(max(0.0, g)) / 10, np.log1p(max(0.0, t)) / 10] for g, t in zip(gaps, times, strict=True)]
        unknown = len(self.names)
        return [self.code.get(a, unknown) for a, _, _ in events], [self.person.get(r, 0) for _, _, r in events], scaled

    def batch(self, cases: list[Events]) -> tuple[torch.Tensor, ...]:
        """Padded inputs [cases, steps] and the lengths."""
        parts = [self.inputs(c) for c in cases]
        pad = nn.utils.rnn.pad_sequence
        codes = pad([torch.tensor(p[0]) for p in parts], True)
        people = pad([torch.tensor(p[1]) for p in parts], True)
        times = pad([torch.tensor(p[2], dtype=torch.float32) for p in parts], True)
        return codes, people, times, torch.tensor([len(c) for c in cases])

    def forward(self, codes: torch.Tensor, people: torch.Tensor, times: torch.Tensor, state: Any = None) -> Any:
        """Logits of the next activity, log remaining time / 10, and the state."""
        joined = torch.cat([self.activity(codes), self.resource(people), times], -1)
        out, state = self.gru(joined, state)
        out = self.drop(out)
        return self.next(out), self.time(out).squeeze(-1), state

    @torch.no_grad()
    def predict(self, prefixes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The predictions of one batch of prefixes; suffixes are decoded greedily."""
        self.eval()
        cases = [[(a, t, r or "") for a, t, r in p["events"]] for p in prefixes]
        codes, people, times, lengths = self.batch(cases)
        packed = nn.utils.rnn.pack_padded_sequence(
            torch.cat([self.activity(codes), self.resource(people), times], -1), lengths, True, False
        )
        _, state = self.gru(packed)
        logits, left = self.next(state[0]), self.time(state[0]).squeeze(-1)
        first = logits.argmax(-1)
        suffix: list[list[int]] = [[] for _ in cases]
        steps, running = logits.clone(), torch.ones(len(cases), dtype=torch.bool)
        last_people, last_times = people[range(len(cases)), lengths - 1], times[range(len(cases)), lengths - 1]
        for step in range(LONGEST):
            if step == 0:
                steps[:, 0] = -1e9  # suffixes are scored where the case goes on
            chosen = steps.argmax(-1)
            running &= chosen != 0
            if not running.any():
                break
            for n in torch.nonzero(running).flatten().tolist():
                suffix[n].append(int(chosen[n]))
            out, _, state = self(chosen[:, None], last_people[:, None], last_times[:, None], state)
            steps = out[:, 0]
        seconds = torch.expm1(left.clamp(0, 2.5) * 10).tolist()
        return [
            {"id": p["id"], "next": self.names[n], "suffix": [self.names[c] for c in s], "remaining_s": r}
            for p, n, s, r in zip(prefixes, first.tolist(), suffix, seconds, strict=True)
        ]


def train(model: Model, cases: list[tuple[Events, bool]], epochs: int) -> None:
    """Fit on the older nine tenths of the cases; the epoch with the lowest loss on the newest tenth is kept."""
    cut = int(0.9 * len(cases))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    best, kept = float("inf"), None
    draw = np.random.default_rng(0)
    for epoch in range(epochs):
        model.train()
        order = draw.permutation(cut)
        for begin in range(0, cut, 64):
            optimiser.zero_grad()
            loss = loss_of(model, [cases[n] for n in order[begin : begin + 64]])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
        model.eval()
        with torch.no_grad():
            held = float(np.mean([float(loss_of(model, cases[b : b + 256])) for b in range(cut, len(cases), 256)]))
        print(f"epoch {epoch + 1}: held-out loss {held:.4f}", file=sys.stderr)
        if held < best:
            best, kept = held, {k: v.clone() for k, v in model.state_dict().items()}
    if kept is not None:
        model.load_state_dict(kept)


def loss_of(model: Model, cases: list[tuple[Events, bool]]) -> torch.Tensor:
    """Cross-entropy of the next activity plus L1 of the log remaining time; open ends teach neither."""
    codes, people, times, lengths = model.batch([c for c, _ in cases])
    following = torch.cat([codes[:, 1:], torch.zeros(len(cases), 1, dtype=torch.long)], 1)
    inside = torch.arange(codes.shape[1])[None] < lengths[:, None]
    last = torch.arange(codes.shape[1])[None] == lengths[:, None] - 1
    ended = torch.tensor([e for _, e in cases])[:, None]
    logits, left, _ = model(codes, people, times)
    seen = inside & (~last | ended)
    weight = (5.0 / lengths).clamp(max=1.0)[:, None].expand_as(inside)
    entropy = nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="none").view_as(weight)
    seconds = [[events[-1][1] - t for _, t, _ in events] for events, _ in cases]
    truth = nn.utils.rnn.pad_sequence([torch.log1p(torch.tensor(s).clamp(min=0)) / 10 for s in seconds], True)
    apart = (left - truth).abs()
    known = (inside & ended).float() * weight
    first = (entropy * weight * seen).sum() / (weight * seen).sum().clamp(min=1)
    return first + 2.0 * (apart * known).sum() / known.sum().clamp(min=1)


if __name__ == "__main__":
    sys.exit(main())

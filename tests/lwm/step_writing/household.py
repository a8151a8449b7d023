"""Requests to put things somewhere, with their steps in free words, and vectors of texts by their words."""

from collections.abc import Sequence

import numpy as np

from opus_pipelines.lwm.step_writing.memory import TextCase

THINGS = ("apple", "potato", "mug", "plate", "book", "pillow", "candle", "towel")
PLACES = ("fridge", "cabinet", "drawer", "sofa", "shelf")
WORDS = sorted({*THINGS, *PLACES, "go", "where", "take", "put", "countertop", "heat", "microwave", "is"})


def encode(texts: Sequence[str]) -> np.ndarray:
    """Return the unit vectors [n, words] of texts by their words."""
    counts = np.array([[text.lower().split().count(word) for word in WORDS] for text in texts], np.float32) + 1e-3
    return np.asarray(counts / np.linalg.norm(counts, axis=1, keepdims=True))


def household(count: int, seed: int = 0) -> list[TextCase]:
    """Return cases in which a thing is put somewhere, half of them after it was heated."""
    draw, found = np.random.default_rng(seed), []
    for _ in range(count):
        thing, place, hot = THINGS[draw.integers(len(THINGS))], PLACES[draw.integers(len(PLACES))], draw.random() < 0.5
        steps = [f"go to where {thing} is", f"take {thing}", *([f"heat {thing} with microwave"] if hot else [])]
        request = f"please {'heat and ' if hot else ''}put the {thing} in the {place}"
        found.append(TextCase(request, "", (*steps, f"put {thing} in {place}"), True))
    return found

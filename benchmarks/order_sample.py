"""A sample of its own in which the order of steps decides: the success of a step depends on the step before it.

It is no part of `opus sample`. A publishing house makes six products. Two steps prepare each of them, and a third step
joins their results: it succeeds behind the one preparation, and often fails behind the other. History has each
preparation alone before the joining step, and both preparations in either order without it. The intakes ask for all
three, which no case of history has: both orders are new, and only the outcomes of the pairs tell which one is better.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

CASES = 60  # of each product and kind of case
P, P_GOOD, P_BAD, P_OTHER, Q = 0.97, 0.97, 0.7, 0.85, 0.05
GAIN_USD = 60.0
START = datetime(2025, 1, 6, tzinfo=UTC)
FIRST, LAST = "Receive Order", ("Approve Proof", "Deliver Files")
COST_USD = 3.0
INDUSTRY = "publishing services"


class Product(NamedTuple):
    """A product: the preparation behind which the joining step succeeds, the other one, and the joining step."""

    name: str
    good: str
    bad: str
    join: str


PRODUCTS = (
    Product("brochure", "Correct Text", "Retouch Images", "Lay Out Pages"),
    Product("atlas", "Draw Base Map", "Clean Survey Data", "Print Atlas Sheet"),
    Product("film", "Edit Footage", "Record Narration", "Mix Sound"),
    Product("manual", "Translate Labels", "Scale Drawings", "Assemble Manual"),
    Product("catalogue", "Check Prices", "Photograph Goods", "Build Catalogue"),
    Product("anthology", "Choose Extracts", "Clear Quotations", "Typeset Anthology"),
)
SOURCE = f"""\
industry = "{INDUSTRY}"
client = "Halden Press"
contract = "Productions"

[record]
case = "case"
title = "title"
tasks = "steps"

[task]
activity = "step"
start = "from"
end = "to"
actor_kind = "by"
cost = "usd"
success = "ok"

[success]
column = "status"
equals = "accepted"
"""
CONTRACT = f"""\
client = "Halden Press"
contract = "Productions"
industry = "{INDUSTRY}"
gain_usd = {GAIN_USD}
"""


def p_of(task: str, before: str | None) -> float:
    """Returns the true P(task succeeds | the task directly before it succeeded)."""
    for product in PRODUCTS:
        if task == product.join:
            return {product.good: P_GOOD, product.bad: P_BAD}.get(before or "", P_OTHER)
    return P


def true_reward_usd(tasks: Sequence[str]) -> float:
    """Returns the expected Reward of a chain of tasks, EVAL (7), by the truth; 0 gain where a product's step lacks."""
    right = 1.0
    for before, task in zip([None, *tasks], tasks, strict=False):
        right = right * p_of(task, before) + (1 - right) * Q
    return GAIN_USD * right - COST_USD * len(tasks)


def write_order_sample(directory: Path, seed: int = 0) -> None:
    """Writes history/ and intakes/ into `directory`; the same seed gives the same bytes."""
    random = Random(seed)
    cases = [case for product in PRODUCTS for kind in range(3) for case in _cases(random, product, kind)]
    files = {"history/halden/source.toml": SOURCE, "intakes/halden/productions/contract.toml": CONTRACT}
    files["history/halden/productions.jsonl"] = "".join(json.dumps(case) + "\n" for case in cases)
    for product in PRODUCTS:
        folder = f"intakes/halden/productions/{product.name}"
        needed = sorted((product.good, product.bad, product.join))
        files[f"{folder}/intake.toml"] = f"[constraints]\nmust_contain = {json.dumps(needed)}\n"
        asked = ", ".join(sorted((product.good, product.bad))).lower()
        files[f"{folder}/input/request.txt"] = f"We order one {product.name}. It needs: {asked}.\n"
        files[f"{folder}/output/wanted.txt"] = f"The finished {product.name}, from this step: {product.join.lower()}.\n"
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _cases(random: Random, product: Product, kind: int) -> list[dict[str, Any]]:
    """Returns the cases of one kind: 0 and 1 have one preparation and the joining step, 2 both preparations."""
    title = (f"Plain {product.name}", f"Simple {product.name}", f"Material of one {product.name}")[kind]
    found = []
    for number in range(CASES):
        both = random.sample((product.good, product.bad), 2)
        middle = ((product.good, product.join), (product.bad, product.join), tuple(both))[kind]
        tasks, right = (FIRST, *middle, *LAST), True
        begin, steps = START + timedelta(days=random.randrange(200), minutes=number), []
        for before, task in zip([None, *tasks], tasks, strict=False):
            right = random.random() < (p_of(task, before) if right else Q)
            end = begin + timedelta(minutes=round(random.uniform(5, 15)))
            moment = {"from": begin.isoformat(), "to": end.isoformat()}
            steps.append({"step": task, **moment, "by": "human", "usd": COST_USD, "ok": right})
            begin = end + timedelta(minutes=1)
        status = "accepted" if right else "sent back"
        found.append({"case": f"{product.name}-{kind}-{number}", "title": title, "status": status, "steps": steps})
    return found

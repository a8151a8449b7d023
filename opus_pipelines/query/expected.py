"""What is to be expected between the steps of a workflow, in words for the links of its picture: events, outcomes, and returns."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Edge = tuple[str, str]


def between(flow: Sequence[Row], nodes: Iterable[Row], links: Iterable[Row]) -> dict[Edge, tuple[str, ...]]:
    """By link of the workflow the events that similar cases meet behind its first end, and the steps to which they return from there, each
    with the share of similar cases. `flow`: rows of workflows/expected_flow with titles."""
    links = list(links)
    node_of = {row["task_id"]: row["node"] for row in nodes if row["kind"] == "task"}
    ends = [
        {"task": row[side], "kind": row[f"{side}_kind"], "place": row[f"{side}_place"], "title": row[f"{side}_title"]}
        for row in flow for side in ("src", "dst")
    ]
    order = sorted({end["task"]: end for end in ends}.values(), key=lambda end: end["place"])
    after: dict[str | None, list[str]] = defaultdict(list)
    step = None  # the last one so far; what comes before the first step stands behind the client's input
    for end in order:
        if end["kind"] == "step":
            step = node_of.get(end["task"], step)
        else:
            after[step].append(f"{end['title']}{_share(row['support'] for row in flow if row['dst'] == end['task'])}")
        after[step] += [
            f"{'again' if row['src'] == row['dst'] else 'back to ' + row['dst_title']}{_share([row['support']])}"
            for row in flow if row["src"] == end["task"] and row["dst_kind"] == "step" and row["dst_place"] <= row["src_place"]
        ]
    inputs = {link["src"] for link in links} - {link["dst"] for link in links}
    said = {(link["src"], link["dst"]): after[None if link["src"] in inputs else link["src"]] for link in links}
    return {edge: tuple(words) for edge, words in said.items() if words}


def _share(supports: Iterable[float | None]) -> str:
    """The largest known share, in per cent."""
    known = [support for support in supports if support is not None]
    return f" ({100 * max(known):.0f} %)" if known else ""

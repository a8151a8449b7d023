"""Requests for language models: a small graph of payments, and texts of a client."""

import numpy as np

from opus_pipelines.intakes.requirements.intention import Decoded, StatedText
from opus_pipelines.lwm.interface import LwmRequest, SimilarCase
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.wkg.subgraphs import SubWKG

TITLES = {"t1": "Receive invoice", "t2": "Check invoice", "t3": "Pay invoice", "t4": "Reject invoice", "t5": "Archive"}
EDGES = [("t1", "t2", 0.9), ("t2", "t3", 0.8), ("t2", "t4", 0.2), ("t3", "t5", 0.7)]


def edge(src: str, dst: str, gamma: float) -> Edge:
    return Edge(src, dst, 10, 5, gamma, 1 - gamma, gamma)


def graph(titles: dict[str, str], clients: tuple[str, ...] = ()) -> WorkGraph:
    tasks = [Task(task, title, clients=clients) for task, title in titles.items()]
    return WorkGraph.of(tasks, [edge(*e) for e in EDGES if e[0] in titles and e[1] in titles])


def request(
    goal: str = "Pay the invoice", titles: dict[str, str] | None = None, client: str | None = "Acme"
) -> LwmRequest:
    whole = graph(titles or TITLES, ("Acme",))
    inside = list(whole.tasks)[:4]
    swkg = SubWKG(dict.fromkeys(inside, "terminal"), tuple(e for e in whole.edges.values() if e.dst in inside))
    cases = [
        SimilarCase("i1", 0.9, 1.0, True, None, "Acme", None, ("t1", "t2", "t5"), ("", "", ""), (), (), ()),
    ]
    decoded = Decoded(goal, (StatedText("An invoice came.", "e1", "line 1"),), (), ())
    return LwmRequest(np.zeros(4, np.float32), whole, [swkg], cases, decoded=decoded, client=client)

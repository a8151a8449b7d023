"""Several goals in one intake: each becomes an Intention of its own (WIF, PIF: a mixed Intention), ranked on its own.

Project's own rule, conservative: two requests of the client input are two goals where each asks by itself
(`requirements.encode`), their vectors are further apart than `FAR`, and history answers them with different kinds of
case, each clearly. Anything less is one goal told in several sentences.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from opus_pipelines.embedding.passages import attention, compose
from opus_pipelines.requirements.decode import stated_texts, title_of
from opus_pipelines.requirements.encode import Intention, Request

FAR = 0.60  # cosine from which on two requests are about one thing

KindOf = Callable[[np.ndarray], str | None]


def goals_of(intention: Intention, kind_of: KindOf) -> list[Intention]:
    """The intention itself, or one for each of its goals. `kind_of` tells which kind of case clearly answers a vector,
    else None.
    """
    groups = _groups(intention, kind_of)
    return [_of_goal(intention, group) for group in groups] if len(groups) > 1 else [intention]


def _groups(intention: Intention, kind_of: KindOf) -> list[list[Request]]:
    """Requests by the kind of case that answers them, in order; requests that no kind clearly answers tell nothing."""
    groups: dict[str, list[Request]] = {}
    for request in intention.requests:
        if kind := kind_of(intention.texts[request.text]):
            groups.setdefault(kind, []).append(request)
    found = list(groups.values())
    firsts = [intention.texts[group[0].text] for group in found]
    apart = all(float(a @ b) < FAR for n, a in enumerate(firsts) for b in firsts[:n])
    return found if apart else []


def _of_goal(intention: Intention, group: Sequence[Request]) -> Intention:
    """The Intention of one goal: its requests ask, what they share answers by attention."""
    rows = np.stack([intention.texts[r.text] for r in group])
    request = rows.mean(0)
    outputs = intention.parts.get("output", np.zeros((0, rows.shape[1]), np.float32))
    wanted = (attention(request / np.linalg.norm(request), outputs) @ outputs)[None, :] if len(outputs) else outputs
    goal = title_of(" ".join(r.text for r in group))
    decoded = replace(intention.decoded, goal=goal, inputs=stated_texts(s for r in group for s in r.sentences))
    vector = compose(request, intention.parts.get("context"), wanted)
    return replace(
        intention,
        vector=vector,
        goal=goal,
        decoded=decoded,
        requests=tuple(group),
        parts={**intention.parts, "input": rows},
    )

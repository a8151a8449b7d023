"""Several goals in one intake: each becomes an Intention of its own, ranked by itself (WIF, PIF: a mixed Intention).

This is the project's own, conservative rule. Two requests of the client input are two goals where each asks by itself
(`intakes.requirements.encode`), the cosine of their vectors is below `FAR`, and different kinds of case of history
clearly answer them. Otherwise they are one goal.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from opus_pipelines.intakes.requirements.decode import stated_texts, title_of
from opus_pipelines.intakes.requirements.encode import Intention, Request
from opus_pipelines.language.embedding.passages import attention, compose

SAME_MATTER = 0.60  # cosine from which on two requests are about one thing

KindOf = Callable[[np.ndarray], str | None]


def goals_of(intention: Intention, kind_of: KindOf) -> list[Intention]:
    """Return the Intention itself, or one for each of its goals.

    `kind_of` returns the kind of case that clearly answers a vector [d], else None.
    """
    groups = _groups(intention, kind_of)
    return [_of_goal(intention, group) for group in groups] if len(groups) > 1 else [intention]


def _groups(intention: Intention, kind_of: KindOf) -> list[list[Request]]:
    """Return the requests by the kind of case that answers them, in order.

    Requests that no kind clearly answers are left out.
    """
    groups: dict[str, list[Request]] = {}
    for request in intention.requests:
        if kind := kind_of(intention.texts[request.text]):
            groups.setdefault(kind, []).append(request)
    distinct = list(groups.values())
    firsts = [intention.texts[group[0].text] for group in distinct]
    are_distinct = all(float(a @ b) < SAME_MATTER for n, a in enumerate(firsts) for b in firsts[:n])
    return distinct if are_distinct else []


def _of_goal(intention: Intention, group: Sequence[Request]) -> Intention:
    """Return the Intention of one goal: its requests are the query, the shared parts are weighted by attention."""
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

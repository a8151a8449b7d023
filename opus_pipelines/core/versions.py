"""Declares the version of each stage's algorithm, on which snapshots and results depend besides inputs and settings.

Raise a stage's version when the rows that it publishes change for the same input. A changed comment, docstring, name or
file changes no version, so nothing is recomputed for it. `tests/algorithm_versions.json` holds what each stage
publishes on the sample; a test fails when these rows change and no version was raised.
"""

import re
from collections.abc import Mapping

# Each stage follows those that it takes input from: a raised version explains changed rows of its stage and of the
# stages after it.
ALGORITHM_VERSIONS: dict[str, int] = {
    # reading event logs: formats, columns, costs, outcomes, privacy (history/implementations, sources, rejects)
    "history": 4,
    "embedding": 2,  # texts to vectors (wkg/embeddings, wkg/*_vectors); the cache of vectors starts anew, too
    "resolution": 2,  # task resolution: which raw names are one task (wkg/task_aliases)
    "mining": 4,  # the aggregates of one source: the SQL in sql/wkg, cases, evidence of activities
    # aggregates of all sources to the snapshot: estimates, drift in time, graph metrics, critical tasks, procedures
    "wkg": 7,
    "requirements": 10,  # documents to Intention, goals, rules and constraints (generation/intentions)
    # routing, similar cases, critical tasks of the intake, SWKG (generation/neighbours, generation/subgraph_*)
    "retrieval": 28,
    "lwm": 5,  # the history backend of the Large Work Model (generation/sequences); part of the model version
    # Workflow Graph, search, reviews, evaluation, ranking, confidence (generation/wfg_*, workflows/optimized)
    "planning": 16,
    "generation": 11,  # the chain from an intake to its rows, and all tables of a result that no other stage makes
    "reporting": 3,  # reports/cost and reports/reward
}

# What is published outside the stages of the night: raise one when its rows change for the same input.
FORECASTS_VERSION = 6
FLOWS_VERSION = 7  # a change of flows.from_text that is meant to give other flows
PLATFORM_VERSION = 5  # the same requirements give other flows of a platform
PROMPTS_VERSION = 2  # of flows: kept answers of a language model are then asked for anew
FLOW_METHOD = f"flows={FLOWS_VERSION} platform={PLATFORM_VERSION} prompts={PROMPTS_VERSION}"
POINTER_VERSION = 7  # the features or the way of writing change: a network of another version is not used

# The stages whose versions are part of the name of what a stage makes. Earlier stages are not in this list: the content
# or the snapshot that they made is part of the name already. So a raised version recomputes what follows from it, and
# nothing else.
_NAMED_BY: dict[str, tuple[str, ...]] = {
    "history": ("history",),
    "mining": ("mining",),
    "names": ("resolution",),
    "resolution": ("resolution", "embedding"),
    "snapshot": ("wkg", "embedding"),
    "manifest": ("history", "embedding", "mining", "resolution", "wkg"),
    "result": ("embedding", "requirements", "retrieval", "lwm", "planning", "generation", "reporting"),
}
_VERSION = re.compile(r"([a-z]+)=(\d+)")


def versions_of(what: str) -> str:
    """Returns the versions that the named thing depends on, as text: `wkg=1 embedding=1` for a snapshot.

    `what` is history, mining, names, resolution, snapshot, manifest or result. Raises KeyError for any other word.
    """
    return " ".join(f"{stage}={ALGORITHM_VERSIONS[stage]}" for stage in _NAMED_BY[what])


def history_backend_version() -> str:
    """Returns the model version of the history backend, which has no weights of its own: `history-1`."""
    return f"history-{ALGORITHM_VERSIONS['lwm']}"


def difference(before: object, now: str) -> str | None:
    """Returns what differs between two texts of `versions_of`, such as `wkg 1 → 2`, or None where they are equal.

    `before` may be a hash of source files, which older versions of this package wrote. Such a hash contains no
    algorithm version.
    """
    if before == now:
        return None
    old, new = _parsed(str(before)), _parsed(now)
    if not old:
        return "made before algorithm versions were declared"
    changed = [
        stage for stage in (*new, *(stage for stage in old if stage not in new)) if old.get(stage) != new.get(stage)
    ]
    return ", ".join(f"{stage} {old.get(stage, 'none')} → {new.get(stage, 'none')}" for stage in changed)


def _parsed(text: str) -> Mapping[str, str]:
    return dict(_VERSION.findall(text))

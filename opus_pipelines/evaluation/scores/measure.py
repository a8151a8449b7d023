"""The four scores of every task of a workflow: each by its rule, else the complement of its pair, else what the settings state."""

from collections.abc import Callable, Mapping, Sequence

from opus_pipelines.evaluation.penalty import Scores
from opus_pipelines.evaluation.scores.cohesion import words
from opus_pipelines.evaluation.scores.coupling import community
from opus_pipelines.evaluation.scores.facts import Facts, Surroundings
from opus_pipelines.evaluation.scores.hygiene import signals
from opus_pipelines.evaluation.scores.observability import trace
from opus_pipelines.settings import ScoreRules, TaskScores
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.model import Workflow

Rule = Callable[[Facts, str, Surroundings], float | None]
RULES: Mapping[str, Rule] = {"words": words, "community": community, "trace": trace, "signals": signals}
COMPLEMENT = "complement"
NEUTRAL = 0.5  # where nothing at all is known of a pair: what the paper's case study gives a task of which it says nothing
PAIRS = (("cohesion", "coupling"), ("observability", "hygiene"))


def measure(workflow: Workflow, facts: Mapping[str, Facts], rules: ScoreRules) -> dict[str, Scores]:
    """Scores by node; `facts` by node, of every task. The order of nodes and edges means nothing."""
    around = Surroundings(workflow, facts)
    ways = [(name, getattr(rules, name)) for pair in PAIRS for name in pair]
    stated = {folded(title): scores for title, scores in rules.tasks.items()}
    return {node: _scores(node, around, ways, stated) for node in around.tasks}


def _scores(node: str, around: Surroundings, ways: Sequence[tuple[str, str | float]], stated: Mapping[str, TaskScores]) -> Scores:
    facts = around.facts[node]
    found: dict[str, float | None] = {}
    for name, way in ways:
        if isinstance(way, str):
            found[name] = None if way == COMPLEMENT else RULES[way](facts, node, around)
        else:
            found[name] = way
    own = stated.get(folded(around.workflow.by_id[node].title)) if stated else None
    found |= own.model_dump(exclude_none=True) if own else {}
    for first, second in PAIRS:
        if found[first] is None and found[second] is None:
            found[first] = NEUTRAL
    return Scores.of(**found)

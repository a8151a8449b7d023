"""Coupling Cp of EVAL A3, 0 best: how much of what a task hangs on, and of what hangs on it, lies outside its community.

The papers do not say how it is measured; this rule, `community`, is this project's own: the mean of three shares, of those that are
known. Of the transitions into and out of the task in history, those across the border of its community (`wkg/tasks.community`); of its
neighbours in the workflow, those of another community; of its flows of data, those from or to another community, and those from nobody
in the workflow (what the client gives to the first tasks excepted).
"""

from opus_pipelines.evaluation.scores.facts import Facts, Surroundings


def community(facts: Facts, node: str, around: Surroundings) -> float | None:
    """The rule; None where none of the three shares is known."""
    shares = [] if facts.leaving is None else [facts.leaving]
    if around.bit[node] & around.home:
        neighbours = (around.parents[node] | around.children[node]) & around.home
        counts = (neighbours & around.abroad[node]).bit_count(), neighbours.bit_count()
        shares += [crossing / flows for crossing, flows in (counts, _flows(facts, node, around)) if flows]
    return sum(shares) / len(shares) if shares else None


def _flows(facts: Facts, node: str, around: Surroundings) -> tuple[int, int]:
    """How many of its flows of data cross, and how many there are: one of each thing it takes, one of each it leaves to each taker."""
    crossing = flows = 0
    for name in facts.inputs:
        makers = around.makers.get(name, 0) & around.above[node]
        if makers & around.home or not (makers or node in around.fed):
            flows += 1
            crossing += not makers & around.home & ~around.abroad[node]
    for name in facts.outputs:
        takers = around.takers.get(name, 0) & around.below[node] & around.home
        flows += takers.bit_count()
        crossing += (takers & around.abroad[node]).bit_count()
    return crossing, flows

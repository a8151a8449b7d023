"""All scores of a generated flow against its reference, by the names of their columns.

FlowSim in two variants, TreeBLEU, trigger and component match (StarFlow's program), the same with structure validation
(2505.24189, appendix C), bag of steps, and the shares of steps and tables that are not in the catalogue (2404.08189).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.documents import FlowDocument
from opus_pipelines.flows.enterprise.flow_json import json_of
from opus_pipelines.flows.enterprise.validation import structure_errors
from opus_pipelines.workflow.metrics.flow_similarity import component_match, flow_similarity, tree_bleu, trigger_match


@dataclass(frozen=True)
class FlowScores:
    """The scores of one flow. All are in [0, 1]; None where a score does not apply.

    `flowsim` compares with inputs, `flowsim_outline` without. The two `valid_` figures are 0 where the flow has any
    structure error. `hallucinated_steps` and `hallucinated_tables` are shares of the names that the flow gives.
    """

    flowsim: float
    flowsim_outline: float
    valid_flowsim: float
    valid_flowsim_outline: float
    tree_bleu: float
    trigger_match: float | None
    trigger_type_match: float | None
    component_match: float
    bag_of_steps: float
    bag_of_steps_jaccard: float
    hallucinated_steps: float | None
    hallucinated_tables: float | None
    structure_errors: int


def flow_scores(flow: FlowDocument, references: Sequence[FlowDocument], catalogue: Catalogue) -> FlowScores:
    """Returns the scores of a flow; with several references each score is that of the reference with the best FlowSim.

    Raises FlowTooLarge where a flow is too large to be compared, and ValueError without a reference.
    """
    own = json_of(flow)
    pairs = [(flow_similarity(own, json_of(r)), -n) for n, r in enumerate(references)]
    similarity, place = max(pairs)
    reference = references[-place]
    gold = json_of(reference)
    outline = flow_similarity(own, gold, with_inputs=False)
    errors = len(structure_errors(flow, catalogue))
    mine, theirs = _bag(flow), _bag(reference)
    common, total = (mine & theirs).total(), (mine | theirs).total()
    steps, tables = hallucinations(flow, catalogue)
    return FlowScores(
        similarity,
        outline,
        0.0 if errors else similarity,
        0.0 if errors else outline,
        tree_bleu(own, gold),
        trigger_match(own, gold),
        _trigger_type_match(flow, reference),
        component_match(own, gold),
        2 * common / (mine.total() + theirs.total()) if total else 1.0,
        common / total if total else 1.0,
        _share(steps),
        _share(tables),
        errors,
    )


def hallucinations(flow: FlowDocument, catalogue: Catalogue) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns (names outside the catalogue, names) of steps, the trigger included, and of tables.

    The rates HS and HT of a data set are micro rates: the sums over its flows divided.
    """
    kinds = [t.type in catalogue.triggers for t in flow.triggers]
    steps = [*kinds, *(catalogue.step(c) is not None for c in flow.components)]
    given = [part.inputs for part in flow.triggers] + [part.inputs for part in flow.components]
    inputs = [i for own in given for i in own if i.name == "table"]
    tables = [i.value in catalogue.tables for i in inputs if isinstance(i.value, str)]
    return (steps.count(False), len(steps)), (tables.count(False), len(tables))


def _share(counts: tuple[int, int]) -> float | None:
    return counts[0] / counts[1] if counts[1] else None


def _bag(flow: FlowDocument) -> Counter[str]:
    return Counter(component.name for component in flow.components)


def _trigger_type_match(flow: FlowDocument, reference: FlowDocument) -> float | None:
    if flow.trigger is None and reference.trigger is None:
        return None
    types = [f.trigger.type if f.trigger else None for f in (flow, reference)]
    return float(types[0] == types[1])

"""The systems that an evaluation compares: the pipeline, and the baselines beside it."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.generation.flow import rank_workflows, read_requests
from opus_pipelines.generation.records import GenerationContext, Ranked, Refused, Request
from opus_pipelines.intakes.catalogues.entries import Catalogue, DeclaredTask
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.language.embedding.texts import plain, unit
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.retrieval.case_memory import ContractCatalogue
from opus_pipelines.lwm.retrieval.intentions import UNKNOWN_INDUSTRY
from opus_pipelines.quality.task_set import Item
from opus_pipelines.workflow.metrics.plan_scores import Plan

SEED = 0


GENERATED, REFUSED, FAILED = "generated", "refused", "failed"
NO_PLAN = Plan(())
WHOLE = "whole system"  # its name beside those of the controls


@dataclass(frozen=True)
class Prediction:
    """The plan for one item; where there is none, `status` and `reason` say why."""

    plan: Plan = NO_PLAN
    status: str = GENERATED
    reason: str | None = None


def predict(
    items: Sequence[Item],
    context: GenerationContext,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[Prediction]:
    """Returns the rank-1 workflow of every item by the pipeline; one that fails costs itself only."""
    predictions = []
    for done, (item, own) in enumerate(zip(items, _with_catalogues(items, context), strict=True), 1):
        request = _requested(intake_of(item), own)
        predictions.append(request if isinstance(request, Prediction) else _ranked(request, own))
        report(done, len(items))
    return predictions


def _with_catalogues(items: Sequence[Item], context: GenerationContext) -> list[GenerationContext]:
    """Returns a context for each item, in which the item's catalogue is that of its contract.

    So a tool that no case of history has can be predicted. Items with equal catalogues share what is known of it.
    """
    shared: dict[frozenset[tuple[str, str]], GenerationContext] = {}
    for tools in {frozenset(item.catalogue.items()) for item in items if item.catalogue}:
        listed = enumerate(sorted(tools), 1)
        tasks = {plain(name): DeclaredTask(name, "", n, text or None) for n, (name, text) in listed}
        owner = ("evaluation", digest(sorted(tools)))
        catalogue = ContractCatalogue(context.index, *owner, Catalogue(tuple(tasks.values())))
        shared[tools] = replace(context, catalogue=catalogue)
    return [shared.get(frozenset(item.catalogue.items()), context) for item in items]


def intake_of(item: Item) -> Intake:
    """Returns the intake of an item, as if its texts were documents."""
    texts = (("input", item.request), ("output", item.output), ("process", item.context))
    elements = [
        Element(
            make_id("e", item.id, role), role, "text", f"{role}.txt", "text/plain", text, len(text), digest(text), None
        )
        for role, text in texts
        if text
    ]
    return Intake(make_id("k", "evaluation", item.id), item.id, None, elements, industry=item.industry)


def _requested(intake: Intake, context: GenerationContext) -> Request | Prediction:
    """The first Intention of an intake, or why there is none."""
    try:
        return read_requests(intake, context)[0]
    except Exception as error:
        return _none(error)


def _ranked(request: Request, context: GenerationContext) -> Prediction:
    try:
        return Prediction(plan_of(rank_workflows(request, context), context))
    except (
        Exception
    ) as error:  # one item's failure must not fail the others; it counts as an empty plan, with its reason
        return _none(error)


def _none(error: Exception) -> Prediction:
    if isinstance(error, Refused):
        return Prediction(status=REFUSED, reason=str(error))
    return Prediction(
        status=FAILED, reason=str(error) if isinstance(error, OpusError) else f"{type(error).__name__}: {error}"
    )


def plan_of(made: Ranked, context: GenerationContext) -> Plan:
    """Returns the rank-1 workflow as a plan in the words of history: the raw name that the most similar cases use.

    A task that only the catalogue has goes by its name there. Links are the workflow's edges between tasks; a review
    between two tasks links them.
    """
    keys: dict[str, Counter[str]] = {}
    for case in made.evidence.cases:
        for task, key in zip(case.tasks, case.task_keys, strict=True):
            keys.setdefault(task, Counter())[key] += 1
    raw, tasks = context.index.raw_keys, made.drafted.graph.tasks
    declared = _names_of_declared(made, context)

    def name_of(task: str) -> str:
        if task in keys:
            return min(keys[task].items(), key=lambda pair: (-pair[1], pair[0]))[0]
        return raw[task][0] if task in raw else declared.get(task, tasks[task].title)

    workflow = made.ranked[0][1].workflow
    names = {node.id: name_of(node.task_id) for node in workflow.tasks if not node.is_review}
    after: dict[str, list[str]] = {}
    for src, dst in workflow.edges:
        after.setdefault(src, []).append(dst)

    def next_tasks(node: str) -> list[str]:
        return [n for dst in after.get(node, ()) for n in ([dst] if dst in names else next_tasks(dst))]

    links = frozenset((names[node], names[other]) for node in names for other in next_tasks(node))
    return Plan(tuple(names[node] for node in workflow.topological() if node in names), links)


def _names_of_declared(made: Ranked, context: GenerationContext) -> dict[str, str]:
    if not made.drafted.declared:
        return {}
    industries = (made.request.intake.industry, UNKNOWN_INDUSTRY)  # the second where no case is like the intake
    tools = (tool for industry in industries for tool in context.history(industry).resolved.by_name.values())
    return {tool.task_id: tool.tool.name for tool in tools if tool.task_id in made.drafted.declared}


# --- controls

NEAREST, FREQUENT, ONE_TASK, OTHER, GOLD = (
    "control: nearest case",
    "control: most frequent sequence",
    "control: one task",
    "floor: another item's gold",
    "ceiling: gold",
)
CONTROLS = (NEAREST, FREQUENT, ONE_TASK, OTHER, GOLD)


def controls(items: Sequence[Item], context: GenerationContext) -> dict[str, list[Prediction]]:
    """Returns the predictions of each control, in the order of the items.

    The nearest case is the most similar one that did not fail; the most frequent sequence that of the item's industry;
    the one task is the task nearest to the Intention. The floor is the reference of another item, the ceiling its own.
    """
    requests = [_requested(intake_of(item), context) for item in items]
    others = _others(items)
    frequent: dict[str | None, Plan] = {}
    found: dict[str, list[Prediction]] = {name: [] for name in CONTROLS}
    for item, request, other in zip(items, requests, others, strict=True):
        if item.industry not in frequent:
            frequent[item.industry] = most_frequent(item.industry, context)
        for name, control in ((NEAREST, _nearest), (ONE_TASK, _one_task)):
            found[name].append(request if isinstance(request, Prediction) else Prediction(control(request, context)))
        found[FREQUENT].append(Prediction(frequent[item.industry]))
        found[OTHER].append(Prediction(other))
        found[GOLD].append(Prediction(item.gold))
    return found


def _nearest(request: Request, context: GenerationContext) -> Plan:
    most = context.settings.generation.near_cases
    near = context.index.cases.near(request.intention.vector, request.intake.industry, most)
    right = next((case for case in near if case.success is not False and case.task_keys), None)
    return Plan(first_occurrences(right.task_keys)) if right else NO_PLAN


def most_frequent(industry: str | None, context: GenerationContext) -> Plan:
    """Returns the most frequent sequence of raw names among the industry's cases that did not fail."""
    cases, count = context.index.cases, Counter[tuple[str, ...]]()
    rows = cases.rows_of(industry).tolist()
    for case in cases.at(rows, [1.0] * len(rows), 1.0):
        if case.success is not False and case.task_keys:
            count[first_occurrences(case.task_keys)] += 1
    return Plan(min(count.items(), key=lambda pair: (-pair[1], pair[0]))[0]) if count else NO_PLAN


def _one_task(request: Request, context: GenerationContext) -> Plan:
    index, industry = context.index, request.intake.industry
    (near,) = index.index.search(unit(request.intention.vector)[None, :], len(index.graph.tasks))
    fits = (t for t, _ in near if industry is None or industry in index.graph.tasks[t].industries)
    task = next((t for t in fits if t not in index.passive), None)
    return Plan((index.raw_keys.get(task, [index.graph.tasks[task].title])[0],)) if task else NO_PLAN


def _others(items: Sequence[Item]) -> list[Plan]:
    """For each item the gold plan of another one of its industry with other steps, drawn with a seed."""
    plans = []
    for item in items:
        others = [o.gold for o in items if o.industry == item.industry and o.group != item.group]
        plans.append(random.Random(f"{SEED} {item.id}").choice(others) if others else NO_PLAN)
    return plans

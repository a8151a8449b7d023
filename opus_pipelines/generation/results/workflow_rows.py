"""Rows of `workflows/*`: the ranked workflows of one Intention, their nodes and edges, and why each step is there.

Where no case of history is like the intake, the procedure decides, and all that it lists counts. Where history decides,
only what would otherwise be lost without a word counts: what neither a step of the workflow nor a rule stands for.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

from opus_pipelines.core.schemas import EXPECTED_FLOW, OPTIMIZED, WORKFLOW_EDGES, WORKFLOW_TASKS
from opus_pipelines.generation.planning.context import Candidate, Edit
from opus_pipelines.generation.records import GenerationContext, Ranked
from opus_pipelines.generation.results.rows import Row, Rows, edge_origin, node_origin
from opus_pipelines.generation.results.verdict import ExpectedSuccess, Verdict, unread_documents
from opus_pipelines.generation.search.costs import TaskBaselines, total
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.procedures.names import words
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep
from opus_pipelines.language.embedding.texts import parts
from opus_pipelines.language.reading.reader import SentenceReading, sentences_of
from opus_pipelines.language.word_stems import same, stems, within
from opus_pipelines.lwm.retrieval.completeness import OUTCOMES, SUPPORT, tasks_done
from opus_pipelines.lwm.retrieval.requested_steps import procedure_text
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.stitching import critical_groups
from opus_pipelines.workflow.evaluation.cost import (
    assumed,
    known_schedule,
    known_success,
    success_unknown_steps,
    total_ms,
    total_usd,
)
from opus_pipelines.workflow.model import REVIEW, TASK_FIGURES, InputNode, OutputNode, TaskNode, Workflow

MOST = 20  # statements that are named, and sentences of a procedure up to which each is taken for a step
MEANT = 0.5  # share of a statement's words above which a title with them stands for it


def lacking_steps(text: str, procedure: ParsedProcedure | None, titles: Collection[str]) -> list[str]:
    """Returns what the procedure asks for and no step of a workflow with these titles stands for, in its order.

    `text` is the procedure, and `procedure` what was read of it, None where nothing could be: then all of it counts,
    else the part that was read where it has a heading, and the sentences that are for this request. A step stands for
    the clause that asks for it, and for one that has all words of its title. What is forbidden, and when something is
    done, is no step.
    """
    steps = [step for step in procedure.steps if step.name in titles] if procedure else []
    names = [name for title in titles if (name := words(title))]
    found: dict[str, None] = {}
    for record in _records(text, procedure):
        if not record.asks:
            continue
        sentence = record.passage.text
        clauses = [clause for clause in record.passage.clauses if clause not in record.condition] or [sentence]
        lacking = [
            clause
            for clause in clauses
            if not any(name <= words(clause) for name in names)
            and not any(_asks(step, sentence, clause, len(clauses)) for step in steps)
        ]
        found.update(dict.fromkeys([sentence] if len(lacking) == len(clauses) else lacking))
    return list(found)[:MOST]


def unsaid_steps(
    text: str, procedure: ParsedProcedure | None, titles: Collection[str], rules: Collection[str]
) -> list[str] | None:
    """Returns the same of an intake that is like cases of history: what no step and no rule stands for.

    `rules` are the sentences that were read as rules, whether they are applied or not: their effect is told with them.
    A title stands for a sentence also where it has more than half of its words. None without a procedure, and for one
    of more than `MOST` sentences, which holds conditions and explanations more than steps.
    """
    if not 0 < sum(record.passage.shape != "heading" for record in sentences_of([text])) <= MOST:
        return None
    names = [stems(title) for title in titles]
    told = [" ".join(stems(rule)) for rule in rules]

    def is_told(statement: str) -> bool:
        said = stems(statement)
        shared = (sum(any(same(word, of) for of in name) for word in said) for name in names)
        is_meant = any(share > MEANT * len(said) for share in shared) or any(within(name, said) for name in names)
        return is_meant or any(" ".join(said) in rule for rule in told)

    return [statement for statement in lacking_steps(text, procedure, titles) if not is_told(statement)]


def conditional_steps(text: str, procedure: ParsedProcedure | None, titles: Collection[str], known: str) -> list[str]:
    """Returns the steps of a workflow with these titles that the procedure asks for under a condition alone.

    Each has the condition in the procedure's words: "change locks: where a key is lost". A condition counts as stated,
    and is left out, where `known`, the texts of the client, has all of its words; "unless" never does. A step that
    another sentence asks for without a condition is left out, too.
    """
    steps = [step for step in procedure.steps if step.name in titles] if procedure else []
    told, found, always = stems(known), dict[str, str](), set[str]()
    for record, step in product(_records(text, procedure), steps):
        sentence, condition = record.passage.text, record.condition
        if not record.asks or not (words(step.name) <= words(sentence) or _asks(step, sentence, sentence, 1)):
            continue
        if not condition:
            always.add(step.name)
        elif "unless" in condition.casefold() or not within(stems(condition)[1:], told):  # [1:]: without "if"
            found.setdefault(step.name, f"{step.name}: {condition}")
    return [line for name, line in found.items() if name not in always][:MOST]


def _records(text: str, procedure: ParsedProcedure | None) -> Sequence[SentenceReading]:
    """Returns the records of the part that was read where it has a heading, else those of all sentences."""
    if procedure and procedure.sentences:
        return procedure.sentences
    head = procedure.head if procedure else ""
    read = [part for part in parts(text) if part.head == head] if head else []
    lines = [sentence.text for part in read for sentence in part.sentences] or [part.head or "" for part in read]
    return sentences_of(["\n".join(f"- {line}" for line in lines)] if lines else [text])


def _asks(step: ProcedureStep, sentence: str, clause: str, clauses: int) -> bool:
    """Tells whether a clause, one of several of a sentence, asks for a step."""
    asked = step.sentence or ""
    is_its_clause = clauses == 1 or not set(stems(step.name)).isdisjoint(stems(clause))
    return bool(asked) and (asked in (sentence, clause) or clause in asked) and is_its_clause


PROCEDURE, CONSTRAINT, DECISION = "procedure", "constraint", "decision"
EXPECTED = 0.5  # share of the model's sequences from which the model expects a step


@dataclass(frozen=True)
class StepReasons:
    """What asks for the steps of the workflows of one Intention."""

    result: Ranked

    def of_task(self, task: str) -> dict[str, Any]:
        """Returns the columns of `workflows/tasks` that say why a task is there."""
        support = self.result.evidence.completeness.model_support
        return {
            "asked_by": [reason for reason, tasks in self._asked.items() if task in tasks],
            "similar_share": self._similar.get(task, 0.0) if self._similar else None,
            "model_share": None if support is None else min(1.0, support.get(task, 0.0)),
        }

    def of_workflow(self, tasks: Iterable[str]) -> dict[str, float | None]:
        """Returns the columns of `workflows/optimized` with the shares of its distinct steps by where they came from.

        A step may count for several: the shares do not add up to 1.
        """
        steps = sorted(set(tasks))
        support = self.result.evidence.completeness.model_support
        return {
            "share_similar_cases": _share([self._similar.get(t, 0.0) > 0 for t in steps]) if self._similar else None,
            "share_procedure": _share([t in self._asked[PROCEDURE] for t in steps]),
            "share_model": None if support is None else _share([support.get(t, 0.0) >= EXPECTED for t in steps]),
        }

    @cached_property
    def _asked(self) -> dict[str, frozenset[str]]:
        """Return the tasks that each reason asks for, in the order in which reasons are shown."""
        evidence, context = self.result.evidence, self.result.context
        limits, meant = context.requirements.constraints, context.requirements.names.tasks
        stated = [*limits.must_contain, *(name for g in (*limits.one_of, *limits.exactly_one_of) for name in g)]
        critical = frozenset[str]().union(*critical_groups(self.result.retrieved.processes))
        asks = not (evidence.procedure and evidence.procedure.is_of_request)
        chosen = [s.tasks for s in self.result.drafted.sequences.values() if s.source == DECISION]
        return {
            SUPPORT if evidence.completeness.by_support else OUTCOMES: critical,
            PROCEDURE: frozenset(evidence.procedure.tasks if evidence.procedure and asks else ()),
            CONSTRAINT: frozenset[str]().union(*map(meant, stated)),
            DECISION: frozenset[str]().union(*chosen),
        }

    @cached_property
    def _similar(self) -> dict[str, float]:
        """Return by task the share of the similar cases, by weight, that did it; empty without similar cases."""
        cases = [case for case in self.result.evidence.cases if not case.is_decision]
        if not cases:
            return {}
        total = sum(case.weight for case in cases)
        tasks, of_case, of_task = tasks_done(cases)
        weights = np.array([case.weight / total for case in cases])[of_case]
        shares = np.bincount(of_task, weights, len(tasks)).tolist()  # adds up in the order of the cases
        return {task: min(1.0, round(share, 9)) for task, share in zip(tasks, shares, strict=True)}


def _share(hits: list[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


_INSTRUCTION_KINDS = {"model": "model inference", "code": "code", "human": "human"}


def workflow_rows(result: Ranked, context: GenerationContext) -> Rows:
    """Yields every row of workflows/* for one Intention, without client, contract and result."""
    intake, index = result.request.intake, context.index
    ids = {"intake_id": intake.intake_id, "intention_id": result.request.intention_id}
    keys, reasons = _task_keys(result), StepReasons(result)
    for rank, candidate in result.ranked:
        shares = reasons.of_workflow(candidate.tasks)
        own = _optimized(rank, candidate, result, context) | _ranked_by(rank, candidate, result) | shares
        yield OPTIMIZED, ids | own | _judged(rank, candidate, result, own)
        starts, finishes = known_schedule(candidate.workflow)
        steps = (candidate.workflow.by_id[node] for node in candidate.plan.nodes)
        saved = result.task_baselines.saved(step for step in steps if isinstance(step, TaskNode))
        for position, node in enumerate(candidate.plan.nodes):
            row = {
                "workflow_id": candidate.id,
                "node": node,
                "position": position,
                "start_ms": starts[node],
                "finish_ms": finishes[node],
            }
            found = _node(node, candidate, result, index, keys)
            asked = reasons.of_task(found["task_id"]) if "task_id" in found else {}
            found |= saved[node]._asdict() if node in saved else {}
            yield WORKFLOW_TASKS, ids | row | found | asked | _own_title(node, candidate, intake)
        for row in _edges(candidate, result):
            yield WORKFLOW_EDGES, ids | row
        for row in expected_flow(candidate, result, index, keys):
            yield EXPECTED_FLOW, ids | row


def observed_share(tasks: Iterable[TaskNode]) -> float:
    """Share of the tasks' figures (p, q, cost, duration of each) that were observed."""
    bases = [basis for task in tasks for basis in task.bases]
    return sum(b == "observed" for b in bases) / len(bases)


def _optimized(
    rank: int,
    candidate: Candidate,
    result: Ranked,
    context: GenerationContext,
) -> Row:
    index, model = context.index, context.model
    worth, base = candidate.evaluation, result.baseline
    figures = (
        "reward_usd",
        "gain_usd",
        "success_probability",
        "cost_usd",
        "cost_compute_usd",
        "cost_model_usd",
        "cost_human_usd",
        "cost_time_usd",
        "cost_held_usd",
        "duration_ms",
        "peak_memory_gb",
        "peak_threads",
    )
    steps = candidate.workflow.tasks
    totals = {name: getattr(worth, name) for name in figures} | {
        "duration_ms": total_ms(steps, worth.duration_ms),
        "success_probability": known_success(steps, worth.success_probability),
        "success_inference": worth.success_inference,
        "success_probability_product": known_success(steps, worth.success_probability_product),
        "reward_product_usd": worth.reward_product_usd,
        "success_unknown_steps": success_unknown_steps(steps),
    }
    if not worth.cost_usd:
        totals |= {name: total_usd(steps, totals[name]) for name in figures if name.startswith("cost_")}
    return (
        totals
        | assumed(steps).row()
        | {
            "workflow_id": candidate.id,
            "title": _title(candidate, result.request.intake),
            "rank": rank,
            "backend": model.name,
            "sequence_ids": list(candidate.sequence_ids),
            "path_cost_usd": total_usd(steps, candidate.path_cost_usd),
            "feasible": candidate.feasible,
            "violations": list(candidate.violations),
            "risks": list(candidate.risks),
            "tasks": len(candidate.tasks),
            "reviews": _reviews(candidate),
            "new_tasks": sum(t not in index.graph.tasks for t in candidate.tasks),
            "observed_share": observed_share(candidate.workflow.tasks),
            "in_history": index.is_known_variant(candidate.tasks),
            **_saving(steps, result.task_baselines),
            "case_cost_usd": base.cost_usd,
            "baseline_duration_ms": base.duration_ms,
            "baseline_success": base.success,
            "weights": result.weights.model_dump_json(exclude_none=True, by_alias=True),
            "snapshot": index.snapshot.id,
            "model_version": model.version,
            **_of_procedure(candidate, result),
            **_confidence(candidate),
            **(asdict(candidate.penalties) if candidate.penalties else {}),
            **_why(candidate),
            **_decision(candidate),
            **_evidence(candidate, result, index),
            **_lead_time(candidate, result),
        }
    )


def _judged(rank: int, candidate: Candidate, result: Ranked, own: Row) -> Row:
    """The success to expect, how cases like the intake at its start ended, and the verdict, which rank 1 alone has."""
    expected = ExpectedSuccess.of(own["success_probability"], result)
    row: Row = {
        "success_probability": expected.success,
        "success_basis": expected.basis,
        "success_of_steps": own["success_probability"],
        "similarity_basis": result.evidence.completeness.basis,
        "unread": unread_documents(result.request.intake.elements),
    }
    if (at_start := result.at_start) is not None:
        low, high = at_start.interval
        row |= {"start_success": at_start.success, "start_success_low": low, "start_success_high": high}
        row |= {"start_cases": at_start.cases}
    if rank == 1:
        verdict = Verdict.of(candidate, result, len(own["lacks"] or ()), expected)
        row |= {"verdict": verdict.name, "verdict_reason": "; ".join(verdict.reasons) or None}
    return row


def _ranked_by(rank: int, candidate: Candidate, result: Ranked) -> Row:
    """The criteria of the ranking, with what overrides them, and which puts it ahead of the next rank."""
    behind = next((c for place, c in result.ranked if place == rank + 1), None)
    is_chosen = candidate.decision is not None and candidate.decision.kind is not None
    ahead_by = (
        None
        if behind is None
        else DECISION
        if is_chosen
        else result.context.ranking.deciding_criterion(candidate, behind)
    )
    ranked = [candidate for _, candidate in result.ranked]
    decided = [DECISION] if any(c.decision is not None and c.decision.kind is not None for c in ranked) else []
    return {"ranked_by": [*decided, *result.context.ranking.applied(ranked)], "ahead_by": ahead_by}


def _evidence(candidate: Candidate, result: Ranked, index: SnapshotIndex) -> Row:
    expected = result.evidence.completeness.consensus
    weights = [case.weight for case in result.evidence.cases]
    effective = sum(weights) ** 2 / sum(w * w for w in weights) if weights else 0.0
    events = [t for t in expected_order(candidate, result, index) if t in index.passive]
    return {
        "completeness": result.evidence.completeness.rule,
        "conformity": candidate.conformity,
        "order_conformity": candidate.order_conformity,
        "has_optional": candidate.has_optional,
        "similar_cases": expected.cases if expected else effective,
        "expected_events": [index.graph.tasks[t].title for t in events],
    }


def _lead_time(candidate: Candidate, result: Ranked) -> Row:
    """Lead time beside the touch time, and the probability that it keeps the deadline; NULL where there is no
    deadline.
    """
    found, deadline = candidate.lead_time, result.context.requirements.rules.constraints.max_lead_time_hours
    row: Row = {
        "baseline_lead_time_ms": result.baseline_lead_time_ms,
        "deadline_hours": deadline,
        "step_deadlines": [check.text for check in candidate.deadline_checks],
    }
    if found is None:
        return row
    return row | {
        "lead_time_ms_p50": found.p50_ms,
        "lead_time_ms_p90": found.p90_ms,
        "lead_time_basis": found.basis,
        "p_deadline": None if deadline is None else found.within(deadline),
    }


def _saving(steps: Sequence[TaskNode], baselines: TaskBaselines) -> Row:
    """Sums over the steps that can be compared, and over the tasks left out (`generation.search.costs`)."""
    saved = baselines.saved(steps).values()
    compared = [one for one in saved if one.saving_usd is not None]
    others = baselines.left_out({t.task_id for t in steps if not t.is_review})
    parts = {
        "saving_usd": total(one.saving_usd for one in compared),
        "repetition_usd": total(one.repetition_usd for one in compared),
        "left_out_usd": total((*(one.left_out_usd for one in saved), *others.values())),
    }
    return parts | {
        "baseline_cost_usd": total(one.baseline_cost_usd for one in compared),
        "left_out": [{"task_id": task, "usd": usd} for task, usd in others.items()],
        "cheaper_usd": total(parts.values()),
        "compared_steps": len(compared),
    }


def _why(candidate: Candidate) -> Row:
    plan, has_gain = candidate.plan, candidate.workflow.states_gain
    unit, other = ("usd", "success") if has_gain else ("success", "usd")

    def told(edits: Iterable[Edit]) -> list[Row]:
        return [{"kind": e.kind, "what": e.what, f"earned_{unit}": e.earned, f"earned_{other}": None} for e in edits]

    return {
        "edits": told(plan.edits),
        "choices": told(plan.choices),
        "binding": list(plan.binding),
        f"gap_{unit}": plan.gap,
        "exact": plan.exact,
        "differs_by": candidate.differs_by,
        "fewer": candidate.fewer,
    }


def _of_procedure(candidate: Candidate, result: Ranked) -> Row:
    """What the intake's own procedure lists that it lacks, and what it has under a condition that is not stated.

    Where a case of history is like the intake, cases decide, and conditions are read as rules.
    """
    titles = [candidate.workflow.by_id[task].title for task in candidate.tasks]
    elements, procedure = result.request.intake.elements, result.evidence.procedure
    if result.retrieved.unlike is None:
        own = procedure_text([e for e in elements if e.role == "process"])
        rules = {rule.sentence for rule in result.context.requirements.rules.rules if rule.sentence}
        return {"lacks": unsaid_steps(own, procedure, titles, rules)}
    text, known = procedure_text(elements), "\n".join(e.text or "" for e in elements if e.role in ("input", "output"))
    conditional = conditional_steps(text, procedure, titles, known)
    return {"lacks": lacking_steps(text, procedure, titles), "conditional": conditional}


def _decision(candidate: Candidate) -> Row:
    found = candidate.decision
    if found is None:
        return {}
    return {
        "decision": found.kind,
        "decision_number": found.number,
        "decided_why": found.why,
        "decided_by": found.decided_by,
        "decision_note": found.note,
        "better_workflow_id": found.better_id,
        "better_by_usd": found.better_usd,
    }


def _reviews(candidate: Candidate) -> int:
    return sum(task.is_review for task in candidate.workflow.tasks)


def _confidence(candidate: Candidate) -> Row:
    return asdict(candidate.confidence) if candidate.confidence else {}


def _title(candidate: Candidate, intake: Intake) -> str:
    titles = [candidate.workflow.by_id[t].title for t in candidate.tasks]
    steps = titles if len(titles) <= 2 else [titles[0], f"{len(titles) - 2} more", titles[-1]]
    return f"{intake.title or intake.folder}: {' → '.join(steps)}"


def _node(
    node: str, candidate: Candidate, result: Ranked, index: SnapshotIndex, keys: dict[str, list[str]]
) -> dict[str, Any]:
    data, worth = candidate.workflow.by_id[node], candidate.evaluation
    is_observed = known_success(candidate.workflow.tasks, worth.success_probability) is not None
    common = {
        "kind": data.kind,
        "title": data.title,
        "success_probability": worth.success[node] if is_observed or isinstance(data, InputNode) else None,
    }
    if isinstance(data, OutputNode):
        return common | {"gain_usd": data.gain_usd}
    scores = vars(candidate.scores[node]) if node in candidate.scores else {}
    waited = candidate.lead_time.steps.get(node) if candidate.lead_time else None
    common |= vars(waited) if waited else {}
    return common | scores | _task(data, result, index, keys) if isinstance(data, TaskNode) else common


def _own_title(node: str, candidate: Candidate, intake: Intake) -> dict[str, Any]:
    """What the client gives is called as the intake is."""
    return {"title": intake.title} if intake.title and isinstance(candidate.workflow.by_id[node], InputNode) else {}


def _task(data: TaskNode, result: Ranked, index: SnapshotIndex, keys: dict[str, list[str]]) -> dict[str, Any]:
    kind = _INSTRUCTION_KINDS.get(data.actor_kind or "")
    row = (
        {name: getattr(data, name) for name in TASK_FIGURES}
        | {
            "instructions": [{"kind": kind, "text": text} for text in data.instructions],
            "inputs": list(data.inputs),
            "outputs": list(data.outputs),
        }
        | _unknown(data)
    )
    if data.is_review:
        return row | {"origin": REVIEW}
    task, mode = result.drafted.graph.tasks[data.task_id], result.context.draft.prices.known_mode(data)
    assert mode is not None  # it was chosen among the execution modes of its task
    return row | {
        "task_id": data.task_id,
        "task_keys": keys.get(data.task_id) or index.raw_keys.get(data.task_id) or [task.title],
        "description": task.description,
        "origin": node_origin(result, data.id),
        "evidence": mode.implementations or task.implementations,
        "nearest_task_id": result.drafted.nearest.get(data.task_id),
    }


def _unknown(data: TaskNode) -> Row:
    """NULL in place of a cost or a time that nobody knows."""
    cost = (
        ("cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd", "cost_basis")
        if data.known_cost_usd is None
        else ()
    )
    time = ("duration_ms", "duration_basis") if data.known_duration_ms is None else ()
    return dict.fromkeys((*cost, *time))


def _edges(candidate: Candidate, result: Ranked) -> Iterator[Row]:
    """Every edge with what flows along it, where data that the one leaves is taken by the other."""
    workflow = candidate.workflow
    for src, dst in workflow.edges:
        known, edge = result.drafted.wfg.edges.get((src, dst)), result.drafted.graph.edges.get((src, dst))
        reviewed = any(isinstance(n, TaskNode) and n.is_review for n in (workflow.by_id[src], workflow.by_id[dst]))
        yield {
            "workflow_id": candidate.id,
            "src": src,
            "dst": dst,
            "data_type": _flows(workflow, src, dst),
            "gamma": known.gamma if known else edge.gamma if edge else None,
            "origin": edge_origin(result, known) if known else REVIEW if reviewed else "dependency",
        }


def expected_order(candidate: Candidate, result: Ranked, index: SnapshotIndex) -> list[str]:
    """The workflow's steps, and the events and outcomes that similar cases agree on, each behind what it follows in
    their order.
    """
    found = list(candidate.tasks)
    agreed = result.evidence.completeness.consensus.tasks if result.evidence.completeness.consensus else ()
    for n, event in enumerate(agreed):
        if event in index.passive:
            found.insert(max((found.index(t) + 1 for t in agreed[:n] if t in found), default=0), event)
    return found


def expected_flow(
    candidate: Candidate, result: Ranked, index: SnapshotIndex, keys: Mapping[str, Sequence[str]]
) -> Iterator[Row]:
    """The consecutive pairs to be expected of a workflow's steps and events: those with the highest expected F1
    against the pairs of similar cases; its own order where these do not tell, and none where steps are independent.
    `keys`: the raw keys of each task.
    """
    order = expected_order(candidate, result, index)
    place = {task: n for n, task in enumerate(order)}
    expected = result.evidence.completeness.consensus
    pairs: dict[tuple[str, str], float | None] = dict(expected.pairs_among(order)) if expected else {}
    if not pairs and not result.evidence.completeness.is_independent:
        pairs = dict.fromkeys(pairwise(order))
    key = lambda task: next(
        iter(keys.get(task) or index.raw_keys.get(task, [])), result.drafted.graph.tasks[task].title
    )
    for (a, b), support in sorted(pairs.items()):
        yield {
            "workflow_id": candidate.id,
            "src": a,
            "dst": b,
            "src_task_key": key(a),
            "dst_task_key": key(b),
            "src_kind": result.drafted.graph.tasks[a].activity_kind,
            "dst_kind": result.drafted.graph.tasks[b].activity_kind,
            "src_place": place[a],
            "dst_place": place[b],
            "support": support,
        }


def _flows(workflow: Workflow, src: str, dst: str) -> str | None:
    """A review hands on what its task leaves."""

    def of(node: str) -> TaskNode | None:
        data = workflow.by_id[node]
        return data if isinstance(data, TaskNode) else None

    a, b = of(src), of(dst)
    if a is not None and a.is_review:
        a = of(workflow.predecessors(src)[0])
    if a is None or b is None:
        return None
    return ", ".join(sorted(a.outputs if b.is_review else set(a.outputs) & set(b.inputs))) or None


def _task_keys(result: Ranked) -> dict[str, list[str]]:
    """Raw keys of every task in the client's near cases, most frequent first, then by name."""
    counts = Counter[tuple[str, str]]()
    own = (case for case in result.evidence.cases if case.client in (None, result.request.intake.client))
    for (tasks, raw), n in Counter((case.tasks, case.task_keys) for case in own).items():
        for pair in zip(tasks, raw, strict=True):
            counts[pair] += n
    found: dict[str, list[str]] = {}
    for (task, key), _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        found.setdefault(task, []).append(key)
    return found

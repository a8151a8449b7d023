"""Writers of platform flows side by side: quality, cost and seconds per flow, on requirements that none learnt from."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.composer import Composer, DocumentWriter
from opus_pipelines.flows.enterprise.documents import FlowDocument, document_text, json_of
from opus_pipelines.flows.enterprise.examples import FlowExample, known
from opus_pipelines.flows.scores import FlowScores, flow_scores, hallucinations
from opus_pipelines.flows.writers.platform_flows import LanguageWriter, MostFrequentFlow, NearestFlow
from opus_pipelines.history.records.money import shipped_price
from opus_pipelines.quality.score_rows import Evaluation, Mean, Row

MILLION = 1_000_000
SHOWN_OF_FLOWS = (
    "flowsim",
    "flowsim_outline",
    "valid_flowsim",
    "tree_bleu",
    "trigger_match",
    "component_match",
    "bag_of_steps",
)
HANDWRITTEN = "handwritten"
# Table 3 of 2505.24189 (108 internal flows) and StarFlow's page (2,699 sketches), times 100. They are of other data and
# other catalogues, and stand beside ours for orientation only.
PUBLISHED = (
    ("2505.24189: Mistral-Nemo-12B fine-tuned", "outline, TEST, RAG / perfect RAG", "77.5 / 78.8"),
    ("2505.24189: GPT-4o", "outline, TEST, RAG / perfect RAG", "70.5 / 74.7"),
    ("2505.24189: Llama-3.3-70B", "outline, TEST, RAG / perfect RAG", "70.6 / 74.4"),
    ("2505.24189: Gemini-2.0-Flash", "outline, TEST, RAG / perfect RAG", "68.7 / 70.2"),
    ("StarFlow: GPT-4o", "with inputs / without, from sketches", "78.6 / 70.7"),
    ("StarFlow: Qwen2.5-VL-7B fine-tuned", "with inputs / without, from sketches", "95.7 / 92.7"),
)


@dataclass(frozen=True)
class WrittenFlow:
    """What one writer made of one requirement. Tokens and dollars are None where they are not known.

    `repaired` counts what a language model wrote outside the catalogue, and inputs that had to be taken out.
    """

    model: str
    example: FlowExample
    flow: FlowDocument
    scores: FlowScores
    seconds: float
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    problem: str = ""
    repaired: int = 0


@dataclass(frozen=True)
class ModelRow:
    """The figures of one model on the requirements of one kind and part; intervals are 95 % bootstrap intervals."""

    model: str
    kind: str
    part: str
    n: int
    means: dict[str, Mean]
    structure_errors: float
    hallucinated_steps: float
    hallucinated_tables: float
    failed: int
    repaired: float
    seconds: float
    seconds_p95: float
    tokens_in: float | None
    tokens_out: float | None
    cost_usd: float | None


def plain_writers(catalogue: Catalogue, examples: Sequence[FlowExample], names: Sequence[str]) -> list[DocumentWriter]:
    """Returns the writers that need no language model: composer, catalogue, nearest and frequent.

    Raises InputError for another name, and where a baseline has no known flow.
    """
    own = known(examples)
    made: dict[str, Callable[[], DocumentWriter]] = {
        "composer": lambda: Composer(catalogue, [flow for _, flow in own]),
        "catalogue": lambda: Composer(catalogue, name="composer, catalogue only"),
        "nearest": lambda: NearestFlow(own),
        "frequent": lambda: MostFrequentFlow(own),
    }
    if strange := [name for name in names if name not in made]:
        raise InputError(f"{strange[0]!r} is no writer without a language model; there are {', '.join(made)}")
    if not own and {"nearest", "frequent"} & set(names):
        raise InputError("a baseline needs requirements of the tune part")
    return [made[name]() for name in names]


def written_flows(
    writer: DocumentWriter,
    examples: Sequence[FlowExample],
    catalogue: Catalogue,
    price_of: str | None = None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[WrittenFlow]:
    """Returns what a writer makes of each requirement; one that it cannot answer is an empty flow with the reason.

    `price_of` names the model of the shipped price table; None: the writer costs no tokens, and 0 dollars.
    """
    price = shipped_price(price_of) if price_of else None
    found = []
    for done, example in enumerate(examples, 1):
        spent = writer.spent if isinstance(writer, LanguageWriter) else None
        before = (spent.tokens_in or 0, spent.tokens_out or 0) if spent else (0, 0)
        repaired = writer.repaired if isinstance(writer, LanguageWriter) else 0
        begun, problem = time.perf_counter(), ""
        try:
            flow = writer.flow(example.text)
        except OpusError as error:
            flow, problem = FlowDocument(), str(error)
        seconds = time.perf_counter() - begun
        tokens: tuple[int | None, int | None] = (0, 0)
        if spent:
            tokens = _since(spent.tokens_in, before[0]), _since(spent.tokens_out, before[1])
        cost = 0.0 if spent is None else None
        if price is not None and None not in tokens:
            cost = ((tokens[0] or 0) * price.tokens_in + (tokens[1] or 0) * price.tokens_out) / MILLION
        scores = flow_scores(flow, [example.flow], catalogue)
        repaired = writer.repaired - repaired if isinstance(writer, LanguageWriter) else 0
        found.append(WrittenFlow(writer.name, example, flow, scores, seconds, *tokens, cost, problem, repaired))
        report(done, len(examples))
    return found


def _since(now: int | None, before: int) -> int | None:
    return None if now is None else now - before


def model_rows(flows: Sequence[WrittenFlow], catalogue: Catalogue) -> list[ModelRow]:
    """Returns a row for each model, kind and part, in the order in which they come."""
    groups: dict[tuple[str, str, str], list[WrittenFlow]] = defaultdict(list)
    for one in flows:
        groups[one.model, one.example.kind, one.example.part].append(one)
    return [_row(key, own, catalogue) for key, own in groups.items()]


def _row(key: tuple[str, str, str], own: Sequence[WrittenFlow], catalogue: Catalogue) -> ModelRow:
    means = {}
    for name in SHOWN_OF_FLOWS:
        pairs = [(float(v), one.example.id) for one in own if (v := getattr(one.scores, name)) is not None]
        if pairs:
            means[name] = Mean.of([value for value, _ in pairs], [identity for _, identity in pairs])
    counts = [hallucinations(one.flow, catalogue) for one in own]
    rates = [sum(c[part][0] for c in counts) / max(1, sum(c[part][1] for c in counts)) for part in (0, 1)]
    seconds = [one.seconds for one in own]
    return ModelRow(
        *key,
        len(own),
        means,
        fmean(one.scores.structure_errors > 0 for one in own),
        rates[0],
        rates[1],
        sum(bool(one.problem) for one in own),
        fmean(one.repaired for one in own),
        fmean(seconds),
        float(np.percentile(seconds, 95)),
        _mean([one.tokens_in for one in own]),
        _mean([one.tokens_out for one in own]),
        _mean([one.cost_usd for one in own]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def flow_samples(flows: Sequence[WrittenFlow]) -> list[str]:
    """Returns the flows of one writer as the lines of a file for `opus errors`."""
    lines = []
    for one in flows:
        scores: dict[str, Any] = {k: v for k, v in asdict(one.scores).items() if k in SHOWN_OF_FLOWS and v is not None}
        about = {"id": one.example.id, "request": one.example.text, "gold": json_of(one.example.flow), "scores": scores}
        written_by_hand = one.example.kind.startswith(HANDWRITTEN)
        features = {"out of scope": "out of scope" in one.example.tags, "handwritten": written_by_hand}
        lines.append(json.dumps({**about, "tags": list(one.example.tags), "features": features}, ensure_ascii=False))
    return lines


def evaluation_of(flows: Sequence[WrittenFlow]) -> Evaluation:
    """Returns the rows of evaluations/flows. The id is a hash of requirements, references, models and their flows."""
    parts = (
        (one.model, one.example.id, one.example.text, document_text(one.example.flow), document_text(one.flow))
        for one in flows
    )
    identifier = make_id("v", "flows", digest(*(part for own in parts for part in own)))
    return Evaluation(identifier, _score_rows(flows, identifier))


def _score_rows(flows: Sequence[WrittenFlow], evaluation: str) -> list[Row]:
    """Returns one row for each flow."""
    return [
        {
            "evaluation": evaluation,
            "model": one.model,
            "item": one.example.id,
            "kind": one.example.kind,
            "part": one.example.part,
            "requirement": one.example.text,
            "tags": list(one.example.tags),
            "steps": [c.name for c in one.flow.components],
            "gold_steps": [c.name for c in one.example.flow.components],
            **asdict(one.scores),
            "repairs": one.repaired,
            "problem": one.problem or None,
            "duration_ms": round(1000 * one.seconds),
            "tokens_in": one.tokens_in,
            "tokens_out": one.tokens_out,
            "cost_usd": one.cost_usd,
        }
        for one in flows
    ]

"""Writers of platform flows side by side: quality and seconds per flow, on requirements that none learnt from.

Beside the composer stand two controls: the flow of the nearest known requirement, and the most frequent flow.
"""

import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.composer import Composer, DocumentWriter
from opus_pipelines.flows.enterprise.documents import FlowDocument, document_text, json_of, script_of
from opus_pipelines.flows.enterprise.examples import FlowExample, known
from opus_pipelines.flows.scores import FlowScores, flow_scores, hallucinations
from opus_pipelines.language.word_stems import stems
from opus_pipelines.quality.score_rows import Evaluation, Mean, Row

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
    """What one writer made of one requirement; `problem` says why there is no flow."""

    model: str
    example: FlowExample
    flow: FlowDocument
    scores: FlowScores
    seconds: float
    problem: str = ""


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
    seconds: float
    seconds_p95: float


Known = Sequence[tuple[str, FlowDocument]]


class NearestFlow:
    """The flow of the known requirement whose words are most alike (cosine of TF-IDF over stems)."""

    name = "nearest requirement"

    def __init__(self, known: Known) -> None:
        """Takes requirements with their flows; at least one."""
        self._known = known
        spread = Counter(s for text, _ in known for s in stems(text))
        self._rarity = {s: math.log((1 + len(known)) / (1 + n)) + 1 for s, n in spread.items()}
        self._vectors = [self._vector(text) for text, _ in known]

    def _vector(self, text: str) -> dict[str, float]:
        weights = {s: self._rarity.get(s, 0.0) for s in stems(text)}
        length = math.sqrt(sum(w * w for w in weights.values())) or 1.0
        return {s: w / length for s, w in weights.items()}

    def nearest(self, requirement: str, count: int = 1) -> list[int]:
        """Returns the places of the most similar requirements, the nearest first."""
        own = self._vector(requirement)
        scores = [sum(w * other.get(s, 0.0) for s, w in own.items()) for other in self._vectors]
        return sorted(range(len(scores)), key=lambda n: (-scores[n], n))[:count]

    def flow(self, requirement: str) -> FlowDocument:
        """Returns the flow of the nearest requirement."""
        return self._known[self.nearest(requirement)[0]][1]


class MostFrequentFlow:
    """The same flow for every requirement: the most frequent outline of the known ones, the first of equal ones."""

    name = "most frequent flow"

    def __init__(self, known: Known) -> None:
        """Takes requirements with their flows; at least one."""
        shapes = [tuple(line.split()[0] for line in script_of(flow).splitlines()[1:]) for _, flow in known]
        count = Counter(shapes)
        best = max(count.values())
        self._flow = known[next(n for n, shape in enumerate(shapes) if count[shape] == best)][1]

    def flow(self, requirement: str) -> FlowDocument:
        """Returns the most frequent flow."""
        return self._flow


def flow_writers(catalogue: Catalogue, examples: Sequence[FlowExample], names: Sequence[str]) -> list[DocumentWriter]:
    """Returns the writers of these names: composer, catalogue, nearest and frequent.

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
        raise InputError(f"{strange[0]!r} is no writer of flows; there are {', '.join(made)}")
    if not own and {"nearest", "frequent"} & set(names):
        raise InputError("a baseline needs requirements of the tune part")
    return [made[name]() for name in names]


def written_flows(
    writer: DocumentWriter,
    examples: Sequence[FlowExample],
    catalogue: Catalogue,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[WrittenFlow]:
    """Returns what a writer makes of each requirement; one that it cannot answer is an empty flow with the reason."""
    found = []
    for done, example in enumerate(examples, 1):
        begun, problem = time.perf_counter(), ""
        try:
            flow = writer.flow(example.text)
        except OpusError as error:
            flow, problem = FlowDocument(), str(error)
        seconds = time.perf_counter() - begun
        scores = flow_scores(flow, [example.flow], catalogue)
        found.append(WrittenFlow(writer.name, example, flow, scores, seconds, problem))
        report(done, len(examples))
    return found


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
        fmean(seconds),
        float(np.percentile(seconds, 95)),
    )


def flow_samples(flows: Sequence[WrittenFlow]) -> list[str]:
    """Returns the flows of one writer as the lines of a file for `benchmarks/errors.py`."""
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


# Columns that rows of language models had, which wrote flows of platforms in earlier versions.
_NO_LANGUAGE_MODEL = {"repairs": 0, "tokens_in": 0, "tokens_out": 0, "cost_usd": 0.0}


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
            "problem": one.problem or None,
            "duration_ms": round(1000 * one.seconds),
        }
        | _NO_LANGUAGE_MODEL
        for one in flows
    ]

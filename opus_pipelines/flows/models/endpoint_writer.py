"""Flows by an OpenAI-compatible endpoint, whose answer is parsed and held to the catalogue, kept, and paid for once.

The answer is text of the Python IR. A call of an unknown activity becomes the one that its name fits best, and is
counted. Answers are kept in the lake under the hash of their request, as those for workflows are: a flow, what it took,
and no prompt. What a request may cost is booked before it is sent.
"""

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.model_settings import OpenaiCompatible
from opus_pipelines.flows.from_text.activities import split_words
from opus_pipelines.flows.from_text.activity_features import Query
from opus_pipelines.flows.from_text.generator import FlowWriter
from opus_pipelines.flows.models.prompts import VERSION, FlowPrompter, ModelFlow
from opus_pipelines.flows.text.clauses import STEP, Clause
from opus_pipelines.lake.layout import Lake, read_json, slug, write_json
from opus_pipelines.lwm.language_models.chat_client import Reply
from opus_pipelines.lwm.language_models.paid_client import PaidClient
from opus_pipelines.lwm.language_models.prompt import Prompt
from opus_pipelines.wkg.upkeep.kept_answers import ANSWERS
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir, write_ir
from opus_pipelines.workflow.blocks.model import Call, Flow, Statement, activities, map_statements, read_before_set

_SCHEMA = {
    "type": "object",
    "properties": {"flow": {"type": "string"}},
    "required": ["flow"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Keeping:
    """Where answers are kept and spending is written down; `client` is None for what belongs to none."""

    lake: Lake
    client: str | None = None

    def file(self, key: str) -> Path:
        """The file of the answer to a request."""
        return self.lake.root / ANSWERS / f"client_key={slug(self.client or '')}" / f"{key}.json"


class EndpointWriter:
    """Asks an endpoint for the flow as text. Without `keeping` nothing is kept, and no limit of spending holds."""

    def __init__(self, prompter: FlowPrompter, settings: OpenaiCompatible, keeping: Keeping | None = None) -> None:
        self.prompter, self.settings, self.keeping = prompter, settings, keeping
        self._client = PaidClient(settings, keeping.lake if keeping else None)

    def new(self, utterance: str, prior: Flow | None = None) -> ModelFlow:
        """Returns the flow, the kept one where the same request was answered before.

        Raises ModelRefused where the model refuses, EndpointError where no answer is a flow after the attempts of the
        settings, and SpendLimitReached where one more request could exceed the limit of the day.
        """
        prompt = self.prompter.prompt(utterance, prior)
        file = self.keeping.file(self._request(prompt)) if self.keeping else None
        kept = _kept(file)
        if kept is None:
            free = {name for _, name in read_before_set(prior)} if prior else set()
            kept = self._ask(prompt, free)
            if file is not None:
                write_json(file, kept)
        known = frozenset(activities(prior)) if prior else frozenset()
        flow, repaired = within_catalogue(parse_ir(kept["flow"]), self.prompter.writer, known)
        took = {name: kept.get(name) for name in ("tokens_in", "tokens_out", "cost_usd", "seconds")}
        return ModelFlow(flow, repaired, **took)

    def _request(self, prompt: Prompt) -> str:
        settings = self.settings
        return digest("flow", VERSION, prompt.key, settings.url, settings.model, settings.max_tokens)

    def _ask(self, prompt: Prompt, free: Collection[str]) -> dict[str, Any]:
        settings, began = self.settings, time.perf_counter()
        body = {
            "model": settings.model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            "temperature": 0,
            "seed": 0,
            "max_tokens": settings.max_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "flow", "strict": True, "schema": _SCHEMA},
            },
        }

        def read(reply: Reply, usd: float | None) -> dict[str, Any]:
            flow = _parsed(reply.content, free)
            took = {"tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out, "cost_usd": usd}
            return {"flow": write_ir(flow), **took, "seconds": round(time.perf_counter() - began, 3)}

        return self._client.ask(body, len(prompt.system) + len(prompt.user), read)


def _kept(file: Path | None) -> dict[str, Any] | None:
    """A kept answer that can be used; a damaged one is asked for again, and replaced."""
    try:
        kept = read_json(file) if file is not None else None
        if isinstance(kept, Mapping) and isinstance(kept.get("flow"), str) and parse_ir(kept["flow"]).body:
            return dict(kept)
    except (LakeError, FlowError):
        return None
    return None


def _parsed(content: str, free: Collection[str]) -> Flow:
    """The flow of an answer; raises ValueError where there is none, so that it is asked again.

    `free`: variables that the flow before an edit reads and no step of it sets.
    """
    try:
        value = json.loads(content)
        text = value["flow"] if isinstance(value, dict) else None
    except (ValueError, KeyError, RecursionError):
        raise ValueError("the answer is no JSON object with flow") from None
    if not isinstance(text, str):
        raise ValueError("the answer's flow is no text")
    try:
        flow = parse_ir(text)
    except FlowError as error:
        raise ValueError(f"the answer is no flow: {error}") from None
    if not flow.body:
        raise ValueError("the answer's flow has no step")
    if unset := sorted({name for _, name in read_before_set(flow)} - set(free)):
        raise ValueError(f"the answer's flow reads {', '.join(unset[:5])}, which no step before sets")
    return flow


def within_catalogue(flow: Flow, writer: FlowWriter, known: Collection[str] = ()) -> tuple[Flow, int]:
    """Returns the flow with every unknown activity replaced by the one that its name fits best, and how many were.

    `known`: activities of the flow before an edit, which may stay though the catalogue lacks them.
    """
    repaired = 0

    def change(statement: Statement) -> Statement:
        nonlocal repaired
        if not isinstance(statement, Call):
            return statement
        if statement.activity in writer.catalogue.by_id or statement.activity in known:
            return statement
        repaired += 1
        words = split_words(statement.activity) or ["step"]
        clause = Clause(STEP, tuple(words), words[0])
        return replace(statement, activity=writer.ranker.ranked(Query(clause), 1)[0].activity)

    return replace(flow, body=map_statements(flow.body, change)), repaired

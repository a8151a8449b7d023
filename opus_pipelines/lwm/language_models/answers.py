"""The answer of a language model, held against the catalogue: what is not in it is dropped with a reason."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.safe_text import clean
from opus_pipelines.lwm.interface import Usage

LONGEST = 60  # steps of a workflow
MOST_DROPPED = 20  # steps that are named with their reason
SHOWN = 80  # characters of a step in a message


class AnswerError(OpusError):
    """The answer of a language model cannot be used."""


@dataclass(frozen=True)
class Dropped:
    """A step of an answer that is not used, and why."""

    step: str
    reason: str


@dataclass(frozen=True)
class Answer:
    """The sequences of an answer as ids of tasks, best first; what was dropped; and what the answer took."""

    sequences: tuple[tuple[str, ...], ...]
    dropped: tuple[Dropped, ...] = ()
    usage: Usage | None = None


def schema(names: Sequence[str], sequences: int) -> dict[str, Any]:
    """Return the JSON schema of an answer: a list of workflows, each a list of names of the catalogue."""
    steps = {"type": "array", "items": {"type": "string", "enum": list(names)}}
    workflows = {"type": "array", "items": steps, "minItems": 1, "maxItems": sequences}
    return {
        "type": "object",
        "properties": {"workflows": workflows},
        "required": ["workflows"],
        "additionalProperties": False,
    }


def parsed(content: str) -> list[list[Any]]:
    """Return the workflows of an answer's text. Raises AnswerError where it is no JSON of the schema's form."""
    try:
        value = json.loads(content)
    except (json.JSONDecodeError, RecursionError):
        raise AnswerError("the answer is not JSON") from None
    workflows = value.get("workflows") if isinstance(value, dict) else None
    if not isinstance(workflows, list) or not all(isinstance(steps, list) for steps in workflows):
        raise AnswerError("the answer has no list of workflows")
    return workflows


def validated(
    workflows: Sequence[Sequence[Any]], names: Mapping[str, str], most: int, usage: Usage | None = None
) -> Answer:
    """Return the steps that are names of the catalogue, each once in a workflow, of at most `most` workflows."""
    dropped: list[Dropped] = []
    sequences: list[tuple[str, ...]] = []
    for steps in workflows[:most]:
        tasks: list[str] = []
        for step in steps:
            name = clean(step) if isinstance(step, str) else None
            if name is None or name not in names:
                dropped.append(Dropped(clean(str(step))[:SHOWN], "it is not in the catalogue"))
            elif names[name] in tasks:
                dropped.append(Dropped(name[:SHOWN], "the workflow has it already"))
            elif len(tasks) == LONGEST:
                dropped.append(Dropped(name[:SHOWN], f"the workflow has {LONGEST} steps already"))
            else:
                tasks.append(names[name])
        if tasks and tuple(tasks) not in sequences:
            sequences.append(tuple(tasks))
    dropped += [Dropped(f"workflow {n + 1}", f"{most} were asked for") for n in range(most, len(workflows))]
    return Answer(tuple(sequences), tuple(dropped[:MOST_DROPPED]), usage)

"""Reads an intake with its contract's catalogue, for an industry without history.

What decides, in this order: a procedure that lists steps, a procedure in prose, conditions that the catalogue itself
lists under its tools, and the request alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opus_pipelines.intakes.catalogues.declared import DeclaredTask
from opus_pipelines.intakes.catalogues.prose import prose_texts, read_prose, read_request, request_clauses, tool_texts
from opus_pipelines.intakes.procedures.list_reading import StepKnowledge, read_listed_steps, read_steps_of_list
from opus_pipelines.intakes.procedures.listed_steps import Encode
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, texts_to_embed
from opus_pipelines.intakes.procedures.relevant_parts import RequestText
from opus_pipelines.language.embedding.text_parts import Part

EXPLAINED_SHARE = 0.3  # least share of the sentences of prose that ask for a tool where the prose decides


@dataclass(frozen=True)
class IntakeTexts:
    """What an intake says: the request, and its procedures as parts and as text."""

    request: RequestText
    parts: Sequence[Part]
    procedure: str


def texts_to_read(request: str, parts: Sequence[Part], procedure: str, tools: Sequence[DeclaredTask]) -> list[str]:
    """Returns every text whose vector `read_with_catalogue` may ask for, sorted."""
    texts = {*texts_to_embed(parts), *tool_texts(tools), *prose_texts(procedure)}
    return sorted({*texts, *request_clauses(request), request, request.strip()} - {""})


def with_declared(parts: Sequence[Part], tools: Sequence[DeclaredTask]) -> list[Part]:
    """Returns the parts, and a part for each tool that is no heading of theirs."""
    headings = {part.name for part in parts}
    return [*parts, *(tool.part for tool in tools if tool.plain not in headings)]


def read_with_catalogue(
    texts: IntakeTexts, tools: Sequence[DeclaredTask], industry: str | None, knowledge: StepKnowledge, encode: Encode
) -> ParsedProcedure | None:
    """Returns the steps that an intake asks for; None where it asks for no tool.

    Their ids are those of new steps of the industry, until the catalogue names them (`ResolvedCatalogue.named`).
    """
    whole = with_declared(texts.parts, tools)
    listed = read_listed_steps(texts.request, whole, industry, knowledge, encode)
    if listed is not None:
        return listed
    prose = read_prose(texts.procedure, tools, encode)
    if prose is not None and (
        prose.explained_share >= EXPLAINED_SHARE or any(step.probability == 1 for step in prose.steps)
    ):
        return prose  # sentences enough mean a tool, or one of them names it
    conditions = [replace(tool.part, is_declared=False) for tool in tools]
    if any(part.sentences for part in conditions):
        return read_steps_of_list(texts.request, conditions, industry, knowledge, encode)
    return read_request(texts.request.text, tools, encode)

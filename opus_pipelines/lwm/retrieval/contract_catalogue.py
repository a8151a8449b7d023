"""A contract's catalogue against one snapshot: which tools are known tasks, and what reading an intake needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from opus_pipelines.intakes.catalogues.candidates import Candidates
from opus_pipelines.intakes.catalogues.declared import NO_CATALOGUE, Catalogue
from opus_pipelines.intakes.catalogues.resolution import Owner, Resolved, ResolvedCatalogue, resolve
from opus_pipelines.intakes.elements import Element
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory, memory_of
from opus_pipelines.lwm.retrieval.requested_steps import History
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.rebuild.vectors import task_text


@dataclass(frozen=True)
class ContractCatalogue:
    """The catalogue of one contract; what is known of it is computed once for each industry."""

    index: SnapshotIndex
    client: str = ""
    contract: str = ""
    catalogue: Catalogue = NO_CATALOGUE
    _memories: dict[tuple[str, ...], IndustryMemory] = field(default_factory=dict, repr=False, compare=False)
    _resolved: dict[str | None, ResolvedCatalogue] = field(default_factory=dict, repr=False, compare=False)

    def history(self, industry: str | None) -> History:
        """Return what reading the procedure of an intake of the industry needs."""
        if not self.catalogue:
            return History(self.index.procedures)
        return History(self.index.procedures, self.resolved(industry), self._candidates)

    def declared(self, elements: Sequence[Element], industry: str) -> tuple[Resolved, ...]:
        """Return the tools that come into question for an intake and that history of the industry lacks."""
        known = self.resolved(industry).by_name
        tools = (known[tool.plain] for tool in self.history(industry).tools(elements))
        return tuple(tool for tool in tools if not tool.is_known)

    def texts_to_encode(self, elements: Sequence[Element], industry: str) -> list[str]:
        """Return the texts of these tools that are embedded: the same as of a task of history."""
        declared = self.declared(elements, industry)
        return [task_text(one.title, one.tool.description, [industry], None) for one in declared]

    def memory(self, elements: Sequence[Element], industry: str, encoder: TextEncoder) -> IndustryMemory | None:
        """Return the memory of an industry's cases with the tools that no case did; None where there is no memory.

        That of the last tools is kept: a catalogue that is taken whole has the same ones for every intake.
        """
        memory, declared = memory_of(self.index, industry), self.declared(elements, industry)
        if memory is None or not declared:
            return memory
        tasks = tuple(tool.task_id for tool in declared)
        key = (industry, *tasks)
        if key not in self._memories:
            vectors = encoder.encode(self.texts_to_encode(elements, industry))
            self._memories.clear()
            self._memories[key] = memory.with_declared(tasks, [tool.title for tool in declared], vectors)
        return self._memories[key]

    def resolved(self, industry: str | None) -> ResolvedCatalogue:
        """Return what each tool is for an intake of the industry."""
        if industry not in self._resolved:
            owner = Owner(self.client, self.contract, industry)
            self._resolved[industry] = resolve(self.catalogue, owner, self.index.graph, self.index.names.tasks)
        return self._resolved[industry]

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self.catalogue)

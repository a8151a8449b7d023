"""A contract's catalogue against one snapshot: which tools are known tasks, and what reading an intake needs."""

from dataclasses import dataclass, field
from functools import cached_property

from opus_pipelines.catalogues.candidates import Candidates
from opus_pipelines.catalogues.declared import NO_CATALOGUE, Catalogue
from opus_pipelines.catalogues.resolution import Owner, ResolvedCatalogue, resolve
from opus_pipelines.retrieval.requested_steps import History
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex


@dataclass(frozen=True)
class ContractCatalogue:
    """The catalogue of one contract; what is known of it is computed once for each industry."""

    index: SnapshotIndex
    client: str = ""
    contract: str = ""
    catalogue: Catalogue = NO_CATALOGUE
    _resolved: dict[str | None, ResolvedCatalogue] = field(default_factory=dict, repr=False, compare=False)

    def history(self, industry: str | None) -> History:
        """Return what reading the procedure of an intake of the industry needs."""
        if not self.catalogue:
            return History(self.index.procedures)
        return History(self.index.procedures, self.resolved(industry), self._candidates)

    def resolved(self, industry: str | None) -> ResolvedCatalogue:
        """Return what each tool is for an intake of the industry."""
        if industry not in self._resolved:
            owner = Owner(self.client, self.contract, industry)
            self._resolved[industry] = resolve(self.catalogue, owner, self.index.graph, self.index.names.tasks)
        return self._resolved[industry]

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self.catalogue)

"""A workflow with what its faces say beside its figures: where it stands in time, what its figures rest on, what
flows, and what is expected to happen between its steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from opus_pipelines.workflow.files import TaskEntry, WorkflowFile
from opus_pipelines.workflow.model import Workflow

Edge = tuple[str, str]
CLIENT, NOBODY = "Client", "No role stated"
_KINDS = {"human": "People", "model": "AI model", "code": "Software"}


@dataclass(frozen=True)
class AnnotatedWorkflow:
    """`file` holds nodes, edges, scores and weights. The maps are by node, or by edge; what is not known is absent
    from them.
    """

    file: WorkflowFile
    id: str | None = None
    start_ms: Mapping[str, float] = field(default_factory=dict)
    finish_ms: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    data_types: Mapping[Edge, str] = field(default_factory=dict)
    expected: Mapping[Edge, Sequence[str]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What it does, in words."""
        return self.file.title or self.id or "Workflow"

    @cached_property
    def workflow(self) -> Workflow:
        """W = (G, Φ); raises WorkflowError where the file is not well formed."""
        return self.file.workflow()

    @cached_property
    def tasks(self) -> dict[str, TaskEntry]:
        """The entries of its tasks and reviews, by node."""
        return {entry.id: entry for entry in self.file.tasks}

    def title_of(self, node: str) -> str:
        """A node's name."""
        return self.workflow.by_id[node].title

    def lane_of(self, node: str) -> str:
        """Who does it: the group of people, the AI model, software, or the client for inputs and outputs."""
        entry = self.tasks.get(node)
        if entry is None:
            return CLIENT
        if entry.actor_kind == "model" and entry.model:
            return entry.model
        return entry.actor_group or _KINDS.get(entry.actor_kind or "", entry.actor_kind or NOBODY)

    def lanes(self) -> Sequence[str]:
        """Every lane: the client's first, then as the workflow first comes to each."""
        found = dict.fromkeys(self.lane_of(node) for node in self.workflow.topological())
        return [*([CLIENT] if found.pop(CLIENT, "") is None else []), *found]

"""Adds to a workflow the facts that its exported formats state: times, evidence, data types and expected waits."""

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
    """A workflow file with annotations; `file` holds nodes, edges, scores and weights.

    The maps are by node, or by edge; an unknown value is absent.
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
        """The title of the workflow, else its id."""
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
        """Returns the title of a node."""
        return self.workflow.by_id[node].title

    def lane_of(self, node: str) -> str:
        """Returns the lane of a node: its group of people, AI model or software, or the client for inputs and outputs.

        A person without a stated group belongs to the lane of people.
        """
        entry = self.tasks.get(node)
        if entry is None:
            return CLIENT
        if entry.actor_kind == "model" and entry.model:
            return entry.model
        return entry.actor_group or _KINDS.get(entry.actor_kind or "", entry.actor_kind or NOBODY)

    def lanes(self) -> Sequence[str]:
        """Returns every lane, the client's first, then in topological order of their first nodes."""
        lanes_seen = dict.fromkeys(self.lane_of(node) for node in self.workflow.topological())
        return [*([CLIENT] if lanes_seen.pop(CLIENT, "") is None else []), *lanes_seen]

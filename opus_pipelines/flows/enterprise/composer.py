"""The model-free composer: outline, then inputs. It learns from annotated flows which words ask for which step."""

from collections.abc import Iterable
from typing import Protocol

from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.documents import FlowDocument
from opus_pipelines.flows.enterprise.outlines import OutlineComposer
from opus_pipelines.flows.enterprise.step_choice import learnt
from opus_pipelines.flows.enterprise.step_inputs import InputComposer


class FlowWriter(Protocol):
    """Anything that writes a flow for a requirement: the composer, a baseline, a language model."""

    name: str

    def flow(self, requirement: str) -> FlowDocument:
        """Returns the flow. Raises OpusError where there is none."""
        ...


class Composer:
    """Writes flows within a catalogue, without a language model."""

    def __init__(self, catalogue: Catalogue, flows: Iterable[FlowDocument] = (), name: str = "composer") -> None:
        """Learns from annotated flows; without any, the catalogue's own texts are all that is known of a step."""
        self.name = name
        self._outlines = OutlineComposer(catalogue, learnt(catalogue, flows))
        self._inputs = InputComposer(catalogue)

    def outline(self, requirement: str) -> FlowDocument:
        """Returns trigger and steps with their annotations, without inputs."""
        return self._outlines.outline(requirement)

    def flow(self, requirement: str) -> FlowDocument:
        """Returns the flow with its inputs. Raises FlowDocumentError where the requirement is empty."""
        return self._inputs.populate(self.outline(requirement))

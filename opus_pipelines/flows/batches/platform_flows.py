"""Writes the requirements of a contract as flows of an enterprise platform, where its folder has such a catalogue.

The composer of `flows.enterprise` writes them from the catalogue `flows/catalogue.toml` alone. A row holds the flow
twice: as JSON of the platform, and as a flow like all others: the trigger is its first call, and inputs are left out.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.ids import file_hash
from opus_pipelines.flows.batches.utterance_files import content_of
from opus_pipelines.flows.enterprise.block_flows import block_flow
from opus_pipelines.flows.enterprise.catalogue import LARGEST, Catalogue, read_catalogue
from opus_pipelines.flows.enterprise.composer import Composer
from opus_pipelines.flows.enterprise.flow_json import write
from opus_pipelines.flows.enterprise.validation import structure_errors
from opus_pipelines.flows.from_text.activities import ActivityCatalogue, catalogue_of
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.workflow.blocks.formats.bpmn_writer import write_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import write_ir
from opus_pipelines.workflow.blocks.formats.registry import flow_format, reduced
from opus_pipelines.workflow.blocks.model import Flow, activities

NAME = "catalogue.toml"
VERSION = 2  # raised where the same requirements give other flows
NO_STEP, NO_EDIT = "no_step", "edit_impossible"


@dataclass(frozen=True)
class Platform:
    """The catalogue of an enterprise platform, and the hash of its file."""

    catalogue: Catalogue
    hash: str

    @property
    def version(self) -> str:
        """What the flows of a requirement depend on."""
        return f"{VERSION}-{self.hash}"

    def activities(self) -> ActivityCatalogue:
        """Returns triggers, actions and subflows as activities, as they are called in a flow."""
        entries = {f"trigger_{name}": entry for name, entry in self.catalogue.triggers.items()}
        entries |= {**self.catalogue.actions, **self.catalogue.subflows}
        return catalogue_of({"id": name, "description": entry.about} for name, entry in entries.items())


def read_platform(folder: Path) -> Platform | None:
    """Returns the platform of a folder of flows, None where it has no such catalogue.

    Raises InputError for a file that leads out of the folder, and FlowDocumentError for a bad catalogue.
    """
    path = folder / NAME
    if not path.exists() and not path.is_symlink():
        return None
    content_of(path, folder, LARGEST)
    return Platform(read_catalogue(path), file_hash(path))


def composed(platform: Platform, composer: Composer, task: FlowTask) -> tuple[dict[str, Any], Flow | None, float]:
    """Returns the columns of a requirement's outcome, its flow, and the seconds that it took."""
    began = time.perf_counter()
    if task.is_update:
        reason = "a flow of a platform is written anew; leave prior empty"
        return {"status": "refused", "reason_code": NO_EDIT, "reason": reason}, None, 0.0
    try:
        document = composer.flow(task.utterance)
        if not document.components:
            raise OpusError("no clause of the requirement asks for a step of the catalogue")
        flow, _ = reduced(block_flow(document)[0], flow_format("python").features)
    except OpusError as error:
        seconds = time.perf_counter() - began
        return {"status": "refused", "reason_code": NO_STEP, "reason": str(error)}, None, seconds
    seconds = time.perf_counter() - began
    return (
        {
            "status": "written",
            "sequence": write_ir(flow),
            "bpmn": write_bpmn(flow).decode(),
            "document": write(document),
            "structure_errors": len(structure_errors(document, platform.catalogue)),
            "operations": [],
            "steps": [component.name for component in document.components],
            "calls": len(activities(flow)),
            "user_tasks": 0,
        },
        flow,
        seconds,
    )

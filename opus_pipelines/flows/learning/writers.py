"""The writer of flows that the settings ask for: which encoder it compares with, and what reads the structure."""

from collections.abc import Sequence

from opus_pipelines.core.settings import Settings
from opus_pipelines.flows.from_text.activities import ActivityCatalogue
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import FlowWriter, learn
from opus_pipelines.flows.learning.activity_encoder import served_encoder
from opus_pipelines.flows.learning.structure_readers import with_structure
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import encoder_of


def flow_writer(catalogue: ActivityCatalogue, tasks: Sequence[FlowTask], settings: Settings) -> FlowWriter:
    """Returns the writer that learnt from tasks, or from the catalogue alone where there are none.

    Raises LakeError where the settings ask for a fine-tuned encoder that the lake does not have.
    """
    fine_tuned = settings.flows.encoder == "fine_tuned"
    encoder = (
        served_encoder(Lake(settings.paths.lake), settings.encoder) if fine_tuned else encoder_of(settings.encoder)
    )
    return with_structure(learn(catalogue, tasks, encoder), tasks, settings.flows.structure)

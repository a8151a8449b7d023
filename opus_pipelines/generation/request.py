"""Stage 1: the Intentions of an intake whose documents were read."""

from opus_pipelines.core.ids import make_id
from opus_pipelines.generation.records import GenerationContext, Refused, Request
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.retrieval.intentions import intentions


def read_requests(intake: Intake, context: GenerationContext) -> list[Request]:
    """Returns one request for each Intention of an intake, in the order of the documents.

    Raises Refused where the intake lacks what is needed.
    """
    if intake.refusal:
        raise Refused(intake.refusal)
    encoded = intentions(intake, context.index, context.encoder)
    return [
        Request(intake, make_id("n", intake.intake_id, number), intention, is_only=len(encoded) == 1)
        for number, intention in enumerate(encoded)
    ]

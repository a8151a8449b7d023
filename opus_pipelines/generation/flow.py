"""One intake to its ranked workflows: the stages of generation in their order.

Each stage is a function from one record to the next (`generation.records`); none looks back at an earlier stage but
through the record that it is given. DESIGN section 2 draws the same flow.
"""

from opus_pipelines.generation.draft import draft
from opus_pipelines.generation.plan import plan
from opus_pipelines.generation.rank import rank
from opus_pipelines.generation.records import GenerationContext, Ranked, Request
from opus_pipelines.generation.request import read_requests
from opus_pipelines.generation.retrieve import retrieve
from opus_pipelines.generation.written_steps import with_written_steps
from opus_pipelines.intakes.intake import Intake


def generate(intake: Intake, context: GenerationContext) -> list[Ranked]:
    """Returns the ranked workflows of an intake, one record for each of its Intentions.

    The same inputs give the same records. Raises Refused where nothing can be generated for one of the Intentions, and
    SettingsError where a stated constraint or price names nothing known.
    """
    return [rank_workflows(request, context) for request in read_requests(intake, context)]


def rank_workflows(request: Request, context: GenerationContext) -> Ranked:
    """Returns the ranked workflows of one Intention."""
    retrieved = with_written_steps(retrieve(request, context), context)
    drafted = draft(retrieved, context)
    planned = plan(drafted, context)
    return rank(planned, context)

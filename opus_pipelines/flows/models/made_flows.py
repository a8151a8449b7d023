"""What a language model makes of a task: a new flow, or the operations of an edit, which keep what they do not name."""

from opus_pipelines.flows.from_text.editing import EditError
from opus_pipelines.flows.from_text.predictions import Made
from opus_pipelines.flows.models.backends import ModelWriter
from opus_pipelines.lwm.interface import Usage
from opus_pipelines.lwm.language_models.chat_client import EndpointError, ModelRefused
from opus_pipelines.lwm.language_models.spending import SpendLimitReached
from opus_pipelines.workflow.blocks.difference import difference
from opus_pipelines.workflow.blocks.edits import applied, described
from opus_pipelines.workflow.blocks.model import Flow, identified

MOST_FAILURES = 5  # in a row, after which an endpoint is not asked any more


class Asked:
    """A language model that is asked for many flows, and not any more once it failed often in a row."""

    def __init__(self, model: ModelWriter, most_failures: int = MOST_FAILURES) -> None:
        self.model, self.most_failures = model, most_failures
        self._failures, self._last = 0, ""

    def make(self, utterance: str, prior: Flow | None) -> Made:
        """Returns what `made_by` makes. Raises EndpointError unasked after `most_failures` of these in a row.

        A refusal is an answer. Where the limit of spending is reached, no utterance is sent: the answers that are kept
        cost nothing.
        """
        if self._failures >= self.most_failures:
            raise EndpointError(f"not asked: {self._failures} requests in a row had no answer, the last: {self._last}")
        try:
            made = made_by(self.model, utterance, prior)
        except (ModelRefused, SpendLimitReached):
            raise
        except EndpointError as error:
            self._failures, self._last = self._failures + 1, str(error)
            raise
        self._failures = 0
        return made


def made_by(model: ModelWriter, utterance: str, prior: Flow | None) -> Made:
    """Returns the flow that a language model writes.

    An edit is the difference between the prior flow and the one that the model writes, applied to the prior flow: what
    no operation names keeps its id. Raises EditError where the model changes nothing, and what the model raises.
    """
    if prior is not None:
        prior = identified(prior)
    answer = model.new(utterance, prior)
    usage = Usage(answer.tokens_in, answer.tokens_out, answer.cost_usd)
    if prior is None:
        return Made(answer.flow, repaired=answer.repaired, usage=usage, seconds=answer.seconds)
    operations = difference(prior, answer.flow)
    if not operations:
        raise EditError("the language model changed nothing; say what to add, remove or replace")
    lines = tuple(described(operation) for operation in operations)
    return Made(applied(prior, operations), lines, (), answer.repaired, usage, answer.seconds)

"""What all language models have in common as backends: their sequences stand before those of history.

A person chose the model, so that a request which it does not answer fails with the reason, instead of a result that
only looks like the model's.
"""

import logging

from opus_pipelines.lwm.history_backend import HistoryBackend, with_best_score
from opus_pipelines.lwm.interface import LwmRequest, TaskSequence
from opus_pipelines.lwm.language_models.answers import Answer, AnswerError
from opus_pipelines.lwm.language_models.prompt import Prompt, prompt_of

logger = logging.getLogger("opus_pipelines.lwm.language_models")


class LanguageBackend(HistoryBackend):
    """The history backend with the sequences of a language model as the best ones."""

    def answer(self, prompt: Prompt, request: LwmRequest) -> Answer:
        """Return the model's answer. Raises OpusError where there is none."""
        raise NotImplementedError

    def generate(self, request: LwmRequest) -> list[TaskSequence]:
        """Return the sequences of history, and before them those of the model.

        Without a task to choose from the model is not asked. Raises AnswerError where nothing of an answer is in the
        catalogue, and whatever asking raises.
        """
        sequences, prompt = super().generate(request), prompt_of(request)
        if not prompt.names or not request.subgraphs:
            return sequences
        answer = self.answer(prompt, request)
        for dropped in answer.dropped:
            logger.warning("%s: step %r is dropped: %s", self.name, dropped.step, dropped.reason)
        if not answer.sequences:
            raise AnswerError(f"{self.name}: no step of the answer is in the catalogue")
        for tasks in reversed(answer.sequences):
            sequences = with_best_score(sequences, tasks, request.subgraphs, "lwm")
        return sorted(sequences, key=lambda s: (-s.score, s.subgraph, s.tasks))

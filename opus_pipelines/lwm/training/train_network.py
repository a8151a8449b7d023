"""Trains the network of the pointer model on the cases of all industries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from opus_pipelines.core.settings import Lwm
from opus_pipelines.core.workers.jobs import Report
from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.lwm.pointer.clauses import EncodedRequest
from opus_pipelines.lwm.pointer.learning import NEW_SETS, POINTER_SEED, Learning, train_pointer
from opus_pipelines.lwm.pointer.model import PointerModel
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory


@dataclass(frozen=True)
class LearntNetwork:
    """A network without a task reader, and the mean loss in nats of every epoch."""

    model: PointerModel
    loss: list[float]


@dataclass(frozen=True)
class NetworkJob:
    """One training of a network, here or in another process.

    Attributes:
        memories: the cases of each industry.
        requests: their requests.
        lwm: how it is trained.
        checkpoints: where an interrupted training goes on from.
    """

    memories: Mapping[str, IndustryMemory]
    requests: Mapping[str, Sequence[EncodedRequest]]
    lwm: Lwm
    checkpoints: Checkpoints

    def run(self, _state: None, _report: Report) -> LearntNetwork:
        """Returns the network. Raises TrainingError where the loss is not finite."""
        loss: list[float] = []
        how = Learning(
            lambda _, mean: loss.append(round(mean, 6)),
            POINTER_SEED,
            self.checkpoints,
            NEW_SETS,
            perceptrons=self.lwm.perceptrons,
        )
        histories = [(memory.memory, self.requests[name]) for name, memory in self.memories.items()]
        # more threads add up in another order: the bytes would depend on the number of cores
        with threadpool_limits(1, user_api="blas"):
            return LearntNetwork(train_pointer(histories, how), loss)

    def __str__(self) -> str:
        return "the network"

"""Trains the network of the pointer model on the cases of all industries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from opus_pipelines.core.settings import Lwm
from opus_pipelines.core.workers.jobs import Report
from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.lwm.pointer.clauses import EncodedRequest
from opus_pipelines.lwm.pointer.hiding import Hiding
from opus_pipelines.lwm.pointer.model import NEW_SETS, SEED, Learning
from opus_pipelines.lwm.pointer.model import train as train_perceptrons
from opus_pipelines.lwm.pointer.store import AnyModel
from opus_pipelines.lwm.pointer.transformer import train as train_transformer
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory


@dataclass(frozen=True)
class LearntNetwork:
    """A network without a task reader, and the mean loss in nats of every epoch."""

    model: AnyModel
    loss: list[float]


@dataclass(frozen=True)
class NetworkJob:
    """One training of a network, here or in another process.

    Attributes:
        memories: the cases of each industry.
        requests: their requests.
        lwm: which network, and how it is trained.
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
            SEED,
            self.checkpoints,
            Hiding() if self.lwm.hide else None,
            NEW_SETS,
            [memory.clients for memory in self.memories.values()],
            [memory.links for memory in self.memories.values()],
            perceptrons=self.lwm.perceptrons,
        )
        histories = [(memory.memory, self.requests[name]) for name, memory in self.memories.items()]
        if self.lwm.network == "transformer":
            return LearntNetwork(train_transformer(histories, how, self.lwm.size), loss)
        # more threads add up in another order: the bytes would depend on the number of cores
        with threadpool_limits(1, user_api="blas"):
            return LearntNetwork(train_perceptrons(histories, how), loss)

    def __str__(self) -> str:
        return "the network"

"""The id of a contract's result: a hash of what it is made from.

Neither a model nor an array library is loaded for it.
"""

from importlib.util import find_spec
from typing import NamedTuple

from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import versions_of
from opus_pipelines.intakes.documents.formats import DOCUMENT_READERS
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.language.embedding.encoder import ENCODERS
from opus_pipelines.lwm.interface import LargeWorkModel, version_of


def settings_hash(settings: Settings) -> str:
    """Returns the hash of the settings that a result depends on, and of the added readers and encoder that it may use.

    The LWM backend is left out: its version is part of the result's id.
    """
    chosen = settings.model_dump(include={"generation", "cost", "reward", "scores", "priors", "encoder"})
    del chosen["generation"]["lwm_backend"]
    added = [DOCUMENT_READERS.origin(name) for name in sorted(DOCUMENT_READERS.added())]
    added += filter(None, [ENCODERS.origin(settings.encoder.model)])
    if find_spec("rapidocr") is not None:  # with the extra `ocr` pictures are read
        added.append("ocr")
    reading, endpoint = settings.reading, settings.openai_compatible
    if reading.backend != "rules":
        added += [reading.backend, endpoint.url, endpoint.model]
    if reading.transcription_model:
        added += [reading.transcription_model, endpoint.url]
    return digest([chosen, *added])


def result_id(
    contract: ContractFolder, snapshot: str, settings: Settings, model: LargeWorkModel | None = None, attempt: int = 1
) -> str:
    """The id that the contract's result has or would have: hash of its files, decisions, snapshot, model, settings and
    algorithm versions. Cheap.

    `attempt`: 1, or which attempt this is at the same inputs, where intakes failed before for a reason that may pass
    (time, memory); what is published is never changed, so that each attempt has an id of its own.
    """
    version = model.version if model else version_of(settings)
    return id_of(contract, MadeFrom(snapshot, version, settings_hash(settings), versions_of("result")), attempt)


class MadeFrom(NamedTuple):
    """What a result was made from besides the contract's files, as the published result names it: hash of the settings
    and algorithm versions (`code`) included.
    """

    snapshot: str
    model_version: str
    settings_hash: str
    code: str


def id_of(contract: ContractFolder, made_from: MadeFrom, attempt: int = 1, decisions: int | None = None) -> str:
    """`result_id` of what a result was made from, so that a published result and the one to come can be compared.

    `decisions`: how many of the contract's decisions were made by then; all, where no number is given.
    """
    again = [attempt] if attempt > 1 else []
    decided = contract.decisions.versions[:decisions][-1:]
    return make_id(
        "r",
        contract.client,
        contract.contract,
        contract.content,
        *made_from,
        *decided,
        *again,
    )

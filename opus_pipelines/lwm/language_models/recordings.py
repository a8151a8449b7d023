"""Recordings (audio, video) are written down at an endpoint of OpenAI's form; off unless the settings name a model."""

from pathlib import PurePosixPath

from opus_pipelines.core.errors import InputError, OpusError, SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.documents.document import Document, DocumentText
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.language_models.chat_client import KeptAnswers, PaidClient, key_of

_BYTES_A_MINUTE = 60_000  # of the thriftiest form of speech: what is booked is rather too high


class Transcriber:
    """Writes recordings of one client down; a text is kept under the hash of the recording, and paid for once."""

    def __init__(self, settings: Settings, client: str | None) -> None:
        """Raises SettingsError where the address, the key or, with a limit, the price of a minute is missing."""
        self._reading, endpoint = settings.reading, settings.openai_compatible
        if not endpoint.url:
            raise SettingsError("reading.transcription_model needs [openai_compatible] url")
        if endpoint.spend_limit_usd is not None and self._reading.usd_per_recorded_minute is None:
            raise SettingsError("openai_compatible.spend_limit_usd needs reading.usd_per_recorded_minute")
        key_of(endpoint)
        self._endpoint = endpoint.model_copy(update={"seconds": min(endpoint.seconds, self._reading.seconds)})
        self._lake = Lake(settings.paths.lake)
        self._answers = KeptAnswers(self._lake, client)

    def __call__(self, document: Document) -> DocumentText:
        """Returns what is said in a recording. Raises InputError where the endpoint does not tell."""
        model = self._reading.transcription_model
        key = digest("recording", self._endpoint.url, model, document.sha256())
        text = (self._answers.read(key) or {}).get("text")
        if not isinstance(text, str):
            recording, price = document.content(), self._reading.usd_per_recorded_minute
            most = None if price is None else price * len(recording) / _BYTES_A_MINUTE
            suffix = PurePosixPath(document.name).suffix.lower()
            try:
                text = PaidClient(self._endpoint, self._lake).transcribe(model, suffix, recording, most)
            except OpusError as error:
                raise InputError(f"it was not written down: {error}") from None
            self._answers.write(key, {"text": text})
        if not text.strip():
            raise InputError("nothing is said in it")
        return DocumentText(text, (f"nothing but the words, as the model {model} heard them",))

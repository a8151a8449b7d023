"""The sentence encoder with its cache. The first text that is not in the cache loads the model."""

from functools import cached_property

import dagster as dg

from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.embedding.cache import CachedEncoder
from opus_pipelines.embedding.encoder import TextEncoder, encoder_of
from opus_pipelines.lake.layout import Lake


class EncoderResource(dg.ConfigurableResource[None]):
    """The settings' [encoder] section, and the lake that keeps the embeddings."""

    lake: str
    model: str
    batch_size: int = 32
    max_tokens: int = 256

    @classmethod
    def of(cls, settings: EncoderSettings, lake: Lake) -> "EncoderResource":
        """Returns the resource that these settings describe."""
        return cls(lake=str(lake.root), **settings.model_dump())

    @cached_property
    def encoder(self) -> CachedEncoder:
        """Returns the encoder; only texts that the cache lacks reach the model."""
        return CachedEncoder(self._model, Lake(self.lake).kept / "embeddings")

    def of_lake(self, lake: Lake) -> CachedEncoder:
        """Returns the encoder with the cache of this lake."""
        return (
            self.encoder if lake.root == Lake(self.lake).root else CachedEncoder(self._model, lake.kept / "embeddings")
        )

    def around(self, model: TextEncoder) -> CachedEncoder:
        """Puts the lake's cache before another encoder of the same model."""
        return CachedEncoder(model, Lake(self.lake).kept / "embeddings")

    @cached_property
    def _model(self) -> TextEncoder:
        return encoder_of(EncoderSettings(model=self.model, batch_size=self.batch_size, max_tokens=self.max_tokens))

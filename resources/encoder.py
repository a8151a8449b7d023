"""The sentence encoder with its cache. The first text that is not in the cache loads the model."""

from functools import cached_property

from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder, encoder_of
from resources.settings import WithSettings


class EncoderResource(WithSettings):
    """The settings' [encoder] section, and the lake that keeps the embeddings."""

    @cached_property
    def encoder(self) -> CachedEncoder:
        """Returns the encoder; only texts that the cache lacks reach the model."""
        return CachedEncoder(self._model, self.lake.kept / "embeddings")

    def of_lake(self, lake: Lake) -> CachedEncoder:
        """Returns the encoder with the cache of this lake."""
        return self.encoder if lake.root == self.lake.root else CachedEncoder(self._model, lake.kept / "embeddings")

    def around(self, model: TextEncoder) -> CachedEncoder:
        """Puts the lake's cache before another encoder of the same model."""
        return CachedEncoder(model, self.lake.kept / "embeddings")

    @cached_property
    def lake(self) -> Lake:
        """The lake that keeps the embeddings."""
        return Lake(self.typed.paths.lake)

    @cached_property
    def _model(self) -> TextEncoder:
        return encoder_of(self.typed.encoder)

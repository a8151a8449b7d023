"""The settings of a run: given with the definitions, or read in the process that runs, from its environment."""

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import dagster as dg

from opus_pipelines.core.settings import Settings, load, parse
from opus_pipelines.lake.object_store.folders import is_remote, local_root


class WithSettings(dg.ConfigurableResource[None]):
    """A resource that the settings describe.

    Without `settings` it reads them at its first use in a run: so a process that runs has its own environment's
    settings, and the definitions hold none.
    """

    settings: dict[str, Any] | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Returns the resource that these settings describe."""
        return cls(settings=settings.model_dump(mode="json", by_alias=True))

    @cached_property
    def typed(self) -> Settings:
        """The settings, typed."""
        return of_environment() if self.settings is None else parse(Settings, self.settings, "settings of the run")


class SettingsResource(WithSettings):
    """The settings alone, for steps that write nothing and so need no lock."""


def of_environment() -> Settings:
    """Returns the settings as the command line would have them, with absolute paths.

    A lake in an object store is its working folder on this machine.

    They are those of OPUS_SETTINGS, or of opus.toml in OPUS_FOLDER (`opus ui` names the folder in which it was
    started), and of the OPUS_* variables.
    """
    file = os.environ.get("OPUS_SETTINGS")
    settings = load(Path(file) if file else None, folder=Path(os.environ.get("OPUS_FOLDER", ".")))
    lake = settings.paths.lake
    stated = settings.paths.model_copy(
        update={"lake": local_root(lake, settings.object_store) if is_remote(lake) else lake}
    )
    paths = stated.model_copy(update={name: path.expanduser().absolute() for name, path in stated})
    return settings.model_copy(update={"paths": paths})

"""Turns the options that every command shares into settings and a lake."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import OpusError, SettingsError
from opus_pipelines.core.settings import Settings, load
from opus_pipelines.lake.input_folders import recorded
from opus_pipelines.lake.layout import Lake


@dataclass(frozen=True)
class Options:
    """The options before the command's name."""

    lake_folder: Path | None = None
    settings_file: Path | None = None

    def settings(self, **overrides: Any) -> Settings:
        """Returns the settings in force, with absolute paths.

        An input folder that nothing states is the one that the lake was made from, where that is recorded and still
        exists. Raises SettingsError where an input folder lies inside the lake.
        """
        loaded = load(self.settings_file, paths__lake=self.lake_folder, **overrides)
        paths = loaded.paths.model_copy(update={name: path.expanduser().absolute() for name, path in loaded.paths})
        kept = {
            name: folder for name, folder in recorded(paths.lake).items() if name not in loaded.paths.model_fields_set
        }
        paths = paths.model_copy(update=kept)
        for name in ("history", "intakes"):
            if getattr(paths, name).resolve().is_relative_to(paths.lake.resolve()):
                raise SettingsError(
                    f"{name} = {getattr(paths, name)} lies inside the lake {paths.lake}; inputs never do"
                )
        return loaded.model_copy(update={"paths": paths})

    def lake(self) -> Lake:
        """Returns the lake in force."""
        return Lake(self.settings().paths.lake)

    @staticmethod
    def lake_of(arguments: list[str]) -> Path:
        """Returns the lake that a command line names, as far as a failed one can tell."""
        named = next((Path(b) for a, b in pairwise(arguments) if a == "--lake"), None)
        try:
            return Options(named).settings().paths.lake
        except OpusError:
            return named or Path("lake")

"""The options every command shares, turned into settings and a lake."""

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
    """What stands before the command's name."""

    lake_folder: Path | None = None
    settings_file: Path | None = None

    def settings(self, **overrides: Any) -> Settings:
        """Settings in force, paths absolute; raises SettingsError when an input folder lies inside the lake.

        An input folder that nothing states is the one that the lake was made from, where that is known and still there.
        """
        made = load(self.settings_file, paths__lake=self.lake_folder, **overrides)
        paths = made.paths.model_copy(update={name: path.expanduser().absolute() for name, path in made.paths})
        kept = {
            name: folder for name, folder in recorded(paths.lake).items() if name not in made.paths.model_fields_set
        }
        paths = paths.model_copy(update=kept)
        for name in ("history", "intakes"):
            if getattr(paths, name).resolve().is_relative_to(paths.lake.resolve()):
                raise SettingsError(
                    f"{name} = {getattr(paths, name)} lies inside the lake {paths.lake}; inputs never do"
                )
        return made.model_copy(update={"paths": paths})

    def lake(self) -> Lake:
        """The lake in force."""
        return Lake(self.settings().paths.lake)

    @staticmethod
    def lake_of(arguments: list[str]) -> Path:
        """The lake that a command line means, as far as it can be told from a failed one."""
        named = next((Path(b) for a, b in pairwise(arguments) if a == "--lake"), None)
        try:
            return Options(named).settings().paths.lake
        except OpusError:
            return named or Path("lake")

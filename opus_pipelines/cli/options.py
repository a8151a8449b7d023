"""Turns the options that every command shares into settings and a lake."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import click

from opus_pipelines.core.errors import OpusError, SettingsError
from opus_pipelines.core.settings import Settings, load
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.folders import is_remote, local_root, root_without_store
from opus_pipelines.lake.version import recorded_inputs

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Options:
    """The options before the command's name."""

    lake_folder: Path | None = None
    settings_file: Path | None = None
    reads_only: bool = False  # the command only reads: of a lake in an object store it sees one commit
    _roots: dict[Path, Path] = field(default_factory=dict, compare=False, repr=False)

    def settings(self, **overrides: Any) -> Settings:
        """Returns the settings in force, with absolute paths.

        An input folder that nothing states is the one that the lake was made from, where that is recorded and still
        exists. Raises SettingsError where an input folder lies inside the lake.
        """
        loaded = self._loaded(overrides)
        return self._with_paths(loaded, self._local_root(loaded))

    def _loaded(self, overrides: dict[str, Any]) -> Settings:
        return load(self.settings_file, paths__lake=self.lake_folder, **overrides)

    def _local_root(self, loaded: Settings) -> Path:
        """Returns the folder of the lake; one in an object store is brought up to date once for each command."""
        lake = loaded.paths.lake
        if not is_remote(lake):
            return lake
        if lake not in self._roots:
            self._roots[lake] = local_root(lake, loaded.object_store, self.reads_only)
        return self._roots[lake]

    def _with_paths(self, loaded: Settings, lake: Path) -> Settings:
        stated = loaded.paths.model_copy(update={"lake": lake})
        paths = stated.model_copy(update={name: path.expanduser().absolute() for name, path in stated})
        kept = {
            name: folder
            for name, folder in recorded_inputs(paths.lake).items()
            if name not in loaded.paths.model_fields_set
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
            options = Options(named)
            loaded = options._loaded({})
            lake = loaded.paths.lake
            known = root_without_store(lake, loaded.object_store) if is_remote(lake) else lake
            return options._with_paths(loaded, known).paths.lake
        except OpusError:
            return named or Path("lake")


class NearestCommand(click.Group):
    """A group that names the nearest command where a name is none."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that `args` names. Raises UsageError, with the nearest name, where there is none."""
        name = args[0] if args else ""
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            nearest = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
            ctx.fail(f"No such command '{name}'.{hint}")
        return super().resolve_command(ctx, args)


def history_option(about: str) -> Callable[[_Command], _Command]:
    """Returns the option --history; `about` stands between its name and its variable in the help."""
    return click.option("--history", type=click.Path(path_type=Path), help=f"{about} (or OPUS_HISTORY).")


def intakes_option(about: str) -> Callable[[_Command], _Command]:
    """Returns the option --intakes; `about` stands between its name and its variable in the help."""
    return click.option("--intakes", type=click.Path(path_type=Path), help=f"{about} (or OPUS_INTAKES).")

"""One registry for each kind of thing that people add: built-in entries, and entries of installed distributions.

A distribution declares an entry under an entry-point group, for instance `opus_pipelines.log_formats`. Names are known
from the metadata of the installed distributions. An entry's module is imported only when the entry is used.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from opus_pipelines.core.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_T = TypeVar("_T")
PREFIX = "opus_pipelines."


def declared(group: str) -> Mapping[str, "EntryPoint"]:
    """Returns the entries that installed distributions declare under `opus_pipelines.<group>`, by name.

    No module of a distribution is imported. Raises PluginError when two distributions declare the same name.
    """
    return _declared(group, tuple(sys.path))


@lru_cache(maxsize=64)
def _declared(group: str, _path: tuple[str, ...]) -> Mapping[str, "EntryPoint"]:
    """Reads the metadata once for each state of `sys.path`, which decides what is installed."""
    from importlib.metadata import entry_points  # it brings the e-mail parser

    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=PREFIX + group):
        if entry.name in entries:
            raise PluginError(
                f"{_where(entry)} and {_where(entries[entry.name])} have the same name; uninstall one of the "
                "distributions, or rename the entry in one of them"
            )
        entries[entry.name] = entry
    return entries


class Registry(Generic[_T]):
    """The entries of one kind, by name.

    `built_in` maps a name to the entry, or to `module:attribute`, which is imported when the entry is used.
    `misfit` returns the reason why a loaded entry does not follow its protocol, or an empty text when it does.
    """

    def __init__(self, group: str, built_in: Mapping[str, _T | str], misfit: Callable[[str, Any], str]) -> None:
        self.group, self._built_in, self._misfit = group, built_in, misfit

    def names(self) -> tuple[str, ...]:
        """Returns all names, the built-in ones first; raises PluginError when a name is declared twice."""
        return (*self._built_in, *sorted(self.added()))

    def added(self) -> Mapping[str, "EntryPoint"]:
        """Returns what installed distributions add, by name; raises PluginError when a name is declared twice."""
        added = declared(self.group)
        for name in added.keys() & self._built_in.keys():
            raise PluginError(f"{_where(added[name])} has the name of a built-in entry; {_remedy(added[name])}")
        return added

    def get(self, name: str) -> _T:
        """Returns the entry of this name; imports only its module.

        Raises KeyError for an unknown name, and PluginError when a distribution's entry cannot be loaded or does not
        follow its protocol.
        """
        entry = self.added().get(name)
        if entry is not None:
            return cast(_T, self._loaded(entry))
        value = self._built_in[name]
        return cast(_T, _attribute(value) if isinstance(value, str) else value)

    def entries(self) -> dict[str, _T]:
        """Returns all entries by name, the built-in ones first; raises PluginError as `get` does."""
        return {name: self.get(name) for name in self.names()}

    def origin(self, name: str) -> str:
        """Returns `distribution version` of an added entry, and an empty text for a built-in one."""
        entry = self.added().get(name)
        return "" if entry is None else _distribution(entry)

    def _loaded(self, entry: "EntryPoint") -> Any:
        try:
            value = entry.load()
        except Exception as error:  # whatever a foreign module raises, the person must learn which distribution it is
            reason = f"{type(error).__name__}: {error}"
            raise PluginError(f"{_where(entry)} cannot be loaded ({reason}); {_remedy(entry)}") from error
        if reason := self._misfit(entry.name, value):
            raise PluginError(f"{_where(entry)} does not fit: {reason}; {_remedy(entry)}")
        return value


def takes(value: object, *arguments: str) -> str:
    """Returns why `value` cannot be called with these positional arguments, or an empty text when it can."""
    stated = f"it must be callable with ({', '.join(arguments)})"
    if not callable(value):
        return f"{stated}, but is a {type(value).__name__}"
    try:
        inspect.signature(value).bind(*arguments)
    except TypeError as error:
        return f"{stated}: {error}"
    except ValueError:  # a function of C without a signature
        return ""
    return ""


def lacks(value: object, *attributes: str) -> str:
    """Returns which of these attributes `value` lacks as a sentence part, or an empty text when it has all.

    No property is evaluated: that of an encoder's dimension would load its model.
    """
    absent = object()
    missing = [name for name in attributes if inspect.getattr_static(value, name, absent) is absent]
    return f"it lacks {', '.join(missing)}" if missing else ""


def _attribute(reference: str) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def _distribution(entry: "EntryPoint") -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed distribution"


def _where(entry: "EntryPoint") -> str:
    return f"the entry {entry.name!r} of {entry.group} ({entry.value}) in the distribution {_distribution(entry)}"


def _remedy(entry: "EntryPoint") -> str:
    name = entry.dist.name if entry.dist else "it"
    return f"correct it as docs/extending.md shows, or uninstall {name}"

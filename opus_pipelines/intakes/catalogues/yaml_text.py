"""Reads YAML from outside: bounded before it is built, so that aliases that multiply cost nothing."""

from typing import Any

import yaml

from opus_pipelines.core.errors import InputError

MAX_NODES = 2_000_000  # scalars, lists and mappings of a document, each alias counted with all that it stands for
MAX_YAML_DEPTH = 64
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> Any:
    """Returns the plain data of a YAML document.

    Raises InputError where it is no YAML, and where its aliases stand for more than MAX_NODES nodes or for themselves.
    """
    try:
        _count(text)
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise InputError(f"it is no YAML: {' '.join(str(error).split())[:300]}") from None
    except (ValueError, TypeError, OverflowError) as error:  # an impossible date, a key that cannot be one
        raise InputError(f"it is no YAML that can be read: {error}") from None


def _count(text: str) -> None:
    """Counts the nodes that the document stands for. Raises InputError where they are too many or too deep."""
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []  # anchor, and nodes inside so far
    total = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise InputError(f"its alias {event.anchor!r} stands for itself or for nothing")
            size = sizes[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, total))
            if len(open_nodes) > MAX_YAML_DEPTH:
                raise InputError(f"it is nested more than {MAX_YAML_DEPTH} levels deep")
            size = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor is not None:
                sizes[anchor] = total - before
            size = 0
        elif isinstance(event, yaml.ScalarEvent):
            size = 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        else:
            size = 0
        total += size
        if total > MAX_NODES:
            raise InputError(f"its aliases stand for more than {MAX_NODES:,} values; write them out, or split it")

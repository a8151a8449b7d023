"""Files made to hurt a reader, by class."""

from collections.abc import Callable

from contents import bombs, contents
from large import depths, large_fields, widths
from pieces import Cases

CLASSES: dict[str, Callable[[], Cases]] = {
    "large fields": large_fields,
    "depths": depths,
    "widths": widths,
    "bombs": bombs,
    "contents": contents,
}

"""Boxes, matrices and objects of PDF pages, for `page_view`. Lengths are points; a matrix is (a, b, c, d, e, f)."""

from collections.abc import Sequence
from typing import Any

from PIL import Image

Matrix = tuple[float, float, float, float, float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top


def pixel_counts(picture: Image.Image) -> list[tuple[int, int]]:
    """Returns how many pixels have each value."""
    found = picture.getcolors(picture.width * picture.height) or []
    return [(count, int(str(value))) for count, value in found]


def get(holder: Any, name: Any) -> Any:
    """Returns an entry of a dictionary of a PDF with references followed, None where there is none."""
    if holder is None:
        return None
    found: Any = holder.get(name) if hasattr(holder, "get") else None
    return found.get_object() if hasattr(found, "get_object") else found


def page_box(page: Any) -> Box:
    """Returns the box of a page that is shown."""
    try:
        box = page.cropbox
        found = tuple(float(v) for v in (box.left, box.bottom, box.right, box.top))
    except Exception:  # a page without a readable size is as large as a letter
        found = (0.0, 0.0, 612.0, 792.0)
    return found if found[2] > found[0] and found[3] > found[1] else (0.0, 0.0, 612.0, 792.0)  # type: ignore[return-value]


def matrix(values: Sequence[Any]) -> Matrix:
    """Returns six operands as a matrix."""
    a, b, c, d, e, f = (float(v) for v in values[:6])
    return a, b, c, d, e, f


def times(one: Matrix, other: Matrix) -> Matrix:
    """Returns the product of two matrices: first `one`, then `other`."""
    a, b, c, d, e, f = one
    g, h, i, j, k, m = other
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def at(by: Matrix, x: float, y: float) -> tuple[float, float]:
    """Returns where a matrix moves a point."""
    return by[0] * x + by[2] * y + by[4], by[1] * x + by[3] * y + by[5]


def around(points: Sequence[tuple[float, float]]) -> Box:
    """Returns the box around points."""
    return min(x for x, _ in points), min(y for _, y in points), max(x for x, _ in points), max(y for _, y in points)


def corners_of(box: Box) -> list[tuple[float, float]]:
    """Returns the corners of a box."""
    return [(box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3])]


def within(one: Box | None, other: Box) -> Box:
    """Returns the box that two boxes share; it may be empty."""
    if one is None:
        return other
    return max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])


def holds(box: Box, point: tuple[float, float]) -> bool:
    """Returns whether a point lies in a box."""
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]

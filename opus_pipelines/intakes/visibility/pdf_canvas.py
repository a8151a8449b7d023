"""A small picture of a PDF page: which colour was painted last at each place, and by which operation."""

import math
from collections.abc import Sequence

from PIL import Image, ImageChops, ImageDraw

from opus_pipelines.intakes.visibility.colours import WHITE, Colour, is_like
from opus_pipelines.intakes.visibility.pdf_geometry import Box, around, pixel_counts, within

_SCALE = 0.5  # pixels a point
_MOST_PIXELS = 1_500_000
MOST_AREAS = 20_000  # of one page that are painted; later ones make the background unknown
_UNKNOWN = -1  # the index of what is no plain colour
_MOST = 0.75  # share of the pixels of a text that must be like it, or covered, for the text to be hidden


class Canvas:
    """The painted areas of one page of the size `box`."""

    def __init__(self, box: Box) -> None:
        self._box = box
        width, height = max(1.0, box[2] - box[0]), max(1.0, box[3] - box[1])
        self._scale = min(_SCALE, math.sqrt(_MOST_PIXELS / (width * height)))
        self._size = max(1, int(width * self._scale)), max(1, int(height * self._scale))
        self._colours: dict[Colour, int] = {WHITE: 0}
        self._ground = Image.new("I", self._size, 0)
        self._last = Image.new("I", self._size, 0)
        self._areas = 0

    def fill(
        self, parts: Sequence[Sequence[tuple[float, float]]], colour: Colour | None, clip: Box | None, number: int
    ) -> None:
        """Paints an area, inside its parts by the even-odd rule. `colour` None: unknown.

        `number`: of the operation, where the area covers what was there before; else 0.
        """
        self._areas += 1
        area = self._pixels(within(around([point for part in parts for point in part]), clip or self._box))
        if self._areas > MOST_AREAS or area is None:
            return
        left, top, right, bottom = area
        mask = Image.new("1", (right - left, bottom - top), 0)
        for part in parts:
            if len(part) < 3:
                continue
            one = Image.new("1", mask.size, 0)
            ImageDraw.Draw(one).polygon([(x - left, y - top) for x, y in map(self._pixel, part)], fill=1)
            mask = ImageChops.logical_xor(mask, one) if len(parts) > 1 else one
        index = _UNKNOWN if colour is None else self._colours.setdefault(colour, len(self._colours))
        self._ground.paste(index, area, mask)
        if number:
            self._last.paste(number, area, mask)

    def is_like(self, box: Box, colour: Colour) -> bool:
        """Returns whether a text of this colour cannot be told from what lies behind it now."""
        area = self._pixels(box)
        if area is None or self._areas > MOST_AREAS:
            return False
        known = list(self._colours)
        like = whole = 0
        for count, index in pixel_counts(self._ground.crop(area)):
            whole += count
            like += count * (index != _UNKNOWN and is_like(colour, known[index]))
        return like >= _MOST * whole

    def covered(self, box: Box, number: int) -> str | None:
        """Returns what covers a text that an operation showed: "area", "picture" (or another unknown look), or None."""
        area = self._pixels(box)
        if area is None:
            return None
        found = pixel_counts(self._last.crop(area))
        if sum(count for count, last in found if last > number) < _MOST * sum(count for count, _ in found):
            return None
        return "picture" if all(i == _UNKNOWN for _, i in pixel_counts(self._ground.crop(area))) else "area"

    def _pixel(self, point: tuple[float, float]) -> tuple[float, float]:
        return (point[0] - self._box[0]) * self._scale, (self._box[3] - point[1]) * self._scale

    def _pixels(self, box: Box) -> tuple[int, int, int, int] | None:
        """Returns the pixels of a box that lie on the page, None where none does."""
        (left, bottom), (right, top) = self._pixel((box[0], box[1])), self._pixel((box[2], box[3]))
        width, height = self._size
        area = max(0, int(left)), max(0, int(top)), min(width, math.ceil(right)), min(height, math.ceil(bottom))
        return area if area[2] > area[0] and area[3] > area[1] else None

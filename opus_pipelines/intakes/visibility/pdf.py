"""Says of each text of a PDF page whether a person sees it, by what the page draws.

It is told every operation of the page's content and of the forms in it (ISO 32000-2, 8 and 9): colours, opacity, size
of letters, render mode, clipping, optional content that is off, and what was painted below and above a text. The width
of a text is estimated from its number of letters. What pictures, patterns and shadings look like is not known: text on
them is seen, text under them is not.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from PIL import Image, ImageChops, ImageDraw

from opus_pipelines.intakes.visibility import unseen
from opus_pipelines.intakes.visibility.unseen import BLACK, LEAST_OPACITY, WHITE, Colour, grey, is_like, of_cmyk

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


_SAME: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_SCAN = "scan"
SHOW = (b"Tj", b"TJ", b"'", b'"')
HIDDEN_LAYER = "in a layer that is switched off"


@dataclass(frozen=True)
class _State:
    ctm: Matrix = _SAME
    fill: Colour | None = BLACK  # None: a pattern or a colour space that is not followed
    stroke: Colour | None = BLACK
    fill_space: str = ""
    stroke_space: str = ""
    alpha: float = 1.0
    mode: int = 0
    size: float = 0.0
    font_scale: float = 1.0
    horizontal: float = 1.0
    clip: Box | None = None
    resources: Any = None


@dataclass
class Shown:
    """One operation that shows text: its number, its place on the page, why it is not seen as far as is known."""

    number: int
    box: Box
    reason: str | None = None
    colour: Colour | None = field(default=None)


@dataclass(frozen=True)
class Picture:
    """A picture that a page draws: the number of the operation, the box that is seen, the whole box, and its object."""

    number: int
    seen: Box
    box: Box
    drawn: Any

    @property
    def area(self) -> float:
        """The size of what is seen, in square points."""
        return max(0.0, self.seen[2] - self.seen[0]) * max(0.0, self.seen[3] - self.seen[1])


class PageView:
    """The page so far. `before` and `after` are the visitors of `pypdf`'s `extract_text`."""

    def __init__(self, page: Any, off: Callable[[Any], bool]) -> None:
        self.page_box = page_box(page)
        self._canvas = Canvas(self.page_box)
        self._off = off
        self._state = _State(resources=get(page, "/Resources"))
        self._stack: list[_State] = []
        self._forms: list[tuple[_State, list[_State]]] = []
        self._layers: list[bool] = []
        self._text: Matrix = _SAME
        self._leading, self._advance = 0.0, 0.0
        self._path: list[list[tuple[float, float]]] = []
        self._number = 0
        self._clips = False
        self._pictures: list[Box] = []
        self.shown: list[Shown] = []
        self.pictures: list[Picture] = []

    def before(self, operator: bytes, operands: list[Any], *_: Any) -> None:
        """Takes one operation, before it is processed."""
        self._number += 1
        depth = len(self._forms)
        with suppress(TypeError, ValueError, IndexError, KeyError, AttributeError, ZeroDivisionError, OverflowError):
            self._take(operator, operands)
        if operator == b"Do" and len(self._forms) == depth:  # nothing is known of what it draws
            self._forms.append((self._state, self._stack))

    def after(self, operator: bytes, operands: list[Any], *_: Any) -> None:
        """Leaves a form when its operations are done."""
        if operator == b"Do" and self._forms:
            self._state, self._stack = self._forms.pop()

    def hidden(self) -> dict[int, str]:
        """Returns why nobody sees each operation that shows hidden text, when the whole page is drawn."""
        found = {}
        for one in self.shown:
            reason = one.reason
            if reason is None and (covering := self._canvas.covered(one.box, one.number)) is not None:
                reason = _SCAN if covering == "picture" else unseen.COVERED
            if reason is not None:
                found[one.number] = reason
        return found

    def box_of(self, shares: Box) -> Box:
        """Returns the place of a box on the page in points; `shares` are left, top, right and bottom, 0 to 1."""
        left, bottom, right, top = self.page_box
        width, high = right - left, top - bottom
        return left + shares[0] * width, top - shares[3] * high, left + shares[2] * width, top - shares[1] * high

    def over_pictures(self, shares: Box) -> str | None:
        """Returns why nobody sees what the page's pictures show at a place; None where somebody does."""
        box = self.box_of(shares)
        if box[3] - box[1] < unseen.SMALLEST_POINTS:
            return unseen.SMALL
        last = max((picture.number for picture in self.pictures), default=0)
        return unseen.COVERED if self._canvas.covered(box, last) else None

    def down(self, height: float) -> float:
        """Returns how far below the top of the page a height in points is, 0 to 1."""
        _, bottom, _, top = self.page_box
        return min(1.0, max(0.0, (top - height) / max(1.0, top - bottom)))

    def _take(self, operator: bytes, operands: list[Any]) -> None:
        if operator in SHOW:
            self._show(operator, operands)
        elif operator == b"q":
            self._stack.append(self._state)
        elif operator == b"Q":
            if self._stack:
                self._state = replace(self._stack.pop())
        elif operator == b"cm":
            self._state = replace(self._state, ctm=times(matrix(operands), self._state.ctm))
        elif operator == b"gs":
            self._graphics(get(get(self._state.resources, "/ExtGState"), operands[0]))
        elif operator == b"Do":
            self._draw(operands[0])
        elif operator in (b"BDC", b"BMC"):
            self._layers.append(operator == b"BDC" and str(operands[0]) == "/OC" and self._is_off(operands[1]))
        elif operator == b"EMC":
            if self._layers:
                self._layers.pop()
        elif operator[:1] == b"T" or operator == b"BT":
            self._text_state(operator, operands)
        elif operator in _COLOURS:
            self._colour(operator, operands)
        else:
            self._paint(operator, operands)

    # Text

    def _text_state(self, operator: bytes, operands: list[Any]) -> None:
        if operator == b"BT":
            self._text, self._advance = _SAME, 0.0
        elif operator == b"Tm":
            self._text, self._advance = matrix(operands), 0.0
        elif operator in (b"Td", b"TD", b"T*"):
            x, y = (float(o) for o in operands[:2]) if operator != b"T*" else (0.0, -self._leading)
            if operator == b"TD":
                self._leading = -y
            self._text, self._advance = times((1, 0, 0, 1, x, y), self._text), 0.0
        elif operator == b"TL":
            self._leading = float(operands[0])
        elif operator == b"Tr":
            self._state = replace(self._state, mode=int(operands[0]))
        elif operator == b"Tz":
            self._state = replace(self._state, horizontal=float(operands[0]) / 100)
        elif operator == b"Tf":
            self._font(get(get(self._state.resources, "/Font"), operands[0]), float(operands[1]))

    def _font(self, font: Any, size: float) -> None:
        scale = 1.0
        if get(font, "/Subtype") == "/Type3":
            own = [abs(float(v)) for v in get(font, "/FontMatrix") or (0.001, 0, 0, 0.001)]
            box = [float(v) for v in get(font, "/FontBBox") or ()]
            high = box[3] - box[1] if len(box) == 4 else 0
            scale = max(own[3], own[1]) * (high or 1000)
        self._state = replace(self._state, size=size, font_scale=scale)

    def _show(self, operator: bytes, operands: list[Any]) -> None:
        if operator in (b"'", b'"'):
            self._text_state(b"T*", [])
        parts = operands[0] if operator == b"TJ" else operands[-1:]
        letters = sum(len(part) for part in parts if isinstance(part, str | bytes))
        state = self._state
        size = state.size * state.font_scale
        width = 0.5 * size * letters * state.horizontal
        if operator == b"TJ":
            width -= (
                sum(float(part) for part in parts if isinstance(part, int | float))
                / 1000
                * state.size
                * state.horizontal
            )
        whole = times(self._text, state.ctm)
        start, self._advance = self._advance, self._advance + width
        corners = [at(whole, x, y) for x in (start, start + width) for y in (0.0, 0.7 * size)]
        box = (
            min(x for x, _ in corners),
            min(y for _, y in corners),
            max(x for x, _ in corners),
            max(y for _, y in corners),
        )
        shown = Shown(self._number, box, colour=_ink(state))
        if letters:
            shown.reason = self._reason(
                state, size * math.hypot(whole[2], whole[3]), size * math.hypot(whole[0], whole[1]), box
            )
            if shown.reason is None and shown.colour is not None and self._canvas.is_like(box, shown.colour):
                shown.reason = unseen.COLOUR
            self.shown.append(shown)

    def _reason(self, state: _State, high: float, wide: float, box: Box) -> str | None:
        """Returns why a text is not seen whatever lies behind it."""
        if any(self._layers):
            return HIDDEN_LAYER
        left, bottom, right, top = self.page_box
        if box[2] <= left or box[0] >= right or box[3] <= bottom or box[1] >= top:
            return unseen.OFF_PAGE
        if min(abs(high), abs(wide) * max(0.01, state.horizontal)) < unseen.SMALLEST_POINTS:
            return unseen.SMALL
        if state.mode in (3, 7):
            middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            return _SCAN if any(holds(picture, middle) for picture in self._pictures) else unseen.INVISIBLE
        if state.alpha < LEAST_OPACITY:
            return unseen.COLOUR
        clip = state.clip
        if clip is not None and (box[2] <= clip[0] or box[0] >= clip[2] or box[3] <= clip[1] or box[1] >= clip[3]):
            return unseen.CLIPPED
        return None

    # Drawing

    def _draw(self, name: Any) -> None:
        drawn = get(get(self._state.resources, "/XObject"), name)
        is_off = self._is_off_object(get(drawn, "/OC"))
        if get(drawn, "/Subtype") != "/Form":
            self._forms.append((self._state, self._stack))
            if drawn is None or is_off:
                return
            box = around([at(self._state.ctm, x, y) for x in (0, 1) for y in (0, 1)])
            if not any(self._layers) and self._state.alpha >= LEAST_OPACITY:
                self.pictures.append(Picture(self._number, within(self._state.clip, box), box, drawn))
            if get(drawn, "/ImageMask") is not True:
                self._pictures.append(box)
                is_whole = get(drawn, "/SMask") is None and get(drawn, "/Mask") is None and self._state.alpha > 0.9
                self._canvas.fill([corners_of(box)], None, self._state.clip, self._number if is_whole else 0)
            return
        self._forms.append((self._state, self._stack))
        own = get(drawn, "/Matrix")
        ctm = times(matrix(own), self._state.ctm) if own is not None else self._state.ctm
        clip = self._state.clip
        if (limits := get(drawn, "/BBox")) is not None:
            x0, y0, x1, y1 = (float(v) for v in limits)
            clip = within(clip, around([at(ctm, x, y) for x in (x0, x1) for y in (y0, y1)]))
        self._stack = []
        self._state = replace(
            self._state, ctm=ctm, clip=clip, resources=get(drawn, "/Resources") or self._state.resources,
            mode=7 if is_off else self._state.mode,
        )  # fmt: skip

    def _paint(self, operator: bytes, operands: list[Any]) -> None:
        ctm = self._state.ctm
        if operator == b"re":
            x, y, width, height = (float(o) for o in operands[:4])
            self._path.append(
                [at(ctm, a, b) for a, b in ((x, y), (x + width, y), (x + width, y + height), (x, y + height))]
            )
        elif operator == b"m":
            self._path.append([at(ctm, float(operands[0]), float(operands[1]))])
        elif operator in (b"l", b"c", b"v", b"y") and self._path:
            self._path[-1].append(at(ctm, float(operands[-2]), float(operands[-1])))
        elif operator in (b"W", b"W*"):
            self._clips = True
        elif operator in (b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*", b"n", b"S", b"s"):
            is_seen = self._state.alpha >= 0.3 and not any(self._layers)
            if operator[:1] in b"fFBb" and self._path and is_seen:
                number = self._number if self._state.alpha > 0.9 else 0
                self._canvas.fill(self._path, self._state.fill, self._state.clip, number)
            if self._clips and self._path:
                points = [point for part in self._path for point in part]
                self._state = replace(self._state, clip=within(self._state.clip, around(points)))
            self._path, self._clips = [], False
        elif operator == b"sh":
            box = self._state.clip or self.page_box
            self._canvas.fill([corners_of(box)], None, None, self._number)

    # Colours and layers

    def _colour(self, operator: bytes, operands: list[Any]) -> None:
        values = [float(o) for o in operands if isinstance(o, int | float)]
        kind, is_stroke = operator.lower(), operator.isupper()
        if kind == b"cs":
            space = self._space(operands[0])
            self._ink(is_stroke, None if space == "other" else BLACK, space)
            return
        space = (self._state.stroke_space if is_stroke else self._state.fill_space) if kind in (b"sc", b"scn") else ""
        found: Colour | None = None
        if space == "tint":  # a tint of nothing is the bare paper; what a full tint looks like is not known
            found = None if any(values) else WHITE
        elif space == "other" or len(values) != len(operands):
            found = None
        elif len(values) == 1:
            found = grey(values[0])
        elif len(values) == 3:
            found = (_unit(values[0]), _unit(values[1]), _unit(values[2]))
        elif len(values) == 4:
            found = of_cmyk(values)
        self._ink(is_stroke, found, space)

    def _ink(self, is_stroke: bool, colour: Colour | None, space: str) -> None:
        if is_stroke:
            self._state = replace(self._state, stroke=colour, stroke_space=space)
        else:
            self._state = replace(self._state, fill=colour, fill_space=space)

    def _space(self, name: Any) -> str:
        """Returns how the values of a colour space are read: "" by their number, "tint", or "other"."""
        named = get(get(self._state.resources, "/ColorSpace"), name)
        kind = str(named[0] if isinstance(named, list) and named else named if named is not None else name)
        if kind in ("/Separation", "/DeviceN"):
            return "tint"
        known = ("/DeviceGray", "/DeviceRGB", "/DeviceCMYK", "/CalGray", "/CalRGB", "/ICCBased", "/G", "/RGB", "/CMYK")
        return "" if kind in known else "other"

    def _graphics(self, settings: Any) -> None:
        if (alpha := get(settings, "/ca")) is not None:
            self._state = replace(self._state, alpha=float(alpha))
        if (font := get(settings, "/Font")) is not None:
            self._font(font[0].get_object(), float(font[1]))

    def _is_off(self, name: Any) -> bool:
        return self._is_off_object(
            get(get(self._state.resources, "/Properties"), name) if isinstance(name, str) else name
        )

    def _is_off_object(self, layer: Any) -> bool:
        if layer is None:
            return False
        groups = get(layer, "/OCGs")
        found = [layer] if groups is None else list(groups) if isinstance(groups, list) else [groups]
        return bool(found) and all(self._off(group) for group in found)


_COLOURS = (b"g", b"G", b"rg", b"RG", b"k", b"K", b"sc", b"SC", b"scn", b"SCN", b"cs", b"CS")


def reason_of(found: str, asides: frozenset[str]) -> str | None:
    """Returns why a text that `PageView` found is not read: the text layer of a scan may be one that is."""
    if found != _SCAN:
        return found
    return None if "scan_text" in asides else unseen.REASONS["scan_text"]


def _ink(state: _State) -> Colour | None:
    """Returns the colour of letters; None where it is not known, or where outline and inside differ."""
    if state.mode in (1, 5):
        return state.stroke
    if state.mode in (2, 6) and (state.stroke is None or state.fill is None or not is_like(state.stroke, state.fill)):
        return None
    return state.fill


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))

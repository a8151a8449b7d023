"""Says of each element of a page whether a person sees it, by its style sheets.

`tinycss2` parses the sheets and colours, `cssselect` translates the selectors; this module adds the cascade (weight,
specificity, order: CSS Cascading 4, section 6), media queries for a screen of 1,280 pixels, and custom properties.
Nothing is fetched.

What an element inherits (colour, background, size of letters, visibility) is followed down the tree. Pictures behind a
text are not loaded, and what lies over it by position is not computed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import tinycss2
from cssselect import HTMLTranslator, SelectorError
from cssselect import parse as parse_selectors
from lxml import etree
from tinycss2.color4 import parse_color

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.visibility import unseen
from opus_pipelines.intakes.visibility.unseen import BLACK, LEAST_OPACITY, WHITE, Colour, is_like, over
from opus_pipelines.language.word_stems import word_set

SCREEN = 1280  # pixels of width, for which media queries are answered
MAX_WORK = 5_000_000  # rules times elements of one page, a few seconds of matching
_RELEVANT = re.compile(
    r"display|visibility|opacity|font|zoom|color|background|position|left|right|top|bottom|margin|indent|clip|transform"
    r"|translate|scale|width|height|overflow|filter|direction|bidi|^--",
    re.I,
)
_WIDTH = re.compile(r"\((min|max)-(?:device-)?width\s*:\s*([\d.]+)(px|em|rem)\s*\)")
_OTHER_MEDIA = re.compile(
    r"^(?:only )?(?:print|speech)\b|^not (?:screen|all)\b|dark|prefers-contrast|hover\s*:\s*none|pointer\s*:\s*coarse"
)
_VAR = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*(?:\([^()]*\)[^()]*)*))?\)")
Declarations = Mapping[str, str]


class Styles:
    """The declared styles of every element of a page. Raises InputError where its sheets hold too many rules."""

    def __init__(self, root: Any, most_work: int = MAX_WORK) -> None:
        self._most_work = most_work
        self._of: dict[Any, dict[str, tuple[tuple[bool, bool, tuple[int, ...], int], str]]] = {}
        self._order = 0
        self._work = 0
        self._elements = sum(1 for _ in root.iter(etree.Element))
        self._translator = HTMLTranslator()
        self.fetches = any("stylesheet" in (link.get("rel") or "").lower() for link in root.iter("link"))
        for element in root.iter("style", "link"):
            self._take(root, _sheet(element))

    def of(self, element: Any) -> dict[str, str]:
        """Returns the declarations in force on an element, names in lower case, its own `style` included."""
        found = dict(self._of.get(element, {}))
        if own := element.get("style"):
            for name, value, important in declarations(own):
                _set(found, name, (important, True, (), 0), value)
        return {name: value for name, (_, value) in found.items()}

    def _take(self, root: Any, sheet: str) -> None:
        rules = tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True) if sheet.strip() else []
        self._rules(root, rules, "")

    def _rules(self, root: Any, rules: Iterable[Any], above: str) -> None:
        for rule in rules:
            if rule.type == "at-rule" and rule.content is not None:
                if rule.lower_at_keyword == "media" and not on_screen(tinycss2.serialize(rule.prelude)):
                    continue
                if rule.lower_at_keyword in ("media", "supports", "layer", "container", "scope", "starting-style"):
                    self._rules(root, tinycss2.parse_blocks_contents(rule.content, True, True), above)
            elif rule.type == "qualified-rule":
                selector = _nested(tinycss2.serialize(rule.prelude).strip(), above)
                inner = tinycss2.parse_blocks_contents(rule.content, True, True)
                own = [d for d in inner if d.type == "declaration" and _RELEVANT.search(d.lower_name)]
                if own:
                    self._apply(root, selector, own)
                self._rules(root, [r for r in inner if r.type in ("qualified-rule", "at-rule")], selector)

    def _apply(self, root: Any, selector: str, own: list[Any]) -> None:
        self._work += self._elements
        if self._work > self._most_work:
            raise InputError("its style sheets have more rules than can be followed; save it as a text or as a PDF")
        self._order += 1
        stated = [(d.lower_name, tinycss2.serialize(d.value).strip(), d.important) for d in own]
        with suppress(SelectorError, etree.XPathError):  # a selector that only some browser knows
            for one in parse_selectors(selector):
                if one.pseudo_element is not None:
                    continue
                for element in root.xpath(self._translator.selector_to_xpath(one)):
                    found = self._of.setdefault(element, {})
                    for name, value, important in stated:
                        _set(found, name, (important, False, one.specificity(), self._order), value)


def declarations(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yields name, value and importance of each declaration of a `style` attribute."""
    for found in tinycss2.parse_blocks_contents(text, True, True):
        if found.type == "declaration" and _RELEVANT.search(found.lower_name):
            yield found.lower_name, tinycss2.serialize(found.value).strip(), found.important


def resolved(value: str, custom: Declarations) -> str:
    """Returns a value with its custom properties, `var(--name, fallback)`, put in."""
    for _ in range(5):
        if "var(" not in value:
            break
        value = _VAR.sub(lambda match: custom.get(match[1], match[2] or ""), value)[:1000]
    return value


def on_screen(query: str) -> bool:
    """Returns whether a media query holds on a screen of SCREEN pixels."""
    return not query.strip() or any(_holds(one.strip().lower()) for one in query.split(","))


def _holds(query: str) -> bool:
    if _OTHER_MEDIA.search(query):
        return False
    for bound, number, unit in _WIDTH.findall(query):
        pixels = float(number) * (1 if unit == "px" else 16)
        if (bound == "min" and pixels > SCREEN) or (bound == "max" and pixels < SCREEN):
            return False
    return True


def _set(found: dict[str, Any], name: str, weight: tuple[bool, bool, tuple[int, ...], int], value: str) -> None:
    if name not in found or weight >= found[name][0]:
        found[name] = (weight, value)


def _nested(selector: str, above: str) -> str:
    if not above:
        return selector
    return selector.replace("&", f":is({above})") if "&" in selector else f":is({above}) {selector}"


def _sheet(element: Any) -> str:
    """Returns the text of a style sheet that stands in the page itself."""
    if not on_screen(element.get("media") or ""):
        return ""
    if element.tag == "style":
        return element.text or ""
    href = (element.get("href") or "").strip()
    if "stylesheet" not in (element.get("rel") or "").lower() or not href.lower().startswith("data:text/css"):
        return ""
    head, _, data = href.partition(",")
    if head.lower().endswith("base64"):
        import base64

        with suppress(ValueError):
            return base64.b64decode(unquote(data)).decode("utf-8", "replace")
    return unquote(data)


NOT_SHOWN = "not displayed"
SMALLEST_PIXELS = unseen.SMALLEST_POINTS * 96 / 72
_FAR = 900.0  # pixels to the left or above, from which on nothing comes into view
_NEVER = "never displayed by a browser"
_REVERSED = "in letters whose order is turned around"
_NUMBER = re.compile(r"(-?\+?[\d.]+(?:e-?\d+)?)(px|pt|pc|em|rem|ex|ch|%|vw|vh|in|cm|mm|q)?", re.I)
_UNITS = {
    "px": 1, "pt": 96 / 72, "pc": 16, "em": 16, "rem": 16, "ex": 8, "ch": 8, "%": 12.8, "vw": 12.8, "vh": 8,
    "in": 96, "cm": 37.8, "mm": 3.78, "q": 0.945,
}  # fmt: skip
_SIZES = {
    "xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32,
    "xxx-large": 48,
}  # fmt: skip
_COLOUR = re.compile(
    r"#[0-9a-f]{3,8}\b|\b(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch|color)\([^()]*\)|\b[a-z]{3,20}\b", re.I
)
_NO_COLOUR = word_set("none inherit initial unset linear radial conic gradient repeat scroll center")
_MOVES = ("left", "right", "top", "bottom", "margin-left", "margin-top", "margin-right", "text-indent")
_SHIFT = re.compile(r"translate[xy3d]*\(([^()]*)\)|^\s*(-[\d.].*)$", re.I)
_SCALE = re.compile(r"scale[xy3d]*\(\s*([\d.]+)", re.I)
_ZERO_CLIP = re.compile(
    r"rect\(\s*([\d.]+)(?:px)?[\s,]+([\d.]+)(?:px)?[\s,]+([\d.]+)(?:px)?[\s,]+([\d.]+)(?:px)?\s*\)", re.I
)
_INSET = re.compile(
    r"inset\(\s*([\d.]+)%|circle\(\s*0|ellipse\(\s*0|polygon\(\s*(?:0(?:px|%)?\s+0(?:px|%)?\s*,?\s*)+\)", re.I
)
_OPACITY = re.compile(r"opacity\(\s*([\d.]+)(%?)", re.I)
_CLASSES = {  # of frameworks whose sheet is not in the page
    "hidden", "hide", "d-none", "is-hidden", "invisible", "sr-only", "visually-hidden", "screen-reader-text",
    "u-hidden", "display-none", "uk-hidden",
}  # fmt: skip


@dataclass(frozen=True)
class View:
    """How an element shows its text. `reason`: why nobody sees it, None where it is seen."""

    colour: Colour = BLACK
    alpha: float = 1.0
    background: tuple[Colour, ...] = (WHITE,)
    size: float = 16.0  # pixels
    opacity: float = 1.0
    shown: bool = True
    reversed: bool = False
    closed: bool = False  # a block that is closed until somebody opens it
    custom: Declarations = field(default_factory=dict)

    @property
    def reason(self) -> str | None:
        """Why nobody sees a text that stands directly in the element."""
        if not self.shown:
            return NOT_SHOWN
        if self.size < SMALLEST_PIXELS:
            return unseen.SMALL
        alpha = self.alpha * self.opacity
        if alpha < LEAST_OPACITY or all(is_like(over(self.colour, alpha, b), b) for b in self.background):
            return unseen.COLOUR
        return _REVERSED if self.reversed else None


def view_of(element: Any, above: View, styles: Styles) -> tuple[View, str | None]:
    """Returns the view of an element, and why nobody sees any of its subtree, or None."""
    stated = styles.of(element)
    custom = {**above.custom, **{name: value for name, value in stated.items() if name.startswith("--")}}
    style = {name: resolved(value, custom).lower() for name, value in stated.items()}
    if reason := _gone(element, style, styles):
        return above, reason
    view = replace(above, custom=custom)
    view = _coloured(element, style, view)
    view = replace(view, size=_size(element, style, above.size))
    if "visibility" in style:
        view = replace(view, shown=style["visibility"] not in ("hidden", "collapse"))
    if (value := _fraction(style.get("opacity"))) is not None:
        view = replace(view, opacity=view.opacity * value)
    if match := _OPACITY.search(style.get("filter", "")):
        view = replace(view, opacity=view.opacity * float(match[1]) / (100 if match[2] else 1))
    if element.tag == "bdo" or "override" in style.get("unicode-bidi", ""):
        rtl = (element.get("dir") or style.get("direction") or "").lower() == "rtl"
        view = replace(view, reversed=rtl)
    return view, unseen.COLOUR if view.opacity < LEAST_OPACITY else None


def _gone(element: Any, style: Declarations, styles: Styles) -> str | None:
    """Returns why nothing of the subtree is seen, whatever its own styles say."""
    display = style.get("display")
    tag, classes = element.tag, set((element.get("class") or "").lower().split())
    if display == "none" or style.get("content-visibility") == "hidden":
        return NOT_SHOWN
    if display is None and (element.get("hidden") is not None or (tag == "dialog" and element.get("open") is None)):
        return NOT_SHOWN
    if tag == "input" and (element.get("type") or "").lower() == "hidden":
        return NOT_SHOWN
    if tag in ("datalist", "noframes", "rp", "param"):
        return _NEVER
    if display is None and styles.fetches and classes & _CLASSES:
        return NOT_SHOWN
    if _is_moved_away(style):
        return unseen.OFF_PAGE
    if _is_cut(style):
        return unseen.CLIPPED
    scale = _SCALE.search(style.get("transform", "")) or re.match(r"\s*([\d.]+)", style.get("scale", ""))
    zoom = _fraction(style.get("zoom"))
    return unseen.SMALL if (scale and float(scale[1]) < 0.15) or (zoom is not None and zoom < 0.15) else None


def _is_moved_away(style: Declarations) -> bool:
    placed = style.get("position") in ("absolute", "fixed", "relative", "sticky")
    for name in _MOVES:
        if name in style and (placed or name not in ("left", "right", "top", "bottom")):
            far = pixels(style[name])
            if far is not None and (far <= -_FAR or (far >= 5 * _FAR and name != "bottom")):
                return True
    if any((far := pixels(part)) is not None and far <= -_FAR for part in style.get("margin", "").split()):
        return True
    moved = [*_SHIFT.finditer(style.get("transform", "")), *_SHIFT.finditer(style.get("translate", ""))]
    parts = [part for match in moved for part in re.split(r"[\s,]+", (match[1] or match[2] or "").strip())]
    return any((far := pixels(part)) is not None and abs(far) >= _FAR for part in parts)


def _is_cut(style: Declarations) -> bool:
    if (match := _ZERO_CLIP.search(style.get("clip", ""))) is not None:
        top, right, bottom, left = map(float, match.groups())
        if right - left <= 1 or bottom - top <= 1:
            return True
    if (match := _INSET.search(style.get("clip-path", ""))) is not None and (match[1] is None or float(match[1]) >= 50):
        return True
    if not any(style.get(name, "").startswith(("hidden", "clip")) for name in ("overflow", "overflow-x", "overflow-y")):
        return False
    sizes = (pixels(style[name]) for name in ("width", "height", "max-width", "max-height") if name in style)
    return any(size is not None and size <= 2 for size in sizes)


def _coloured(element: Any, style: Declarations, view: View) -> View:
    text = (
        style.get("-webkit-text-fill-color")
        or style.get("color")
        or element.get("text" if element.tag == "body" else "color")
    )
    if text and text.strip().lower() not in ("inherit", "currentcolor", "unset"):
        if (found := _colour(text)) is not None:
            view = replace(view, colour=found[0], alpha=found[1])
        elif text.strip().lower() == "initial":
            view = replace(view, colour=BLACK, alpha=1.0)
    behind = (
        style.get("background-color"),
        style.get("background-image"),
        style.get("background"),
        element.get("bgcolor"),
    )
    found_behind = [c for value in behind if value for c in _colours(value)]
    if found_behind:
        view = replace(
            view, background=tuple(over(c, alpha, b) for c, alpha in found_behind for b in view.background)[:8]
        )
    return view


def _colours(value: str) -> list[tuple[Colour, float]]:
    value = re.sub(r"url\([^)]*\)", "", value)
    found = [_colour(match[0]) for match in _COLOUR.finditer(value) if match[0].lower() not in _NO_COLOUR]
    return [colour for colour in found if colour is not None and colour[1] > 0]


def _colour(value: str) -> tuple[Colour, float] | None:
    value = value.strip().lower()
    plain = {"canvas": (WHITE, 1.0), "canvastext": (BLACK, 1.0), "transparent": (BLACK, 0.0)}
    if value in plain:
        return plain[value]
    if re.fullmatch(r"[0-9a-f]{6}", value):  # as the attributes of old pages have it
        value = f"#{value}"
    try:
        parsed = parse_color(value)
        if parsed is None or isinstance(parsed, str):
            return None
        red, green, blue = (min(1.0, max(0.0, float(c or 0))) for c in parsed.to("srgb").coordinates)
    except (NotImplementedError, ValueError, TypeError, ArithmeticError):
        return None
    return (red, green, blue), float(parsed.alpha)


def _size(element: Any, style: Declarations, above: float) -> float:
    value = style.get("font-size")
    if value is None and (font := style.get("font")):
        match = re.search(r"(?<![\w.-])([\d.]+(?:px|pt|em|rem|%|vw|vh|mm|cm|in|pc))", font)
        value = match[1] if match else None
    if value is None:
        return above
    if value in _SIZES:
        return _SIZES[value]
    if value in ("smaller", "larger"):
        return above * (5 / 6 if value == "smaller" else 1.2)
    match = _NUMBER.fullmatch(value.strip())
    if match is None:
        return above
    number, unit = _float(match[1]), (match[2] or "px").lower()
    return above * number / (100 if unit == "%" else 1) if unit in ("%", "em", "ex", "ch") else number * _UNITS[unit]


def pixels(value: str) -> float | None:
    """Returns a length of CSS in pixels, roughly where its unit depends on the page; None where it is no length."""
    match = _NUMBER.match(value.strip().removeprefix("calc(").lstrip("("))
    return None if match is None else _float(match[1]) * _UNITS[(match[2] or "px").lower()]


def _fraction(value: str | None) -> float | None:
    match = _NUMBER.match((value or "").strip())
    return None if match is None else _float(match[1]) / (100 if match[2] == "%" else 1)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0

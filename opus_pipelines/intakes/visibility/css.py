"""Follows the style sheets inside a page, as far as they decide what a person sees.

`tinycss2` parses the sheets and colours, `cssselect` translates the selectors; this module adds the cascade (weight,
specificity, order: CSS Cascading 4, section 6), media queries for a screen of 1,280 pixels, and custom properties.
Nothing is fetched.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import tinycss2
from cssselect import HTMLTranslator, SelectorError
from cssselect import parse as parse_selectors
from lxml import etree

from opus_pipelines.core.errors import InputError

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

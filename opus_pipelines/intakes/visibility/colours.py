"""Tells whether a text in one colour can be seen on another, by the contrast of WCAG 2.2 (1.4.3) and their distance."""

import math
from collections.abc import Sequence

Colour = tuple[float, float, float]  # red, green, blue, 0 to 1

WHITE: Colour = (1.0, 1.0, 1.0)
BLACK: Colour = (0.0, 0.0, 0.0)
LEAST_CONTRAST = 1.3  # WCAG demands 4.5 of text; light grey of 20 % on white has 1.6
LEAST_DISTANCE = 0.33  # of two colours in the cube; yellow on white has a contrast of 1.07, and can be seen
LEAST_OPACITY = 0.08


def contrast(one: Colour, other: Colour) -> float:
    """Returns the contrast ratio of WCAG 2.2: 1 for equal colours, 21 for black on white."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def is_like(text: Colour, background: Colour) -> bool:
    """Returns whether text of this colour cannot be told from its background."""
    return contrast(text, background) < LEAST_CONTRAST and math.dist(text, background) < LEAST_DISTANCE


def over(colour: Colour, alpha: float, below: Colour) -> Colour:
    """Returns a colour of this opacity (0 to 1) as it shows over another."""
    red, green, blue = (alpha * c + (1 - alpha) * b for c, b in zip(colour, below, strict=True))
    return red, green, blue


def grey(value: float) -> Colour:
    """Returns a grey, 0 is black."""
    level = min(1.0, max(0.0, value))
    return level, level, level


def of_cmyk(parts: Sequence[float]) -> Colour:
    """Returns a colour of cyan, magenta, yellow and black, each 0 to 1, by the plain formula of PDF (10.3.5)."""
    cyan, magenta, yellow, black = (min(1.0, max(0.0, part)) for part in parts)
    return 1 - min(1.0, cyan + black), 1 - min(1.0, magenta + black), 1 - min(1.0, yellow + black)


def of_hex(text: str | None) -> Colour | None:
    """Returns a colour of six hexadecimal digits (eight: opacity first, as Excel writes it), or None."""
    digits = (text or "").strip().lstrip("#")
    if len(digits) == 8:
        digits = digits[2:]
    if len(digits) != 6:
        return None
    try:
        red, green, blue = bytes.fromhex(digits)
    except ValueError:
        return None
    return red / 255, green / 255, blue / 255


def tinted(colour: Colour, tint: float) -> Colour:
    """Returns a colour made lighter (tint above 0) or darker (below), as Excel does; each channel by itself."""
    red, green, blue = (c * (1 + tint) if tint < 0 else c + (1 - c) * tint for c in colour)
    return red, green, blue


def _luminance(colour: Colour) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

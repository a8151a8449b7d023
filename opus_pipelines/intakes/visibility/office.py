"""Colours of Office documents: theme colours with their changes, and names of highlights."""

import re
from collections.abc import Mapping
from typing import Any

from opus_pipelines.intakes.visibility.colours import BLACK, WHITE, Colour, of_hex, tinted

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
THEME = (
    "lt1",
    "dk1",
    "lt2",
    "dk2",
    "accent1",
    "accent2",
    "accent3",
    "accent4",
    "accent5",
    "accent6",
    "hlink",
    "folHlink",
)
_SAME = {
    "bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2", "background1": "lt1", "text1": "dk1", "background2": "lt2",
    "text2": "dk2", "light1": "lt1", "dark1": "dk1", "light2": "lt2", "dark2": "dk2", "hyperlink": "hlink",
    "followedHyperlink": "folHlink",
}  # fmt: skip
_NAMED = {
    "white": WHITE, "black": BLACK, "yellow": (1, 1, 0), "green": (0, 1, 0), "cyan": (0, 1, 1), "magenta": (1, 0, 1),
    "blue": (0, 0, 1), "red": (1, 0, 0), "darkBlue": (0, 0, 0.5), "darkCyan": (0, 0.5, 0.5), "darkGreen": (0, 0.5, 0),
    "darkMagenta": (0.5, 0, 0.5), "darkRed": (0.5, 0, 0), "darkYellow": (0.5, 0.5, 0), "darkGray": (0.5, 0.5, 0.5),
    "lightGray": (0.75, 0.75, 0.75), "gray": (0.5, 0.5, 0.5), "silver": (0.75, 0.75, 0.75),
}  # fmt: skip
Theme = Mapping[str, Colour]


def theme_of(root: Any) -> dict[str, Colour]:
    """Returns the colours of a theme part, by their names (`lt1`, `dk1`, ...), black on white where it has none."""
    found: dict[str, Colour] = {"lt1": WHITE, "dk1": BLACK, "lt2": WHITE, "dk2": BLACK}
    scheme = next(iter(root.iter(_A + "clrScheme")), None) if root is not None else None
    for entry in scheme if scheme is not None else ():
        if isinstance(entry.tag, str) and len(entry):
            colour = of_hex(entry[0].get("lastClr") or entry[0].get("val"))
            if colour is not None:
                found[entry.tag.removeprefix(_A)] = colour
    return found


def named(name: str | None, theme: Theme) -> Colour | None:
    """Returns a colour by a name of a theme or of a highlight, or by six hexadecimal digits; None for any other."""
    if not name:
        return None
    return theme.get(_SAME.get(name, name)) or _NAMED.get(name) or of_hex(name)


def drawn(fill: Any, theme: Theme) -> tuple[Colour, float] | None:
    """Returns colour and opacity of an element of DrawingML that holds a colour (`a:solidFill`), or None."""
    for choice in fill:
        if not isinstance(choice.tag, str):
            continue
        colour = named(choice.get("lastClr") or choice.get("val"), theme)
        if choice.tag == _A + "scrgbClr":
            red, green, blue = (_share(choice.get(c)) for c in "rgb")
            colour = (red, green, blue)
        if colour is None:
            return None
        alpha = 1.0
        for change in choice:
            kind, share = str(change.tag).removeprefix(_A), _share(change.get("val"))
            if kind == "alpha":
                alpha = share
            elif kind == "lumMod":
                colour = tinted(colour, share - 1)
            elif kind in ("lumOff", "tint"):
                colour = tinted(colour, share if kind == "lumOff" else 1 - share)
            elif kind == "shade":
                colour = tinted(colour, share - 1)
        return colour, alpha
    return None


def _share(text: str | None) -> float:
    match = re.fullmatch(r"(-?\d+)(%?)", text or "")
    return min(1.0, max(0.0, int(match[1]) / (100 if match[2] else 100_000))) if match else 0.0

"""Makes text from outside safe for files that others open, and says how XML from outside is parsed.

Control characters and direction overrides are removed, and characters are escaped that could be taken for syntax.
"""

import re
from typing import Any

# The options of every parser of XML from outside: nothing else is fetched (no network, no external DTD), entities stay
# unexpanded, and libxml2 keeps its limits on depth and on the length of a text.
SAFE_XML: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
# Characters that XML forbids, and those that change the direction of the text after them.
_FORBIDDEN = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Characters that Mermaid, Markdown or HTML may read as syntax.
_SPECIAL = re.compile(r"[\"'#&;<>%{}\[\]()`|\\*_~$]")


def clean(text: str) -> str:
    """Returns one line of text that XML may hold, without control characters and direction overrides.

    An empty text becomes a dash.
    """
    return " ".join(_FORBIDDEN.sub(" ", text).split()) or "–"


def printable(text: str) -> str:
    """Returns text for a terminal: its lines as they are, without control characters and direction overrides."""
    return _FORBIDDEN.sub(" ", text)


def xml_text(text: str) -> str:
    """Returns the text with each character that XML cannot hold replaced by U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)


def mermaid_text(text: str) -> str:
    """Returns one quoted line of text in which characters of Mermaid, Markdown and HTML syntax are character codes."""
    return '"' + _SPECIAL.sub(lambda match: f"#{ord(match[0])};", clean(text)) + '"'


def mermaid_comment(text: str) -> str:
    """Returns one line of text for a Mermaid comment, without the braces that begin a directive."""
    return re.sub(r"[{}]", "", clean(text))

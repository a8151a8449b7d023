"""Text from outside made fit for a file that others open: no control characters, no direction overrides, nothing taken
for syntax.
"""

import re

# Not allowed in XML, or able to turn the direction of what follows on a page.
_FORBIDDEN = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# All that Mermaid, Markdown or the page around it could take for more than a letter.
_SPECIAL = re.compile(r"[\"'#&;<>%{}\[\]()`|\\*_~$]")


def clean(text: str) -> str:
    """One line of text that XML may hold, without control characters and direction overrides; an empty one as a dash."""
    return " ".join(_FORBIDDEN.sub(" ", text).split()) or "–"


def xml_text(text: str) -> str:
    """The text as it is, but for the characters that XML cannot hold: each becomes U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)


def mermaid_text(words: str) -> str:
    """One line of text between quotes, what could be syntax as character codes."""
    return '"' + _SPECIAL.sub(lambda found: f"#{ord(found[0])};", clean(words)) + '"'


def mermaid_comment(words: str) -> str:
    """One line of text for a comment, which cannot hold a directive."""
    return re.sub(r"[{}]", "", clean(words))

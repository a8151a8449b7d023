"""Takes characters out of a text that nobody sees, and lines whose words were split by them.

Unicode has characters without width (zero-width spaces and joiners, tags, variation selectors) and overrides of the
direction of writing. A person does not see that they are there. So a program may read other words than a person: a
negation that is split, or a whole sentence in tag characters. A line with such characters inside its words is left out,
because what it says to a program and to a person may differ; the number of its line stays free. A soft hyphen is an
ordinary mark of typesetting and is taken out. Joiners between letters of scripts that need them (Arabic, Persian, the
scripts of India), and inside emoji, stay.
"""

import re

from opus_pipelines.intakes.visibility.unseen import Unseen

_SOFT = "\u00ad"
_ZERO = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb"
)
_FAR = "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_TAG = re.compile("[\U000e0020-\U000e007e]{2,}")
_ANY = re.compile(f"[{_SOFT}{_ZERO}{_FAR}\u202d\u202e]")
_NO_WIDTH = re.compile(f"[{_ZERO}{_FAR}]")
_PLAIN = r"A-Za-z0-9À-ɏͰ-ϿЀ-ӿ"  # letters of scripts that need no joiners
_SPLIT = re.compile(f"(?<=[{_PLAIN}])[{_ZERO}{_FAR}]+(?=[{_PLAIN}])")
_NEEDED = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\U0001f000-\U0001faff\u2600-\u27bf]")
_OVERRIDE = re.compile("[\u202d\u202e]")
_NO_LETTERS = "characters that are never shown"
_REVERSED = "characters that turn the order of its letters around"
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]{1,8}")  # the flag of a region, which is written with tags


def without_invisible(text: str, unseen: Unseen) -> str:
    """Returns a text without characters that nobody sees; a line that they falsify is empty, and stands in `unseen`."""
    if text.isascii() or not _ANY.search(text):
        return text
    return "\n".join(_line(line, unseen) if _ANY.search(line) else line for line in text.split("\n"))


def _line(line: str, unseen: Unseen) -> str:
    line = _FLAG.sub("\U0001f3f4", line.replace(_SOFT, ""))
    for tags in _TAG.findall(line):
        unseen.hide(_NO_LETTERS, "".join(chr(ord(c) - 0xE0000) for c in tags))
    line = _TAG.sub("", line)
    if _OVERRIDE.search(line):
        unseen.hide(_REVERSED, _OVERRIDE.sub("", line))
        return ""
    bare = line if _NEEDED.search(line) else _NO_WIDTH.sub("", line)
    if _SPLIT.search(line):
        bare = _SPLIT.sub("", bare)
        return bare if unseen.keeps("split_words", bare) else ""
    return bare

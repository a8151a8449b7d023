"""Writes how people talk as plain sentences, before an utterance is split into them.

"I need a board with an item on it" → create a board and an item; "if the total is 0, do nothing; otherwise …" → unless
the total is 0, …; "status solved? Then …" → if status is solved, …; "let the team know" → notify the team.
"""

import re
from collections.abc import Callable
from itertools import count

_START = r"(?:^|(?<=[.;!?] ))"  # of a sentence
_PHRASE = r"(?:[^,.;!?\"]|\.(?=\w))"
_VALUE = r"(?:\"[^\"]*\"|[\w.-]+)"
_ARTICLE = r"(?:an?|another|one|some|new)"
_REST = r"(?:rest|others|remaining (?:ones|\w+s)|other (?:ones|\w+s))(?: of (?:them|those|these))?"
# Verbs of two or three words, and the verb that they stand for
_PHRASAL = {
    r"spin(?:ning)? up": "create",
    r"set(?:ting)? up": "create",
    r"put(?:ting)? together": "create",
    r"kick(?:ing)? off": "start",
    r"get(?:ting)? rid of": "delete",
    r"throw(?:ing)? (?:away|out)": "delete",
    r"go(?:ing)? over (?:all )?the": "go through the",
}
_REWRITES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # "When onboarding somebody, create …": what the flow is for, and no condition
    (rf"{_START}(?:when|while|whenever) \w+ing\b{_PHRASE}*, *(?=\w)", ""),
    *((rf"\b{phrase}\b", verb) for phrase, verb in _PHRASAL.items()),
    (
        rf"\b(?:i|we|you|they)(?:'d| would)?(?: also)? (?:want|need|like|require)(?= {_ARTICLE} (?!list of))",
        "create",
    ),
    # what stands inside of something new is new, too
    (
        rf"\b(create|add|make|open) ({_ARTICLE} {_PHRASE}{{1,60}}?) with ({_ARTICLE} {_PHRASE}{{1,80}}?) "
        r"(?:in|on|inside|within|under) it\b",
        r"\1 \2 and \3",
    ),
    (rf"\blet ({_PHRASE}{{1,50}}?) know (?:with|by|via|through|in) (an?) ({_PHRASE}{{1,30}})", r"send \2 \3 to \1"),
    (rf"\blet ({_PHRASE}{{1,50}}?) know\b", r"notify \1"),
    (rf"\bdrop (it|them|(?:the|this) {_PHRASE}{{1,30}}?) (?:into|onto)\b", r"put \1 into"),
    (
        rf"\bif ((?:{_PHRASE}|\"[^\"]*\")+), *(?:then )?(?:we )?(?:do|does) nothing[,;.]? *(?:otherwise|else)\b,? *",
        r"unless \1, ",
    ),
    (rf"{_START}(?:is|are) ((?:the|its|their) \w+) ({_VALUE})\? *(?:if so|if yes|then|yes)\b,? *", r"if \1 is \2, "),
    (rf"{_START}(?:the )?(\w+) ({_VALUE})\? *(?:if so|if yes|then|yes)\b,? *", r"if the \1 is \2, "),
    (
        rf"\b(?:all )?(?:those|the ones|any) (?:whose|where the) (\w+) is ({_VALUE}) (?:gets?|receives?) (?=an? )",
        r"if its \1 is \2, create ",
    ),
    (rf"\bthe {_REST} (?:gets?|receives?) (?=an? )", "otherwise create "),
    (rf"\bfor (?:all )?(?:of )?the {_REST}\b,?", "otherwise"),
)
_QUOTED = re.compile(r"\"[^\"]*\"")
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), new) for pattern, new in _REWRITES)


def rephrased(utterance: str) -> str:
    """Returns the utterance with the wordings above replaced; quoted texts stay as they are."""
    quoted = _QUOTED.findall(utterance)
    number = count()
    utterance = _QUOTED.sub(lambda _: f'"{next(number)}"', utterance)
    for pattern, new in _COMPILED:
        utterance = pattern.sub(new, utterance)
    return _QUOTED.sub(lambda found: quoted[int(found[0][1:-1])], utterance)

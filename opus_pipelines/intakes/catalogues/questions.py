"""Reads questions with their answers ("Q: ... A: ...") as the statements that both make together.

"What if the car is abroad? It is towed." says what is done if the car is abroad. "Who tells the office? The manager
does." asks for telling the office, and so does "Do we tell the office? Yes." Any other question only leads to its
answer. The words are those of English procedures.
"""

import re
from collections.abc import Sequence

_ASKED = re.compile(r"^\s*(?:[*_#>-]+\s*)?(?:Q|Question)\s?\d*\s*[:.)]\s*(?P<text>.+?)[*_]*\s*$", re.IGNORECASE)
_ANSWER = re.compile(r"^\s*(?:[*_>-]+\s*)?(?:A|Answer)\s?\d*\s*[:.)][*_]*\s*(?P<text>.+)$", re.IGNORECASE)
_WHAT_IF = re.compile(r"^(?:and\s+)?(?:what|how)\b[^?]*?\s(?P<condition>(?:if|when)\s[^?]+)\?$", re.IGNORECASE)
_WHO = re.compile(r"^who\s", re.IGNORECASE)
_INVERTED = re.compile(r"^(?:do|does|must|should|shall|can|may|will)\s+(?=\w+\s)", re.IGNORECASE)
_SHORT = re.compile(r"^(?P<said>yes|no|always|never|not always)\b\s*(?P<end>[,.:!;–-]|$)\s*", re.IGNORECASE)


def answered(lines: Sequence[str]) -> list[str]:
    """Returns the lines, where each marked question stands as what it and its answer say together.

    A text without answers that are marked as such is returned as it is.
    """
    if not any(_ANSWER.match(line) for line in lines) or not any(_ASKED.match(line) for line in lines):
        return list(lines)
    found: list[str] = []
    question = ""
    for line in lines:
        if match := _ASKED.match(line):
            asked = re.findall(r"[^.!?]+[.!?]?", match["text"])  # "A notice came in. What do I do?"
            question = asked[-1].strip()
            if _WHO.match(question):
                found.append(f"{question.rstrip('? ')}.")
            found.append("")
        elif match := _ANSWER.match(line):
            found.append(_together(question, match["text"].strip()))
            question = ""
        else:
            found.append(line)
    return found


def _together(question: str, answer: str) -> str:
    if condition := _WHAT_IF.match(question):
        told = re.sub(r"^then\s+", "", answer, flags=re.IGNORECASE)
        return f"{condition['condition'][0].upper()}{condition['condition'][1:]}, {told}"
    short = _SHORT.match(answer)
    if short is None or _WHO.match(question):
        return answer
    rest = answer[short.end() :]
    if short["said"].casefold() in ("yes", "always") and not rest:
        return _INVERTED.sub("", question.rstrip("? "))
    return rest

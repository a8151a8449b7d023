"""What the variables of a flow hold, their names, and the words of a noun with its restrictions."""

from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.flows.text.conditions import undescribed
from opus_pipelines.language.word_stems import EMPTY
from opus_pipelines.workflow.blocks.expressions import is_name
from opus_pipelines.workflow.blocks.model import Call, UserTask


@dataclass(frozen=True)
class Thing:
    """A variable, the stems of what it holds, and whether it is one item of a loop or a result that may be several.

    `plural` says that the text asks for several ("all the tickets"), so that a condition on it holds for each of them.
    """

    variable: str
    stems: frozenset[str]
    several: bool = False
    loop: str = ""
    plural: bool = False
    shown: tuple[str, ...] = ()


def head_of(words: Sequence[str]) -> list[str]:
    """Returns the words of a noun without determiners, restrictions and what stands behind it."""
    end = next(
        (
            i
            for i, word in enumerate(words)
            if word.lower()
            in ("in", "from", "on", "that", "which", "who", "whose", "with", "within", "marked", "flagged")
            or (i and _is_filter(words, i))
        ),
        len(words),
    )
    kept = undescribed(words[: end or len(words)])
    return [word for word in kept if word.lower() not in ("one", "single", *EMPTY)]


def filter_of(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the words of a relative clause as a condition: "lead that has a hot rating" → lead has a hot rating."""
    lower = [word.lower() for word in words]
    for place in range(1, len(words)):
        if lower[place] in ("that", "which", "who") and place + 1 < len(words):
            return (*words[:place], *words[place + 1 :])
        if lower[place] == "whose" and place + 1 < len(words):
            return ("its", *words[place + 1 :])
        if lower[place] == "with" and len(words) - place >= 3:
            return (*words[:place], "has", *words[place + 1 :])
        if lower[place] in ("marked", "flagged", "labeled", "labelled") and lower[place + 1 : place + 2] == ["as"]:
            return (*words[:place], "is", *words[place + 2 :])
        if _is_filter(words, place):
            if lower[place] in OWNERS and lower[place + 1] in ("by", "to"):
                return (*words[:place], "has", OWNERS[lower[place]], *words[place + 2 :])
            return (*words[:place], "is", *words[place:])
    return ()


OWNERS = {"owned": "owner", "assigned": "assignee", "created": "creator", "authored": "author", "managed": "manager"}
_COMPARATIVES = ("larger", "bigger", "smaller", "greater", "higher", "lower", "older", "newer", "more", "less")


def _is_filter(words: Sequence[str], place: int) -> bool:
    """Whether a participle with its complement or a comparison begins at the place: "owned by Ann", "larger than 5"."""
    word, following = words[place].lower(), words[place + 1].lower() if place + 1 < len(words) - 1 else ""
    return (word in OWNERS and following in ("by", "to")) or (word in _COMPARATIVES and following == "than")


def item_name(words: Sequence[str], source: Thing | None) -> str:
    """Returns a name for one item: the last word in the singular."""
    word = next((word.lower() for word in reversed(words) if is_name(word.lower())), "item")
    name = singular(word)
    taken = source.variable if source else ""
    return name if name != taken else f"{name}_item"


def singular(word: str) -> str:
    """Returns a noun without the ending of the plural."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def several_name(word: str) -> str:
    """Returns the plural of a name."""
    return word[:-1] + "ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else word + "s"


def result_thing(statement: Call | UserTask, stems: frozenset[str], several: bool, plural: bool = False) -> Thing:
    """Returns the variable that a statement sets."""
    return Thing(statement.variable, stems, several, plural=several and plural)

"""Reads a condition clause as a comparison: its subject, the attribute, the operator and the constant.

"if the incident has "high" impact" → subject incident, attribute impact, ==, "high". Words of the clause become the
attribute and the constant; nothing is taken from elsewhere but the attribute of an adjective that has been learnt.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.flows.text.clauses import Clause
from opus_pipelines.flows.text.operations import lemma_of_verb
from opus_pipelines.language.grammar.modality import inflected, is_participle, may_be_third_person
from opus_pipelines.language.word_stems import EMPTY
from opus_pipelines.workflow.blocks.expressions import (
    COMPARATORS,
    Comparator,
    Comparison,
    Expression,
    Literal,
    Not,
    Path,
    Scalar,
    is_name,
)

_BE = frozenset(["is", "are", "was", "were", "be", "equals", "equal", "==", "="])
_PRONOUNS = frozenset(
    ["it", "its", "it's", "they", "their", "them", "this", "that", "these", "those", "he", "his", "she", "her"]
)
_NEGATIONS = frozenset("not isn't aren't doesn't don't no never cannot wasn't hasn't haven't none without".split())
_HAVE = frozenset(["has", "have", "with", "contains", "had", "includes"])
_FILLERS = EMPTY - {"not", "no", "never", "more", "than", "over", "above", "below", "each", "any", "all"} | {
    "set",
    "equal",
    "currently",
    "yet",
    "already",
}
_ATTRIBUTES = frozenset(
    (
        "priority status state severity impact urgency type name title category level stage owner assignee size amount "
        "price cost total count number label description email department role country city region source rating score "
        "subject date year color colour language version phase result outcome industry domain visibility location"
    ).split()
)
# Participles that name the owner of a record, and the attribute that holds the owner: "assigned to me"
OWNERS = {"owned": "owner", "assigned": "assignee", "created": "creator", "authored": "author", "managed": "manager"}
_COMPOUND = frozenset("due start end creation close closing delivery expiry net gross unit order".split())
_GREATER = re.compile(r"\b(?:greater|more|higher|larger|bigger|older|longer) than\b|\b(?:exceeds?|above|over)\b|>(?!=)")
_LESS = re.compile(r"\b(?:less|fewer|lower|smaller|younger|shorter) than\b|\b(?:below|under)\b|<(?!=)")
_AT_LEAST = re.compile(r"\bat least\b|>=")
_AT_MOST = re.compile(r"\bat most\b|<=")
_SIGNS = {"negative": "<", "positive": ">", "zero": "=="}
_TRUE = {"true": True, "yes": True, "false": False, "none": None, "null": None, "empty": None}
_EXISTENCE = re.compile(
    r"(?:there (?:is|are|exists?|were|was)\b)|(?:\bexists?\b)|(?:\b(?:is|are) (?:already )?(?:found|available|present|there)\b)"
)
_WORD = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s]+")


NUMBER = re.compile(r"(?P<digits>-?\d+(?:,\d{3})*(?:\.\d+)?)(?P<thousands> ?k\b)?", re.IGNORECASE)


def number_of(match: re.Match[str]) -> int | float:
    """Returns the number that `NUMBER` has found: "5,000", "38.5" and "50k"."""
    value = float(match["digits"].replace(",", "")) * (1000 if match["thousands"] else 1)
    return int(value) if value == int(value) else value


@dataclass(frozen=True)
class ConditionText:
    """What a condition says. `subject` are the words that name its object, empty for a pronoun or where none is named.

    `attribute` is "" for a condition on the object itself, `operator` "" for its truth; then `negated` says whether it
    must not hold.
    """

    subject: tuple[str, ...] = ()
    pronoun: bool = False
    attribute: str = ""
    operator: Comparator | str = ""
    value: Scalar = None
    negated: bool = False

    def expression(self, variable: str) -> Expression:
        """Returns the condition on a variable."""
        path = Path((variable, *([self.attribute] if self.attribute else [])))
        if self.operator in COMPARATORS:
            operator: Comparator = self.operator
            if operator in ("in", "not in"):
                return Comparison(Literal(self.value), operator, path)
            return Comparison(path, operator, Literal(self.value))
        return Not(path) if self.negated else path


def read_condition(clause: Clause) -> ConditionText:
    """Returns what a condition clause says; a clause that has no known form is a test of its subject's truth."""
    condition = _Reader(_of_each(clause.words)).read()
    if clause.marker == "unless":
        condition = _opposite(condition)
    return condition


_ONE_OF = re.compile(
    r"^(?:any|one|some|each|either)(?: one)?(?: of (?P<whole>them|these|those|the|its|their))?$", re.IGNORECASE
)


def _of_each(words: Sequence[str]) -> Sequence[str]:
    """Returns "one of them is open" and "any is open" as "it is open", and "one of the leads is open" as "the leads is open"."""
    for size in (4, 3, 2, 1):
        match = _ONE_OF.match(" ".join(words[:size]))
        if match is None or len(words) <= size:
            continue
        if match["whole"] in ("the", "its", "their"):
            return words[size - 1 :]
        alone = words[size].lower() in _BE | _HAVE | _NEGATIONS or match["whole"]
        return ("it", *words[size:]) if alone else words
    return words


# What an adjective before a noun says: "every urgent ticket".
_ADJECTIVES = {
    **dict.fromkeys(["urgent", "critical"], "priority"),
    **dict.fromkeys(["hot", "cold", "warm"], "rating"),
    **dict.fromkeys(
        "open closed completed pending resolved unresolved overdue expired failed cancelled canceled approved rejected "
        "unpaid paid inactive active archived draft".split(),
        "status",
    ),
}
# Participles and adjectives that name a status; others, such as "compliant", hold or do not hold.
_STATUSES = frozenset(word for word, attribute in _ADJECTIVES.items() if attribute == "status")


def described(words: Sequence[str]) -> ConditionText | None:
    """Returns what the adjectives before a noun say as a condition: "low priority incident" → priority == "low"."""
    plain = [part for word in words for part in (word.split("-") if "-" in word else [word])]
    lower = [word.lower() for word in plain]
    for place, word in enumerate(lower[:-1]):
        if word in _ATTRIBUTES and place > 0 and lower[place - 1] not in EMPTY | {"each", "every", "all"}:
            return ConditionText(pronoun=True, attribute=word, operator="==", value=_value(plain[place - 1 : place]))
        if word in _ADJECTIVES and lower[place + 1] not in _ATTRIBUTES:
            return ConditionText(pronoun=True, attribute=_ADJECTIVES[word], operator="==", value=word)
        if word in ("that", "which", "who", "whose", "with"):
            break
    return None


def undescribed(words: Sequence[str]) -> list[str]:
    """Returns the words of a noun without the adjectives that `described` reads."""
    found = described(words)
    if found is None:
        return list(words)
    gone = {str(found.value).lower(), found.attribute, f"{found.value}-{found.attribute}".lower()}
    return [word for word in words if word.lower() not in gone]


def _opposite(condition: ConditionText) -> ConditionText:
    opposites = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    if condition.operator:
        return ConditionText(**{**condition.__dict__, "operator": opposites.get(condition.operator, "!=")})
    return ConditionText(**{**condition.__dict__, "negated": not condition.negated})


class _Reader:
    def __init__(self, words: Sequence[str]) -> None:
        self.words = [word for word in words if word not in (",", "(", ")")]
        self.lower = [word.lower() for word in self.words]

    def read(self) -> ConditionText:
        text = " ".join(self.lower)
        if match := _EXISTENCE.search(text):
            return self._existence(text, match)
        for pattern, operator in ((_AT_LEAST, ">="), (_AT_MOST, "<="), (_GREATER, ">"), (_LESS, "<")):
            match = pattern.search(text)
            if match and re.search(r"\d", text[match.end() :]):
                return self._comparison(text, match, operator)
        holds = re.search(r"\b(?:contains?|includes?|mentions?)\b", text)
        if holds and any(_quoted(word) for word in self.words):
            before = text[: holds.start()].split()
            subject, attribute = self._split([word for word in before if word not in _NEGATIONS | {"does", "do"}])
            operator = "not in" if _NEGATIONS & set(before) else "in"
            return self._subject(subject, attribute=attribute, operator=operator, value=_value(self.words))
        be = next((i for i, word in enumerate(self.lower) if self._is_verb(i, word)), None)
        if be is not None:
            return self._copula(be)
        have = next((i for i, word in enumerate(self.lower) if word in _HAVE and i), None)
        if have is not None or self.lower[:1] == ["with"]:
            return self._having(have or 0)
        its = self.lower[:1] in (["its"], ["it's"])
        if its:
            return self._described(self.words[1:])
        verb = next((i for i, word in enumerate(self.lower) if word in ("doesn't", "don't", "does", "do")), None)
        negated = bool(_NEGATIONS & set(self.lower))
        if verb is not None:
            return self._subject(self.words[:verb], attribute=_name(self._rest(verb + 1)[-1:]), negated=negated)
        if done := self._done():
            return done
        return self._subject(self._rest(0), negated=negated)

    def _done(self) -> ConditionText | None:
        """What the subject does or has done: "it fails" → failed, "nobody answered" → not answered."""
        place = next((i for i, w in enumerate(self.lower) if i and (may_be_third_person(w) or is_participle(w))), 0)
        if not place or place + 2 < len(self.words):
            return None
        lemma = lemma_of_verb(self.lower[place])
        attribute = next(iter(inflected(lemma, "VBN")), lemma)
        nobody = self.lower[0] in ("nobody", "none")
        subject = [] if nobody or self.lower[0] in ("no", "someone", "somebody") else self.words[:place]
        negated = nobody or bool(_NEGATIONS & set(self.lower[:place]))
        return self._subject(subject, attribute=_name([attribute]), negated=negated)

    def _is_verb(self, place: int, word: str) -> bool:
        if word in ("it's", "they're", "isn't", "aren't", "wasn't"):
            rest = self.lower[place + 1 :]
            return not (word == "it's" and bool(_BE & set(rest)))
        return word in _BE and place > 0

    def _rest(self, start: int) -> list[str]:
        return [word for word in self.words[start:] if word.lower() not in _FILLERS and word.lower() not in _NEGATIONS]

    def _subject(self, words: Sequence[str], **about: object) -> ConditionText:
        plain = [word for word in words if word.lower() not in _FILLERS | _PRONOUNS | {"there", "any", "all", "each"}]
        pronoun = not plain
        return ConditionText(tuple(plain), pronoun, **about)  # type: ignore[arg-type]

    def _existence(self, text: str, match: re.Match[str]) -> ConditionText:
        negated = bool(_NEGATIONS & set(self.lower))
        around = (text[: match.start()] + " " + text[match.end() :]).split()
        for pattern, operator in ((_AT_LEAST, ">="), (_AT_MOST, "<="), (_GREATER, ">"), (_LESS, "<")):
            number = re.search(rf"(?:{pattern.pattern})\s*(\d{{1,15}})\b", text)
            if number:
                rest = text[number.end() :].split() or around
                return self._subject(rest, operator=operator, value=int(number.group(1)))
        return self._subject([word for word in around if word not in _NEGATIONS], negated=negated)

    def _comparison(self, text: str, match: re.Match[str], operator: str) -> ConditionText:
        number = NUMBER.search(text, match.end())
        assert number is not None
        value = number_of(number)
        before = [word for word in text[: match.start()].split() if word not in _BE | _HAVE]
        subject, attribute = self._split(before)
        counted = text[number.end() :].split()
        has = bool(_HAVE & set(text[: match.start()].split()))
        if has and not attribute and len(counted) == 1 and counted[0].isidentifier():
            attribute = counted[0]  # "the epic has more than five issues"
        if not attribute and re.match(r"older|younger", match.group()):
            attribute = "age"
        if not attribute and re.match(r"larger|bigger|smaller", match.group()):
            attribute = "size"
        return self._subject(subject, attribute=attribute, operator=operator, value=value)

    def _copula(self, place: int) -> ConditionText:
        before, after = self.words[:place], self.words[place + 1 :]
        if self.lower[place] in ("it's", "they're"):
            before = ["it"]
        negated = self.lower[place] in _NEGATIONS or bool(_NEGATIONS & {word.lower() for word in after[:2]})
        end = next(
            (i for i, word in enumerate(after) if i and word.lower() in ("using", "via", "through", "by")), len(after)
        )
        values = [word for word in after[:end] if word.lower() not in _FILLERS | _NEGATIONS | {"to", "than"}]
        subject, attribute = self._split([word.lower() if word != word.title() else word for word in before])
        operator = "!=" if negated else "=="
        owned = next((i for i, word in enumerate(after[:-2]) if word.lower() in OWNERS), None)
        if not attribute and owned is not None and after[owned + 1].lower() in ("to", "by"):
            value = _value([word for word in after[owned + 2 :] if word.lower() not in ("the", "a", "an")])
            return self._subject(subject, attribute=OWNERS[after[owned].lower()], operator=operator, value=value)
        if not values:
            return self._subject(subject, attribute=attribute, negated=negated)
        if len(values) >= 2 and not attribute and values[-1].lower() in _ATTRIBUTES:
            return self._subject(subject, attribute=values[-1].lower(), operator=operator, value=_value(values[:-1]))
        if not attribute and after[:1] and after[0].lower() in ("from", "in") and values[0][:1].isupper():
            attribute = "country"
        if attribute:
            value = _value(values)
            return self._subject(subject, attribute=attribute, operator=operator, value=value)
        value = _value(values)
        if value is None:
            return self._subject(subject, operator=operator, value=None)
        if (
            len(values) == 1
            and not _quoted(values[0])
            and _is_state(values[0].lower())
            and values[0].lower() not in _STATUSES
        ):
            return self._subject(subject, attribute=_name(values), negated=negated)
        return self._subject(subject, attribute="status", operator=operator, value=value)

    def _split(self, words: Sequence[str]) -> tuple[list[str], str]:
        """Returns the subject and the attribute: "the team's name", "the name of the team", "its type"."""
        lower = [word.lower() for word in words]
        for i, word in enumerate(lower):
            if word.endswith(("'s", "s'")) and word != "it's" and i + 1 < len(words):
                return [*words[:i], words[i].rpartition("'")[0]], _name(words[i + 1 :])
            if word in ("its", "their", "it's", "his", "her") and i + 1 < len(words):
                return [], _name(words[i + 1 :])
        if "of" in lower[1:-1]:
            place = lower.index("of")
            return list(words[place + 1 :]), _name([w for w in words[:place] if w.lower() not in _FILLERS])
        plain = [word for word in words if word.lower() not in _FILLERS]
        if len(plain) > 1 and plain[-1].lower() in _ATTRIBUTES and plain[-2].lower() in _COMPOUND:
            return plain[:-2], f"{plain[-2]}_{plain[-1]}".lower()
        if len(plain) >= 1 and plain[-1].lower() in _ATTRIBUTES:
            return plain[:-1], plain[-1].lower()
        return list(words), ""

    def _having(self, place: int) -> ConditionText:
        subject = self.words[:place]
        negated = bool(_NEGATIONS & set(self.lower[place - 1 :]))
        return self._described(self.words[place + 1 :], subject, negated)

    def _described(self, words: Sequence[str], subject: Sequence[str] = (), negated: bool = False) -> ConditionText:
        """An attribute with its value in either order: "high impact", "a priority of 1", "a low priority issue"."""
        plain = [word for word in words if word.lower() not in _FILLERS | _NEGATIONS]
        operator = "!=" if negated else "=="
        quoted = next((i for i, word in enumerate(plain) if _quoted(word)), None)
        place = next((i for i, word in enumerate(plain) if word.lower() in _ATTRIBUTES), None)
        if quoted is not None and len(plain) > 1:
            attribute = (
                plain[place] if place is not None else plain[quoted + 1] if quoted + 1 < len(plain) else plain[0]
            )
            return self._subject(
                subject, attribute=_name([attribute]), operator=operator, value=_value([plain[quoted]])
            )
        if place is not None and len(plain) > 1:
            value = plain[:place] or plain[place + 1 :]
            return self._subject(subject, attribute=plain[place].lower(), operator=operator, value=_value(value))
        if len(plain) == 1:
            return self._subject(subject, attribute=_name(plain), negated=negated)
        if len(plain) >= 2 and negated:
            return self._subject(subject, attribute=_name(plain), negated=True)
        if len(plain) >= 2 and plain[0].lower() in _SIGNS:
            return self._subject(subject, attribute=_name(plain[1:]), operator=_SIGNS[plain[0].lower()], value=0)
        if len(plain) >= 2:
            return self._subject(subject, attribute=_name(plain[1:]), operator=operator, value=_value(plain[:1]))
        return self._subject(subject, negated=negated)


def _quoted(word: str) -> bool:
    return len(word) > 1 and word[0] == word[-1] and word[0] in "\"'"


def _is_state(word: str) -> bool:
    """Whether a word is a state that holds or not: a participle or an adjective of that form ("compliant")."""
    return word.endswith(("ed", "ant", "able", "ible", "ive"))


def _name(words: Sequence[str]) -> str:
    """Returns the words as the name of an attribute; "" where they are none."""
    plain = [re.sub(r"\W+", "", word) for word in words if word.lower() not in _FILLERS]
    name = "_".join(word if any(c.isupper() for c in word[1:]) else word.lower() for word in plain if word)
    return name if name and is_name(name) else ""


def _value(words: Sequence[str]) -> Scalar:
    quoted = next((word for word in words if _quoted(word)), None)
    if quoted is not None:
        return quoted[1:-1]
    text = " ".join(words)
    if text.lower() in _TRUE:
        return _TRUE[text.lower()]
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    return text

"""National telephone numbers without a leading 0, in the groups in which people of a country write them.

A group of digits alone says little, so a number counts where its groups are those of a country and `phonenumbers`
(Google's metadata) knows it as a possible line of that country. Nine digits in three groups of three with blanks are an
amount as often as a number of Poland, Spain or Portugal: they count only after a word that says so, or with dashes.
"""

import re
from collections.abc import Iterator

from opus_pipelines.history.privacy.plain_text import NO_LETTER_AFTER, NO_LETTER_BEFORE, Span

_NUMBER_MASK = "[number]"
_PHONE_FORMS: tuple[tuple[str, str], ...] = (  # countries, and the form
    ("CN", r"1[3-9]\d[ -]\d{4}[ -]\d{4}"),
    ("BR", r"\(?[1-9]\d\)?[ -]{0,2}9?\d{4}-\d{4}"),
    ("BR", r"\([1-9]\d\) ?9?\d{4} \d{4}"),
    ("RU", r"8[ -]?\(?[3-9]\d{2}\)?[ -]?\d{3}[ -]\d{2}[ -]\d{2}"),
    ("TR", r"\(?5\d{2}\)? \d{3} \d{2} \d{2}"),
    ("IT", r"3\d{2}[ .-]\d{3}[ .-]?\d{3,4}(?![ .-]?\d)"),
    ("PL", r"[1-9]\d \d{3} \d{2} \d{2}"),
    ("PL CZ ES PT", r"[1-9]\d{2}-\d{3}-\d{3}"),
    ("ES", r"[6-9]\d{2} \d{2} \d{2} \d{2}"),
    ("IN", r"[6-9]\d{4}[ -]\d{5}"),
    ("SG HK", r"[3689]\d{3} \d{4}"),
)
_BEFORE_PHONE = rf"{NO_LETTER_BEFORE}(?<![.,/#+$€£¥-])(?<![$€£¥] )"
_AFTER_PHONE = rf"{NO_LETTER_AFTER}(?![.,/-]\d| ?[%€$£¥])"
_ANY_PHONE = re.compile(
    _BEFORE_PHONE
    + "(?:"
    + "|".join(f"(?P<f{n}>{form})" for n, (_, form) in enumerate(_PHONE_FORMS))
    + ")"
    + _AFTER_PHONE
)
_CHINESE = re.compile(r"(?<![\d.,-])(?:86)?1[3-9]\d{9}(?![\d.,-])")
_HAN = re.compile("[\u4e00-\u9fff]")


def national_numbers(text: str) -> Iterator[Span]:
    """Yields where national telephone numbers stand in a plain text. A bare Chinese number counts in Chinese texts."""
    for match in _ANY_PHONE.finditer(text):
        countries = _PHONE_FORMS[int((match.lastgroup or "f0")[1:])][0].split()
        if any(_is_valid_phone(match[0], country) for country in countries):
            yield match.start(), match.end(), _NUMBER_MASK
    if _HAN.search(text):
        for match in _CHINESE.finditer(text):
            if _is_valid_phone(match[0], "CN"):
                yield match.start(), match.end(), _NUMBER_MASK


def _is_valid_phone(text: str, country: str) -> bool:
    import phonenumbers

    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(text, country))
    except phonenumbers.NumberParseException:
        return False

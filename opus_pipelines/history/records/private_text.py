"""Finds private data in texts: e-mail addresses, telephone, account, card and identity numbers.

A text is masked where it contains

- an e-mail address (`@`, or `%40` as in links), the host with a top-level domain: `[email]`;
- an IBAN of a known country and length whose check digits are right (mod 97), or a credit card number (13-19 digits in
  the usual groups, of a known network, Luhn; four groups of four in any case): `[account]`;
- a number of a person that is told by its form and check digits (`history.privacy.identity_numbers`): `[account]`;
- a telephone number: international (`+31 6 12345678`, `0031612345678`), national with a leading 0 (`06-12345678`,
  `(020) 123 45 67`, `0612345678`), North American (`(555) 123-4567`, `555-123-4567`), in the groups of some fifteen
  countries (`history.privacy.telephone_numbers`), or a US social security number: `[number]`;
- a number after a word that names its kind (`tel. 612345678`, `account no. 12345678`, `паспорт 4510 123456`,
  `passport C01X00T47`): `[number]` or `[account]`.

Digits of all scripts, blanks of all widths and full-width signs count as the plain ones (`history.privacy.plain_text`).
Everything else stays: dates, amounts, plain numbers and ids without such a word, UUIDs, coordinates, versions, and
digits that are part of a word, a link or a longer number. A national number without a leading 0 and without such a word
(`612 345 678`) cannot be distinguished from an amount. Names and addresses stay unless they are asked for
(`history.privacy.persons`).
"""

import re
from collections.abc import Iterable
from functools import cache

from opus_pipelines.history.privacy.identity_numbers import FEW_DIGITS, identities
from opus_pipelines.history.privacy.persons import persons
from opus_pipelines.history.privacy.plain_text import NO_LETTER_AFTER, NO_LETTER_BEFORE, PlainText, Span
from opus_pipelines.history.privacy.telephone_numbers import national_numbers
from opus_pipelines.history.privacy.words import (
    _ACCOUNTS,
    _IDENTITIES,
    _IDENTITIES_INSIDE,
    _LINK_WORDS,
    _NUMBER_WORDS,
    _PHONES,
    _PHONES_INSIDE,
)

_IBAN_LENGTHS = {
    country: int(length)
    for country, length in re.findall(
        r"([A-Z]{2})(\d\d)",
        (
            "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 "
            "FI18 FO18 FR27 GB22 "
            "GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 "
            "LY25 MC27 MD24 ME22 "
            "MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 "
            "TL23 TN24 TR26 UA29 "
            "VA22 VG24 XK20"
        ),
    )
}
_CARD = re.compile(
    r"4\d{12}|4\d{15}|4\d{18}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|720\d{12}|3[47]\d{13}|3(?:0[0-5]"
    r"|[68]\d)\d{11}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|35\d{14}|6[27]\d{14,17}"
)
_UUID = r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
_MOMENT = (
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.,]*(?: ?Z| ?[+-]\d\d:?\d\d)?)?"
    r"|\b\d{1,2}[./-]\d{1,2}[./-]\d{4}(?:,? \d\d:\d\d(?::\d\d)?)?(?![\w-])|\b\d{4}[./]\d\d[./]\d\d(?![\w.-])"
    r"|\b[0-3]?\d(?P<part>[./-])[01]?\d(?P=part)\d\d(?!\d|(?P=part)\d)"
)
_BEFORE = rf"(?:{NO_LETTER_BEFORE}(?<![.,#/+-])|(?<=\\[nrt]))"  # a \n written out, as JSON has it, is no letter
_END = rf"{NO_LETTER_AFTER}(?![.,-]\d)"
_PHONE_WORD = rf"(?:(?<![^\W_])(?:{_PHONES})|{_PHONES_INSIDE})"
_ACCOUNT_WORD = rf"(?:(?<![^\W_])(?:{_ACCOUNTS}|{_IDENTITIES})|{_IDENTITIES_INSIDE})"
# A number with letters: one to three before its digits, or among at least four digits (passports, licences).
_MIXED = r"(?-i:[A-Z]{1,3}[ -]?\d{5,9}[A-Z]?|(?=(?:[A-Z]*\d){4})[A-Z\d]{6,16}|[A-Z]{2,5}\d{6}[A-Z\d]{2,8})(?![\w-])"
_AFTER_WORDS = (
    rf"|(?P<account>{_ACCOUNT_WORD}{_NUMBER_WORDS}{_LINK_WORDS})(?:\d(?:[ ./-]?\d){{5,25}}{_END}|{_MIXED})"
    rf"|(?P<phone>{_PHONE_WORD}{_NUMBER_WORDS}{_LINK_WORDS})[+(]{{0,2}}\d(?:[ ()./-]{{0,3}}\d){{6,14}}{_END}"
)


@cache
def _private(words: str) -> re.Pattern[str]:
    """Returns what finds numbers; `words`: the alternatives for a number after a word that names its kind.

    Compiling it takes a tenth of a second, which only texts with numbers are worth.
    """
    return re.compile(
        rf"(?P<moment>{_MOMENT}|{_UUID})" + words + rf"|(?P<national>{_BEFORE}(?:0[1-9]\d{{0,4}}[ /.-]{{1,3}}"
        rf"|\(0[1-9]\d{{0,4}}\)[ /.-]{{0,3}})\d(?:[ /.-]{{0,3}}\d){{4,9}}{_END})"
        rf"|(?P<number>"
        rf"{_BEFORE}\(?\+\(?[1-9](?!\d{{0,2}}\.\d{{3,}}(?![\d./()-]| \d))(?:[ ()./-]{{0,3}}\d){{7,14}}{_END}"
        rf"|{_BEFORE}00(?:[1-9]\d{{10,12}}|[ .-]?[1-9]\d{{0,2}}(?:[ ()/.-]{{1,3}}\d+){{2,6}}){_END}"
        rf"|{_BEFORE}0[1-9]\d{{8,9}}{_END}"
        rf"|{_BEFORE}(?:1[ .-]?)?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{{4}}{_END}"
        rf"|{_BEFORE}(?!000|666|9)\d{{3}}-(?!00)\d\d-(?!0000)\d{{4}}{_END})"
        rf"|(?P<card>{_BEFORE}\d{{4}}(?:[ .-]?\d{{4,6}}){{2}}[ .-]?\d{{1,7}}{_END})",
        re.IGNORECASE,
    )


_LETTER = re.compile(r"[^\W\d_]")
_EMAIL = re.compile(r"(?<!\w)\w[\w.+%&'~-]{0,63}(?:@|%40)[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}\.[^\W\d_]{2,24}(?![^\W_])")
_FOUR_BY_FOUR = re.compile(r"(?:\d{4}[ .-]){3}\d{4}")  # nothing else is written so, right or mistyped
_MAYBE_IBAN = re.compile(rf"{_BEFORE}[A-Za-z]{{2}}\d\d(?=[ .-]?[A-Za-z0-9])")
_GROUPS = re.compile(r"(?:[ .-]?[A-Za-z0-9]){11,30}")
# A fast prefilter for RE2: a text without a match is not private. Words are not looked for, as six digits near each
# other are rare, and long alternatives are slow.
POSSIBLE = rf"@|%40|(?:\d\D{{0,6}}){{8}}|\d(?:\D{{0,3}}\d){{5}}|[٠-٩۰-۹०-९০-৯๐-๙０-９]|{FEW_DIGITS}"


def mask_text(text: str, names: bool = False) -> str:
    """Replaces private data by [email], [account] or [number], by the rules of this module.

    `names`: also names of persons and addresses that the words around them tell, by [name] and [address].
    """
    found = PlainText(text)
    if "@" in found.plain or "%40" in found.plain:
        found.mask([(m.start(), m.end(), "[email]") for m in _EMAIL.finditer(found.plain)])
    has_letters = _LETTER.search(found.plain) is not None
    numbers = _private(_AFTER_WORDS if has_letters else "")  # most texts with many digits are times and ids
    if has_letters:
        found.mask(_ibans(found.plain))
    found.mask(list(identities(found.plain)))
    found.mask([span for match in numbers.finditer(found.plain) if (span := _span(match)) is not None])
    found.mask(_apart(national_numbers(found.plain)))
    if names:
        found.mask(list(persons(found.plain)))
    return found.masked


def _span(match: re.Match[str]) -> Span | None:
    """Returns what of a match is masked, or None where it is no private number."""
    kind, text = match.lastgroup, match[0]
    digits = sum(c.isdigit() for c in text)
    if kind in ("account", "phone"):
        return match.end(kind), match.end(), "[account]" if kind == "account" else "[number]"
    card = kind == "card" and (is_card(text) or _FOUR_BY_FOUR.fullmatch(text))
    stays = kind == "moment" or (kind == "national" and not 9 <= digits <= 12) or (kind == "card" and not card)
    return None if stays else (match.start(), match.end(), "[account]" if kind == "card" else "[number]")


def _apart(spans: Iterable[Span]) -> list[Span]:
    """Returns spans in order, without those that overlap one before."""
    kept: list[Span] = []
    for span in sorted(spans):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _ibans(text: str) -> list[Span]:
    found: list[Span] = []
    for start in _MAYBE_IBAN.finditer(text):
        length = _IBAN_LENGTHS.get(start[0][:2].upper())
        done = found[-1][1] if found else 0
        end = _end_of(text, start.start(), length) if length and start.start() >= done else None
        if end is not None and is_iban(text[start.start() : end]):
            found.append((start.start(), end, "[account]"))
    return found


def _end_of(text: str, start: int, length: int) -> int | None:
    """Returns where `length` letters and digits, in groups, end; None if there are fewer or if they continue."""
    group = _GROUPS.match(text, start)
    places = [p for p in range(*group.span()) if text[p].isalnum()] if group else []
    if len(places) < length:
        return None
    end = places[length - 1] + 1
    return None if text[end : end + 1].isalnum() else end


def is_iban(text: str) -> bool:
    """Tells whether the text is an IBAN of a known country with right length and check digits (ISO 13616).

    Blanks, dots and dashes are ignored.
    """
    plain = re.sub(r"[ .-]", "", text).upper()
    if len(plain) != _IBAN_LENGTHS.get(plain[:2]) or not plain.isascii() or not plain.isalnum():
        return False
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def is_card(text: str) -> bool:
    """Tells whether the text is a payment card number of a known network and length with a right check digit.

    The check is Luhn's (ISO 7812). Separators between the groups are ignored.
    """
    digits = re.sub(r"\D", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = [int(d) * 2 for d in digits[-2::-2]]
    return (sum(int(d) for d in digits[-1::-2]) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0

"""Finds private data in texts: e-mail addresses, telephone numbers and account numbers.

A text is masked where it contains

- an e-mail address (`@`, or `%40` as in links), the host with a top-level domain: `[email]`;
- an IBAN of a known country and length whose check digits are right (mod 97), or a credit card number (13-19 digits in
  the usual groups, of a known network, Luhn; four groups of four in any case): `[account]`;
- a telephone number: international (`+31 6 12345678`, `0031612345678`), national with a leading 0 (`06-12345678`,
  `(020) 123 45 67`, `0612345678`), North American (`(555) 123-4567`, `555-123-4567`), or a US social security number:
  `[number]`;
- a number after a word that names its kind (`tel. 612345678`, `account no. 12345678`, `SSN: 123456789`): `[number]` or
  `[account]`.

Everything else stays: dates, amounts, plain numbers and ids without such a word, UUIDs, coordinates, versions, and
digits that are part of a word, a link or a longer number. A national number without a leading 0 and without such a word
(`612 34 56 78`) cannot be distinguished from an amount.
"""

import re

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
_BEFORE = r"(?:(?<![\w.,#/+-])|(?<=\\[nrt]))"  # a \n written out, as JSON has it, is no letter
_END = r"(?!\w|[.,-]\d)"
_NUMBER_WORD = r"(?:[ _-]?(?:number|nummer|num|n[uú]m[eé]ro|nr|no|n°))?"
_LINK = r"""["']?[ .:=#)]{0,3}(?:\b(?:is|was|ist|war|est|es|on|at|op|unter)\b)?[ :=#]{0,2}["']?"""
_PHONE_WORD = (
    r"(?:tele(?:ph|f)one?|telefoon|teléfono|téléphone|tél|tel|phone|mobile?|mobiel|m[oó]vil|cell(?:phone)?|gsm|handy"
    r"|fax|call|bel|whatsapp"
    r"|sms|msisdn)"
)
_ACCOUNT_WORD = (
    r"(?:account|acct|rekening|konto|cuenta|compte|iban|routing|aba|(?:credit|debit)[ _-]?card|card(?=[ _-]?(?:number"
    r"|nr|no)(?![^\W_]))"
    r"|kreditkarte|ssn|social[ _-]security|bsn|sofi|dni|nif|passport|paspoort|reisepass|pasaporte)"
)
_PRIVATE = re.compile(
    rf"(?P<moment>{_MOMENT}|{_UUID})"
    rf"|(?P<account>(?<![^\W_]){_ACCOUNT_WORD}{_NUMBER_WORD}{_LINK})\d(?:[ .-]?\d){{5,18}}{_END}"
    rf"|(?P<phone>(?<![^\W_]){_PHONE_WORD}{_NUMBER_WORD}{_LINK})[+(]{{0,2}}\d(?:[ ()./-]{{0,3}}\d){{6,14}}{_END}"
    rf"|(?P<national>{_BEFORE}(?:0[1-9]\d{{0,4}}[ /.-]{{1,3}}"
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
_EMAIL = re.compile(r"(?<!\w)\w[\w.+%&'~-]{0,63}(?:@|%40)[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}\.[^\W\d_]{2,24}(?![^\W_])")
_FOUR_BY_FOUR = re.compile(r"(?:\d{4}[ .-]){3}\d{4}")  # nothing else is written so, right or mistyped
_MAYBE_IBAN = re.compile(rf"{_BEFORE}[A-Za-z]{{2}}\d\d(?=[ .-]?[A-Za-z0-9])")
_GROUPS = re.compile(r"(?:[ .-]?[A-Za-z0-9]){11,30}")
POSSIBLE = (  # a fast prefilter for RE2: a text without a match is not private
    r"@|%40|(?:\d\D{0,6}){8}|(?i:tel|tél|phone|mob|m[oó]vil|cell|gsm|handy|fax|call|bel|whatsapp|sms|msisdn|acc|rek"
    r"|konto|cuenta|compte|iban"
    r"|rout|aba|card|karte|ssn|social|bsn|sofi|dni|nif|pass|paspoort|pasaporte)\D{0,24}\d(?:\D{0,3}\d){5}"
)


def mask_text(text: str) -> str:
    """Replaces private data by [email], [account] or [number], by the rules of this module."""
    if "@" in text or "%40" in text:
        text = _EMAIL.sub("[email]", text)
    return _PRIVATE.sub(_mask, _without_ibans(text))


def _mask(match: re.Match[str]) -> str:
    kind, text = match.lastgroup, match[0]
    digits = sum(c.isdigit() for c in text)
    if kind in ("account", "phone"):
        return match[kind] + ("[account]" if kind == "account" else "[number]")
    card = kind == "card" and (is_card(text) or _FOUR_BY_FOUR.fullmatch(text))
    stays = kind == "moment" or (kind == "national" and not 9 <= digits <= 12) or (kind == "card" and not card)
    return text if stays else "[account]" if kind == "card" else "[number]"


def _without_ibans(text: str) -> str:
    kept, done = [], 0
    for start in _MAYBE_IBAN.finditer(text):
        length = _IBAN_LENGTHS.get(start[0][:2].upper())
        end = _end_of(text, start.start(), length) if length and start.start() >= done else None
        if end is not None and is_iban(text[start.start() : end]):
            kept += [text[done : start.start()], "[account]"]
            done = end
    return "".join(kept) + text[done:]


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

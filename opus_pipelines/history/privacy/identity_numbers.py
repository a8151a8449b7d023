"""Numbers of persons and companies that are told by their form and their check digits, without a word before them.

`python-stdnum` knows the check digits; a form without one is taken only where nothing else is written so. Bare numbers
with a single check digit (PESEL, BSN, T.C. kimlik, SSN without dashes) are not: one in ten ids would be taken for one.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from opus_pipelines.history.privacy.plain_text import NO_LETTER_AFTER, NO_LETTER_BEFORE, Span

_ACCOUNT_MASK = "[account]"
# country and module of stdnum (None: no check digit is known), and the form
_IDENTITY_FORMS: tuple[tuple[str | None, str], ...] = (
    ("br.cpf", r"\d{3}\.\d{3}\.\d{3}-\d{2}"),
    ("br.cnpj", r"\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}"),
    ("cn.ric", r"[1-8]\d{5}(?:19|20)\d{9}[\dX]"),
    ("es.dni", r"\d{8}-?[A-HJ-NP-TV-Z]"),
    ("es.nie", r"[XYZ]-?\d{7}-?[A-HJ-NP-TV-Z]"),
    ("it.codicefiscale", r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]"),
    ("fr.nir", r"[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2}"),
    ("in_.aadhaar", r"(?<!\d[ -])[2-9]\d{3}[ -]\d{4}[ -]\d{4}(?![ -]\d)"),
    ("in_.pan", r"[A-Z]{3}[ABCEFGHJLPT][A-Z]\d{4}[A-Z]"),
    ("se.personnummer", r"(?:19|20)?\d{6}[-+]\d{4}"),
    ("fi.hetu", r"\d{6}[-+A]\d{3}[0-9A-FHJ-NPR-Y]"),
    ("dk.cpr", r"[0-3]\d[01]\d{3}-\d{4}"),
    ("no.fodselsnummer", r"[0-7]\d[0-5]\d{3} \d{5}"),
    ("be.nn", r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}"),
    ("kr.rrn", r"\d{6}-[1-4]\d{6}"),
    ("mx.curp", r"[A-Z]{4}\d{6}[HMX][A-Z]{5}[A-Z\d]\d"),
    ("cl.rut", r"\d{1,2}\.\d{3}\.\d{3}-[\dK]"),
    ("ar.cuit", r"[23]\d-\d{8}-\d"),
    ("ch.ssn", r"756\.\d{4}\.\d{4}\.\d{2}"),
    ("de.idnr", r"[1-9]\d \d{3} \d{3} \d{3}"),
    ("ca.sin", r"\d{3}-\d{3}-\d{3}"),
    (None, r"\d{3}-\d{3}-\d{3} \d{2}"),  # SNILS, Russia
    (
        None,
        r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]",
    ),  # NINO, United Kingdom
)
_BEFORE_IDENTITY, _AFTER_IDENTITY = rf"{NO_LETTER_BEFORE}(?<![.,/#+-])", rf"{NO_LETTER_AFTER}(?!/|[.,-]\d)"
_ANY_IDENTITY = re.compile(
    _BEFORE_IDENTITY
    + "(?:"
    + "|".join(f"(?P<f{n}>{form})" for n, (_, form) in enumerate(_IDENTITY_FORMS))
    + ")"
    + _AFTER_IDENTITY
)
# For RE2, which tells fast which texts may hold one with fewer than eight digits.
FEW_DIGITS = r"[A-Z]{6}\d{2}[A-Z]\d{2}|[A-Z]{5}\d{4}[A-Z]|[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]|[XYZ]-?\d{7}"


def identities(text: str) -> Iterator[Span]:
    """Yields where numbers of persons stand in a plain text, of known form and with right check digits."""
    at = 0
    while match := _ANY_IDENTITY.search(text, at):
        at = match.end()
        for number, (module, form) in enumerate(_IDENTITY_FORMS):
            # Forms overlap: the first that matches may have wrong check digits where a later one has right ones.
            one = match if match.lastgroup == f"f{number}" else _one_identity(form).match(text, match.start())
            if one is not None and (module is None or _is_valid_identity(module, one[0])):
                yield one.start(), one.end(), _ACCOUNT_MASK
                at = one.end()
                break


@cache
def _one_identity(form: str) -> re.Pattern[str]:
    return re.compile(_BEFORE_IDENTITY + form + _AFTER_IDENTITY)


def _is_valid_identity(module: str, text: str) -> bool:
    known = import_module(f"stdnum.{module}")
    if module == "cn.ric":  # stdnum's table of counties lacks many; date and check digit say enough
        try:
            known.get_birth_date(text)
        except ValueError:
            return False
        return bool(known.calc_check_digit(text[:-1]) == text[-1])
    return bool(known.is_valid(text))

"""Classifies attributes by their names: telephone or account numbers, or harmless ids and amounts."""

import re
import unicodedata
from functools import cache
from itertools import pairwise

PHONE, ACCOUNT, HARMLESS = "[number]", "[account]", "harmless"


def _set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_PHONE_WORDS = _set(
    "phone telephone tel telefoon telefon telefono mobile mobiel mobil movil portable cell cellphone gsm handy fax",
    "msisdn whatsapp sms phonenumber telnr telefoonnummer telefonnummer mobilnummer handynummer faxnummer",
)
_ACCOUNT_WORDS = _set(
    "iban account acct accountnumber accountno bankaccount rekening rekeningnummer bankrekening konto kontonummer",
    "bankkonto compte cuenta rib card cardnumber creditcard debitcard kaart kaartnummer kreditkarte",
    "kreditkartennummer karte tarjeta carte pan ssn socialsecurity socialsecuritynumber bsn burgerservicenummer sofi",
    "sofinummer nir dni nie nif passport paspoort reisepass pasaporte passeport steuernummer",
    "sozialversicherungsnummer routing routingnumber aba sortcode",
)
_OTHER_THINGS = _set(
    "balance amount type kind status count limit total fee fees cost price date time opened created updated age rate",
    "model version app bedrag saldo soort datum betrag art montant type solde importe tipo fecha points score level",
    "size os hours minutes seconds ms usd eur",
)
_IDS = _set(
    "id ids nr no ref reference referentie referenz order case number nummer numero invoice factuur rechnung code key",
    "uuid hash zaak dossier bestelling auftrag commande pedido position amount cost price total time timestamp",
)
_LOOKS_LIKE_NUMBER = re.compile(r"[+(]{0,2}[A-Z]{0,4}\d(?:[ ()./-]{0,3}[A-Z0-9*]){4,39}(?:\.0)?", re.IGNORECASE)
_HASHED = re.compile(r"h[0-9a-f]{16}")  # what a source's settings had hashed is private no more


@cache
def meaning_of(name: str) -> str | None:
    """Returns the meaning of an attribute's values: PHONE, ACCOUNT, HARMLESS (ids, amounts or times), or None.

    It knows names in English, Dutch, German, French and Spanish, however their words are joined.
    """
    words = _words(name)
    joined = {a + b for a, b in pairwise(words)}
    known = joined.union(words)
    if known & _OTHER_THINGS:
        return HARMLESS
    if known & _PHONE_WORDS:
        return PHONE
    if known & _ACCOUNT_WORDS:
        return ACCOUNT
    return HARMLESS if known & _IDS else None


def is_number(value: str) -> bool:
    """Tells whether a value has the form of a telephone or account number: five digits or more, and little else."""
    if _HASHED.fullmatch(value):
        return False
    return sum(c.isdigit() for c in value) >= 5 and _LOOKS_LIKE_NUMBER.fullmatch(value.strip()) is not None


def _words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain).lower())

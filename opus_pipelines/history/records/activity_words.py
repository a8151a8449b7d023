"""Reads from the name of an activity what kind it may be, with word lists and rules and no other evidence.

The lists contain words whose meaning is clear without the rest of the name, in English, German, Dutch, French, Spanish
and Italian.
"""

import re
from enum import Enum

_REFUSED = """
    rejected declined denied refused cancelled canceled withdrawn revoked aborted abandoned disapproved discarded nok
    abgelehnt storniert zurückgewiesen abgebrochen widerrufen verworfen annulliert
    afgewezen geweigerd geannuleerd ingetrokken afgekeurd
    rejeté rejetée refusé refusée annulé annulée
    rechazado rechazada cancelado cancelada denegado denegada anulado anulada
    rifiutato rifiutata respinto respinta annullato annullata
"""
_REFUSAL = """
    reject rejection refusal denial cancellation storno ablehnung stornierung abbruch
    afwijzing weigering annulering refus rejet annulation rechazo rifiuto annullamento
"""
_BY = "by from via von durch door van par por da due because wegen after nach"
# Verbs that begin the name of a work step and are not also the name of a thing: "Notify claim rejected" is work, "Claim
# rejected" is not.
_VERBS = """
    add analyse analyze archive assess assign attach calculate check clear close collect communicate compare compile
    complete confirm contact correct create decide delete determine distribute draft email enter evaluate examine
    extract fetch forward generate get handle identify inform insert inspect investigate list look mark notify obtain
    prepare print proceed publish read reassign receive reconcile record register remove reopen resend resolve respond
    retrieve save schedule search send set sort store submit tell update upload validate verify view write anlegen
    benachrichtigen bearbeiten informieren prüfen senden erfassen informer envoyer vérifier informeren controleren
    verzenden
"""
_PASSED = "expired elapsed lapsed abgelaufen verfallen verlopen expiré expirée vencido vencida scaduto scaduta"
_WAITING = (
    "wait waiting waits awaiting queued queueing queuing idle paused parked warten wartend wartet wachten "
    "attente espera attesa"
)
_BEGINS = "start begin beginning end finish beginn anfang start ende einde aanvang début fin inicio inizio fine"
_HAS_BEGUN = "started begun begins ended ends begonnen beendet endet gestartet geëindigd"
# What happens outside the office: nobody of the organisation works on it when it starts or ends.
_OUTSIDE = """
    trip journey travel stay vacation holiday holidays leave absence flight ride tour rental tenancy warranty validity
    period season semester term pregnancy illness sickness hospitalisation hospitalization reise dienstreise
    aufenthalt urlaub frist laufzeit gültigkeit krankheit miete zeitraum reis verblijf vakantie ziekte looptijd voyage
    séjour congé vacances viaje estancia viaggio soggiorno
"""
_MARKER = "start end begin finish ende stop anfang einde fin artificial"
_ARTICLES = "the of a an der die das der den de het van du la le el di il und and"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


REFUSED, REFUSAL, BY, VERBS, PASSED = _words(_REFUSED), _words(_REFUSAL), _words(_BY), _words(_VERBS), _words(_PASSED)
ARTICLES, EVERY_CASE = _words(_ARTICLES), frozenset({"event", "node", "process", "case"})
WAITING, BEGINS, HAS_BEGUN, OUTSIDE, MARKER = (
    _words(_WAITING),
    _words(_BEGINS),
    _words(_HAS_BEGUN),
    _words(_OUTSIDE),
    _words(_MARKER),
)
_NEGATED = (
    "not ok",
    "not okay",
    "not approved",
    "not accepted",
    "not granted",
    "nicht genehmigt",
    "niet akkoord",
    "nicht ok",
)


class NameMeaning(Enum):
    """The meaning that a name has by itself."""

    REFUSED = "that something was refused, cancelled or withdrawn"
    REFUSAL = "that something is refused or cancelled, but not whether this is work or its result"
    PASSED = "that a time ran out"
    OUTSIDE = "that something starts or ends which is not office work"
    WAITING = "that the case waits"
    BEGINS = "that something starts or ends"
    MARKER = "only that the case starts or ends"


def words_of(name: str) -> list[str]:
    """Splits the name of an activity or of a column into words in lower case.

    It separates `camelCase`, `snake_case` and `A_DECLINED`, and omits numbers.
    """
    spaced = re.sub(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])", " ", name)
    return re.findall(r"[^\W\d_]+", spaced.lower())


def read_name(name: str) -> tuple[NameMeaning, str] | None:
    """Returns the meaning of a name and the word that shows it, or None if no rule applies."""
    words = words_of(name)
    if not words:
        return None
    return _refused(words) or _passed(words) or _limits(words) or _waiting(words) or _refusal(words)


def _refused(words: list[str]) -> tuple[NameMeaning, str] | None:
    """Matches a participle of refusal at the end of the name or before the one who refused.

    A name that begins with a verb of work does not match.
    """
    if words[0] in VERBS:
        return None
    text = " ".join(words)
    if negated := next((phrase for phrase in _NEGATED if text.endswith(phrase)), None):
        return NameMeaning.REFUSED, negated
    for place, word in enumerate(words):
        if word in REFUSED and (place == len(words) - 1 or words[place + 1] in BY):
            return NameMeaning.REFUSED, word
    return None


def _passed(words: list[str]) -> tuple[NameMeaning, str] | None:
    return (NameMeaning.PASSED, words[-1]) if words[-1] in PASSED and words[0] not in VERBS else None


def _limits(words: list[str]) -> tuple[NameMeaning, str] | None:
    """Matches names such as "Start trip", "Trip ended", or "Start" alone."""
    named = [word for word in words if word not in ARTICLES]
    rest = [word for word in named if word not in EVERY_CASE]
    if rest and all(word in MARKER for word in rest):
        return NameMeaning.MARKER, rest[0]
    if len(named) not in (2, 3):
        return None
    limit, thing = (named[0], named[-1]) if named[0] in BEGINS else (named[-1], named[-2])
    if limit not in (BEGINS if limit == named[0] else HAS_BEGUN):
        return None
    return (NameMeaning.OUTSIDE, thing) if thing in OUTSIDE else (NameMeaning.BEGINS, limit)


def _waiting(words: list[str]) -> tuple[NameMeaning, str] | None:
    return (NameMeaning.WAITING, words[0]) if words[0] in WAITING else None


def _refusal(words: list[str]) -> tuple[NameMeaning, str] | None:
    """Matches a noun of refusal, or its verb without an object."""
    return (NameMeaning.REFUSAL, words[-1]) if words[-1] in REFUSAL and words[0] not in VERBS else None

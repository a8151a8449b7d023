"""Has the words that name the columns of exports in several languages, and infers the language from them."""

from opus_pipelines.history.records.activity_words import words_of

_ROLES = {
    "case": """
        case caseid fall fallnummer fallid vorgang vorgangsnummer vorgangsnr vorgangsid trace ticket ticketnumber antrag
        antragsnummer auftrag auftragsnummer order orderid claim incident dossier dossiernummer zaak zaaknummer akte
        aktenzeichen request requestid instance bestellung bestellnummer rechnungsnummer caso expediente pratica
        commande demande
    """,
    "activity": """
        activity aktivität aktivitaet tätigkeit taetigkeit task step schritt vorgangsschritt arbeitsschritt
        prozessschritt event ereignis action aktion activiteit stap activité étape tâche actividad tarea attività
        attivita operation
    """,
    "start": "start startzeit begun beginn begin started anfang start_time starttijd début debut inicio inizio",
    "end": "end ende endzeit finish finished completed complete abschluss eindtijd einde fin fine abgeschlossen",
    "time": """
        timestamp time zeit zeitpunkt zeitstempel datum date datetime uhrzeit tijd tijdstip tijdstempel horodatage
        heure fecha hora data ora when occurred
    """,
    "actor": """
        resource ressource user username benutzer bearbeiter sachbearbeiter mitarbeiter employee performer agent
        operator author staff
        assignee handler worker behandelaar medewerker gebruiker utilisateur responsable usuario utente
    """,
    "actor_group": """
        role rolle rôle rol ruolo group gruppe groupe grupo gruppo team abteilung department afdeling service
        departamento reparto workgroup crew funktion
    """,
    "cost": "cost costs kosten kost aufwandskosten coût coûts cout couts coste costes costo costi custo custos",
    "description": (
        "description beschreibung omschrijving subject betreff request anliegen summary descripción descrizione"
    ),
    "outcome": """
        success successful outcome result ergebnis resultat status state uitkomst resultaat statut état resultado
        estado esito stato erfolg erfolgreich succès
    """,
}
ROLES = {role: frozenset(words.split()) for role, words in _ROLES.items()}
_GOOD = """
    success successful succeeded true yes y ok okay done completed complete paid approved accepted granted won
    resolved closed fulfilled delivered positive erfolgreich erfolg ja erledigt abgeschlossen bezahlt genehmigt
    angenommen gewonnen gelöst goedgekeurd afgerond betaald geslaagd réussi accepté payé oui sí aceptado pagado
    accettato pagato
"""
_BAD = """
    failure failed fail unsuccessful false no n nok error rejected declined refused denied cancelled canceled
    withdrawn lost aborted expired unresolved negative nein fehlgeschlagen abgelehnt storniert abgebrochen
    zurückgezogen verloren afgewezen geannuleerd mislukt échec refusé annulé non rechazado cancelado rifiutato
    annullato
"""
_OF_ACTIVITIES = frozenset({"bezeichnung", "desc", "description", "label", "name", "text", "title", "type", "typ"})
MOST_WORDS = 2  # of the name of a column without units and numbering
NUMBERING = frozenset({"id", "nr", "no", "number", "nummer", "num", "key", "code", "kennung"})
_UNITS = frozenset(
    {"usd", "eur", "gbp", "chf", "total", "gesamt", "in", "amount", "per", "value", "wert", "sum", "summe", "totaal"}
)
GOOD, BAD = frozenset(_GOOD.split()), frozenset(_BAD.split())
# A word of a column's name → the most frequent time zone of its language. It is shown as a guess.
_ZONES = {
    "Europe/Berlin": "aktivität aktivitaet tätigkeit vorgang vorgangsnummer fall fallnummer bearbeiter benutzer "
    "zeitstempel zeitpunkt"
    " kosten mitarbeiter uhrzeit auftrag antrag betrag ergebnis beginn ende schritt",
    "Europe/Amsterdam": "activiteit zaak zaaknummer tijdstip behandelaar medewerker gebruiker bedrag uitkomst",
    "Europe/Paris": "activité étape tâche horodatage utilisateur coût montant demande",
    "Europe/Madrid": "actividad tarea fecha usuario coste importe",
    "Europe/Rome": "attività attivita pratica utente costo importo",
}


def names_role(name: str, role: str) -> bool:
    """Tells whether the name states this role.

    Its last word must do so, apart from numbering and units, with at most one other word before it.
    """
    words = words_of(name)
    rest = [word for word in words if word not in NUMBERING and word not in _UNITS]
    return bool(rest) and rest[-1] in ROLES[role] and len(rest) <= MOST_WORDS


def names_type_of_activity(name: str) -> bool:
    """Tells whether the name is that of an activity with a word for what it says of it: "event type", "step name"."""
    *words, last = words_of(name) or [""]
    return last in _OF_ACTIVITIES and bool(words) and words[-1] in ROLES["activity"] and len(words) <= MOST_WORDS


def tells_outcome(name: str) -> bool:
    """Tells whether the name states an outcome, and not only a state, which may be known from the beginning."""
    return names_role(name, "outcome") and not {"status", "state", "statut", "estado", "stato", "état"} & set(
        words_of(name)
    )


def zone_of(header: list[str]) -> str | None:
    """Returns the time zone where a table with these column names was probably written, or None if it is unclear."""
    words = {word for name in header for word in words_of(name)}
    votes = {zone: len(words & set(known.split())) for zone, known in _ZONES.items()}
    best = max(votes, key=lambda zone: votes[zone])
    return best if votes[best] else None

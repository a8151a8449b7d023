"""An export as a German client sends it: semicolons, cp1252, three ways of writing dates, amounts such as "9,17 €",
German column names.
"""

import gzip
import re
from datetime import datetime, timedelta
from pathlib import Path

HEADER = ("Vorgangsnummer", "Aktivität", "Zeitpunkt", "Bearbeiter", "Rolle", "Betrag", "Kosten")
DATES = ("%d.%m.%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M")
WAYS = (
    (
        "Antrag eingereicht",
        "Antrag geprüft",
        "Antrag genehmigt",
        "Beginn der Reise",
        "Ende der Reise",
        "Erklärung eingereicht",
        "Erklärung genehmigt",
        "Zahlung veranlasst",
    ),
    (
        "Antrag eingereicht",
        "Antrag abgelehnt",
        "Antrag eingereicht",
        "Antrag geprüft",
        "Antrag genehmigt",
        "Erklärung eingereicht",
        "Erklärung genehmigt",
        "Zahlung veranlasst",
    ),
    ("Antrag eingereicht", "Antrag abgelehnt"),
)
PEOPLE = {"Antrag eingereicht": "Jürgen Groß", "Erklärung eingereicht": "Jürgen Groß", "Zahlung veranlasst": "SYSTEM"}


def euros(amount: float) -> str:
    """1234.5 as `1.234,50 €`."""
    return f"{amount:,.2f} €".replace(",", "_").replace(".", ",").replace("_", ".")


def synthetic(cases: int = 60) -> list[tuple[str, str, datetime, str, str, float, float]]:
    """Events of a travel process in the order of HEADER."""
    events = []
    for number in range(cases):
        way = WAYS[2 if number % 10 == 9 else number % 2]
        start = datetime(2023, 1, 2, 8, 15, 30) + timedelta(days=3 * number)
        for place, step in enumerate(way):
            person = PEOPLE.get(step, f"Müller {number % 3}")
            role = "MITARBEITER" if step.endswith("eingereicht") else "VERWALTUNG"
            when = start + timedelta(hours=7 * place)
            events.append((f"R-{1000 + number}", step, when, person, role, 80.0 + 37.5 * number, 9.17 + place))
    return events


def write(path: Path, events: list[tuple[str, str, datetime, str, str, float, float]]) -> Path:
    """Write the events as the client's export: each case in one of the three ways of writing dates."""
    lines = [";".join(HEADER)]
    order: dict[str, int] = {}
    for case, step, when, person, role, amount, cost in events:
        written = when.strftime(DATES[order.setdefault(case, len(order)) % 3])
        lines.append(";".join([case, step, written, person, role, euros(amount), euros(cost)]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("\r\n".join([*lines, ""]).encode("cp1252"))
    return path


def of_log(log: Path, cases: int) -> list[tuple[str, str, datetime, str, str, float, float]]:
    """The first cases of a gzipped XES log with money amounts (a travel-expense log) as such events."""
    events: list[tuple[str, str, datetime, str, str, float, float]] = []
    text = gzip.decompress(log.read_bytes()).decode()
    for number, trace in enumerate(re.findall(r"<trace>(.*?)</trace>", text, re.DOTALL)[:cases]):
        found = re.findall(r"<event>(.*?)</event>", trace, re.DOTALL)
        for event in found:
            of = dict(re.findall(r'key="([^"]*)" value="([^"]*)"', event))
            when = datetime.fromisoformat(of["time:timestamp"]).replace(tzinfo=None, microsecond=0)
            amount = float(of.get("(case)_Amount") or of.get("(case)_RequestedAmount") or 0)
            events.append(
                (f"Vorgang {number}", of["concept:name"], when, of["org:resource"], of["org:role"], amount, 9.17)
            )
    return events

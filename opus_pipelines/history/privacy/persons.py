"""Finds names of persons and postal addresses by the words around them. Off by default, because it finds only a part.

A name counts after a title ("Mr", "Frau", "Pani"), after a label ("name:", "klant:"), or before "先生" and the like. An
address counts by the word for a street with its house number, or by a label. A name without such a word beside it stays.
Only what is written with capital letters counts, so scripts without them are found by label and title only.
"""

import re
from collections.abc import Iterator

from opus_pipelines.history.privacy.plain_text import Span

_NAME_MASK, _ADDRESS_MASK = "[name]", "[address]"
_NAME_TITLE = (
    r"Mrs?|Ms|Miss|Dr|Prof|Sir|Madam|Herrn?|Frau|Mme|Mlle|M\.|Monsieur|Madame|Sr|Sra|Srta|Señora?|Sig|Sig\.?ra|Signora?"
    r"|Dhr|Mevr|Mevrouw|Meneer|Senhora?|Pan|Pani|Pana|Panem|Bay|Bayan|Sayın|Господин|Госпожа|Г-н|Г-жа"
)
_NAME_LABEL = (
    r"(?:full |first |last |customer |client |contact )?name|contact person|naam|klant|vorname|nachname|name des kunden|kunde"
    r"|nom|prénom|nombre|apellidos?|nome|cognome|cliente|imię(?: i nazwisko)?|nazwisko|ad(?:ı)? soyad(?:ı)?|müşteri|имя"
    r"|фамилия|фио|клиент|姓名|客户|الاسم|العميل"
)
_NAME_PART = r"(?:(?:van|von|de|der|den|la|le|di|da|dos|do|bin|al|el|ter|ten|y) ){0,2}[^\W\d_a-zа-яıçğöşü][\w'’-]*\.?"
_TITLED = re.compile(rf"(?<!\w)(?:{_NAME_TITLE})\.? (?P<found>{_NAME_PART}(?: {_NAME_PART}){{0,3}})")
_LABELLED = re.compile(rf"(?<!\w)(?i:{_NAME_LABEL}) ?[:=] ?[\"']?(?P<found>{_NAME_PART}(?: {_NAME_PART}){{0,3}})")
_HONOURED = re.compile(
    r"(?P<found>[\u4e00-\u9fff]{1,3})(?=先生|女士|小姐)|(?<=السيد )(?P<arab>\w+(?: \w+)?)|(?<=السيدة )(?P<lady>\w+(?: \w+)?)"
)
_STREET = re.compile(
    r"(?<!\w)(?P<found>"
    r"\d{1,5}[A-Za-z]? (?:[A-Z][\w'’.-]* ){1,3}(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Court|Close|Square|Way|Boulevard|Blvd)\b\.?"
    r"|[A-ZÄÖÜ][\w.-]*(?:straße|strasse|str\.|weg|platz|allee|gasse|straat|laan|plein|gracht|kade) ?\d{1,4} ?[a-z]?\b"
    r"|\d{1,4}(?: ?(?:bis|ter))?,? (?:rue|avenue|boulevard|place|chemin|allée|impasse) [\w' ’-]{2,40}?(?=[,.;\n]|$)"
    r"|(?:Calle|C/|Avenida|Avda\.?|Plaza|Paseo|Rua|Av\.|Avenida|Travessa|Via|Viale|Piazza|Corso) [\w' ’.-]{2,40}?,? (?:n[º°.]? ?)?\d{1,5}\b"
    r"|(?:ul\.|al\.|pl\.|os\.|ulica|ul) [A-ZŁŚŻŹĆÓ][\w .-]{1,30}? \d{1,4}[A-Za-z]?(?:/\d{1,4})?\b"
    r"|[A-ZÇĞİÖŞÜ]\w+ (?:Caddesi|Cad\.|Sokak|Sok\.|Sokağı|Bulvarı) ?(?:No:? ?)?\d{1,4}\b"
    r"|(?:ул\.|улица|пр\.|проспект|пер\.) ?[А-ЯЁ][\w -]{1,30}?,? (?:д\. ?|дом )?\d{1,4}\b"
    r"|[\u4e00-\u9fff]{2,12}(?:路|街|大道|巷)\d{1,5}号"
    r"|شارع [\w ]{2,30}?(?=[،,.;\n]|$)"
    r")"
)


def persons(text: str) -> Iterator[Span]:
    """Yields where names and addresses stand in a plain text; parts that overlap are given once."""
    spans = [
        (m.start(g), m.end(g), _NAME_MASK)
        for p in (_TITLED, _LABELLED, _HONOURED)
        for m in p.finditer(text)
        for g in _groups_of(m)
    ]
    spans += [(m.start("found"), m.end("found"), _ADDRESS_MASK) for m in _STREET.finditer(text)]
    last = 0
    for start, end, token in sorted(spans):
        if start >= last:
            yield start, end, token
            last = end


def _groups_of(match: re.Match[str]) -> list[str]:
    return [name for name, value in match.groupdict().items() if value]

"""Finds private data in texts: e-mail addresses, telephone, account, card and identity numbers.

A text is masked where it contains

- an e-mail address (`@`, or `%40` as in links), the host with a top-level domain: `[email]`;
- an IBAN of a known country and length whose check digits are right (mod 97), or a credit card number (13-19 digits in
  the usual groups, of a known network, Luhn; four groups of four in any case): `[account]`;
- a number of a person that is told by its form and check digits: `[account]`;
- a telephone number: international (`+31 6 12345678`, `0031612345678`), national with a leading 0 (`06-12345678`,
  `(020) 123 45 67`, `0612345678`), North American (`(555) 123-4567`, `555-123-4567`), in the groups of some fifteen
  countries, or a US social security number: `[number]`;
- a number after a word that names its kind (`tel. 612345678`, `account no. 12345678`, `паспорт 4510 123456`,
  `passport C01X00T47`): `[number]` or `[account]`.

Digits of all scripts, blanks of all widths and full-width signs count as the plain ones.
Everything else stays: dates, amounts, plain numbers and ids without such a word, UUIDs, coordinates, versions, and
digits that are part of a word, a link or a longer number. A national number without a leading 0 and without such a word
(`612 345 678`) cannot be distinguished from an amount. Names and addresses stay unless they are asked for
(`persons`).

"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import import_module

Span = tuple[int, int, str]  # begin, end, and the word that takes its place
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"
_MAYBE = re.compile(r"[^\x00-\x7f]")
# Letters of scripts without blanks between words: a number may stand directly beside them.
UNSPACED = "\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af"
NO_LETTER_BEFORE = rf"(?<![^\W{UNSPACED}])"
NO_LETTER_AFTER = rf"(?![^\W{UNSPACED}])"
FILLER = "]"  # takes the place of what is already masked; no pattern goes on over it


class PlainText:
    """A text in its plain form, and what of it is masked so far."""

    def __init__(self, written: str) -> None:
        self._written = written
        self._places: list[int] | None = None
        self.plain = written
        if _MAYBE.search(written):
            kept = [(plain, at) for at, c in enumerate(written) if (plain := _plain(c))]
            self.plain = "".join(plain for plain, _ in kept)
            self._places = [at for _, at in kept]
        self._spans: list[Span] = []

    def mask(self, spans: Sequence[Span]) -> None:
        """Masks parts of the plain form; they must not overlap."""
        for start, end, token in spans:
            if end > start:
                self.plain = self.plain[:start] + FILLER * (end - start) + self.plain[end:]
                self._spans.append((start, end, token))

    @property
    def masked(self) -> str:
        """The text as it is written, with a word for each part that is masked."""
        if not self._spans:
            return self._written
        parts, done = [], 0
        for start, end, token in sorted(self._spans):
            first, last = (start, end - 1) if self._places is None else (self._places[start], self._places[end - 1])
            parts += [self._written[done:first], token]
            done = last + 1
        return "".join(parts) + self._written[done:]


@lru_cache(maxsize=4096)
def _plain(c: str) -> str:
    """Returns the plain form of a character: one character, or none for those without width."""
    if c < "\x80":
        return c
    if c in _DASHES:
        return "-"
    if c == "\uff0c":  # a comma between clauses, never between digits
        return ";"
    if "\uff01" <= c <= "\uff5e":
        return chr(ord(c) - 0xFEE0)
    kind = unicodedata.category(c)
    if kind == "Nd":
        return str(unicodedata.digit(c))
    if kind == "Zs":
        return " "
    return "" if kind == "Cf" else c


_PHONES = (
    r"tele(?:ph|f)one?s?|telefon(?:u|nr|nummer|numara(?:s[ıi])?)?|telefoon(?:nummer)?|tel[eé]fono|t[eé]l[eé]phone|telem[oó]vel"
    r"|t[eé]l|telf|tfno|tlf|phone|mobiles?|mobiel|mobil(?:nummer|e)?|m[oó]vil|cell(?:phone|ulare)?|celular|cep|gsm|handy"
    r"|rufnummer|r[uü]ckruf|fax|faks|call|ring|bel|anrufen unter|chiamare|ligar|ligue|fone|kom[oó]rk[ai]|kom|zadzwo[nń]"
    r"|whatsapp|sms|msisdn|телефон[ау]?|тел|моб(?:ильный)?|звон(?:ить|ите)|факс"
)
_PHONES_INSIDE = r"电话|電話|手机|手機|座机|热线|联系方式|致电|携帯|전화|휴대폰|هاتف|جوال|موبايل|تلفون|الاتصال"
_ACCOUNTS = (
    r"accounts?|acct|rekening|konto|kont[ao]|rachun(?:ek|ku)|cuenta|compte|conto(?: corrente)?|conta(?: corrente)?|hesap"
    r"|iban|routing|aba|sort code|(?:credit|debit)[ _-]?card|card(?=[ _-]?(?:number|nr|no)(?![^\W_]))|kreditkarte"
    r"|kart[aey](?= (?:nr|no|numer|numaras))|sch[eè]que|сч[её]т[ау]?|карт[аыу]"
)
_IDENTITIES = (
    r"ssn|social[ _-]security|nhs|national insurance|nino|driv(?:er'?s|ing)[ _-]licen[cs]e|identity card|id card"
    r"|bsn|burgerservicenummer|sofi(?:nummer)?|dni|nie|nif|n\.i\.f\.|passports?|paspoort(?:nummer)?|reisepass(?:nummer)?"
    r"|pasaporte|passeport|passaporto|passaporte|paszport(?:u)?|pasaport|personalausweis(?:nummer)?|ausweis(?:nummer)?"
    r"|steuer-?(?:id|nummer|identifikationsnummer)|idnr|sozialversicherungsnummer|s[eé]curit[eé] sociale|nir|carte d'identit[eé]"
    r"|codice fiscale|carta d'identit[aà]|partita iva|cpf|cnpj|rg|pesel|nip|dow[oó]d(?: osobisty|u)?|t\.?c\.? kimlik|tckn"
    r"|kimlik|vergi|паспорт[ау]?|инн|снилс|удостоверение"
)
_IDENTITIES_INSIDE = r"身份证|護照|护照|账号|帳號|账户|卡号|银行卡|社保号|マイナンバー|여권|계좌|جواز (?:ال)?سفر|الجواز|هوية|الهوية|حساب|بطاقة"
_NUMBER_WORDS = (
    r"(?:[ _-]{0,2}(?:number|nummer|num|n[uú]m(?:[eé]ro)?|numer|numara(?:s[ıi])?|nr|no|n[°º]|n(?=\.)|номер|号码|号碼|号|碼|رقم"
    r"|kom(?:[oó]rkowy)?|серия|osobistego|personne|do|di|de)){0,3}"
)
_LINK_WORDS = r"""["']?[ .:=#)]{0,3}(?:\b(?:is|was|ist|war|est|es|[eè]|jest|to|on|at|op|unter|al|au|pod|sotto|no|на|是|为|為|هو|على)\b)?[ :=#]{0,2}["']?"""


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
        # The first characters come first: at most places of a text nothing else is then tried.
        (r"(?:(?=[\d(+]|(?<![^\W_])[^\W\d_]|[^\x00-\x7f])" if words else r"(?:(?=[\d(+]|(?<![^\W_])[a-f])")
        + rf"(?:(?P<moment>{_MOMENT}|{_UUID})"
        + words
        + rf"|(?P<national>{_BEFORE}(?:0[1-9]\d{{0,4}}[ /.-]{{1,3}}"
        rf"|\(0[1-9]\d{{0,4}}\)[ /.-]{{0,3}})\d(?:[ /.-]{{0,3}}\d){{4,9}}{_END})"
        rf"|(?P<number>"
        rf"{_BEFORE}\(?\+\(?[1-9](?!\d{{0,2}}\.\d{{3,}}(?![\d./()-]| \d))(?:[ ()./-]{{0,3}}\d){{7,14}}{_END}"
        rf"|{_BEFORE}00(?:[1-9]\d{{10,12}}|[ .-]?[1-9]\d{{0,2}}(?:[ ()/.-]{{1,3}}\d+){{2,6}}){_END}"
        rf"|{_BEFORE}0[1-9]\d{{8,9}}{_END}"
        rf"|{_BEFORE}(?:1[ .-]?)?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{{4}}{_END}"
        rf"|{_BEFORE}(?!000|666|9)\d{{3}}-(?!00)\d\d-(?!0000)\d{{4}}{_END})"
        rf"|(?P<card>{_BEFORE}\d{{4}}(?:[ .-]?\d{{4,6}}){{2}}[ .-]?\d{{1,7}}{_END})))",
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


# A time of a record that is written as JSON. It has most of the digits of a record, and no number goes on beyond it.
_QUOTED_TIME = re.compile(r'"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?"')


@cache
def _possible() -> re.Pattern[str]:
    return re.compile(POSSIBLE, re.IGNORECASE)


def mask_text(text: str, names: bool = False) -> str:
    """Replaces private data by [email], [account] or [number], by the rules of this module.

    `names`: also names of persons and addresses that the words around them tell, by [name] and [address].
    """
    found = PlainText(text)
    if not names and _possible().search(_QUOTED_TIME.sub("", found.plain)) is None:
        return text
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

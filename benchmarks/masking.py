"""Recall and precision of the masking of personal data, by class and language, and the time for a thousand texts.

    python benchmarks/masking.py [--seed 0] [--each 12] [--texts FILE.json]

The strings are made here, from a seed: sentences of twelve languages with one number each, in the ways in which people
write it (blanks that do not break, native digits, full-width digits), and sentences with dates, amounts, ids and versions
that must stay. `--texts` is a JSON list of texts without known answers: how many change, and how long it takes.
"""

import argparse
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from stdnum import luhn
from stdnum.cn import ric
from stdnum.es import dni
from stdnum.it import codicefiscale

from opus_pipelines.history.records.private_text import mask_text

TOKENS = ("[email]", "[number]", "[account]", "[name]", "[address]")
# language: word for telephone, national form of a mobile number, country code, word for passport, IBAN country and length
LANGUAGES: dict[str, tuple[str, str, str, str, str, int]] = {
    "en": ("phone", "07### ######", "44", "passport number", "GB", 22),
    "de": ("Telefonnummer", "0151 ########", "49", "Reisepass Nr.", "DE", 22),
    "fr": ("téléphone", "06 ## ## ## ##", "33", "passeport n°", "FR", 27),
    "es": ("móvil", "6## ## ## ##", "34", "pasaporte", "ES", 24),
    "it": ("cellulare", "34# #######", "39", "passaporto n.", "IT", 27),
    "nl": ("telefoonnummer", "06-########", "31", "paspoort", "NL", 18),
    "pt": ("celular", "(11) 9####-####", "55", "passaporte", "PT", 25),
    "pl": ("telefon", "601 ### ###", "48", "paszport", "PL", 28),
    "tr": ("cep telefonu", "0532 ### ## ##", "90", "pasaport no", "TR", 26),
    "ru": ("телефон", "8 (916) ###-##-##", "7", "паспорт", "BY", 28),
    "zh": ("手机号码", "138 #### ####", "86", "护照号码", "AE", 23),
    "ar": ("هاتف", "٠١٠٠ ### ####", "20", "جواز سفر رقم", "EG", 29),
}
SENTENCES = {
    "en": "Please reach the client, {}, before Friday.", "de": "Bitte den Kunden erreichen: {} vor Freitag.",
    "fr": "Merci de joindre le client, {}, avant vendredi.", "es": "Por favor contacte al cliente, {}, antes del viernes.",
    "it": "Si prega di contattare il cliente, {}, entro venerdì.", "nl": "Graag de klant bereiken, {}, voor vrijdag.",
    "pt": "Por favor contate o cliente, {}, até sexta.", "pl": "Proszę o kontakt z klientem, {}, do piątku.",
    "tr": "Lütfen müşteriye ulaşın, {}, cumadan önce.", "ru": "Свяжитесь с клиентом, {}, до пятницы.",
    "zh": "请联系客户，{}，星期五之前。", "ar": "يرجى الاتصال بالعميل، {}، قبل يوم الجمعة.",
}  # fmt: skip
NATIVE = {"ar": "٠١٢٣٤٥٦٧٨٩", "zh": "０１２３４５６７８９"}
HARMLESS = (
    "order {d5}", "2026-0{d1}-1{d1}", "1{d1}.0{n}.2026 10:{d1}5", "EUR 1.2{d1}{d1},50", "$ {n},{d3}.00", "{n} {d3} {d3},00 zł",
    "¥{d5}", "case 10{d5}", "v{n}.{d1}.{d1}", "{d3}.{d3}", "INV-2026-{d5}", "ticket #{d6}", "{n}{d6}", "10:{d1}0-11:{d1}0",
    "R$ {n}.{d3},00", "{d1}{d1} %", "ISBN 978-0-306-40615-7", "52.{d6}, 4.{d6}", "192.168.{n}.1{d1}", "account of 20{d3} EUR",
)  # fmt: skip


class Maker:
    """Makes the strings of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def digits(self, count: int) -> str:
        return "".join(str(self.random.randint(0, 9)) for _ in range(count))

    def filled(self, form: str) -> str:
        return "".join(str(self.random.randint(2, 9)) if c == "#" else c for c in form)

    def iban(self, country: str, length: int) -> str:
        body = self.digits(length - 4)
        check = 98 - int("".join(str(int(c, 36)) for c in f"{body}{country}00")) % 97
        whole = f"{country}{check:02}{body}"
        return " ".join(whole[i : i + 4] for i in range(0, len(whole), 4)) if self.random.random() < 0.7 else whole

    def card(self) -> str:
        body = self.random.choice(("4", "51", "53")) + self.digits(14)
        body = body[:15] + luhn.calc_check_digit(body[:15])
        return self.random.choice((" ", "-")).join(body[i : i + 4] for i in range(0, 16, 4))

    def identity(self, language: str) -> str:
        makers: dict[str, Callable[[], str]] = {
            "en": lambda: f"{self.random.choice(('AB', 'CE', 'JK'))} {self.filled('## ## ##')} C",
            "de": lambda: "Steuer-ID " + self.filled("## ### ### ###"),
            "fr": self.nir, "es": self.dni, "it": self.codice,
            "nl": lambda: "BSN " + self.filled("#########"),
            "pt": self.cpf,
            "pl": lambda: "PESEL " + self.filled("###########"),
            "tr": lambda: "T.C. kimlik no " + self.filled("###########"),
            "ru": lambda: "СНИЛС " + self.filled("###-###-### ##"),
            "zh": self.ric,
            "ar": lambda: "رقم الهوية " + self.native("ar", self.filled("##############")),
        }  # fmt: skip
        return makers[language]()

    def nir(self) -> str:
        body = f"{self.random.randint(1, 2)}{self.digits(2)}0{self.random.randint(1, 9)}{self.random.randint(10, 89)}{self.digits(6)}"
        whole = f"{body}{97 - int(body) % 97:02}"
        return " ".join((whole[0], whole[1:3], whole[3:5], whole[5:7], whole[7:10], whole[10:13], whole[13:]))

    def dni(self) -> str:
        body = self.digits(8)
        return f"{body}{self.random.choice(('', '-'))}{dni.calc_check_digit(body)}"

    def codice(self) -> str:
        body = "".join(self.random.choice("BCDFGLMNPRSTVZ") for _ in range(6))
        body += f"{self.digits(2)}{self.random.choice('ABCDEHLMPRST')}{self.random.randint(10, 28)}H{self.random.randint(100, 899)}"
        return body + codicefiscale.calc_check_digit(body)

    def cpf(self) -> str:
        body = [int(d) for d in self.digits(9)]
        for length in (10, 11):
            rest = sum(d * w for d, w in zip(body, range(length, 1, -1), strict=True)) * 10 % 11
            body.append(rest % 10)
        text = "".join(map(str, body))
        return f"{text[:3]}.{text[3:6]}.{text[6:9]}-{text[9:]}"

    def ric(self) -> str:
        body = f"110105{self.random.randint(1950, 2005)}{self.random.randint(1, 12):02}{self.random.randint(1, 28):02}{self.digits(3)}"
        return body + ric.calc_check_digit(body)

    def native(self, language: str, text: str) -> str:
        digits = NATIVE.get(language)
        return text.translate(str.maketrans("0123456789", digits)) if digits else text

    def varied(self, language: str, text: str) -> str:
        """The text as it is, with blanks that do not break or are narrow, or with native digits."""
        way = self.random.randrange(4)
        if way == 1:
            return text.replace(" ", "\u00a0")
        if way == 2:
            return text.replace(" ", "\u202f").replace("-", "\u2011")
        return self.native(language, text) if way == 3 else text

    def private(self, language: str) -> Iterator[tuple[str, str]]:
        """One string of each class."""
        word, national, code, passport, country, length = LANGUAGES[language]
        local = self.filled(national)
        plain = "".join(c for c in local.translate(str.maketrans(NATIVE["ar"], "0123456789")) if c.isdigit()).lstrip(
            "0"
        )
        plain = plain[1:] if language == "ru" else plain
        yield "international number", self.varied(language, f"+{code} {plain[:3]} {plain[3:6]} {plain[6:]}")
        yield "number after a word", f"{word}: {self.varied(language, local)}"
        yield "number in national groups", self.varied(language, local)
        yield "IBAN", self.varied("", self.iban(country, length))
        yield "card", self.varied(language, self.card())
        yield "identity number", self.varied("", self.identity(language))
        yield (
            "passport after a word",
            f"{passport} {self.random.choice(('C01X00T4#', 'AB#######', 'X########', '#########'))}".replace(
                "#", str(self.random.randint(1, 9))
            ),
        )
        yield (
            "e-mail",
            f"{self.random.choice(('jan', 'maria.k', 'li-wei'))}{self.digits(2)}@mail.example.{country.lower()}",
        )

    def harmless(self) -> str:
        form = self.random.choice(HARMLESS)
        return form.format(
            n=self.random.randint(1, 9),
            d1=self.digits(1),
            d3=self.digits(3),
            d5=self.filled("#####"),
            d6=self.filled("######"),
        )


def rows(seed: int, each: int) -> Iterator[tuple[str, str, str, str]]:
    """Yields language, class ("" where nothing is private), the sentence, and the part of it that is private."""
    maker = Maker(seed)
    for language, sentence in SENTENCES.items():
        for _ in range(each):
            for kind, text in maker.private(language):
                yield language, kind, sentence.format(text), text
            for _ in range(8):
                text = maker.harmless()
                yield language, "", sentence.format(text), text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=12, help="strings of each class and language")
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--show", action="store_true", help="print what was missed and what was masked by mistake")
    arguments = parser.parse_args()
    found: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for language, kind, sentence, text in rows(arguments.seed, arguments.each):
        masked = mask_text(sentence)
        digits = sum(c.isdigit() for c in masked)
        right = (digits <= 1 and "@" not in masked and masked != sentence) if kind else masked == sentence
        found[language, kind].append(right)
        if arguments.show and not right:
            print(f"{language} | {kind or 'harmless'} | {text!r} | {masked!r}")
    kinds = sorted({kind for _, kind in found if kind})
    print("class | " + " | ".join(SENTENCES) + " | all")
    for kind in kinds:
        shares = [sum(found[lang, kind]) / len(found[lang, kind]) for lang in SENTENCES]
        print(f"{kind} | " + " | ".join(f"{share:.2f}" for share in shares) + f" | {sum(shares) / len(shares):.3f}")
    hits = sum(sum(v) for (_, kind), v in found.items() if kind)
    private = sum(len(v) for (_, kind), v in found.items() if kind)
    wrong = sum(len(v) - sum(v) for (_, kind), v in found.items() if not kind)
    harmless = sum(len(v) for (_, kind), v in found.items() if not kind)
    print(
        f"recall {hits / private:.3f} of {private:,}; precision {hits / (hits + wrong):.3f}, {wrong} of {harmless:,} harmless masked"
    )
    if arguments.texts:
        texts = json.loads(arguments.texts.read_text("utf-8"))
        from pyarrow import array

        from opus_pipelines.history.records.redaction import mask_texts

        started = time.process_time()
        after = mask_texts(array(texts)).to_pylist()
        seconds = time.process_time() - started
        print(
            f"{sum(a != b for a, b in zip(texts, after, strict=True)):,} of {len(texts):,} texts changed; {1e6 * seconds / len(texts):.1f} ms per 1,000"
        )


if __name__ == "__main__":
    main()

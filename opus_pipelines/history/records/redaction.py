"""Applies a source's `[redact]` settings: drops, hashes or masks attributes while reading, and masks texts.

Free text is masked once for each distinct value of a column. Attributes are classified by their names: telephone or
account numbers, or harmless ids and amounts.
"""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.ids import canonical, make_id
from opus_pipelines.history.records.arrow_arrays import array, booleans, numbers
from opus_pipelines.history.records.private_text import POSSIBLE, is_card, mask_text
from opus_pipelines.history.records.source_settings import Redact

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


Change = Callable[[pa.Array], pa.Array]
# amounts and times
_PLAIN = r"^(?:-?[1-9]\d{0,11}(?:\.\d*)?|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.]*(?: ?Z| ?[+-]\d\d:?\d\d)?)?)$"

_WORDS_AND_NUMBERS = r"^[A-Za-z0-9 _:;#]+$"
# Groups of digits, digits that touch a letter, and long numbers: which digits they are may decide.
_GROUPED = r"\d[ :;#]+\d|[A-Za-z;]\d|\d[A-Za-z#]|\d{9}"


def mask_texts(texts: pa.Array, names: bool = False) -> pa.Array:
    """Masks texts by the rules of `private_text`. Returns the same array if it contains nothing private.

    `names`: also names and addresses; then every text with a letter is looked at, not only those with numbers.
    """
    return map_distinct(texts, partial(mask_text, names=names), _with_letters if names else possible)


def _with_letters(values: pa.Array) -> pa.Array:
    return pc.match_substring_regex(values, r"\pL")


def possible(values: pa.Array) -> pa.Array:
    """Tells which values may contain private data. They are few, so the slower rules in Python cost little."""
    found = pc.and_not(pc.match_substring_regex(values, POSSIBLE), pc.match_substring_regex(values, _PLAIN))
    return pc.and_not(found, _harmless_ids(values, found))


def _harmless_ids(values: pa.Array, found: pa.Array) -> pa.Array:
    """Tells which values are words and short numbers such as `order 123456`, of a kind in which nothing is private.

    Logs have hundreds of thousands of them. What is masked of such a value depends on its letters and on where its
    digits stand, not on which digits they are: a number of up to eight digits without groups has no check digit, is no
    date and no telephone number, and is private only after a word that names its kind. So one value of a kind tells for
    all: those that are equal with every digit as a 0.
    """
    plain, odd = (pc.match_substring_regex(values, part) for part in (_WORDS_AND_NUMBERS, _GROUPED))
    places = pc.indices_nonzero(pc.and_(found, pc.and_not(plain, odd)))
    harmless = np.zeros(len(values), bool)
    if len(places):
        some = values.take(places)
        kinds = pc.replace_substring_regex(some, r"\d", "0").dictionary_encode()
        kind = numbers(kinds.indices, np.int32)
        _, first = np.unique(kind, return_index=True)  # a kind's code is its place among the kinds
        examples = some.take(array(first, pa.int64())).to_pylist()
        is_harmless = np.array([mask_text(text) == text for text in examples], bool)
        harmless[numbers(places, np.uint64)[is_harmless[kind]]] = True
    return booleans(harmless)


def map_distinct(texts: pa.Array, change: Callable[[str], str], concerned: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Applies `change` once to each distinct text that is `concerned`. NULL stays NULL."""
    coded = texts.dictionary_encode()
    values = coded.dictionary
    places = pc.indices_nonzero(concerned(values))
    if not len(places):
        return texts
    before = values.take(places).to_pylist()
    after = [change(text) for text in before]
    if after == before:
        return texts
    chosen = np.zeros(len(values), bool)
    chosen[places.to_numpy()] = True
    return pc.replace_with_mask(values, pa.array(chosen), pa.array(after, values.type)).take(coded.indices)


def mask_attributes(maps: pa.MapArray, names: bool = False) -> pa.MapArray:
    """Masks the names and values of attributes.

    Names and texts follow the rules for texts. Numbers are masked only if the attribute's name says that they are
    private; ids and amounts stay. If two names become equal, the first by name stays.
    """
    offsets = maps.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    keys, values = maps.keys.slice(first, last - first), maps.items.slice(first, last - first)
    new_names, new_values = mask_texts(keys), _mask_named(keys, values, names)
    if new_names is keys and new_values is values:
        return maps
    masked = pa.MapArray.from_arrays(
        pc.subtract(offsets, first), new_names, new_values, type=maps.type, mask=maps.is_null()
    )
    return masked if new_names is keys else _without_doubles(masked)


def mask_lists(lists: pa.ListArray, change: Change) -> pa.ListArray:
    """Applies `change` to the elements of all lists. Returns the same array if nothing changes."""
    elements = lists.flatten()
    after = change(elements)
    if after is elements:
        return lists
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), after, type=lists.type, mask=lists.is_null())


def _mask_named(names: pa.Array, values: pa.Array, persons: bool) -> pa.Array:
    coded = names.dictionary_encode()
    meanings = [meaning_of(name) for name in coded.dictionary.to_pylist()]
    masked = mask_texts(values, persons)
    for meaning in sorted({m for m in meanings if m is not None}):
        concerned = booleans(np.array([m == meaning for m in meanings])).take(coded.indices)
        own = values.filter(concerned)
        if meaning == HARMLESS:
            if masked is values:
                continue
            digits = pc.match_substring_regex(own, r"^\d+$")
            after = pc.if_else(digits, own, masked.filter(concerned))
        else:
            after = map_distinct(masked.filter(concerned), partial(_as_number, meaning), _all_values)
        if not after.equals(masked.filter(concerned)):
            masked = pc.replace_with_mask(masked, concerned, after)
    return masked


def _as_number(token: str, text: str) -> str:
    return token if is_number(text) else text


def _all_values(values: pa.Array) -> pa.Array:
    return pa.array(np.ones(len(values), bool))


def _without_doubles(maps: pa.MapArray) -> pa.MapArray:
    rows = maps.to_pylist()
    return pa.array([None if row is None else sorted(dict(reversed(row)).items()) for row in rows], maps.type)


RECORD_BYTES = 4096
WITHHELD_RECORD = "(withheld: the record cannot be taken apart, and the source redacts attributes)"
_BROAD = re.compile(  # for text that nobody analyses: every long number, whether or not it may be an amount
    r"(?P<moment>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d{1,2}[./-]\d{1,2}[./-]\d{4}(?: \d\d:\d\d)?)"
    r"|(?P<account>\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b)"
    r"|(?P<number>(?<![\w.])\+?\d(?:[ ()/-]{0,2}\d){7,19}(?![\w.]))"
)
_TEXTS = frozenset({"title", "description", "process_context"})
_TASK_TEXTS, _TASK_LISTS = ("task_key", "title", "description"), ("instructions", "inputs", "outputs")


class Redactor:
    """Applies `[redact]` to records before they are processed further."""

    def __init__(self, settings: Redact, key: bytes = b"", padded: str | None = None) -> None:
        """`padded`: the key of the case ids of a flat log that are read without leading zeros and ".0"; None: as
        written.
        """
        self._key, self._padded = key, padded
        self._actions = dict.fromkeys(settings.drop, "drop")
        self._actions |= {name: "hash" for name in settings.hash if name not in self._actions}
        self._actions |= {name: "mask" for name in settings.mask if name not in self._actions}
        self._mask_text = settings.mask_text
        self._texts = partial(mask_texts, names=settings.mask_names)
        self.active = bool(self._actions)
        self._changed = self._actions.keys() | ({padded} if padded else set())

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Masks the private texts of an IMPLEMENTATIONS batch, before `content_hash` is computed.

        With `mask_text = false` the batch stays as it is. Masked are title, description, process_context and the
        attributes of cases and tasks, and of tasks also task_key, instructions, inputs and outputs. Tasks that differ
        only in masked text become one task. A case id or an actor that contains private data is replaced whole by its
        keyed hash, so that cases and actors stay distinct; the implementation_id of the case follows.
        """
        if not self._mask_text:
            return batch
        columns = {name: batch.column(name) for name in batch.schema.names}
        for name in _TEXTS & columns.keys():
            columns[name] = self._texts(columns[name])
        columns["attributes"] = mask_attributes(columns["attributes"], self._texts.keywords["names"])
        columns["tasks"] = mask_lists(columns["tasks"], self._tasks)
        ids = self._identities(columns["case_id"])
        if ids is not columns["case_id"]:
            columns["implementation_id"] = _ids_again(columns, ids)
            columns["case_id"] = ids
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)

    def _tasks(self, tasks: pa.StructArray) -> pa.StructArray:
        how: dict[str, Callable[[pa.Array], pa.Array]] = dict.fromkeys(_TASK_TEXTS, self._texts)
        how |= dict.fromkeys(_TASK_LISTS, lambda lists: mask_lists(lists, self._texts))
        how |= {"attributes": partial(mask_attributes, names=self._texts.keywords["names"]), "actor": self._identities}
        fields = list(tasks.type)
        before = tasks.flatten()
        after = [how[f.name](array) if f.name in how else array for f, array in zip(fields, before, strict=True)]
        if all(a is b for a, b in zip(after, before, strict=True)):
            return tasks
        return pa.StructArray.from_arrays(after, fields=fields, mask=tasks.is_null())

    def _identities(self, texts: pa.Array) -> pa.Array:
        return map_distinct(texts, self.identity, possible)

    def task_names(self, names: pa.Array) -> pa.Array:
        """Returns the names of tasks as `batch` masks them."""
        return self._texts(names) if self._mask_text else names

    def identity(self, written: str) -> str:
        """Returns the name of a case, an actor or a file, or its keyed hash if it contains private data.

        Plain digits with a valid card check digit count as an id, because one in ten ids has one.
        """
        return self.hashed(written) if self._mask_text and _names_a_person(written) else written

    def hashed(self, value: Any) -> str:
        """Returns a keyed hash.

        A plain hash of a telephone number could be reversed within seconds by trying all numbers.
        """
        text = value if isinstance(value, str) else canonical(value)
        return "h" + hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:16]

    def flat(self, record: dict[str, Any]) -> dict[str, Any]:
        """Redacts a record of plain columns."""
        if not self._changed or self._changed.isdisjoint(record):
            return record
        return {k: self._shown(k, v) for k, v in record.items() if self._actions.get(k) != "drop"}

    def names(self, key: str) -> bool:
        """Tells whether the settings name this attribute."""
        return key in self._actions

    def nested(self, value: Any, path: str = "") -> Any:
        """Redacts a nested record wherever a key, or its dotted path without list positions, is named."""
        if not self.active:
            return value
        if isinstance(value, list):
            return [self.nested(v, path) for v in value if not (isinstance(v, dict) and self._of_pair(v) == "drop")]
        if not isinstance(value, dict):
            return value
        if (action := self._of_pair(value)) is not None:
            return self._shown_pair(value, action)
        kept = {}
        for key, inner in value.items():
            place = f"{path}.{key}" if path else key
            name = place if place in self._actions else key
            if name not in self._actions:
                if not (isinstance(inner, dict) and self._of_pair(inner) == "drop"):
                    kept[key] = self.nested(inner, place)
            elif self._actions[name] != "drop":
                kept[key] = self._shown(name, inner)
        return kept

    def _of_pair(self, value: dict[str, Any]) -> str | None:
        """Returns the action for an attribute written as a pair, `{"name": ..., "value": ...}`, as in OCEL and n8n."""
        name = next(
            (value[key] for key in ("name", "key") if "value" in value and isinstance(value.get(key), str)), None
        )
        return self._actions.get(name) if name is not None else None

    def _shown_pair(self, value: dict[str, Any], action: str) -> dict[str, Any]:
        return {k: self._acted(action, v) if k == "value" else v for k, v in value.items()}

    def record(self, written: str) -> str:
        """Returns the text of a rejected record for the lake: masked and at most 4 KiB long."""
        written = written[: 4 * RECORD_BYTES]
        masked = _mask_all(written) if self._mask_text else written
        return masked.encode("utf-8", "replace")[:RECORD_BYTES].decode("utf-8", "ignore")

    def raw(self, written: str) -> str:
        """Returns the text of a record that could not be parsed.

        The text is withheld if it might contain attributes that the settings name.
        """
        return WITHHELD_RECORD if self.active else self.record(written)

    def reason(self, written: str) -> str:
        """Masks a reason like a record, because a reason may quote a value."""
        return _mask_all(written) if self._mask_text else written

    def _shown(self, name: str, value: Any) -> Any:
        if name == self._padded and isinstance(value, str | float):
            number = re.fullmatch(r"(\d+)(?:[.,]0+)?", str(value))
            value = number[1].lstrip("0") or "0" if number else value
        return self._acted(self._actions.get(name), value)

    def _acted(self, action: str | None, value: Any) -> Any:
        if action is None or value in (None, ""):
            return value
        return "***" if action == "mask" else self.hashed(value)


@lru_cache(4_096)
def _names_a_person(identity: str) -> bool:
    return mask_text(identity) != identity and not (identity.isdigit() and is_card(identity))


@lru_cache(4_096)  # all records of a case that is put aside have its id and the same reason
def _mask_all(written: str) -> str:
    return _BROAD.sub(lambda m: m[0] if m.lastgroup == "moment" else f"[{m.lastgroup}]", mask_text(written))


def _ids_again(columns: dict[str, pa.Array], ids: pa.Array) -> pa.Array:
    """Recomputes implementation_id where the id of the case changed."""
    rows = zip(
        columns["implementation_id"].to_pylist(),
        columns["source"].to_pylist(),
        columns["case_id"].to_pylist(),
        ids.to_pylist(),
        strict=True,
    )
    return pa.array(
        [old if before == after else make_id("i", source, after) for old, source, before, after in rows], pa.string()
    )

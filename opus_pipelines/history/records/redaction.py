"""Applies a source's `[redact]` settings: drops, hashes or masks attributes while reading, and masks texts."""

import hashlib
import hmac
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from opus_pipelines.core.ids import canonical, make_id
from opus_pipelines.history.records.masking import map_distinct, mask_attributes, mask_lists, mask_texts, possible
from opus_pipelines.history.records.private_text import is_card, mask_text
from opus_pipelines.history.records.source_settings import Redact

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
        """`padded`: the key of the case ids of a flat log that are read without leading zeros; None: as written."""
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
        plain = not self._mask_text or mask_text(written) == written or (written.isdigit() and is_card(written))
        return written if plain else self.hashed(written)

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
        if name == self._padded and isinstance(value, str) and value.isdecimal():
            value = value.lstrip("0") or "0"
        return self._acted(self._actions.get(name), value)

    def _acted(self, action: str | None, value: Any) -> Any:
        if action is None or value in (None, ""):
            return value
        return "***" if action == "mask" else self.hashed(value)


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

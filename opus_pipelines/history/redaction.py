"""What a source wants kept out of the lake: attributes dropped, hashed or masked while reading, and masked text."""

import re
from typing import Any

from opus_pipelines.history.source_settings import Redact
from opus_pipelines.ids import digest

RECORD_BYTES = 4096
WITHHELD = "(withheld: the record cannot be taken apart, and the source redacts attributes)"
_PRIVATE = re.compile(
    r"(?P<email>[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8})"
    r"|(?P<account>\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b)"
    r"|(?P<moment>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?)?|\b\d{1,2}[./-]\d{1,2}[./-]\d{4}(?: \d\d:\d\d)?)"
    r"|(?P<number>(?<![\w.])\+?\d(?:[ ()/-]{0,2}\d){7,19}(?![\w.]))"
)


def mask_text(value: str) -> str:
    """E-mail addresses, account numbers and telephone numbers as [email], [account], [number]; dates stay."""
    return _PRIVATE.sub(lambda m: m[0] if m.lastgroup == "moment" else f"[{m.lastgroup}]", value)


class Redactor:
    """Applies a source's `[redact]` to what was read, before anything is made of it."""

    def __init__(self, settings: Redact) -> None:
        self._actions = dict.fromkeys(settings.drop, "drop")
        self._actions |= {name: "hash" for name in settings.hash if name not in self._actions}
        self._actions |= {name: "mask" for name in settings.mask if name not in self._actions}
        self._mask_text = settings.mask_text
        self.active = bool(self._actions)

    def flat(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record of plain columns, redacted."""
        if not self.active or not self._actions.keys() & record.keys():
            return record
        return {k: self._shown(k, v) for k, v in record.items() if self._actions.get(k) != "drop"}

    def nested(self, value: Any, path: str = "") -> Any:
        """A nested record, redacted wherever a key, or its dotted path (lists left out of it), is named."""
        if not self.active:
            return value
        if isinstance(value, list):
            return [self.nested(v, path) for v in value]
        if not isinstance(value, dict):
            return value
        kept = {}
        for key, inner in value.items():
            place = f"{path}.{key}" if path else key
            name = place if place in self._actions else key
            if name not in self._actions:
                kept[key] = self.nested(inner, place)
            elif self._actions[name] != "drop":
                kept[key] = self._shown(name, inner)
        return kept

    def record(self, written: str) -> str:
        """A rejected record's text as the lake may keep it: masked, at most 4 KiB."""
        written = written[: 4 * RECORD_BYTES]
        masked = mask_text(written) if self._mask_text else written
        return masked.encode("utf-8", "replace")[:RECORD_BYTES].decode("utf-8", "ignore")

    def raw(self, written: str) -> str:
        """The text of a record that could not be taken apart: withheld where named attributes might stand in it."""
        return WITHHELD if self.active else self.record(written)

    def reason(self, written: str) -> str:
        """A reason may quote a value: masked like the record."""
        return mask_text(written) if self._mask_text else written

    def _shown(self, name: str, value: Any) -> Any:
        action = self._actions.get(name)
        if action is None or value in (None, ""):
            return value
        return "***" if action == "mask" else "h" + digest("redacted", value)[:16]

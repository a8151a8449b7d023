"""Figures of a workflow file in another unit than the schema's: each is named with its unit, its field and the unit that is read."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

READ = {
    "duration": ("ms", "milliseconds"), "cost": ("usd", "US dollars"), "cost_compute": ("usd", "US dollars"), "gain": ("usd", "US dollars"),
    "cost_model": ("usd", "US dollars"), "cost_human": ("usd", "US dollars"), "memory": ("gb", "gigabytes"),
}
_UNITS = {
    "duration": "ns us s sec secs second seconds min mins minute minutes h hr hrs hour hours d day days w week weeks",
    "memory": "b kb mb tb kib mib gib tib bytes",
}
_AMOUNT = re.compile(r"\s*([$€£¥])?\s*[-+]?\d[\d.,_]*(?:e[-+]?\d+)?\s*([^\W\d_]+|[$€£¥%])?\s*", re.IGNORECASE)


def foreign_units(data: Mapping[str, Any]) -> list[str]:
    """A sentence for each figure of the file's nodes whose key or value names a unit that is not read."""
    found: list[str] = []
    for kind in ("inputs", "tasks", "outputs"):
        nodes = data.get(kind)
        for place, node in enumerate(nodes if isinstance(nodes, list) else ()):
            if isinstance(node, dict):
                found += [f"{kind}.{place}.{complaint}" for complaint in _complaints(node)]
    return found


def _complaints(node: Mapping[str, Any]) -> Iterator[str]:
    for key, value in node.items():
        if not isinstance(key, str):
            continue
        base, _, unit = key.lower().rpartition("_")
        if key.lower() in READ:
            read, words = READ[key.lower()]
            yield f"{key}: it does not say its unit; write {key.lower()}_{read}, a number of {words}"
        elif base in READ and unit != READ[base][0] and _is_unit(base, unit):
            read, words = READ[base]
            yield f"{key}: its unit is {unit!r}, {words} are read; convert it and write {base}_{read}"
        elif base in READ and isinstance(value, str) and (said := _AMOUNT.fullmatch(value)) and (unit := said[1] or said[2]):
            yield f"{key}: {value!r} comes with the unit {unit!r}; write a plain number of {READ[base][1]}"


def _is_unit(base: str, unit: str) -> bool:
    """Currencies go by their three letters."""
    if base in _UNITS:
        return unit in _UNITS[base].split()
    return re.fullmatch("[a-z]{3}|cents?|euros?|dollars?", unit) is not None

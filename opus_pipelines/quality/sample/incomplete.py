"""Intakes that say less than they should, and intakes that ask for two things: made from those of the sample.

An incomplete intake is a letter alone: neither title, nor process context, nor the output that the client wants. A
mixed one is the letters of two intakes of one contract in one folder. Both come in a contract of their own, whose
folder has no documents, so that nothing but history can tell what is missing.
"""

import tomllib
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from opus_pipelines.quality.sample.intakes import ContractFiles

SUFFIX, NAMED = "-by-mail", ", by mail"
KEPT = ("received_at", "gain_usd")  # what an incomplete intake's settings keep: neither title nor constraints
_SETTINGS = ("client", "industry", "gain_usd")


def by_mail(files: ContractFiles) -> ContractFiles:
    """Returns a contract with an incomplete twin of each intake of one kind, and a mixed one of each two neighbours.

    Neighbours of the same kind of case make no mixed intake.
    """
    single = {name: kinds[0] for name, kinds in files.kinds.items() if len(kinds) == 1}
    contract = replace(files.contract, name=files.contract.name + NAMED)
    texts = {"contract.toml": _toml({"contract": contract.name} | _stated(files.texts["contract.toml"], _SETTINGS))}
    kinds: dict[str, list[str]] = {}
    for name, kind in single.items():
        kinds[name] = [kind]
        texts |= _letter(files, name, name, "")
    for first, second in pairwise(single):
        if single[first] != single[second]:
            both = f"{first}-and-{second}"
            kinds[both] = [single[first], single[second]]
            texts |= _letter(files, second, both, "second_") | _letter(files, first, both, "first_")
    return ContractFiles(contract, files.folder + SUFFIX, texts, kinds)


def _letter(files: ContractFiles, of: str, to: str, prefix: str) -> dict[str, str]:
    """Returns the client input and the settings of an intake, as files of another one."""
    begin = f"{of}/input/"
    inputs = {
        f"{to}/input/{prefix}{path.removeprefix(begin)}": text
        for path, text in files.texts.items()
        if path.startswith(begin)
    }
    return {f"{to}/intake.toml": _toml(_stated(files.texts[f"{of}/intake.toml"], KEPT)), **inputs}


def _stated(text: str, keys: tuple[str, ...]) -> dict[str, object]:
    known = tomllib.loads(text)
    return {key: known[key] for key in keys if key in known}


def _toml(values: dict[str, object]) -> str:
    written = lambda v: v.isoformat() if isinstance(v, datetime) else f'"{v}"' if isinstance(v, str) else str(v)
    return "".join(f"{key} = {written(value)}\n" for key, value in values.items())

"""Writes declared records as JSON and reads them again, so that nothing that comes from another machine is unpickled.

A pickle runs what its writer put into it. Here the reader names the type that it expects, and gets a value of that
type or RecordError: dataclasses, named tuples, pydantic models, `Plain` classes, collections and scalars.
"""

import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints, runtime_checkable

from pydantic import BaseModel

from opus_pipelines.core.errors import OpusError

_T = TypeVar("_T")
_SCALARS = (str, int, float, bool, NoneType)
_LISTS = (list, tuple, set, frozenset)


class RecordError(OpusError):
    """A text that is not JSON of the expected record."""


@runtime_checkable
class Plain(Protocol):
    """A class that states itself what stands for it in JSON."""

    def as_plain(self) -> Any:
        """Returns values of JSON."""
        ...

    @classmethod
    def of_plain(cls, plain: Any) -> Any:
        """Returns what `as_plain` stated. Raises ValueError where it is something else."""
        ...


def record_json(value: object, kind: Any) -> str:
    """Returns a value of the declared type `kind` as JSON, in ASCII. A lone surrogate in a text stays what it is.

    Raises TypeError for a type that has no form here, which is a mistake of the program.
    """
    return json.dumps(_written(value, kind), separators=(",", ":"))


def record_of(text: str | bytes, kind: type[_T]) -> _T:
    """Returns the value of the declared type that `record_json` wrote. Raises RecordError for any other text."""
    try:
        value: _T = _read(json.loads(text), kind)
    except (ValueError, KeyError, RecursionError) as error:
        raise RecordError(f"this is no {getattr(kind, '__name__', kind)}: {error}") from None
    return value


def _written(value: Any, kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if value is None else _written(value, _one_of(kind, value))
    if kind in _SCALARS or origin is Literal:
        return value
    if origin in _LISTS:
        items = sorted(value) if origin in (set, frozenset) else value
        if _is_plain(inner):
            return list(items)
        return [_written(item, one) for item, one in zip(items, _item_kinds(origin, inner, len(value)), strict=True)]
    if _is_mapping(origin):
        return {_key(key): _written(item, _value_kind(origin, inner)) for key, item in value.items()}
    return _written_record(value, kind)


def _written_record(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} is no {kind.__name__}")
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, BaseModel):
        return _of_model(value.model_dump(by_alias=True, exclude_unset=True))
    if isinstance(value, Plain):
        return value.as_plain()
    return {name: _written(getattr(value, name), one) for name, one in _field_kinds(kind).items()}


def _of_model(value: Any) -> Any:
    """What a model holds, as JSON; the JSON of pydantic would turn an infinite number into null."""
    if isinstance(value, dict):
        return {_key(key): _of_model(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_of_model(item) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def _read(plain: Any, kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if plain is None else _read(plain, _one_of(kind, plain))
    if origin is Literal:
        return _checked(plain, plain in inner, kind)
    if kind in _SCALARS:
        return _checked(plain, type(plain) is kind or (kind is float and type(plain) is int), kind)
    if origin in _LISTS:
        _checked(plain, isinstance(plain, list), kind)
        if _is_plain(inner):  # a file may have a million ids of cases
            return origin(_checked(plain, all(type(item) is inner[0] for item in plain), kind))
        return origin(_read(item, one) for item, one in zip(plain, _item_kinds(origin, inner, len(plain)), strict=True))
    if _is_mapping(origin):
        _checked(plain, isinstance(plain, dict), kind)
        read = {key: _read(item, _value_kind(origin, inner)) for key, item in plain.items()}
        return Counter(read) if origin is Counter else read
    return _read_record(plain, kind)


def _read_record(plain: Any, kind: Any) -> Any:
    if issubclass(kind, Path | datetime | bytes):
        _checked(plain, isinstance(plain, str), kind)
        if issubclass(kind, Path):
            return Path(plain)
        return datetime.fromisoformat(plain) if issubclass(kind, datetime) else b64decode(plain, validate=True)
    if issubclass(kind, BaseModel):
        return kind.model_validate(plain)
    if issubclass(kind, Plain):
        return kind.of_plain(plain)
    declared = _field_kinds(kind)
    _checked(plain, isinstance(plain, dict) and plain.keys() == declared.keys(), kind)
    return kind(**{name: _read(plain[name], one) for name, one in declared.items()})


@cache
def _field_kinds(kind: Any) -> dict[str, Any]:
    """The declared type of each field of a dataclass or a named tuple."""
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        return {one.name: hints[one.name] for one in fields(kind)}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {name: hints[name] for name in kind._fields}
    raise TypeError(f"{kind} has no form in JSON")


def _item_kinds(origin: Any, inner: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    if origin is tuple and inner[-1:] != (Ellipsis,):
        return inner
    return inner[:1] * count


def _is_plain(inner: tuple[Any, ...]) -> bool:
    return inner in ((str,), (int,))


def _value_kind(origin: Any, inner: tuple[Any, ...]) -> Any:
    return int if origin is Counter else inner[1]


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{key!r}: keys in JSON are texts")
    return key


def _one_of(kind: Any, value: Any) -> Any:
    """The member of a union: its only one beside None, or the scalar that the value is."""
    members = [one for one in get_args(kind) if one is not NoneType]
    if len(members) == 1:
        return members[0]
    if all(one in _SCALARS for one in members):
        return next((one for one in members if type(value) is one), members[0])
    raise TypeError(f"{kind}: no value in JSON tells which of these it is")


def _checked(plain: Any, holds: bool, kind: Any) -> Any:
    if not holds:
        raise ValueError(f"{str(plain)[:80]!r} where {getattr(kind, '__name__', kind)} is expected")
    return plain

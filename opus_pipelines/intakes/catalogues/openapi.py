"""The operations of an OpenAPI 3 document as tools (OpenAPI Specification 3.0 and 3.1, sections Paths and Reference).

Only references inside the document are followed, each at most once on a way, so that a schema that refers to itself
ends.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.catalogues.entries import FileEntries, RawEntry

VERSION_KEYS = ("openapi", "swagger")
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
PRICES = ("x-price-usd", "x-price", "price_usd")
MAX_STEPS = 20  # references and combinations that are followed from one schema
_COMBINED = ("allOf", "oneOf", "anyOf")


def openapi_entries(document: Mapping[Any, Any]) -> FileEntries:
    """Returns one entry for each operation. Raises InputError where the document is of another version or has no paths.

    The name is `operationId`, else the summary, else method and path. Inputs are the parameters and the properties of
    the request body, outputs the properties of the responses of success.
    """
    version = str(document.get("openapi", document.get("swagger", "")))
    if not version.startswith("3."):
        raise InputError(f"it is OpenAPI {version or 'of no version'}, and version 3 is read")
    paths = document.get("paths")
    if not isinstance(paths, Mapping):
        raise InputError("it is an OpenAPI document without paths")
    found, place = FileEntries(f"OpenAPI {version[:10]}", "code"), 0
    for path, item in paths.items():
        item = _resolved(item, document)
        if not isinstance(item, Mapping):
            place += 1
            found.broken[place] = f"the path {str(path)[:80]!r} is no object"
            continue
        for method in METHODS:
            if method in item:
                place += 1
                operation = item[method]
                if isinstance(operation, Mapping):
                    found.entries.append(_entry(place, f"{method} {path}", operation, item, document))
                else:
                    found.broken[place] = f"the operation {method} {str(path)[:80]} is no object"
    return found


def _entry(
    place: int, where: str, operation: Mapping[Any, Any], item: Mapping[Any, Any], document: Mapping[Any, Any]
) -> RawEntry:
    texts = [t for key in ("summary", "description") if isinstance(t := operation.get(key), str) and t.strip()]
    parameters = [*_list(item.get("parameters")), *_list(operation.get("parameters"))]
    named = [p.get("name") for one in parameters if isinstance(p := _resolved(one, document), Mapping)]
    body = _resolved(operation.get("requestBody"), document)
    responses = operation.get("responses")
    outputs = [
        name
        for code, response in (responses.items() if isinstance(responses, Mapping) else ())
        if str(code).startswith("2")
        for name in _of_content(_resolved(response, document), document)
    ]
    return RawEntry(
        place,
        operation.get("operationId") or (texts[0] if "summary" in operation and texts else None) or where,
        "\n".join(dict.fromkeys(texts)) or None,
        [*named, *_of_content(body, document)],
        outputs,
        next((operation[key] for key in PRICES if key in operation), None),
    )


def _of_content(holder: Any, document: Mapping[Any, Any]) -> Iterator[str]:
    """Yields the names of the properties of every media type of a request body or response."""
    content = holder.get("content") if isinstance(holder, Mapping) else None
    for media in content.values() if isinstance(content, Mapping) else ():
        if isinstance(media, Mapping):
            yield from _properties(media.get("schema"), document)


def _properties(schema: Any, document: Mapping[Any, Any]) -> Iterator[str]:
    """Yields the names of the top level of a schema: its properties, those that it combines, and of a list its items'.

    A schema without properties goes by the name that the document gives it.
    """
    waiting, seen = [schema], 0
    while waiting and seen < MAX_STEPS:
        seen += 1
        one = waiting.pop(0)
        if not isinstance(one, Mapping):
            continue
        reference = one.get("$ref")
        one = _resolved(one, document)
        if not isinstance(one, Mapping):
            continue
        waiting += [part for key in _COMBINED for part in _list(one.get(key))]
        if isinstance(one.get("items"), Mapping):
            waiting.append(one["items"])
        properties = one.get("properties")
        if isinstance(properties, Mapping):
            yield from (str(name) for name in properties)
        elif isinstance(reference, str) and "items" not in one and not any(key in one for key in _COMBINED):
            yield reference.rsplit("/", 1)[-1]


def _resolved(value: Any, document: Mapping[Any, Any]) -> Any:
    """Returns what a reference inside the document stands for; None for one that leads out of it or in a circle."""
    for _ in range(MAX_STEPS):
        if not isinstance(value, Mapping) or not isinstance(value.get("$ref"), str):
            return value
        value = _at(value["$ref"], document)
    return None


def _at(reference: str, document: Mapping[Any, Any]) -> Any:
    if not reference.startswith("#/"):
        return None
    found: Any = document
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

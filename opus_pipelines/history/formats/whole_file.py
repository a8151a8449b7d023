"""Reads files as a whole, as XML and JSON documents require, with a size limit and checks against harmful content."""

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import SAFE_XML

_DECLARED = re.compile(rb"""(\sxmlns:?[\w.-]*\s*=\s*["'])([^"'<]+)""")
_URI = re.compile(rb"(?:[A-Za-z][A-Za-z0-9+.-]*:)?[\w/.?=&;~+-]*#?[\w/.?=&;~+-]*")
XML_BYTES = 1 << 23  # real models have up to one or two MiB; a parsed document takes ten to twenty times its size


def read_bytes(open_file: Callable[[], BinaryIO], limit: int, advice: str) -> bytes:
    """Returns the content of the file. Raises InputError if it is larger than `limit`."""
    with open_file() as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise InputError(f"it is larger than {limit >> 20} MiB, and this format must be read whole; {advice}")
    return content


def read_json(open_file: Callable[[], BinaryIO], limit: int, advice: str) -> Any:
    """Returns the JSON content of the file. Raises InputError if it is invalid or cannot be stored in the lake."""
    content = read_bytes(open_file, limit, advice)
    try:
        text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        value = json.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"it is not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise InputError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"it is not JSON: {error}") from None
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InputError("it holds half of a character (a lone surrogate)") from None
    return value


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Raises InputError if the code in this context fails on the nesting of a document.

    The JSON parser follows nesting that is too deep for the code that processes the result.
    """
    try:
        yield
    except RecursionError:
        raise InputError("the JSON is nested too deeply") from None


def read_xml(open_file: Callable[[], BinaryIO], root_name: str, advice: str) -> Any:
    """Returns the root element, or None if it has another name.

    Raises InputError if the XML is malformed or declares a document type.
    """
    content = io.BytesIO(with_plain_namespaces(read_bytes(open_file, XML_BYTES, advice)))
    parsed = etree.iterparse(content, events=("start",), tag="{*}" + root_name, **SAFE_XML)
    try:
        # the first is the root; a document type comes before it and is not expanded yet
        for _, element in parsed:
            refuse_doctype(element)
    except etree.XMLSyntaxError as error:
        raise broken_xml(error) from None
    root = parsed.root
    return root if root is not None and etree.QName(root).localname == root_name else None


def with_plain_namespaces(xml: bytes) -> bytes:
    """Returns XML in which each declared namespace is a URI: it may be any text, and libxml2 stops at other text."""
    return _DECLARED.sub(
        lambda found: found[0] if _URI.fullmatch(found[2]) else found[1] + re.sub(rb"[^\w/]", b"_", found[2]), xml
    )


def broken_xml(error: etree.XMLSyntaxError) -> InputError:
    """Returns the error that describes a syntax error to a person."""
    return InputError(f"the XML is broken: {' '.join(str(error.msg).split())}")


def refuse_doctype(element: Any) -> None:
    """Raises InputError for a document type. No log or model needs one, and entity attacks require one."""
    info = element.getroottree().docinfo
    if info.doctype or info.internalDTD is not None:
        raise InputError(
            "it declares a document type, which no log or model needs and entity bombs do; remove the <!DOCTYPE ...>"
        )

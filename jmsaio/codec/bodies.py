"""Bodies to payloads and back, in Starlight's layouts.

A Python ObjectMessage is written so that Java reads it without any class of ours: bytes as ``byte[]``, str as
``String``, bool and numbers as their boxes (``Integer`` or ``Long`` by size, ``Double``, or as selected by a wrapper).
A list or dict becomes a ``String`` of JSON with the property ``JMS_jmsaio_object`` = ``json``, by which Python restores
the list or dict; the property itself is hidden. A Java object of any other class is received as ``JavaObject`` and
forwarded unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import attrs

from jmsaio.codec import javaser, stream
from jmsaio.errors import MessageFormatError
from jmsaio.model.messages.object_message import MAX_DEPTH, JavaObject, is_shallow
from jmsaio.model.values import canonical
from jmsaio.model.wire import Texts

#: Property that names the format of an object message's String, and its only value.
OBJECT_FORMAT: Final = "JMS_jmsaio_object"
JSON: Final = "json"


@attrs.frozen
class _Layout:
    """The layout of one kind of body; ``structured`` if the payload is more than a text or bytes."""

    write: Callable[[Any, dict[str, str]], bytes | None]
    read: Callable[[bytes | None, Texts], Any]
    structured: bool = False


def encode_body(kind: str, body: Any, wire: dict[str, str]) -> bytes | None:
    """Return the payload of what ``Message._body`` returns; the mark of a JSON body is added to ``wire``."""
    return _LAYOUTS[kind].write(body, wire)


def decode_body(kind: str, payload: bytes | None, wire: Texts) -> Any:
    """Return the body of a payload; None for Pulsar's null value of a text or object, else an empty body."""
    return _LAYOUTS[kind].read(payload, wire)


def encode_text(text: str) -> bytes:
    """Encode as UTF-8. Raises MessageFormatError for a lone surrogate, which Java would turn into a question mark."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"the text has a lone surrogate at {error.start}; send it as bytes") from error


def _decode_text(payload: bytes | None, wire: Texts) -> str | None:
    try:
        return None if payload is None else payload.decode()
    except UnicodeDecodeError as error:
        raise MessageFormatError(str(error)) from error


def _encode_object(body: Any, wire: dict[str, str]) -> bytes | None:
    if body is None:
        return None
    if isinstance(body, JavaObject):
        return body.data
    if isinstance(body, list | tuple | dict):
        try:
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            raise MessageFormatError(f"the object is not JSON-able: {error}") from error
        wire[OBJECT_FORMAT] = JSON
        return javaser.write_object(text)
    return javaser.write_object(canonical(body, "object"))


def _decode_object(payload: bytes | None, wire: Texts) -> Any:
    if not payload:
        return None
    value = javaser.read_object(payload)
    if type(value) is str and wire.get(OBJECT_FORMAT) == JSON:
        return _from_json(value)
    return value


def _from_json(text: str) -> Any:
    """Parse a JSON text; return the text itself if it is not JSON, or nested so deeply that no copy could be made."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if text.count("[") + text.count("{") <= MAX_DEPTH or is_shallow(value) else text


_LAYOUTS: Final = {
    "text": _Layout(lambda body, wire: None if body is None else encode_text(body), _decode_text),
    "bytes": _Layout(lambda body, wire: bytes(body), lambda payload, wire: b"" if payload is None else payload),
    "map": _Layout(
        lambda body, wire: javaser.write_map(body) if body else None,
        lambda payload, wire: javaser.read_map(payload) if payload else {},
        structured=True,
    ),
    "stream": _Layout(
        lambda body, wire: stream.encode_stream(body),
        lambda payload, wire: stream.decode_stream(payload) if payload else [],
        structured=True,
    ),
    "object": _Layout(_encode_object, _decode_object, structured=True),
    "header": _Layout(lambda body, wire: None, lambda payload, wire: None),
}
#: Kinds whose payload is more than a text or bytes.
STRUCTURED: Final = frozenset(kind for kind, layout in _LAYOUTS.items() if layout.structured)

"""Bodies of map and stream messages as JSON that names the type of each value, converted without loss.

A map is an object, ``{"price": {"double": 9.5}, "note": null}``, and a stream an array, ``[{"int": 5}, null]``. Each
value is an object with one member, whose name is the JMS type: ``boolean``, ``byte``, ``short``, ``int``, ``long``,
``float``, ``double``, ``string``, ``char`` or ``bytes``. Bytes are Base64, a char is a string of one character, and
floating-point numbers that JSON lacks are the strings ``NaN``, ``Infinity`` and ``-Infinity``.
"""

from __future__ import annotations

import binascii
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from jmsaio.codec import bodies
from jmsaio.errors import IllegalArgumentError, MessageFormatError
from jmsaio.model.text import to_java
from jmsaio.model.values import TYPE_NAMES, Byte, Char, Float, Int, Long, Short, Value

#: Kinds of messages whose body has this form.
KINDS: Final = frozenset({"map", "stream"})
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def body_json(kind: str, payload: bytes | None) -> str | None:
    """Return the JSON of a payload; None for a message that is neither ``map`` nor ``stream``.

    Lone surrogates are written as escapes, since no column can hold them. A payload of None is an empty body.
    """
    if kind not in KINDS:
        return None
    body: Any = bodies.decode_body(kind, payload, {})
    if isinstance(body, dict):
        body = {name: _tagged(value) for name, value in body.items()}
    else:
        body = list(map(_tagged, body))
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode(errors="backslashreplace").decode()


def _tagged(value: Value) -> dict[str, Any] | None:
    if value is None:
        return None
    shown: Any = value
    if isinstance(value, bytes):
        shown = binascii.b2a_base64(value, newline=False).decode("ascii")
    elif isinstance(value, float) and not math.isfinite(value):
        shown = to_java(value)
    return {TYPE_NAMES[type(value)]: shown}


def read_json(text: str) -> dict[str, Value] | list[Value]:
    """Parse a JSON text into canonical values; the error for one that does not fit its type names the value."""
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MessageFormatError(f"the body is not JSON: {error}") from error
    if isinstance(found, dict):
        return {name: _value(value, f"value {name!r:.100}") for name, value in found.items()}
    if isinstance(found, list):
        return [_value(value, f"value {index}") for index, value in enumerate(found)]
    raise MessageFormatError(f"the body must be an object or an array, not {text!r:.100}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} must be a text, in quotes")


def _value(tagged: Any, where: str) -> Value:
    if tagged is None:
        return None
    if not isinstance(tagged, dict) or len(tagged) != 1:
        raise MessageFormatError(f'{where} must be null or an object of one type, such as {{"int": 5}}')
    [(word, shown)] = tagged.items()
    read = _READERS.get(word)
    if read is None:
        raise MessageFormatError(f"{where} has the type {word!r:.100}: take {', '.join(_READERS)}")
    try:
        return read(shown)
    except (TypeError, ValueError, OverflowError) as error:
        raise MessageFormatError(f"{where} is no {word}: {error}") from error


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(shown: Any) -> Any:
        if type(shown) is not kind:
            raise TypeError(f"{shown!r:.100}")
        return shown

    return read


def _double(shown: Any) -> float:
    if type(shown) is str and shown in _NOT_FINITE:
        return _NOT_FINITE[shown]
    if type(shown) not in (int, float) or not math.isfinite(shown):
        raise TypeError(f"{shown!r:.100}")
    return float(shown)


def _float(shown: Any) -> Float:
    value = _double(shown)
    made = Float(value)
    if float(made) != value and not math.isnan(value):
        raise IllegalArgumentError(f"{shown!r:.100} needs more than 32 bits")
    return made


def _bytes(shown: Any) -> bytes:
    return binascii.a2b_base64(_exactly(str)(shown), strict_mode=True)


#: Value readers by the name of the type; they raise ValueError, TypeError or OverflowError.
_READERS: Final[Mapping[str, Callable[[Any], Value]]] = {
    "boolean": _exactly(bool),
    "byte": Byte,
    "short": Short,
    "int": lambda shown: int(Int(shown)),
    "long": Long,
    "float": _float,
    "double": _double,
    "string": _exactly(str),
    "char": Char,
    "bytes": _bytes,
}

"""Reads payloads with the schema of their topic in Pulsar's registry."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NoReturn

import attrs

from jmsaio.codec.schemas.avro import LARGE, evolving_reader
from jmsaio.errors import MessageFormatError
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import ObjectMessage, is_shallow
from jmsaio.model.schema import Schema
from jmsaio.model.values import Byte, Float, Long, Short

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400 * 10**9  # in nanoseconds


def moment(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def clock_time(milliseconds: int) -> time:
    return moment(milliseconds).time()


def instant(seconds: int, nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)


def local_date(days: int) -> date:
    return date(1970, 1, 1) + timedelta(days=days)


def local_time(nanoseconds: int) -> time:
    if not 0 <= nanoseconds < _DAY:
        raise OverflowError(f"{nanoseconds} ns are not the time of a day")
    return (datetime.min + timedelta(microseconds=nanoseconds // 1000)).time()


def local_date_time(days: int, nanoseconds: int) -> datetime:
    return datetime.combine(local_date(days), local_time(nanoseconds))


def json_text(value: bytes | date | time | Decimal) -> str:
    """Return the text, in JSON, of a value that JSON can't express: Base64 of bytes, ISO 8601 of times."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value.isoformat() if isinstance(value, date | time) else str(value)


_LENGTH: Final = struct.Struct(">i")
#: Bytes of a payload whose reading takes about 10 ms.
_LARGE: Final = {"AVRO": LARGE, "KEY_VALUE": LARGE, "JSON": 400_000}
#: What reads large JSON in a thread: each call in Python lets others run, while the parser holds Python's lock.
_IN_PYTHON: Final[dict[str, Any]] = {
    "object_hook": lambda found: found,
    "parse_int": lambda digits: int(digits),
    "parse_float": lambda digits: float(digits),
}


@attrs.frozen(eq=False)
class SchemaReader:
    """Reads the payloads of one schema: ``read`` returns the value of a record, from its payload and key."""

    schema_type: str
    read: Callable[[bytes | None, str | None], Any]

    def is_slow(self, payload: bytes) -> bool:
        """Whether reading a body takes so long that a thread should do it: 10 ms or more."""
        return len(payload) > _LARGE.get(self.schema_type, len(payload))

    def kind(self, value: object) -> type[Message]:
        """Return the class of the message for a value, as Starlight for JMS chooses it."""
        if self.schema_type == "STRING":
            return TextMessage
        return MapMessage if self.schema_type in ("AVRO", "KEY_VALUE") and isinstance(value, dict) else ObjectMessage


def schema_reader(schema: Schema, wanted: Schema | None = None) -> SchemaReader | None:
    """Return the reader of a schema; None for a type whose payloads stay bytes (PROTOBUF, NONE and others).

    AVRO values are evolved to ``wanted``, another version of the schema, which requires fastavro.
    """
    wanted = wanted or schema
    if schema.type == wanted.type == "KEY_VALUE":
        return SchemaReader(schema.type, _key_value(schema, wanted))
    read = _payload_reader(schema, wanted)
    if read is None:
        return None
    return SchemaReader(schema.type, lambda payload, key: None if payload is None else read(payload))


def _payload_reader(schema: Schema, wanted: Schema) -> Callable[[bytes], Any] | None:
    if schema.type != wanted.type:
        raise MessageFormatError(f"its type is {schema.type}, not {wanted.type}")
    if schema.type == "AVRO":
        return evolving_reader(schema.definition, wanted.definition)
    if schema.type == "JSON":
        return _json
    if schema.type == "STRING":
        return _text
    found = _FIXED.get(schema.type)
    if found is None:
        return None
    layout, convert = found

    def read(payload: bytes) -> Any:
        if len(payload) != layout.size:
            raise MessageFormatError(f"{schema.type} has {layout.size} bytes, not {len(payload)}")
        try:
            return convert(*layout.unpack(payload))
        except OverflowError as error:
            raise MessageFormatError(f"Python has no such {schema.type}: {error}") from error

    return read


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise MessageFormatError(f"the text is not UTF-8: {error}") from error


def _json(payload: bytes) -> Any:
    text = _text(payload)
    try:
        value = json.loads(text, parse_constant=_refuse, **(_IN_PYTHON if len(payload) > _LARGE["JSON"] else {}))
    except (ValueError, RecursionError) as error:
        raise MessageFormatError(f"it is not JSON: {error}") from error
    if not is_shallow(value):
        raise MessageFormatError("the JSON is nested too deep")
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def key_and_value(schema: Schema) -> tuple[Schema, Schema]:
    """Return the schemas of key and value of a KEY_VALUE schema. Raises MessageFormatError if it lacks them."""
    try:
        parts, types = json.loads(schema.definition), schema.properties
        key, value = (Schema(types[f"{name}.schema.type"], parts[name]) for name in ("key", "value"))
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise MessageFormatError(f"it lacks the schemas of key and value: {error}") from error
    return key, value


def _key_value(schema: Schema, wanted: Schema) -> Callable[[bytes | None, str | None], Any]:
    """Return the function that reads key and value: both from the payload, or the key from the record's key."""
    pairs = zip(("key", "value"), key_and_value(schema), key_and_value(wanted), strict=True)
    read_key, read_value = (_part(*each) for each in pairs)

    def separated(payload: bytes | None, key: str | None) -> dict[str, Any]:
        try:
            found = None if key is None else binascii.a2b_base64(key, strict_mode=True)
        except ValueError as error:
            raise MessageFormatError(f"the key is not Base64: {error}") from error
        return {
            "key": None if found is None else read_key(found),
            "value": None if payload is None else read_value(payload),
        }

    def inline(payload: bytes | None, key: str | None) -> dict[str, Any]:
        data = b"" if payload is None else payload
        found, rest = _prefixed(data)
        value, rest = _prefixed(rest)
        if rest:
            raise MessageFormatError(f"{len(rest)} bytes follow key and value")
        return {
            "key": None if found is None else read_key(found),
            "value": None if value is None else read_value(value),
        }

    return separated if schema.properties.get("kv.encoding.type") == "SEPARATED" else inline


def _part(name: str, schema: Schema, wanted: Schema) -> Callable[[bytes], Any]:
    try:
        read = _payload_reader(schema, wanted)
    except MessageFormatError as error:
        raise MessageFormatError(f"its {name}: {error}") from error
    return bytes if read is None else read


def _prefixed(data: bytes) -> tuple[bytes | None, bytes]:
    """Split off the bytes that follow their length, None for null. Return them and the rest."""
    if len(data) < _LENGTH.size:
        raise MessageFormatError("the payload ends before a length")
    (length,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + max(length, 0)
    if length < -1 or end > len(data):
        raise MessageFormatError(f"a length of {length} bytes is not in a payload of {len(data)}")
    return (None if length < 0 else data[_LENGTH.size : end]), data[end:]


#: Types with a fixed number of bytes: their layout, and the function that converts it to Python's value.
_FIXED: Final[dict[str, tuple[struct.Struct, Callable[..., Any]]]] = {
    "BOOLEAN": (struct.Struct(">?"), bool),
    "INT8": (struct.Struct(">b"), Byte),
    "INT16": (struct.Struct(">h"), Short),
    "INT32": (struct.Struct(">i"), int),
    "INT64": (struct.Struct(">q"), Long),
    "FLOAT": (struct.Struct(">f"), Float),
    "DOUBLE": (struct.Struct(">d"), float),
    "DATE": (struct.Struct(">q"), moment),
    "TIME": (struct.Struct(">q"), clock_time),
    "TIMESTAMP": (struct.Struct(">q"), moment),
    "INSTANT": (struct.Struct(">qi"), instant),
    "LOCAL_DATE": (struct.Struct(">q"), local_date),
    "LOCAL_TIME": (struct.Struct(">q"), local_time),
    "LOCAL_DATE_TIME": (struct.Struct(">qq"), local_date_time),
}

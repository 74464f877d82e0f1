"""Reads Avro's binary encoding within bounds (Avro specification 1.11, Binary encoding), and one version as another.

Schemas and payloads are untrusted. A small payload can claim 2^40 items that take no bytes, or nest so deeply that a
reader written in C crashes the process. This reader counts the values of a payload, and the nesting of both.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from jmsaio.errors import ConfigurationError, MessageFormatError
from jmsaio.model.arguments import shown
from jmsaio.model.values import Float, Long

#: Maximum nesting of a schema, and of a value.
DEEPEST: Final = 100
#: Maximum size of a schema in characters.
LARGEST: Final = 1_000_000
#: Number of bytes of a payload whose reading takes about 10 ms.
LARGE: Final = 40_000
#: Maximum number of records, lists, maps and nulls: of the smallest payloads, and of large ones.
_FEWEST, _MOST = 65_536, 1_000_000
#: Maximum number of digits of a decimal.
_MOST_DIGITS: Final = 1000
#: Java's library accepts letters of any alphabet, unlike the specification.
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")

Read = Callable[["_Input"], Any]


class _Input:
    """A payload with the current position and the remaining bounds."""

    __slots__ = ("data", "depth", "left", "place")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0
        self.depth = DEEPEST
        self.left = min(_FEWEST + len(data), _MOST)

    def read(self, count: int) -> bytes:
        end = self.place + count
        if count < 0 or end > len(self.data):
            raise MessageFormatError(f"{count} bytes at byte {self.place} are not in a payload of {len(self.data)}")
        found = self.data[self.place : end]
        self.place = end
        return found

    def enter(self) -> None:
        """Begin a record, a list or a map. Its reader increments ``depth`` again at the end."""
        self.depth -= 1
        if self.depth < 0:
            raise MessageFormatError(f"the value is nested more than {DEEPEST} deep")
        self.count()

    def count(self) -> None:
        """Count a value that might take no bytes."""
        self.left -= 1
        if self.left < 0:
            raise MessageFormatError("the payload claims too many values")


def avro_reader(definition: str) -> Callable[[bytes], Any]:
    """Return a function that reads payloads of an Avro schema in JSON; both raise MessageFormatError.

    A record or a map becomes a dict, an array a list, an enum's symbol a str, and a fixed bytes. A long is a ``Long``,
    a float a ``Float``. Among the logical types only a decimal has its own class, ``Decimal``: times stay numbers and a
    UUID a str, as in Java's client.
    """
    if len(definition) > LARGEST:
        raise MessageFormatError(f"it has {len(definition)} characters; the maximum is {LARGEST}")
    try:
        tree = json.loads(definition)
    except (ValueError, RecursionError) as error:
        raise MessageFormatError(f"it is not JSON: {error}") from error
    read = _ReaderCompiler().reader(tree, "", DEEPEST)

    def read_all(data: bytes) -> Any:
        source = _Input(data)
        try:
            value = read(source)
        except RecursionError as error:  # unions in unions do not add levels to a value
            raise MessageFormatError(f"the value is nested too deep at byte {source.place}") from error
        if source.place != len(data):
            raise MessageFormatError(f"the value ends at byte {source.place} of {len(data)}")
        return value

    return read_all


def decimal_digits(tree: dict[str, Any]) -> tuple[int, int] | None:
    """Return precision and scale of an Avro type that is read as a decimal; None for any other."""
    precision, scale = tree.get("precision"), tree.get("scale", 0)
    if tree.get("type") not in ("bytes", "fixed") or tree.get("logicalType") != "decimal":
        return None
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision <= _MOST_DIGITS:
        return None
    return precision, scale


class _ReaderCompiler:
    """Builds the functions that read the types of one schema."""

    def __init__(self) -> None:
        self._named: dict[str, Read] = {}

    def reader(self, tree: Any, space: str, depth: int) -> Read:
        """Return the function that reads a type in JSON, in a namespace, with this many levels of nesting left."""
        if depth == 0:
            raise MessageFormatError(f"it is nested more than {DEEPEST} deep")
        if isinstance(tree, str):
            return _PRIMITIVES.get(tree) or self._reference(tree, space)
        if isinstance(tree, list):
            branches = [self.reader(branch, space, depth - 1) for branch in tree]
            return lambda source: branches[_index(source, len(branches), "branch")](source)
        if not isinstance(tree, dict):
            raise MessageFormatError(f"{shown(tree)} is not a type")
        kind = tree.get("type")
        if kind in ("record", "error"):
            return self._record(tree, space, depth)
        if kind == "array":
            return _array(self.reader(tree.get("items"), space, depth - 1))
        if kind == "map":
            return _map(self.reader(tree.get("values"), space, depth - 1))
        if kind == "enum":
            return self._enum(tree, space)
        read = self._fixed(tree, space) if kind == "fixed" else self.reader(kind, space, depth - 1)
        return _decimal(read, tree)

    def _reference(self, name: str, space: str) -> Read:
        """Return the function that reads a named type, which it looks up when called: a record can contain itself."""
        known = self._named
        full = name if "." in name or not space else f"{space}.{name}"
        if full not in known:
            full = name
        if full not in known:
            raise MessageFormatError(f"it has no type {shown(name)}")
        return lambda source: known[full](source)

    def _name(self, tree: dict[str, Any], space: str) -> tuple[str, str]:
        name, given = tree.get("name"), tree.get("namespace", space)
        if not isinstance(name, str) or not isinstance(given, str) or not _NAME.fullmatch(name):
            raise MessageFormatError(f"{shown(name)} is not a name")
        full = name if "." in name or not given else f"{given}.{name}"
        if full in self._named:
            raise MessageFormatError(f"type {shown(full)} is defined twice")
        return full, full.rpartition(".")[0]

    def _record(self, tree: dict[str, Any], space: str, depth: int) -> Read:
        full, space = self._name(tree, space)
        parts: list[tuple[str, Read]] = []
        names: set[str] = set()

        def read(source: _Input) -> dict[str, Any]:
            source.enter()
            value = {name: read_field(source) for name, read_field in parts}
            source.depth += 1
            return value

        self._named[full] = read
        fields = tree.get("fields")
        if not isinstance(fields, list):
            raise MessageFormatError(f"record {shown(full)} has no list of fields")
        for field in fields:
            name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(name, str) or not _NAME.fullmatch(name) or name in names:
                raise MessageFormatError(f"{shown(name)} in record {shown(full)} is not a name, or occurs twice")
            names.add(name)
            try:
                parts.append((name, self.reader(field.get("type"), space, depth - 1)))
            except MessageFormatError as error:
                raise MessageFormatError(f"field {shown(name)} of record {shown(full)}: {error}") from error
        return read

    def _enum(self, tree: dict[str, Any], space: str) -> Read:
        full, _ = self._name(tree, space)
        symbols = tree.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise MessageFormatError(f"enum {shown(full)} has no list of symbols")

        def read(source: _Input) -> str:
            return str(symbols[_index(source, len(symbols), "symbol")])

        self._named[full] = read
        return read

    def _fixed(self, tree: dict[str, Any], space: str) -> Read:
        full, _ = self._name(tree, space)
        size = tree.get("size")
        if type(size) is not int or size < 0:
            raise MessageFormatError(f"fixed {shown(full)} has no size")

        def read(source: _Input) -> bytes:
            source.count()
            return source.read(size)

        self._named[full] = read
        return read


def _array(read_item: Read) -> Read:
    def read(source: _Input) -> list[Any]:
        source.enter()
        items: list[Any] = []
        while count := _block(source):
            for _ in range(count):
                items.append(read_item(source))  # noqa: PERF401  # the bounds end it early
        source.depth += 1
        return items

    return read


def _map(read_item: Read) -> Read:
    def read(source: _Input) -> dict[str, Any]:
        source.enter()
        items: dict[str, Any] = {}
        while count := _block(source):
            for _ in range(count):
                name = _string(source)
                items[name] = read_item(source)
        source.depth += 1
        return items

    return read


def _block(source: _Input) -> int:
    """Return the number of items in the next block of an array or a map; 0 at its end."""
    count = _long(source)
    if count < 0:  # the block's size in bytes follows
        count = -count
        _long(source)
    return count


def _index(source: _Input, count: int, what: str) -> int:
    index = _long(source)
    if not 0 <= index < count:
        raise MessageFormatError(f"{what} {index} at byte {source.place} is not one of {count}")
    return index


def _null(source: _Input) -> None:
    source.count()


def _boolean(source: _Input) -> bool:
    byte = source.read(1)[0]
    if byte > 1:
        raise MessageFormatError(f"{byte} at byte {source.place} is not a boolean")
    return byte == 1


def _long(source: _Input) -> int:
    data, place, number, shift = source.data, source.place, 0, 0
    while True:
        if place >= len(data) or shift > 63:
            raise MessageFormatError(f"there is no whole number at byte {source.place} of {len(data)}")
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    if number >> 64:
        raise MessageFormatError(f"the number at byte {source.place} has more than 64 bits")
    source.place = place
    return (number >> 1) ^ -(number & 1)


def _int(source: _Input) -> int:
    number = _long(source)
    if not -(1 << 31) <= number < 1 << 31:
        raise MessageFormatError(f"the number before byte {source.place} has more than 32 bits")
    return number


def _string(source: _Input) -> str:
    try:
        return source.read(_long(source)).decode()
    except UnicodeDecodeError as error:
        raise MessageFormatError(f"the text before byte {source.place} is not UTF-8: {error}") from error


def _bytes(source: _Input) -> bytes:
    return source.read(_long(source))


def _decimal(read: Read, tree: dict[str, Any]) -> Read:
    """Return the function that reads a decimal; with impossible attributes ``read``, as the specification requires."""
    digits = decimal_digits(tree)
    if digits is None:
        return read
    precision, scale = digits

    def read_decimal(source: _Input) -> Decimal:
        data = read(source)
        number = int.from_bytes(data, "big", signed=True) if len(data) <= _MOST_DIGITS else 10**_MOST_DIGITS
        if abs(number) >= 10**precision:
            raise MessageFormatError(f"the decimal before byte {source.place} has more than {precision} digits")
        return Decimal(f"{number}E-{scale}")

    return read_decimal


_PRIMITIVES: Final[dict[str, Read]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": lambda source: int.__new__(Long, _long(source)),
    "float": lambda source: Float(_FLOAT.unpack(source.read(4))[0]),
    "double": lambda source: _DOUBLE.unpack(source.read(8))[0],
    "bytes": _bytes,
    "string": _string,
}


# Versions of a schema (Avro specification 1.11, Schema Resolution)


def parsed_schema(definition: str) -> Any:
    """Return an AVRO schema as fastavro needs it. Raises ConfigurationError without the package fastavro."""
    try:
        import fastavro
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "to send with an AVRO schema, or read one version as another, install jmsaio[schema]: fastavro is missing"
        ) from error
    try:
        return fastavro.parse_schema(json.loads(definition), named_schemas={})
    except Exception as error:  # fastavro's errors have no common class
        raise MessageFormatError(repr(error)) from error


class _LargeSource(io.BytesIO):
    """A payload that a thread reads: each call in Python lets others run, while fastavro holds Python's lock."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(size)


def evolving_reader(definition: str, wanted: str) -> Callable[[bytes], Any]:
    """Return a function that reads payloads of one AVRO schema as values of the ``wanted`` one.

    Values have the classes of ``avro_reader``'s or their bases, except defaults of bytes and decimals, which remain
    text. Each payload is first read by ``avro_reader``, within its bounds, since fastavro has none.
    """
    check = avro_reader(definition)
    if definition == wanted:
        return check
    avro_reader(wanted)
    schemas = [parsed_schema(_without_times(each)) for each in (definition, wanted)]
    from fastavro import schemaless_reader

    def read(data: bytes) -> Any:
        check(data)
        try:
            return schemaless_reader((_LargeSource if len(data) > LARGE else io.BytesIO)(data), *schemas)
        except Exception as error:  # fastavro's errors have no common class
            reason = " ".join(str(error).split())
            raise MessageFormatError(f"it does not fit the schema to read: {reason:.200}") from error

    return read


def _without_times(definition: str) -> str:
    """Remove the logical types that ``avro_reader`` ignores: fastavro would convert times and UUIDs."""

    def plain(tree: dict[str, Any]) -> dict[str, Any]:
        if decimal_digits(tree) is None:
            tree.pop("logicalType", None)
        return tree

    return json.dumps(json.loads(definition, object_hook=plain))

"""The type of the column ``value``, bodies read by the schema of their topic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final

import attrs

from jmsaio.codec.schemas.avro import avro_reader, decimal_digits
from jmsaio.codec.schemas.reading import key_and_value
from jmsaio.errors import MessageFormatError
from jmsaio.model.schema import Schema

#: Name of the column.
VALUE: Final = "value"
#: Type of the column if the values have no common one: their JSON.
JSON: Final = "STRING"

#: Types by Pulsar's types that have no definition.
_BY_TYPE: Final[Mapping[str, str]] = {
    "BOOLEAN": "BOOLEAN", "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT", "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE", "STRING": "STRING", "BYTES": "BINARY", "NONE": "BINARY", "DATE": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP", "INSTANT": "TIMESTAMP", "LOCAL_DATE": "DATE", "LOCAL_DATE_TIME": "TIMESTAMP_NTZ",
    "TIME": "STRING", "LOCAL_TIME": "STRING",
}  # fmt: skip
#: Types by the types of AVRO and JSON schemas: producers write bytes and decimals as JSON in different ways.
_AVRO: Final[Mapping[str, str | _Nested]] = {
    "boolean": "BOOLEAN", "int": "INT", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "bytes": "BINARY",
    "string": "STRING", "enum": "STRING", "fixed": "BINARY",
}  # fmt: skip
_IN_JSON: Final = {name: kind for name, kind in _AVRO.items() if kind != "BINARY"}
#: Maximum precision of a decimal in Spark.
_MOST_DIGITS: Final = 38


_CASE: Final = "Spark treats names that differ only in case as equal"
#: Types of numbers. Of two, the later one has the values of both, except that FLOAT rounds integers: DOUBLE has those.
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")


@attrs.frozen
class _Nested:
    """A type with parts: STRUCT, ARRAY or MAP."""

    word: str
    parts: Mapping[str, tuple[str, str | _Nested]]  # names and types, by the name in lower case; one if not a STRUCT


def value_type(schemas: Iterable[Schema]) -> str:
    """Return Spark's DDL of a type that fits the values of all schemas.

    For records, it is a STRUCT with the fields of all versions, each of the widest of its types: versions can differ in
    the size of a number, and have a fraction or none. Without a common type, or if a schema is invalid, it is STRING,
    for JSON.
    """
    versions = list(schemas)
    try:
        if {schema.type for schema in versions} != {"KEY_VALUE"}:
            return _common(versions)
        parts = [_common(part) for part in zip(*map(key_and_value, versions), strict=True)]
    except (MessageFormatError, LookupError):
        return JSON
    return "STRUCT<`key`: {}, `value`: {}>".format(*parts)


def _common(schemas: Iterable[Schema]) -> str:
    kinds = [_kind_of(schema) for schema in schemas]
    if not kinds:
        raise LookupError("there is no schema")
    return _ddl(reduce(_wider, kinds))


def _kind_of(schema: Schema) -> str | _Nested:
    if schema.type not in ("AVRO", "JSON"):
        return _BY_TYPE[schema.type]
    avro_reader(schema.definition)  # refuses invalid schemas, and those nested too deep
    return _kind(json.loads(schema.definition), dict(_AVRO if schema.type == "AVRO" else _IN_JSON))


def _kind(tree: Any, named: dict[str, str | _Nested]) -> str | _Nested:
    """Return the type of an Avro type. Raises LookupError if Spark has no such type.

    ``named`` has the primitive types, and the named ones so far. A name with a namespace is not resolved, nor is one
    inside its own type: Spark has no recursive types.
    """
    if isinstance(tree, str):
        return named[tree]
    if isinstance(tree, list):
        rest = [branch for branch in tree if branch != "null"]
        if len(rest) != 1:
            raise LookupError("Spark has no unions")
        return _kind(rest[0], named)
    kind = tree["type"]
    found: str | _Nested
    if kind in ("array", "map"):
        return _Nested(kind.upper(), {"": ("", _kind(tree["items" if kind == "array" else "values"], named))})
    if kind == "record":
        found = _Nested("STRUCT", _fields(tree, named))
    elif not isinstance(kind, str):
        return _kind(kind, named)
    else:
        found = named[kind]
    if (digits := decimal_digits(tree)) is not None:
        if not 0 < digits[0] <= _MOST_DIGITS:
            raise LookupError(f"Spark has no decimals of {digits[0]} digits")
        found = "DECIMAL({}, {})".format(*digits)
    if kind in ("record", "enum", "fixed"):
        named[tree["name"]] = found
    return found


def _fields(tree: Mapping[str, Any], named: dict[str, str | _Nested]) -> dict[str, tuple[str, str | _Nested]]:
    fields = [(field["name"], _kind(field["type"], named)) for field in tree["fields"]]
    found = {name.lower(): (name, kind) for name, kind in fields}
    if len(found) < len(fields):
        raise LookupError(_CASE)
    return found


def _wider(one: str | _Nested, other: str | _Nested) -> str | _Nested:
    if one == other:
        return one
    if isinstance(one, _Nested) and isinstance(other, _Nested) and one.word == other.word:
        parts = dict(one.parts)
        for key, (name, kind) in other.parts.items():
            known, part = parts.get(key, (name, kind))
            if known != name:
                raise LookupError(_CASE)
            parts[key] = name, _wider(part, kind)
        return _Nested(one.word, parts)
    if one in _NUMBERS and other in _NUMBERS:
        widest = max(one, other, key=_NUMBERS.index)
        return "DOUBLE" if widest == "FLOAT" else widest
    raise LookupError(f"no type has the values of {one} and {other}")


def _ddl(kind: str | _Nested) -> str:
    if isinstance(kind, str):
        return kind
    if not kind.parts:
        raise LookupError("Spark has no STRUCT without fields")
    parts = [f"`{name}`: {_ddl(part)}" if name else _ddl(part) for name, part in kind.parts.values()]
    return f"{kind.word}<{'STRING, ' if kind.word == 'MAP' else ''}{', '.join(parts)}>"

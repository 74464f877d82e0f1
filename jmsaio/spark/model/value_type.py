"""The type of the column ``value``, which holds bodies read by the schema of their topic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from jmsaio.codec.schemas.avro import avro_reader, decimal_digits
from jmsaio.codec.schemas.reading import key_and_value
from jmsaio.errors import MessageFormatError
from jmsaio.model.schema import Schema

#: Name of the column.
VALUE: Final = "value"
#: Type of the column if the values have no common one: their JSON.
JSON: Final = "STRING"

#: Types by those of Pulsar that have no definition.
_BY_TYPE: Final = {
    "BOOLEAN": "BOOLEAN", "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT", "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE", "STRING": "STRING", "BYTES": "BINARY", "NONE": "BINARY", "DATE": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP", "INSTANT": "TIMESTAMP", "LOCAL_DATE": "DATE", "LOCAL_DATE_TIME": "TIMESTAMP_NTZ",
    "TIME": "STRING", "LOCAL_TIME": "STRING",
}  # fmt: skip
#: Types by those of an AVRO schema, and of a JSON schema: producers write bytes and decimals as JSON in different ways.
_AVRO: Final = {
    "boolean": "BOOLEAN", "int": "INT", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "bytes": "BINARY",
    "string": "STRING", "enum": "STRING", "fixed": "BINARY",
}  # fmt: skip
_IN_JSON: Final = {name: kind for name, kind in _AVRO.items() if kind != "BINARY"}
#: Maximum precision of a decimal in Spark.
_MOST_DIGITS: Final = 38


def value_type(schemas: Iterable[Schema]) -> str:
    """Return Spark's DDL of a type that fits the values of all schemas.

    For records, it is a STRUCT with the fields of all versions, if each field has the same type in all versions that
    have it, and the type exists in Spark. Without a common type, or if a schema is invalid, it is STRING, for JSON.
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
    """Return the type of values that are no pairs of key and value. Raises LookupError if they have none in common."""
    fields: dict[str, tuple[str, str]] = {}
    kinds: set[str] = set()
    for schema in schemas:
        if schema.type not in ("AVRO", "JSON"):
            kinds.add(_BY_TYPE[schema.type])
            continue
        avro_reader(schema.definition)  # refuses invalid schemas, and those nested too deep
        tree, named = json.loads(schema.definition), dict(_AVRO if schema.type == "AVRO" else _IN_JSON)
        if not isinstance(tree, dict) or tree.get("type") != "record":
            kinds.add(_ddl(tree, named))
            continue
        for name, field in _fields(tree, named).items():
            if fields.setdefault(name, field) != field:
                raise LookupError(f"versions differ in field {name}")
    if len(kinds) + bool(fields) != 1:
        raise LookupError("records and other types, or none")
    return kinds.pop() if kinds else _struct(fields)


def _ddl(tree: Any, named: dict[str, str]) -> str:
    """Return the DDL of an Avro type. Raises LookupError if Spark has no such type.

    Args:
        tree: the type as JSON.
        named: the primitive types, and the named ones so far. A name with a namespace is not resolved, nor is one
            inside its own type: Spark has no recursive types.
    """
    if isinstance(tree, str):
        return named[tree]
    if isinstance(tree, list):
        rest = [branch for branch in tree if branch != "null"]
        if len(rest) != 1:
            raise LookupError("Spark has no unions")
        return _ddl(rest[0], named)
    kind = tree["type"]
    if kind == "array":
        return f"ARRAY<{_ddl(tree['items'], named)}>"
    if kind == "map":
        return f"MAP<STRING, {_ddl(tree['values'], named)}>"
    if kind == "record":
        found = _struct(_fields(tree, named))
    elif not isinstance(kind, str):
        return _ddl(kind, named)
    else:
        found = named[kind]
    if (digits := decimal_digits(tree)) is not None:
        if not 0 < digits[0] <= _MOST_DIGITS:
            raise LookupError(f"Spark has no decimals of {digits[0]} digits")
        found = "DECIMAL({}, {})".format(*digits)
    if kind in ("record", "enum", "fixed"):
        named[tree["name"]] = found
    return found


def _fields(tree: Mapping[str, Any], named: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return name and DDL of each field of a record, by the name in lower case."""
    fields: dict[str, tuple[str, str]] = {}
    for field in tree["fields"]:
        name, kind = field["name"], _ddl(field["type"], named)
        if fields.setdefault(name.lower(), (name, kind)) != (name, kind):
            raise LookupError("Spark treats names that differ only in case as equal")
    return fields


def _struct(fields: Mapping[str, tuple[str, str]]) -> str:
    if not fields:
        raise LookupError("Spark has no STRUCT without fields")
    return "STRUCT<" + ", ".join(f"`{name}`: {kind}" for name, kind in fields.values()) + ">"

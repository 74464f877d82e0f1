"""The type of the column ``value``, which holds bodies read by the schema of their topic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from jmsaio.codec.schemas.avro import DEEPEST, avro_reader, decimal_digits
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
_IN_JSON: Final = {name: None if kind == "BINARY" else kind for name, kind in _AVRO.items()}
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
            return _common(versions) or JSON
        parts = [_common(part) for part in zip(*map(key_and_value, versions), strict=True)]
    except MessageFormatError:
        return JSON
    return JSON if None in parts else "STRUCT<`key`: {}, `value`: {}>".format(*parts)


def _common(schemas: Iterable[Schema]) -> str | None:
    """Return the type of values that are no pairs of key and value; None if they have none in common."""
    fields: dict[str, tuple[str, str]] = {}
    kinds: set[str | None] = set()
    for schema in schemas:
        if schema.type not in ("AVRO", "JSON"):
            kinds.add(_BY_TYPE.get(schema.type))
            continue
        avro_reader(schema.definition)
        tree, named = json.loads(schema.definition), dict(_AVRO if schema.type == "AVRO" else _IN_JSON)
        if not isinstance(tree, dict) or tree.get("type") != "record":
            kinds.add(_ddl(tree, named, DEEPEST + 1))
            continue
        found = _fields(tree, named, DEEPEST + 1)
        if found is None or any(fields.setdefault(name, field) != field for name, field in found.items()):
            return None
    if fields:
        return None if kinds else _struct(fields)
    return kinds.pop() if len(kinds) == 1 else None


def _ddl(tree: Any, named: dict[str, str | None], depth: int) -> str | None:
    """Return the DDL of an Avro type; None if Spark has no such type.

    Args:
        tree: the type as JSON.
        named: the primitive types, and the named ones so far; None for those without a type in Spark. A name with a
            namespace is not resolved.
        depth: levels of nesting still allowed.
    """
    if depth == 0:
        return None
    if isinstance(tree, str):
        return named.get(tree)
    if isinstance(tree, list):
        rest = [branch for branch in tree if branch != "null"]
        return _ddl(rest[0], named, depth - 1) if len(rest) == 1 else None
    kind = tree["type"]
    if kind == "array":
        items = _ddl(tree["items"], named, depth - 1)
        return None if items is None else f"ARRAY<{items}>"
    if kind == "map":
        items = _ddl(tree["values"], named, depth - 1)
        return None if items is None else f"MAP<STRING, {items}>"
    if kind == "record":
        fields = _fields(tree, named, depth)
        named[tree["name"]] = _struct(fields) if fields else None
        return named[tree["name"]]
    if not isinstance(kind, str):
        return _ddl(kind, named, depth - 1)
    found = named.get(kind)
    if found is not None and (digits := decimal_digits(tree)) is not None:
        found = "DECIMAL({}, {})".format(*digits) if 0 < digits[0] <= _MOST_DIGITS else None
    if kind in ("enum", "fixed"):
        named[tree["name"]] = found
    return found


def _fields(
    tree: Mapping[str, Any], named: dict[str, str | None], depth: int
) -> dict[str, tuple[str, str]] | None:  # fmt: skip
    """Return name and DDL of each field of a record, by the name in lower case; None if it has no type in Spark."""
    named[tree["name"]] = None  # Spark has no recursive types
    fields: dict[str, tuple[str, str]] = {}
    for field in tree["fields"]:
        kind, name = _ddl(field["type"], named, depth - 1), field["name"]
        if kind is None or name.lower() in fields:  # Spark treats names that differ only in case as equal
            return None
        fields[name.lower()] = (name, kind)
    return fields


def _struct(fields: Mapping[str, tuple[str, str]]) -> str:
    return "STRUCT<" + ", ".join(f"`{name}`: {kind}" for name, kind in fields.values()) + ">"

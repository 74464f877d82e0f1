"""The type of the column ``value``, which holds bodies read by the schema of their topic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from jmsaio.codec.schemas.avro import DEEPEST, avro_reader, decimal_digits
from jmsaio.errors import MessageFormatError
from jmsaio.model.schema import Schema

#: Name of the column.
VALUE: Final = "value"
#: Type of the column if the values have no common one: their JSON.
JSON: Final = "STRING"

_PRIMITIVES: Final = {
    "boolean": "BOOLEAN", "int": "INT", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "bytes": "BINARY",
    "string": "STRING", "enum": "STRING", "fixed": "BINARY",
}  # fmt: skip
#: Maximum precision of a decimal in Spark.
_MOST_DIGITS: Final = 38


def value_type(schemas: Iterable[Schema]) -> str:
    """Return Spark's DDL of a type that fits the values of all schemas.

    It is a STRUCT with the fields of all versions of an AVRO record, if each field has the same type in all versions
    that have it, and the type exists in Spark. Otherwise, or if a schema is invalid, it is STRING, for JSON.
    """
    fields: dict[str, tuple[str, str]] = {}
    for schema in schemas:
        if schema.type != "AVRO":
            return JSON
        try:
            avro_reader(schema.definition)
        except MessageFormatError:
            return JSON
        tree = json.loads(schema.definition)
        if not isinstance(tree, dict) or tree.get("type") != "record":
            return JSON
        found = _fields(tree, {}, DEEPEST + 1)
        if found is None or any(fields.setdefault(name, field) != field for name, field in found.items()):
            return JSON
    return _struct(fields) if fields else JSON


def _ddl(tree: Any, named: dict[str, str | None], depth: int) -> str | None:
    """Return the DDL of an Avro type; None if Spark has no such type.

    Args:
        tree: the type as JSON.
        named: the named types so far, None for those without a type in Spark. A name with a namespace is not resolved.
        depth: levels of nesting still allowed.
    """
    if depth == 0:
        return None
    if isinstance(tree, str):
        return _PRIMITIVES.get(tree) or named.get(tree)
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
    found = _PRIMITIVES.get(kind) or named.get(kind)
    if (digits := decimal_digits(tree)) is not None:
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

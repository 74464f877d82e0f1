"""Reads AVRO payloads of one version of a schema as values of another (Avro specification 1.11, Schema Resolution)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from jmsaio.codec.schemas.avro import avro_reader, decimal_digits
from jmsaio.errors import ConfigurationError, MessageFormatError


def parsed_schema(definition: str) -> Any:
    """Return an AVRO schema in the form that fastavro needs.

    Raises ConfigurationError without the package fastavro, MessageFormatError for an invalid schema.
    """
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


class _Source(io.BytesIO):
    """A payload that a thread reads: each call in Python lets others run, while fastavro holds Python's lock."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(size)


def evolving_reader(definition: str, wanted: str) -> Callable[[bytes], Any]:
    """Return a function that reads payloads of one AVRO schema as values of the ``wanted`` one.

    Values have the classes of ``avro_reader``'s or their bases, except defaults of bytes and decimals, which remain
    text. Each payload is first read by ``avro_reader``, within its bounds, since fastavro has none. Raises
    ConfigurationError if the schemas differ and fastavro is missing, MessageFormatError for an invalid schema.
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
            return schemaless_reader(_Source(data), *schemas)
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

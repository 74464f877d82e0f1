"""Writes bodies as values of a schema, for producers with a schema."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, Final

import attrs

from jmsaio.codec.schemas.avro import avro_reader, parsed_schema
from jmsaio.errors import IllegalArgumentError, MessageFormatError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.messages.object_message import is_shallow
from jmsaio.model.schema import Schema

_JSON: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@attrs.frozen(eq=False)
class SchemaWriter:
    """Writes the payloads of one schema: ``write`` returns the payload of a body that is not None."""

    schema: Schema
    write: Callable[[Any], bytes]

    @property
    def jms(self) -> bool:
        """Whether the payload is a TextMessage's, which JMS clients read without the schema."""
        return self.schema.type == "STRING"


def schema_writer(schema: Schema) -> SchemaWriter:
    """Return the writer of a schema. No transport registers schemas of numbers.

    Raises IllegalArgumentError for another type or an invalid definition, ConfigurationError without fastavro for AVRO.
    """
    kind = schema.type
    if kind in ("AVRO", "JSON"):
        try:
            avro_reader(schema.definition)
        except MessageFormatError as error:
            raise IllegalArgumentError(f"the {kind} schema is not valid: {error}") from error
        return _json(schema) if kind == "JSON" else _avro(schema)
    if kind == "STRING":
        return SchemaWriter(schema, _text)
    raise IllegalArgumentError(f"a producer can't have a schema of type {shown(kind)}, only STRING, AVRO or JSON")


def _avro(schema: Schema) -> SchemaWriter:
    try:
        parsed = parsed_schema(schema.definition)
    except MessageFormatError as error:
        raise IllegalArgumentError(f"the AVRO schema is not valid: {error}") from error
    from fastavro import schemaless_writer, validate

    def written(body: Any) -> bytes:
        _check_depth(body)
        payload = io.BytesIO()
        try:
            schemaless_writer(payload, parsed, body, strict_allow_default=True)
            # The writer itself truncates 1.5 to 1 and accepts "false" as true. With errors, each value of a union costs
            # one for every other branch, so the errors are only asked for if there is one.
            if not validate(body, parsed, raise_errors=False):
                validate(body, parsed)
        except Exception as error:  # as above
            reason = " ".join(str(error).split())
            raise MessageFormatError(f"the body does not fit the AVRO schema: {reason:.200}") from error
        return payload.getvalue()

    return SchemaWriter(schema, written)


def _json(schema: Schema) -> SchemaWriter:
    def written(body: Any) -> bytes:
        _check_depth(body)
        try:
            return _JSON.encode(body).encode()
        except (TypeError, ValueError, RuntimeError) as error:
            raise MessageFormatError(f"the body can't be written as JSON: {error}") from error

    return SchemaWriter(schema, written)


def _check_depth(body: Any) -> None:
    if not is_shallow(body):
        raise MessageFormatError("the body is nested too deep")


def _text(body: Any) -> bytes:
    if not isinstance(body, str):
        raise MessageFormatError(f"a STRING schema requires a text, not {with_article(type(body).__name__)}")
    try:
        return body.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"the text has a lone surrogate at {error.start}") from error

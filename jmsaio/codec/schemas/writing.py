"""Writes bodies as values of a schema, for producers with a schema."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import attrs

from jmsaio.codec.schemas.avro import avro_reader, parsed_schema
from jmsaio.errors import IllegalArgumentError, MessageFormatError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.messages.object_message import inner_containers, is_shallow
from jmsaio.model.schema import Schema

#: Values of a body whose writing takes about 10 ms.
_LARGE: Final = {"AVRO": 10_000, "JSON": 40_000}
_JSON: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@attrs.frozen(eq=False)
class SchemaWriter:
    """Writes the payloads of one schema: ``write`` returns the payload of a body that is not None."""

    schema: Schema
    write: Callable[[Any], bytes]
    _write_aside: Callable[[Any], bytes] | None = None

    def aside(self, body: Any) -> Callable[[], bytes] | None:
        """Return a function to call in a thread instead of ``write``, so that a large body does not block; else None.

        It takes about twice as long, but other threads run meanwhile. The body must not be changed until it returns.
        """
        if self._write_aside is None or not _has_more_than(_LARGE[self.schema.type], body):
            return None
        return partial(self._write_aside, body)

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
    import fastavro
    from fastavro import _validation_py, _write_py  # in Python, as for PyPy: the others hold Python's lock throughout

    def written(module: Any, checks: Any, body: Any) -> bytes:
        _check_depth(body)
        payload = io.BytesIO()
        try:
            module.schemaless_writer(payload, parsed, body, strict_allow_default=True)
            # The writer itself truncates 1.5 to 1 and accepts "false" as true. With errors, each value of a union costs
            # one for every other branch, so the errors are only asked for if there is one.
            if not checks.validate(body, parsed, raise_errors=False):
                checks.validate(body, parsed)
        except Exception as error:  # as above
            reason = " ".join(str(error).split())
            raise MessageFormatError(f"the body does not fit the AVRO schema: {reason:.200}") from error
        return payload.getvalue()

    return SchemaWriter(schema, partial(written, fastavro, fastavro), partial(written, _write_py, _validation_py))


def _has_more_than(most: int, body: Any) -> bool:
    """Return whether a body has more values, in lists and dicts at any depth; it looks at few more."""
    level = [body] if isinstance(body, (dict, list)) else []
    while level:
        for item in level:
            most -= len(item)
        if most < 0:
            return True
        level = inner_containers(level)
    return False


def _json(schema: Schema) -> SchemaWriter:
    def written(text: Callable[[Any], str], body: Any) -> bytes:
        _check_depth(body)
        try:
            return text(body).encode()
        except (TypeError, ValueError, RuntimeError) as error:
            raise MessageFormatError(f"the body can't be written as JSON: {error}") from error

    # The encoder in Python, as without an accelerator: the other one holds Python's lock throughout.
    return SchemaWriter(
        schema, partial(written, _JSON.encode), partial(written, lambda body: "".join(_JSON.iterencode(body)))
    )


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

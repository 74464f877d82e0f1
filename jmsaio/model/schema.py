"""``Schema``: an entry of Pulsar's schema registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.arguments import check_text, wrong_type


def _definition(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping | list):
        raise wrong_type(value, "definition", "a text, a dict or a list")
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise IllegalArgumentError(f"definition can't be written as JSON: {error}") from error


@attrs.frozen
class Schema:
    """A schema of Pulsar's registry.

    Attributes:
        type: Pulsar's name of the type, such as ``STRING``, ``INT64``, ``JSON`` or ``AVRO``.
        definition: the Avro schema of the types AVRO and JSON, as a dict or as JSON text; empty for all others.
        properties: attributes of a registered schema, such as the encoding of KEY_VALUE; ignored by producers.

    Raises:
        IllegalArgumentError: a type that is not a text, or a definition that JSON can't represent.
    """

    type: str = attrs.field()
    definition: str = attrs.field(default="", converter=_definition, repr=False)
    properties: Mapping[str, str] = attrs.field(factory=dict, repr=False, eq=False)

    @type.validator
    def _check_type(self, attribute: object, value: object) -> None:
        check_text(value, "type")


#: Reason why a message with an impossible schema version can't be read.
IMPOSSIBLE_VERSION: Final = "its producer claims a schema version that Pulsar can't have"


def is_version(version: bytes) -> bool:
    """Return whether a message's schema version can be one of Pulsar's, a long. A producer can set any bytes."""
    return len(version) <= 8 and (len(version) < 8 or version[0] < 0x80)

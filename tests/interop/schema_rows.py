"""The rows of schemas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import jmsaio
from tests.client.test_java_schemas import JAVA_ORDER, ORDER, PYTHON_ORDER
from tests.codec.cases import value
from tests.codec.test_live_exchange import SYSTEM
from tests.interop.comparing import same
from tests.interop.matrix import Cell, Row
from tests.interop.sides import Value

_TEXT = value("string", "h\u00e9 \u6f22 \U0001f600")
_RECORD = {
    "id": 5, "weight": 1.5, "paid": True, "text": "h\u00e9 \u6f22 \U0001f600", "none": None, "numbers": [1, -2],
    "buyer": {"name": "in", "tags": [{"q": "z"}]},
}  # fmt: skip
_FIELDS = [{"name": "id", "type": "int"}]
STRING = Value(schema={"type": "STRING"}, kind="text", python=_TEXT["v"], java=_TEXT, shown=_TEXT)
JSON = Value(
    schema={"type": "JSON", "definition": {"type": "record", "name": "Order", "fields": _FIELDS}},
    kind="object", python=_RECORD, java=_RECORD, shown=_RECORD,
)  # fmt: skip
AVRO = Value(
    schema={"type": "AVRO", "definition": ORDER},
    kind="map",
    # JMS has a type of its own for these numbers.
    python=PYTHON_ORDER | {"id": jmsaio.Long(5), "weight": jmsaio.Float(1.5), "made": jmsaio.Long(1700000000000)},
    java=JAVA_ORDER,
    # A union shows its value, and a fixed its bytes.
    shown=JAVA_ORDER | {"note": "x", "check": [1, 2]},
)
_PROPERTIES = {"colour": "red", "n\u00e4me": "h\u00e9"}


def exchanged(sent: Value, jms: bool = True) -> Callable[[Cell], Awaitable[None]]:
    """What a row runs that sends a value, and compares its fields, their types and its properties with what arrives."""

    async def run(cell: Cell) -> None:
        await cell.receiver.subscribe_values(cell.queue(), jms)
        await cell.sender.produce(cell.queue(), sent, _PROPERTIES)
        found = await cell.receiver.receive_value(cell.queue(), jms)
        same("kind", found.get("kind", sent.kind), sent.kind)
        _compare(found["value"], cell.receiver.shown(sent))
        same("properties", {k: v for k, v in found["properties"].items() if k not in SYSTEM}, _PROPERTIES)

    return run


def _compare(found: object, wanted: object) -> None:
    if not isinstance(found, dict) or not isinstance(wanted, dict):
        same("value", (type(found), found), (type(wanted), wanted))
        return
    same("names", sorted(found), sorted(wanted))
    for name, content in wanted.items():
        same(f"field {name}", (type(found[name]), found[name]), (type(content), content))


def schema_rows() -> list[Row]:
    """A value of each schema that producers have, to JMS consumers; Avro's, to Pulsar's own Java client, too."""
    by_schema = {"consumerConfig": {"useSchema": True}}
    return [
        Row(group="Schemas", name="schema STRING", run=exchanged(STRING), configuration=by_schema),
        Row(group="Schemas", name="schema JSON", run=exchanged(JSON), configuration=by_schema),
        Row(
            group="Schemas", name="schema AVRO", run=exchanged(AVRO), configuration=by_schema,
            differs=frozenset({("java", "java"), ("python", "java")}), line="AVRO values, with `useSchema=true`",
            shows="cannot be cast to class java.io.Serializable",
        ),
        Row(
            group="Schemas", name="schema AVRO, received by Pulsar's own Java client", run=exchanged(AVRO, jms=False),
            configuration=by_schema,
        ),
    ]  # fmt: skip

"""The rows of schemas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import jmsaio
from tests.client.test_java_schemas import JAVA_ORDER, ORDER, PYTHON_ORDER
from tests.codec.cases import value
from tests.codec.test_live_exchange import SYSTEM
from tests.interop.comparing import same
from tests.interop.matrix import FROM_PYTHON, TO_JAVA, Cell, Row
from tests.interop.sides import Described, Value

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
#: Values that jmsaio's producers have no schemas for.
_NUMBERS: dict[str, tuple[Described, object]] = {
    "BOOLEAN": (value("boolean", True), True), "INT16": (value("short", -300), jmsaio.Short(-300)),
    "INT64": (value("long", -(2**63)), jmsaio.Long(-(2**63))), "DOUBLE": (value("double", 0.1), 0.1),
}  # fmt: skip
PRIMITIVES = [
    Value(schema={"type": kind}, kind="object", python=content, java=java, shown=java)
    for kind, (java, content) in _NUMBERS.items()
]
_PAIR = {"key": _TEXT, "value": value("long", 7)}
PAIRS = [
    Value(
        schema={"type": "KEY_VALUE", "encoding": encoding, "key": {"type": "STRING"}, "value": {"type": "INT64"}},
        kind="map", python={"key": _TEXT["v"], "value": jmsaio.Long(7)}, java=_PAIR, shown=_PAIR,
    )
    for encoding in ("INLINE", "SEPARATED")
]  # fmt: skip
_PROPERTIES = {"colour": "red", "n\u00e4me": "h\u00e9"}


def exchanged(*values: Value, jms: bool = True) -> Callable[[Cell], Awaitable[None]]:
    """What a row runs that sends values, and compares their fields, types and properties with what arrives."""

    async def run(cell: Cell) -> None:
        for number, sent in enumerate(values):
            place = cell.queue(f"q{number}")  # a topic has one schema
            await cell.receiver.subscribe_values(place, jms)
            await cell.sender.produce(place, sent, _PROPERTIES)
            found = await cell.receiver.receive_value(place, jms)
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
            differs=dict.fromkeys(TO_JAVA, "cannot be cast to class java.io.Serializable"),
            line="AVRO values, with `useSchema=true`",
        ),
        Row(
            group="Schemas", name="schema AVRO, received by Pulsar's own Java client", run=exchanged(AVRO, jms=False),
            configuration=by_schema,
        ),
        *(
            Row(
                group="Schemas", name=name, run=exchanged(*values), configuration=by_schema,
                differs=dict.fromkeys(FROM_PYTHON, "a producer can't have a schema of type "),
                line="producers with a schema",
            )
            for name, values in (("schemas BOOLEAN, INT16, INT64, DOUBLE", PRIMITIVES), ("schema KEY_VALUE", PAIRS))
        ),
    ]  # fmt: skip

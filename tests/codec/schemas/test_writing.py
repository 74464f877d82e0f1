"""Bodies as values of a schema: what is written is read alike, and what does not fit is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from jmsaio.codec import Stamp, encode
from jmsaio.codec.schemas.reading import schema_reader
from jmsaio.codec.schemas.writing import schema_writer
from jmsaio.errors import ConfigurationError, IllegalArgumentError, MessageFormatError
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import TextMessage
from jmsaio.model.schema import Schema
from jmsaio.model.values import Char, Long

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "items", "type": {"type": "array", "items": {"type": "map", "values": "int"}}},
    ],
}
BODY = {"id": 5, "note": "hé", "price": Decimal("12.30"), "items": [{"a": 1}, {}]}


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        (Schema("STRING"), "hé"),
        (Schema("AVRO", ORDER), BODY),
        (Schema("AVRO", '"long"'), Long(7)),
        (Schema("JSON", ORDER), {"id": 5, "items": [None, 1.5, "é"]}),
    ],
)
def test_what_is_written_is_read_alike(schema: Schema, body: object) -> None:
    reader = schema_reader(schema)
    assert reader is not None
    assert reader.read(schema_writer(schema).write(body), None) == body


def test_a_field_with_a_default_may_be_left_out() -> None:
    schema = Schema("AVRO", ORDER)
    reader = schema_reader(schema)
    assert reader is not None
    payload = schema_writer(schema).write({"id": 1, "price": Decimal(1), "items": []})
    assert reader.read(payload, None) == {"id": 1, "note": None, "price": Decimal("1.00"), "items": []}


def calls(work: Callable[[], Any]) -> tuple[Any, int]:
    """What work returns, and its number of calls in Python: other threads can run at each, but not in a call of C."""
    count = 0

    def called(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(called)
    try:
        return work(), count
    finally:
        sys.setprofile(None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_a_thread_that_writes_or_reads_a_large_body_lets_others_run(kind: str) -> None:
    """As another version, too."""
    fields = [field for field in ORDER["fields"] if field["name"] != "price"]
    schema, later = (Schema(kind, {**ORDER, "fields": fields, "doc": text}) for text in ("", "later"))
    values = 40_100
    body = {"id": 5, "note": None, "items": [{f"{number:012}": number for number in range(values)}]}
    writer, reader = schema_writer(schema), schema_reader(schema, later)
    write = writer.aside(body)
    assert write is not None and reader is not None and writer.aside({**BODY, "items": []}) is None
    payload, writing = calls(write)
    value, reading = calls(lambda: reader.read(payload, None))
    assert payload == writer.write(body) and value == body and reader.is_slow(payload)
    assert min(writing, reading) > values


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("schema", "body", "words"),
    [
        (Schema("STRING"), b"x", "requires a text, not a bytes"),
        (Schema("STRING"), "\ud800", "surrogate"),
        (Schema("JSON", '"int"'), {"a": b"x"}, "can't be written as JSON"),
        (Schema("JSON", '"int"'), float("nan"), "can't be written as JSON"),
        (Schema("JSON", '"int"'), "\ud800", "can't be written as JSON"),
        (Schema("JSON", '"int"'), deep(2000), "nested too deep"),
        (Schema("AVRO", ORDER), {"id": 5}, "price"),
        (Schema("AVRO", ORDER), {**BODY, "more": 1}, "more"),
        (Schema("AVRO", ORDER), {**BODY, "id": "x"}, "does not fit the AVRO schema"),
        (Schema("AVRO", ORDER), {**BODY, "id": 1 << 70}, "does not fit the AVRO schema"),
        (Schema("AVRO", ORDER), {**BODY, "price": Decimal("1.234")}, "does not fit the AVRO schema"),
        (Schema("AVRO", ORDER), "x", "does not fit the AVRO schema"),
        (Schema("AVRO", {"type": "array", "items": "int"}), deep(2000), "nested too deep"),
        (Schema("AVRO", {"type": "array", "items": "string"}), "ab", "does not fit the AVRO schema"),
        (Schema("AVRO", '"int"'), 1 << 31, "2147483648.*expected int"),
        (Schema("AVRO", '"int"'), 1.5, "1.5.*expected int|unsupported .*float"),
        (Schema("AVRO", '"boolean"'), "false", "false.*expected boolean"),
        (Schema("AVRO", '"null"'), 5, "5.*expected null"),
    ],
)
def test_a_body_that_does_not_fit_is_refused(schema: Schema, body: object, words: str) -> None:
    writer = schema_writer(schema)
    for write in (writer.write, writer._write_aside or writer.write):
        with pytest.raises(MessageFormatError, match=words):
            write(body)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (Schema("KEY_VALUE"), "type 'KEY_VALUE', only STRING, AVRO or JSON"),
        (Schema("INT64"), "type 'INT64', only STRING, AVRO or JSON"),
        (Schema("avro", '"int"'), "type 'avro'"),
        (Schema("AVRO"), "AVRO schema is not valid: it is not JSON"),
        (Schema("JSON", '"monkey"'), "JSON schema is not valid: it has no type 'monkey'"),
        (Schema("AVRO", {"type": "enum", "name": "E", "symbols": ["A", "A"]}), "AVRO schema is not valid"),
    ],
)
def test_a_schema_that_producers_can_not_have_is_refused(schema: Schema, words: str) -> None:
    with pytest.raises(IllegalArgumentError, match=words):
        schema_writer(schema)


def test_without_fastavro_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else needs it: AVRO is read without."""
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ConfigurationError, match=r"install jmsaio\[schema\]"):
        schema_writer(Schema("AVRO", '"int"'))
    schema_writer(Schema("JSON", '"int"'))
    assert schema_reader(Schema("AVRO", '"int"')) is not None


def test_only_a_text_says_its_jms_type() -> None:
    """A JMS client without schemas would read the others' payload as a Java object."""
    stamp = Stamp("ID:a:1:2", "connection", 10, 10, 10)
    text = encode(TextMessage("x"), stamp, schema_writer(Schema("STRING")))
    assert (text.payload, text.properties["JMSPulsarMessageType"]) == (b"x", "text")
    message = MapMessage({"a": 1, "c": Char("x")}, properties={"p": 5})
    record = encode(message, stamp, schema_writer(Schema("JSON", '"int"')))
    assert record.payload == b'{"a":1,"c":"x"}'
    assert "JMSPulsarMessageType" not in record.properties
    assert record.properties["p"] == "5" and record.properties["JMSMessageId"] == "ID:a:1:2"
    assert encode(TextMessage(None), stamp, schema_writer(Schema("STRING"))).payload is None

"""JMSProducer: properties of what it sends, and what it refuses to send (checklist.txt, group 13)."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from tests.conformance.recording import Broken, Name, destination, twins

CLIENT = "core20/jmsproducer{kind}tests/ClientIT"
TYPES = ("boolean", "byte", "short", "int", "long", "float", "double", "string")
#: Type: a value of it, and the types as which it can be read.
VALUES: dict[str, tuple[Any, str]] = {
    "boolean": (True, "boolean string"),
    "byte": (jmsaio.Byte(-128), "byte short int long string"),
    "short": (jmsaio.Short(32767), "short int long string"),
    "int": (-(2**31), "int long string"),
    "long": (jmsaio.Long(2**63 - 1), "long string"),
    "float": (jmsaio.Float(0.5), "float double string"),
    "double": (1e300, "double string"),
    "string": ("5", " ".join(TYPES)),
}
TEXTS = {
    "boolean": "true", "byte": "-128", "short": "32767", "int": "-2147483648", "long": "9223372036854775807",
    "float": "0.5", "double": "1.0E300", "string": "5",
}  # fmt: skip


def with_all_types(producer: jmsaio.JMSProducer) -> jmsaio.JMSProducer:
    """A property of each type, named after it, and one set as an object."""
    for kind, (value, _) in VALUES.items():
        assert producer.set_property(kind, value) is producer
    return producer.set_property("object", jmsaio.Long(5))


def getters(of: Any) -> dict[str, Any]:
    """What the getter of each type gives."""
    return {kind: getattr(of, f"get_{kind}_property")(kind) for kind in (*TYPES, "object")}


EXPECTED = {kind: value for kind, (value, _) in VALUES.items()} | {"object": 5}


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.setGetAllPropertyTypesTest"))
async def test_all_types_of_properties(context: jmsaio.Context, name: Name, kind: str) -> None:
    where, producer = destination(context, kind, name("types")), with_all_types(context.create_producer())
    assert getters(producer) == EXPECTED
    assert {key: type(producer.get_object_property(key)) for key in TYPES} == {
        key: type(value) for key, (value, _) in VALUES.items()
    }
    async with context.create_consumer(where) as consumer:
        await producer.send(where, "sent")
        message = await consumer.receive(timeout=20)
    assert message is not None and getters(message) == EXPECTED


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgPropertiesTest"))
async def test_properties_reach_the_message_until_they_are_cleared(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    where, producer = destination(context, kind, name("reach")), with_all_types(context.create_producer())
    assert set(producer.get_property_names()) == EXPECTED.keys()
    async with context.create_consumer(where) as consumer:
        own = context.create_text_message("own")
        own.set_string_property("own", "kept")
        own.set_string_property("int", "replaced")
        for body in (own, "text", b"bytes", {"n": 1}, [1, "stream"]):
            await producer.send(where, body)
            message = await consumer.receive(timeout=20)
            assert message is not None and getters(message) == EXPECTED
            assert message.property_exists("own") is (body is own)
            names = {key for key in message.get_property_names() if not key.startswith("JMSX")}
            assert names - {"own", "JMS_jmsaio_object"} == EXPECTED.keys()
            with pytest.raises(jmsaio.MessageNotWriteableError):
                message.set_int_property("int", 5)
        assert producer.clear_properties() is producer and list(producer.get_property_names()) == []
        await producer.send(where, "cleared")
        message = await consumer.receive(timeout=20)
        assert message is not None and [key for key in message.get_property_names() if key in EXPECTED] == []


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgPropertiesConversionTests"))
async def test_properties_convert_to_the_allowed_types_only(context: jmsaio.Context, name: Name, kind: str) -> None:
    producer = with_all_types(context.create_producer())
    for given, (value, readable) in VALUES.items():
        for target in TYPES:
            read = getattr(producer, f"get_{target}_property")
            if target not in readable.split():
                with pytest.raises(jmsaio.MessageFormatError):
                    read(given)
            elif target == "string":
                assert read(given) == TEXTS[given]
            elif given != "string":
                assert read(given) == value
            else:
                assert read(given) == (False if target == "boolean" else 5)
    await producer.send(destination(context, kind, name("conversions")), "sent")


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgPropertyExistTest"))
async def test_properties_of_the_producer_exist_on_it_and_on_its_messages(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    where, producer = destination(context, kind, name("exists")), with_all_types(context.create_producer())
    assert all(producer.property_exists(key) for key in EXPECTED) and not producer.property_exists("other")
    async with context.create_consumer(where) as consumer:
        await producer.send(where, "sent")
        message = await consumer.receive(timeout=20)
    assert message is not None and all(message.property_exists(key) for key in EXPECTED)
    assert not message.property_exists("other")
    producer.clear_properties()
    assert not any(producer.property_exists(key) for key in EXPECTED)


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.msgJMSXPropertiesTest"))
async def test_group_properties_travel_and_the_first_delivery_counts_as_one(
    context: jmsaio.Context, name: Name, kind: str
) -> None:
    where = destination(context, kind, name("jmsx"))
    producer = context.create_producer().set_property("JMSXGroupID", "group").set_property("JMSXGroupSeq", 7)
    async with context.create_consumer(where) as consumer:
        for body in (context.create_text_message("own"), "text", b"bytes", {"n": 1}, [1, "stream"]):
            await producer.send(where, body)
            message = await consumer.receive(timeout=20)
            assert message is not None
            assert message.get_string_property("JMSXGroupID") == "group"
            assert message.get_int_property("JMSXGroupSeq") == 7
            assert message.get_int_property("JMSXDeliveryCount") == 1 and not message.jms_redelivered
    names = set(context.get_meta_data().get_jmsx_property_names())
    assert {"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"} <= names


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.setPropertyExceptionTests"))
async def test_properties_that_are_refused(context: jmsaio.Context, name: Name, kind: str) -> None:
    producer, nameless = context.create_producer(), [None, ""]
    for value in (*EXPECTED.values(), None):
        for wrong in nameless:
            with pytest.raises(jmsaio.IllegalArgumentError):
                producer.set_property(wrong, value)  # type: ignore[arg-type]  # what a caller may do
    for unsupported in (object(), [1], {"a": 1}, b"bytes", context):
        with pytest.raises(jmsaio.MessageFormatError):
            producer.set_property("unsupported", unsupported)  # type: ignore[arg-type]  # what a caller may do
    assert list(producer.get_property_names()) == []
    await producer.send(destination(context, kind, name("refused")), "sent")


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.sendExceptionTests"))
async def test_what_can_not_be_sent(context: jmsaio.Context, name: Name, kind: str) -> None:
    where, producer = destination(context, kind, name("sending")), context.create_producer()
    wrongs: tuple[Any, ...] = ({"unsupported": object()}, object(), Broken())
    async with context.create_consumer(where) as consumer:
        with pytest.raises(jmsaio.MessageFormatError):
            await producer.send(where, message=None)  # type: ignore[call-overload]  # type checkers refuse it, too
        for wrong in wrongs:
            with pytest.raises(jmsaio.MessageFormatError):
                await producer.send(where, wrong)
        await producer.send(where, "sent")
        received = await consumer.receive(timeout=20)
        assert received is not None
        producer.set_property("own", 1)
        with pytest.raises(jmsaio.MessageNotWriteableError):
            await producer.send(where, received)
        await producer.clear_properties().send(where, received)
        assert await consumer.receive_body(str, timeout=20) == "sent"

"""A wrong argument anywhere in the public API is a JMSError or TypeError that names it."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

import jmsaio
from jmsaio.model import names
from jmsaio.model.names import allowed_names

THING = object()
NO_TEXT: list[Any] = [0, 5, 1.5, b"x", THING, ["x"], {"x": 1}]
NO_MAPPING: list[Any] = [0, 5, "x", ["x"], THING]
NO_NUMBER: list[Any] = ["5", b"5", THING, [5], {}]
NO_FLAG: list[Any] = ["true", 1, 0, THING]
NO_PLACE: list[Any] = [0, 5, "orders", b"x", THING, None]
NO_TYPE: list[Any] = [0, "str", THING]
NO_FUNCTION: list[Any] = [0, "x", THING, []]

#: How the errors of ``write_...`` name their only argument: by its type.
WRITTEN = {"object": "value", "boolean": "bool", "byte": "byte", "short": "short", "int": "int", "long": "long",
           "float": "float", "double": "float", "char": "char", "bytes": "value"}  # fmt: skip

#: What is called on, by name, the argument as its error names it, what is wrong for it, and the call.
Row = tuple[str, str, list[Any], Callable[[Any, Any], Any]]
ROWS: list[Row] = [
    ("connect", "config", [5, b"x", THING], lambda on, bad: jmsaio.connect(bad)),
    ("connect", "user", NO_TEXT, lambda on, bad: jmsaio.connect(on.url, user=bad)),
    ("connect", "password", NO_TEXT, lambda on, bad: jmsaio.connect(on.url, password=bad)),
    ("connect", "client_id", NO_TEXT, lambda on, bad: jmsaio.connect(on.url, client_id=bad)),
    (
        "connect",
        "close_timeout",
        [*NO_NUMBER[1:], "x", 10**30, -1],
        lambda on, bad: jmsaio.connect(on.url, close_timeout=bad),
    ),
    (
        "connect",
        "receive_buffer",
        [*NO_NUMBER[1:], "x", 10**30, 0],
        lambda on, bad: jmsaio.connect(on.url, receive_buffer=bad),
    ),
    ("ConnectionFactory", "config", [5, b"x", THING], lambda on, bad: jmsaio.ConnectionFactory(bad)),
    ("factory.create_connection", "user", NO_TEXT, lambda on, bad: on.factory.create_connection(bad)),
    ("factory.create_connection", "password", NO_TEXT, lambda on, bad: on.factory.create_connection("u", bad)),
    ("factory.create_connection", "client_id", NO_TEXT, lambda on, bad: on.factory.create_connection(None, None, bad)),
    ("factory.create_context", "mode", [*NO_NUMBER, 77], lambda on, bad: on.factory.create_context(bad)),
    ("connection.set_client_id", "client_id", [*NO_TEXT, None], lambda on, bad: on.fresh.set_client_id(bad)),
    ("connection.create_session", "mode", [*NO_NUMBER, 77], lambda on, bad: on.connection.create_session(bad)),
    (
        "connection.set_exception_listener",
        "listener",
        NO_FUNCTION,
        lambda on, bad: on.connection.set_exception_listener(bad),
    ),
    ("Queue", "name", [*NO_TEXT, None, ""], lambda on, bad: jmsaio.Queue(bad)),
    ("Topic", "name", [*NO_TEXT, None, ""], lambda on, bad: jmsaio.Topic(bad)),
    ("session.create_queue", "name", [*NO_TEXT, None, 10**6000], lambda on, bad: on.session.create_queue(bad)),
    ("session.create_topic", "name", [*NO_TEXT, None], lambda on, bad: on.session.create_topic(bad)),
    ("session.create_text_message", "text", NO_TEXT, lambda on, bad: on.session.create_text_message(bad)),
    (
        "session.create_bytes_message",
        "data",
        [0, "x", THING, None],
        lambda on, bad: on.session.create_bytes_message(bad),
    ),
    ("session.create_map_message", "mapping", NO_MAPPING, lambda on, bad: on.session.create_map_message(bad)),
    (
        "session.create_stream_message",
        "values",
        [0, 5, "x", THING, None],
        lambda on, bad: on.session.create_stream_message(bad),
    ),
    ("session.create_object_message", "value", [THING, {1}], lambda on, bad: on.session.create_object_message(bad)),
    ("TextMessage.text", "text", NO_TEXT, lambda on, bad: setattr(jmsaio.TextMessage(), "text", bad)),
    ("TextMessage", "properties", NO_MAPPING, lambda on, bad: jmsaio.TextMessage("x", properties=bad)),
    *[
        (f"message.{name}", name, wrong, lambda on, bad, name=name: setattr(jmsaio.Message(), name, bad))
        for name, wrong in {
            "jms_message_id": NO_TEXT,
            "jms_timestamp": [*NO_NUMBER, None],
            "jms_correlation_id": NO_TEXT,
            "jms_correlation_id_as_bytes": [0, "x", THING],
            "jms_reply_to": NO_PLACE[:-1],
            "jms_destination": NO_PLACE[:-1],
            "jms_delivery_mode": [*NO_NUMBER, None],
            "jms_redelivered": NO_FLAG,
            "jms_type": NO_TEXT,
            "jms_expiration": [*NO_NUMBER, None],
            "jms_delivery_time": [*NO_NUMBER, None],
            "jms_priority": [*NO_NUMBER, None],
            "properties": NO_MAPPING,
        }.items()
    ],
    *[
        (
            f"message.set_{kind}_property",
            "name",
            [*NO_TEXT, None, "", "a b"],
            lambda on, bad, kind=kind, value=value: getattr(jmsaio.Message(), f"set_{kind}_property")(bad, value),
        )
        for kind, value in {
            "object": 1,
            "boolean": True,
            "byte": 1,
            "short": 1,
            "int": 1,
            "long": 1,
            "float": 1.0,
            "double": 1.0,
            "string": "x",
        }.items()
    ],
    *[
        (
            f"message.set_{kind}_property",
            "'spam'",
            [THING, [1], wrong],
            lambda on, bad, kind=kind: getattr(jmsaio.Message(), f"set_{kind}_property")("spam", bad),
        )
        for kind, wrong in {
            "object": {1},
            "boolean": 1,
            "byte": 1000,
            "short": "x",
            "int": 10**30,
            "long": 10**30,
            "float": "x",
            "double": "x",
            "string": 5,
        }.items()
    ],
    *[
        (f"message.{call}", "name", [*NO_TEXT, None], lambda on, bad, call=call: getattr(jmsaio.Message(), call)(bad))
        for call in (
            "property_exists",
            "get_object_property",
            "get_int_property",
            "get_string_property",
            "get_boolean_property",
            "get_double_property",
        )
    ],
    ("message.get_body", "body_type", NO_TYPE, lambda on, bad: jmsaio.TextMessage("x").get_body(bad)),
    *[
        (
            f"MapMessage.{call}",
            "name",
            [*NO_TEXT, None],
            lambda on, bad, call=call: getattr(jmsaio.MapMessage(), call)(bad),
        )
        for call in ("item_exists", "get_object", "get_int", "get_string", "get_bytes")
    ],
    *[
        (
            f"MapMessage.set_{kind}",
            "name",
            [*NO_TEXT, None, ""],
            lambda on, bad, kind=kind, value=value: getattr(jmsaio.MapMessage(), f"set_{kind}")(bad, value),
        )
        for kind, value in {"object": 1, "boolean": True, "int": 1, "string": "x", "bytes": b"x"}.items()
    ],
    *[
        (
            f"MapMessage.set_{kind}",
            "'spam'",
            [THING, [1], wrong],
            lambda on, bad, kind=kind: getattr(jmsaio.MapMessage(), f"set_{kind}")("spam", bad),
        )
        for kind, wrong in {
            "object": {1},
            "boolean": 1,
            "byte": 1000,
            "short": "x",
            "int": 10**30,
            "long": 10**30,
            "float": "x",
            "double": "x",
            "string": 5,
            "char": "xy",
        }.items()
    ],
    ("MapMessage.set_bytes", "value", [THING, [1], "x"], lambda on, bad: jmsaio.MapMessage().set_bytes("a", bad)),
    (
        "MapMessage.set_bytes",
        "offset",
        ["x", 1.5, True],
        lambda on, bad: jmsaio.MapMessage().set_bytes("a", b"x", bad),
    ),
    (
        "MapMessage.set_bytes",
        "length",
        ["x", 1.5, True],
        lambda on, bad: jmsaio.MapMessage().set_bytes("a", b"x", 0, bad),
    ),
    *[
        (
            f"{kind.__name__}.write_{call}",
            WRITTEN[call],
            [THING, [1], wrong],
            lambda on, bad, kind=kind, call=call: getattr(kind(), f"write_{call}")(bad),
        )
        for kind in (jmsaio.StreamMessage, jmsaio.BytesMessage)
        for call, wrong in {
            "object": {1},
            "boolean": 1,
            "byte": 1000,
            "short": "x",
            "int": 10**30,
            "long": 10**30,
            "float": "x",
            "double": "x",
            "char": "xy",
            "bytes": "x",
        }.items()
    ],
    ("StreamMessage.write_string", "string", NO_TEXT, lambda on, bad: jmsaio.StreamMessage().write_string(bad)),
    ("BytesMessage.write_utf", "utf", [*NO_TEXT, None], lambda on, bad: jmsaio.BytesMessage().write_utf(bad)),
    *[
        (
            f"{kind.__name__}.write_bytes",
            argument,
            ["x", 1.5, True],
            lambda on, bad, kind=kind, argument=argument: kind().write_bytes(b"x", **{argument: bad}),
        )
        for kind in (jmsaio.StreamMessage, jmsaio.BytesMessage)
        for argument in ("offset", "length")
    ],
    ("BytesMessage.read_bytes", "buffer", ["x", b"x", 5, THING], lambda on, bad: on.bytes_to_read.read_bytes(bad)),
    ("StreamMessage.read_bytes", "buffer", ["x", b"x", 5, THING], lambda on, bad: on.stream_to_read.read_bytes(bad)),
    ("ObjectMessage.set_object", "value", [THING, {1}], lambda on, bad: jmsaio.ObjectMessage().set_object(bad)),
    ("JavaObject", "class_name", [5, None], lambda on, bad: jmsaio.JavaObject(bad, b"x")),
    ("JavaObject", "data", [5, "x", None], lambda on, bad: jmsaio.JavaObject("a.B", bad)),
    *[
        (kind.__name__, kind.__name__, [THING, "x", None], lambda on, bad, kind=kind: kind(bad))
        for kind in (jmsaio.Byte, jmsaio.Short, jmsaio.Int, jmsaio.Long)
    ],
    ("session.create_producer", "destination", NO_PLACE[:-1], lambda on, bad: on.session.create_producer(bad)),
    ("session.create_consumer", "destination", NO_PLACE, lambda on, bad: on.session.create_consumer(bad)),
    (
        "session.create_consumer",
        "selector",
        [5, b"x", THING, ["x"]],
        lambda on, bad: on.session.create_consumer(on.queue, bad),
    ),
    (
        "session.create_consumer",
        "no_local",
        ["yes", THING],
        lambda on, bad: on.session.create_consumer(on.topic, None, bad),
    ),
    ("session.create_browser", "queue", NO_PLACE, lambda on, bad: on.session.create_browser(bad)),
    ("session.create_browser", "selector", [5, b"x", THING], lambda on, bad: on.session.create_browser(on.queue, bad)),
    *[
        (
            f"session.{call}",
            argument,
            wrong,
            lambda on, bad, call=call, argument=argument: getattr(on.session, call)(
                **({"topic": on.topic, "name": "n"} | {argument: bad})
            ),
        )
        for call in ("create_durable_consumer", "create_shared_consumer", "create_shared_durable_consumer")
        for argument, wrong in {"topic": NO_PLACE, "name": [*NO_TEXT, None, ""], "selector": [5, b"x", THING]}.items()
    ],
    (
        "session.create_durable_consumer",
        "no_local",
        ["yes", THING],
        lambda on, bad: on.session.create_durable_consumer(on.topic, "n", None, bad),
    ),
    ("session.unsubscribe", "name", [*NO_TEXT, None, ""], lambda on, bad: on.session.unsubscribe(bad)),
    ("session.unsubscribe", "topic", NO_PLACE[:-1], lambda on, bad: on.session.unsubscribe("n", bad)),
    ("session.request", "destination", NO_PLACE, lambda on, bad: on.session.request(bad, "x", timeout=1)),
    (
        "session.request",
        "timeout",
        [*NO_NUMBER, None, -1, 10**30],
        lambda on, bad: on.session.request(on.queue, "x", timeout=bad),
    ),
    (
        "session.request",
        "properties",
        NO_MAPPING[1:],
        lambda on, bad: on.session.request(on.queue, "x", timeout=1, properties=bad),
    ),
    ("producer.send", "message", [THING, {1}], lambda on, bad: on.producer.send(bad)),
    ("producer.send", "destination", NO_PLACE, lambda on, bad: on.anonymous.send(bad, "x")),
    ("producer.send", "properties", NO_MAPPING[1:], lambda on, bad: on.producer.send("x", properties=bad)),
    (
        "producer.send",
        "property",
        [{5: 1}, {"a b": 1}],
        lambda on, bad: on.producer.send("x", properties=bad),
    ),
    (
        "producer.send",
        "delivery_mode",
        [*NO_NUMBER, 7, 10**30, True],
        lambda on, bad: on.producer.send("x", delivery_mode=bad),
    ),
    (
        "producer.send",
        "priority",
        [*NO_NUMBER, 10, -1, 10**30, True],
        lambda on, bad: on.producer.send("x", priority=bad),
    ),
    (
        "producer.send",
        "time_to_live",
        [*NO_NUMBER, -1, 10**30, True, float("nan")],
        lambda on, bad: on.producer.send("x", time_to_live=bad),
    ),
    (
        "producer.send",
        "delivery_delay",
        [*NO_NUMBER, -1, 10**30, True],
        lambda on, bad: on.producer.send("x", delivery_delay=bad),
    ),
    (
        "producer.send_async",
        "completion_listener",
        [None, *NO_FUNCTION, print],
        lambda on, bad: on.producer.send_async("x", completion_listener=bad),
    ),
    *[
        (f"producer.{name}", name, wrong, lambda on, bad, name=name: setattr(on.producer, name, bad))
        for name, wrong in {
            "delivery_mode": [*NO_NUMBER, 7],
            "priority": [*NO_NUMBER, 10],
            "time_to_live": [*NO_NUMBER, -1],
            "delivery_delay": [*NO_NUMBER, -1],
            "disable_message_id": NO_FLAG,
            "disable_message_timestamp": NO_FLAG,
        }.items()
    ],
    *[
        (
            f"consumer.{call}",
            "timeout",
            [*NO_NUMBER, -1, 10**30, float("nan")],
            lambda on, bad, call=call, first=first: getattr(on.consumer, call)(*first, bad),
        )
        for call, first in {"receive": (), "receive_body": (str,)}.items()
    ],
    ("consumer.process", "timeout", [*NO_NUMBER, -1], lambda on, bad: on.consumer.process(bad).__aenter__()),
    ("consumer.receive_body", "body_type", NO_TYPE, lambda on, bad: on.consumer.receive_body(bad, 0.01)),
    ("consumer.receive_body_no_wait", "body_type", NO_TYPE, lambda on, bad: on.consumer.receive_body_no_wait(bad)),
    ("consumer.set_message_listener", "listener", NO_FUNCTION, lambda on, bad: on.consumer.set_message_listener(bad)),
    ("context.create_context", "mode", [*NO_NUMBER, 77], lambda on, bad: on.context.create_context(bad)),
    ("context.set_client_id", "client_id", [*NO_TEXT, None], lambda on, bad: on.context.set_client_id(bad)),
    ("context.set_auto_start", "auto_start", NO_FLAG, lambda on, bad: on.context.set_auto_start(bad)),
    ("context.create_consumer", "destination", NO_PLACE, lambda on, bad: on.context.create_consumer(bad)),
    ("JMSProducer.send", "destination", NO_PLACE, lambda on, bad: on.context.create_producer().send(bad, "x")),
    (
        "JMSProducer.send",
        "message",
        [THING, {1}, None],
        lambda on, bad: on.context.create_producer().send(on.queue, bad),
    ),
    (
        "JMSProducer.set_property",
        "property",
        [*NO_TEXT, None, "a b"],
        lambda on, bad: on.context.create_producer().set_property(bad, 1),
    ),
    (
        "JMSProducer.set_property",
        "'spam'",
        [THING, {1}],
        lambda on, bad: on.context.create_producer().set_property("spam", bad),
    ),
    (
        "JMSProducer.set_properties",
        "properties",
        NO_MAPPING,
        lambda on, bad: on.context.create_producer().set_properties(bad),
    ),
    (
        "JMSProducer.set_async",
        "completion_listener",
        NO_FUNCTION,
        lambda on, bad: on.context.create_producer().set_async(bad),
    ),
    *[
        (
            f"JMSProducer.set_{name}",
            name,
            wrong,
            lambda on, bad, name=name: getattr(on.context.create_producer(), f"set_{name}")(bad),
        )
        for name, wrong in {
            "delivery_mode": [*NO_NUMBER, 7],
            "priority": [*NO_NUMBER, 10],
            "time_to_live": [*NO_NUMBER, -1],
            "delivery_delay": [*NO_NUMBER, -1],
            "disable_message_id": NO_FLAG,
            "disable_message_timestamp": NO_FLAG,
            "jms_correlation_id": NO_TEXT,
            "jms_correlation_id_as_bytes": [0, "x", THING],
            "jms_reply_to": NO_PLACE[:-1],
            "jms_type": NO_TEXT,
        }.items()
    ],
    ("Selector", "text", [5, b"x", THING, None], lambda on, bad: jmsaio.Selector(bad)),
]


async def _send(on: SimpleNamespace, name: str, value: Any) -> None:
    message = jmsaio.Message()
    setattr(message, name, value)
    await on.producer.send(message)


async def _twice(open_one: Callable[[], Any]) -> None:
    async with open_one(), open_one():
        pass


#: Calls that quote a text of any length or with half a character, besides ROWS.
QUOTING: list[Callable[[Any, Any], Any]] = [
    lambda on, bad: jmsaio.ConnectionFactory(bad),
    lambda on, bad: jmsaio.ConnectionFactory(f"{bad}://host"),
    lambda on, bad: jmsaio.ConnectionFactory(f"pulsar://host:{bad}"),
    lambda on, bad: jmsaio.ConnectionFactory(f"memory://host?{bad}"),
    lambda on, bad: jmsaio.ConnectionFactory(f"memory://host?{bad}=1"),
    lambda on, bad: jmsaio.ConnectionFactory("memory:", **dict[Any, Any]({bad: 1})),
    lambda on, bad: jmsaio.ConnectionFactory({bad: 1}),
    lambda on, bad: jmsaio.ConnectionFactory({"operationTimeoutMs": bad}),
    lambda on, bad: jmsaio.ConnectionFactory("pulsar://h", web_service_url=f"http://h:{bad}"),
    lambda on, bad: jmsaio.connect("pulsar://h", auth_plugin=bad),
    lambda on, bad: _twice(lambda: jmsaio.connect(on.url, client_id=bad)),
    lambda on, bad: _twice(lambda: on.session.create_durable_consumer(on.topic, bad)),
    lambda on, bad: on.session.create_browser(jmsaio.Topic(bad)),
    lambda on, bad: on.session.create_durable_consumer(jmsaio.Queue(bad), "n"),
    lambda on, bad: on.session.create_consumer(jmsaio.Queue(f":{bad}")),
    lambda on, bad: on.session.create_consumer(jmsaio.Queue(f"regex:({bad}")),
    lambda on, bad: on.session.create_queue(f"q?{bad}=1"),
    lambda on, bad: on.session.create_queue(f"q?consumerConfig.{bad}=1"),
    lambda on, bad: on.session.create_queue(f"q?consumerConfig.receiverQueueSize={bad}"),
    lambda on, bad: on.session.create_queue(f"q?consumerConfig.{bad}=1&consumerConfig.{bad}.x=1"),
    lambda on, bad: on.session.unsubscribe("n", jmsaio.Topic(bad)),
    lambda on, bad: on.session.unsubscribe(bad, on.topic),
    lambda on, bad: on.session.set_subscription_selector(bad, on.topic, "a = 1"),
    lambda on, bad: on.session.set_subscription_selector("n", jmsaio.Queue(bad), "a = 1"),
    lambda on, bad: on.session.create_producer(on.queue, schema=bad),
    lambda on, bad: on.anonymous.send(jmsaio.Queue(f"multi:a,{bad}"), "x"),
    lambda on, bad: on.producer.send(jmsaio.Queue(bad), "x"),
    lambda on, bad: on.producer.send({bad: object()}),
    lambda on, bad: on.producer.send("x", properties={bad: object()}),
    lambda on, bad: on.producer.send("x", properties={"a": bad, "b": "\ud800"}),
    lambda on, bad: _send(on, "jms_type", bad),
    lambda on, bad: _send(on, "jms_correlation_id", bad),
    lambda on, bad: _send(on, "jms_reply_to", jmsaio.Queue(bad)),
    lambda on, bad: jmsaio.Message(properties={"a": bad}).get_int_property("a"),
    lambda on, bad: jmsaio.MapMessage({bad: b""}).get_int(bad),
    lambda on, bad: jmsaio.MapMessage({"a": bad}).get_double("a"),
    lambda on, bad: jmsaio.MapMessage().set_char("a", bad),
    lambda on, bad: jmsaio.ObjectMessage({bad: object()}),
    lambda on, bad: jmsaio.Selector(f"a = '{bad}"),
    lambda on, bad: jmsaio.Selector(f"a = 1 {bad}"),
    lambda on, bad: jmsaio.TemporaryQueue(bad).delete(),
]


@pytest.fixture
async def on() -> AsyncIterator[SimpleNamespace]:
    """What the calls are made on: everything open, on an embedded broker."""
    url = f"memory://{uuid.uuid4()}"
    stream, data = jmsaio.StreamMessage([b"abc"]), jmsaio.BytesMessage(b"abc")
    stream.reset()
    data.reset()
    async with (
        jmsaio.ConnectionFactory(url) as factory,
        jmsaio.connect(url, client_id=f"c-{uuid.uuid4()}") as connection,
        jmsaio.connect(url, auto_start=False) as fresh,
        await factory.create_context() as context,
        connection.create_session() as session,
    ):
        queue, topic = jmsaio.Queue("q"), jmsaio.Topic("t")
        yield SimpleNamespace(
            url=url, factory=factory, connection=connection, fresh=fresh, context=context, session=session,
            queue=queue, topic=topic, consumer=await session.create_consumer(queue),
            producer=await session.create_producer(queue), anonymous=await session.create_producer(),
            stream_to_read=stream, bytes_to_read=data,
        )  # fmt: skip


async def outcome(call: Callable[[Any, Any], Any], on: SimpleNamespace, bad: Any) -> BaseException | None:
    """What a call with a wrong argument raises."""
    try:
        result = call(on, bad)
        if inspect.isawaitable(result):
            opened = await asyncio.wait_for(result, 5)
            if hasattr(opened, "close"):
                await opened.close()
    except Exception as error:
        return error
    return None


async def test_a_wrong_argument_is_named(on: SimpleNamespace) -> None:
    """Each call refuses each wrong value with a JMSError or TypeError that has the argument's name."""
    found = []
    for call, argument, wrong, made in ROWS:
        for bad in wrong:
            error = await outcome(made, on, bad)
            if not isinstance(error, jmsaio.JMSError | TypeError) or argument not in str(error):
                found.append(f"{call}({argument}={bad!r:.30}): {error!r:.160}")
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("bad", ["x" * 30_000, "a b" * 10_000, "x\ud800y", b"x" * 30_000, ["x" * 30_000]], ids=type)
async def test_an_error_quotes_little_and_can_be_written_anywhere(on: SimpleNamespace, bad: Any) -> None:
    """At most 200 characters of each argument; UTF-8, in which half a character has no code."""
    found, count = [], 0
    for call in [*(made for _, _, _, made in ROWS), *QUOTING]:
        error = await outcome(call, on, bad)
        text = str(error)
        count += error is not None
        if max(text.count("x"), text.count("ab")) > 430 or "\ud800" in text:
            found.append(ascii(f"{type(error).__name__} {len(text)} {text:.150}"))
    assert found == [], "\n".join(found)
    assert count > 100  # most calls raise


def test_a_huge_property_name_is_checked_at_once_and_not_remembered() -> None:
    jmsaio.Message().set_string_property("x" * 300, "y")
    assert "x" * 300 not in allowed_names
    checked: list[str] = []

    def allow(character: str) -> bool:
        checked.append(character)
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "is_identifier_part", allow)
        jmsaio.Message().set_string_property("xy" * 5000, "y")
    assert sorted(checked) == ["x", "y"]  # each character once, whatever the length


async def test_bad_numbers_and_names_are_one_family(on: SimpleNamespace) -> None:
    """A bad priority, time to live or property name is an IllegalArgumentError: a JMSError and a ValueError."""
    calls: list[Callable[[], Any]] = [
        lambda: on.producer.send("x", priority=10),
        lambda: on.producer.send("x", priority="high"),
        lambda: on.producer.send("x", time_to_live=-1),
        lambda: on.producer.send("x", time_to_live="long"),
        lambda: on.producer.send("x", properties={"a b": 1}),
        lambda: on.producer.send("x", properties={5: 1}),
        lambda: on.producer.send("x", delivery_mode=3),
        lambda: on.consumer.receive(timeout=-1),
    ]
    for call in calls:
        with pytest.raises(jmsaio.IllegalArgumentError) as caught:
            await call()
        assert isinstance(caught.value, jmsaio.JMSError) and isinstance(caught.value, ValueError)

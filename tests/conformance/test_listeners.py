"""Message listeners, and what callbacks may not call (checklist.txt, group 11)."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from tests.conformance.kit import tck
from tests.conformance.recording import Heard, Name, Told, destination, twins

CONSUMER = "core20/appclient/messageconsumertests/ClientIT"
RULES = "core20/appclient/listenerexceptiontests/ClientIT"


def illegal(found: list[Exception]) -> bool:
    """Each is the error for a call at the wrong time, and not because something is closed."""
    return all(type(error) is jmsaio.IllegalStateError for error in found)


async def refusal(call: Any) -> Exception:
    """The IllegalStateError that a call raises."""
    with pytest.raises(jmsaio.IllegalStateError) as raised:
        await call()
    return raised.value


@pytest.mark.parametrize("kind", twins(f"{CONSUMER}.{{kind}}SendRecvMessageListenerTest"))
async def test_the_listener_of_a_message_consumer(session: jmsaio.Session, name: Name, kind: str) -> None:
    where, heard = destination(session, kind, name("classic")), Heard()
    async with session.create_consumer(where) as consumer, session.create_producer(where) as producer:
        assert consumer.get_message_listener() is None
        consumer.set_message_listener(heard)
        assert consumer.get_message_listener() is heard is consumer.message_listener
        message = session.create_text_message("heard")
        await producer.send(message)
        [received] = await heard.until(1)
        assert received.get_body(str) == "heard" and received.jms_message_id == message.jms_message_id


@pytest.mark.parametrize("kind", twins("core20/appclient/jmsconsumertests/ClientIT.{kind}SendRecvMessageListenerTest"))
async def test_the_listener_of_a_contexts_consumer(context: jmsaio.Context, name: Name, kind: str) -> None:
    where, heard = destination(context, kind, name("simple")), Heard()
    async with context.create_consumer(where) as consumer:
        assert consumer.get_message_listener() is None
        consumer.set_message_listener(heard)
        assert consumer.get_message_listener() is heard is consumer.message_listener
        message = context.create_text_message("heard")
        await context.create_producer().send(where, message)
        [received] = await heard.until(1)
        assert received.get_body(str) == "heard" and received.jms_message_id == message.jms_message_id


@tck(f"{RULES}.illegalStateExceptionTest1")
async def test_close_of_the_connection_in_a_completion_listener(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    refused: list[Exception] = []

    async def close(_: jmsaio.Message) -> None:
        refused.append(await refusal(connection.close))

    told = Told(close)
    async with session.create_producer(session.create_queue(name("connection"))) as producer:
        await producer.send_async("sent", completion_listener=told)
        await told.one()
        assert len(refused) == 1 and illegal(refused)
        await producer.send("the connection goes on")


@tck(f"{RULES}.illegalStateExceptionTest2")
async def test_close_and_stop_of_the_connection_in_a_message_listener(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    refused: list[Exception] = []

    async def end(_: jmsaio.Message) -> None:
        refused.append(await refusal(connection.close))
        refused.append(await refusal(connection.stop))

    queue, heard = session.create_queue(name("connection")), Heard(end)
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        consumer.set_message_listener(heard)
        await producer.send("first")
        await producer.send("second")
        await heard.until(2)
    assert len(refused) == 4 and illegal(refused)


@tck(f"{RULES}.illegalStateExceptionTest3")
async def test_close_of_the_session_in_its_callbacks(session: jmsaio.Session, name: Name) -> None:
    refused: list[Exception] = []

    async def close(_: jmsaio.Message) -> None:
        refused.append(await refusal(session.close))

    queue, told, heard = session.create_queue(name("session")), Told(close), Heard(close)
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        consumer.set_message_listener(heard)
        await producer.send_async("sent", completion_listener=told)
        await told.one()
        await heard.until(1)
    assert len(refused) == 2 and illegal(refused)


@tck(f"{RULES}.callingMessageConsumerCloseIsAllowed")
async def test_a_message_consumer_closed_by_its_own_listener(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("consumer"))
    consumer = await session.create_consumer(queue)
    heard = Heard(lambda _: consumer.close())
    async with session.create_producer(queue) as producer:
        consumer.set_message_listener(heard)
        await producer.send("first")
        await heard.until(1)
        assert consumer.closed
        await producer.send("second")
    async with session.create_consumer(queue) as other:
        rest = await other.receive(timeout=20)
        assert rest is not None and rest.get_body(str) == "second", "the first one was delivered"
    assert len(heard.messages) == 1


@tck(f"{RULES}.callingJMSConsumerCloseIsAllowed")
async def test_a_contexts_consumer_closed_by_its_own_listener(context: jmsaio.Context, name: Name) -> None:
    queue, producer = context.create_queue(name("consumer")), context.create_producer()
    consumer = await context.create_consumer(queue)
    heard = Heard(lambda _: consumer.close())
    consumer.set_message_listener(heard)
    await producer.send(queue, "first")
    await heard.until(1)
    assert consumer.closed
    await producer.send(queue, "second")
    async with context.create_consumer(queue) as other:
        assert await other.receive_body(str, timeout=20) == "second", "the first one was delivered"
    assert len(heard.messages) == 1

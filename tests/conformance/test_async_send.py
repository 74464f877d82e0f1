"""Asynchronous send of a MessageProducer with a CompletionListener (checklist.txt, group 11)."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio import DeliveryMode
from tests.conformance.recording import Broken, Name, Told, destination, twins

CLIENT = "core20/appclient/messageproducertests/ClientIT"
OPTIONS: dict[str, Any] = {"delivery_mode": DeliveryMode.NON_PERSISTENT, "priority": 9, "time_to_live": 60}


@pytest.mark.parametrize(
    ("kind", "identified", "options"),
    [
        *twins(f"{CLIENT}.{{kind}}SendRecvCompletionListenerTest1", False, {}),
        *twins(f"{CLIENT}.{{kind}}SendRecvCompletionListenerTest2", False, OPTIONS),
        *twins(f"{CLIENT}.{{kind}}SendRecvCompletionListenerTest3", True, {}),
        *twins(f"{CLIENT}.{{kind}}SendRecvCompletionListenerTest4", True, OPTIONS),
    ],
)
async def test_the_forms_of_an_asynchronous_send(
    session: jmsaio.Session, name: Name, kind: str, identified: bool, options: dict[str, Any]
) -> None:
    where, told = destination(session, kind, name("forms")), Told()
    consumer = await session.create_consumer(where)
    message = session.create_text_message("sent")
    if identified:
        producer = await session.create_producer(where)
        await producer.send_async(message, completion_listener=told, **options)
    else:
        producer = await session.create_producer()
        await producer.send_async(where, message, completion_listener=told, **options)
    received = await consumer.receive(timeout=20)
    for seen in (await told.one(), received):
        assert isinstance(seen, jmsaio.TextMessage) and seen.text == "sent"
        assert seen.jms_destination == where and seen.jms_message_id == message.jms_message_id
        assert seen.jms_delivery_mode == options.get("delivery_mode", DeliveryMode.PERSISTENT)
        assert seen.jms_priority == options.get("priority", 4)
        assert seen.jms_expiration == (seen.jms_timestamp + 60_000 if options else 0)
    assert told.messages == [message] and told.errors == []


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.{{kind}}JMSExceptionTests"))
async def test_modes_and_priorities_that_do_not_exist(session: jmsaio.Session, name: Name, kind: str) -> None:
    where, told, message = destination(session, kind, name("invalid")), Told(), session.create_text_message("lost")
    wrong: list[dict[str, Any]] = [{"delivery_mode": -1}, {"priority": -1}, {"delivery_mode": 3}, {"priority": 10}]
    async with session.create_producer(where) as identified, session.create_producer() as unidentified:
        for options in wrong:
            with pytest.raises(jmsaio.JMSError):
                await identified.send_async(message, completion_listener=told, **options)
            with pytest.raises(jmsaio.JMSError):
                await unidentified.send_async(where, message, completion_listener=told, **options)
    assert told.messages == [] and told.errors == []


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.{{kind}}InvalidDestinationExceptionTests"))
async def test_sending_to_no_destination_is_refused_and_the_listener_hears_nothing(
    session: jmsaio.Session, name: Name, kind: str
) -> None:
    nowhere: Any = None
    told, message = Told(), session.create_text_message("sent")
    async with session.create_producer() as producer:
        for options in ({}, OPTIONS):
            with pytest.raises(jmsaio.InvalidDestinationError):
                await producer.send_async(nowhere, message, completion_listener=told, **options)
        await producer.send_async(destination(session, kind, name("given")), message, completion_listener=told)
    assert told.messages == [message] and told.errors == []


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.{{kind}}UnsupportedOperationExceptionTests"))
async def test_a_destination_is_given_exactly_once(session: jmsaio.Session, name: Name, kind: str) -> None:
    where, told = destination(session, kind, name("once")), Told()
    message = session.create_text_message("lost")
    async with session.create_producer(where) as identified, session.create_producer() as unidentified:
        for options in ({}, OPTIONS):
            with pytest.raises(jmsaio.UnsupportedOperationError):
                await identified.send_async(where, message, completion_listener=told, **options)
            with pytest.raises(jmsaio.UnsupportedOperationError):
                await unidentified.send_async(message, completion_listener=told, **options)
    assert told.messages == [] and told.errors == []


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.{{kind}}IllegalArgumentExceptionTests"))
async def test_no_completion_listener(session: jmsaio.Session, name: Name, kind: str) -> None:
    where, message = destination(session, kind, name("listener")), session.create_text_message("lost")
    none: Any = None
    async with session.create_producer(where) as identified, session.create_producer() as unidentified:
        for options in ({}, OPTIONS):
            with pytest.raises(jmsaio.IllegalArgumentError):
                await identified.send_async(message, completion_listener=none, **options)
            with pytest.raises(jmsaio.IllegalArgumentError):
                await unidentified.send_async(where, message, completion_listener=none, **options)


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.{{kind}}MessageFormatExceptionTests"))
async def test_a_broken_foreign_message(session: jmsaio.Session, name: Name, kind: str) -> None:
    where, told = destination(session, kind, name("broken")), Told()
    wrongs: tuple[Any, ...] = (Broken(), None)
    async with session.create_producer(where) as identified, session.create_producer() as unidentified:
        for message in wrongs:
            for options in ({}, OPTIONS):
                with pytest.raises(jmsaio.MessageFormatError):
                    await identified.send_async(message, completion_listener=told, **options)
                with pytest.raises(jmsaio.MessageFormatError):
                    await unidentified.send_async(where, message, completion_listener=told, **options)
    assert told.messages == [] and told.errors == []


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.{{kind}}IllegalStateExceptionTests"))
async def test_close_of_the_producer_in_its_completion_listener(session: jmsaio.Session, name: Name, kind: str) -> None:
    refused: list[Exception] = []

    async def close(_: jmsaio.Message) -> None:
        with pytest.raises(jmsaio.IllegalStateError) as raised:
            await producer.close()
        refused.append(raised.value)

    told = Told(close)
    producer = await session.create_producer(destination(session, kind, name("close")))
    await producer.send_async("sent", completion_listener=told)
    await told.one()
    assert len(refused) == 1 and not isinstance(refused[0], jmsaio.ObjectClosedError) and not producer.closed
    await producer.send("the producer goes on")

"""MessageProducer of JMS 2.0 (checklist.txt, group 12)."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio import DeliveryMode
from tests.conformance.kit import tck
from tests.conformance.recording import Name, Told, destination, twins
from tests.kit.virtual_time import wall

CLIENT = "core20/messageproducertests/ClientIT"
OPTIONS: dict[str, Any] = {"delivery_mode": DeliveryMode.NON_PERSISTENT, "priority": 7, "time_to_live": 60}


@pytest.mark.parametrize(
    ("kind", "identified", "options"),
    [
        *twins(f"{CLIENT}.{{kind}}SendAndRecvTest1", False, {}),
        *twins(f"{CLIENT}.{{kind}}SendAndRecvTest2", False, OPTIONS),
        *twins(f"{CLIENT}.{{kind}}SendAndRecvTest3", True, {}),
        *twins(f"{CLIENT}.{{kind}}SendAndRecvTest4", True, OPTIONS),
    ],
)
async def test_the_forms_of_send(
    session: jmsaio.Session, name: Name, kind: str, identified: bool, options: dict[str, Any]
) -> None:
    where = destination(session, kind, name("forms"))
    consumer = await session.create_consumer(where)
    message = session.create_text_message("sent")
    if identified:
        await (await session.create_producer(where)).send(message, **options)
    else:
        await (await session.create_producer()).send(where, message, **options)
    received = await consumer.receive(timeout=20)
    assert isinstance(received, jmsaio.TextMessage) and received.text == "sent"
    assert received.jms_destination == where and received.jms_message_id == message.jms_message_id
    assert received.jms_delivery_mode == options.get("delivery_mode", DeliveryMode.PERSISTENT)
    assert received.jms_priority == options.get("priority", 4)
    assert received.jms_expiration == (received.jms_timestamp + 60_000 if options else 0)


@pytest.mark.parametrize(
    ("kind", "setting", "default", "others"),
    [
        *twins(f"{CLIENT}.{{kind}}SetGetDeliveryModeTest", "delivery_mode", DeliveryMode.PERSISTENT, [1, 2]),
        *twins(f"{CLIENT}.{{kind}}SetGetDeliveryDelayTest", "delivery_delay", 0, [1, 30.5, 0]),
        *twins(f"{CLIENT}.{{kind}}SetGetDisableMessageIDTest", "disable_message_id", False, [True, False]),
        *twins(f"{CLIENT}.{{kind}}SetGetDisableMessageTimestampTest", "disable_message_timestamp", False, [True]),
        *twins(f"{CLIENT}.{{kind}}SetGetPriorityTest", "priority", 4, [*range(10)]),
        twins(f"{CLIENT}.{{kind}}SetGetTimeToLiveTest", "time_to_live", 0, [1, 0.25, 0])[0],
    ],
)
async def test_settings_have_defaults_and_are_read_back(
    session: jmsaio.Session, name: Name, kind: str, setting: str, default: object, others: list[Any]
) -> None:
    async with session.create_producer(destination(session, kind, name("settings"))) as producer:
        assert getattr(producer, setting) == getattr(producer, f"get_{setting}")() == default
        for value in others:
            getattr(producer, f"set_{setting}")(value)
            assert getattr(producer, setting) == getattr(producer, f"get_{setting}")() == value


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.{{kind}}InvalidDestinationExceptionTests"))
async def test_a_refused_send_to_no_destination_leaves_the_producer_usable(
    session: jmsaio.Session, name: Name, kind: str
) -> None:
    nowhere: Any = None
    async with session.create_producer() as producer:
        for options in ({}, OPTIONS):
            with pytest.raises(jmsaio.InvalidDestinationError):
                await producer.send(nowhere, session.create_text_message("lost"), **options)
        where = destination(session, kind, name("given"))
        await producer.send(where, session.create_text_message("the producer goes on"))


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.{{kind}}UnsupportedOperationExceptionTests"))
async def test_a_destination_is_given_exactly_once(session: jmsaio.Session, name: Name, kind: str) -> None:
    where, message = destination(session, kind, name("once")), session.create_text_message("lost")
    async with session.create_producer(where) as identified, session.create_producer() as unidentified:
        assert identified.destination == where and unidentified.destination is None
        for options in ({}, OPTIONS):
            with pytest.raises(jmsaio.UnsupportedOperationError):
                await identified.send(where, message, **options)
            with pytest.raises(jmsaio.UnsupportedOperationError):
                await unidentified.send(message, **options)


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.{{kind}}DeliveryDelayTest"))
async def test_delayed_messages_of_both_modes_come_after_their_delivery_times(
    session: jmsaio.Session, name: Name, kind: str
) -> None:
    where = destination(session, kind, name("delay"))
    consumer, producer = await session.create_consumer(where), await session.create_producer(where)
    producer.set_delivery_delay(1)
    modes = (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT)
    for mode in modes:
        await producer.send(str(int(mode)), delivery_mode=mode)
    assert await consumer.receive(timeout=0.3) is None
    received = []
    for _ in modes:
        message = await consumer.receive(timeout=20)
        assert message is not None and wall() * 1000 >= message.jms_delivery_time - 1
        received.append((message.jms_delivery_mode, message.get_body(str)))
    assert sorted(received) == [(1, "1"), (2, "2")]


@tck(f"{CLIENT}.JMSExceptionTests")
async def test_modes_and_priorities_that_do_not_exist(session: jmsaio.Session, name: Name) -> None:
    told, message = Told(), session.create_text_message("lost")
    for kind in ("queue", "topic"):
        where = destination(session, kind, name("invalid"))
        async with session.create_producer(where) as identified, session.create_producer() as unidentified:
            for setting in ("priority", "delivery_mode"):
                wrong: dict[str, Any] = {setting: -1}
                for producer in (identified, unidentified):
                    with pytest.raises(jmsaio.JMSError, match=setting):
                        getattr(producer, f"set_{setting}")(-1)
                with pytest.raises(jmsaio.JMSError, match=setting):
                    await identified.send(message, **wrong)
                with pytest.raises(jmsaio.JMSError, match=setting):
                    await unidentified.send(where, message, **wrong)
                with pytest.raises(jmsaio.JMSError, match=setting):
                    await identified.send_async(message, completion_listener=told, **wrong)
                with pytest.raises(jmsaio.JMSError, match=setting):
                    await unidentified.send_async(where, message, completion_listener=told, **wrong)
    assert told.messages == [] and told.errors == []

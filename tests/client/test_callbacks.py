"""Message listeners (jms-spec 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import jmsaio
from tests.client.helpers import fill, rest, texts

Name = Callable[[str], str]


async def test_listener_serial_and_in_order(connection: jmsaio.Connection, name: Name) -> None:
    queues = [jmsaio.Queue(name(f"listen{index}")) for index in range(2)]
    seen: list[str] = []
    running = 0
    done = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        seen.append(message.get_body(str))
        running -= 1
        if len(seen) == 20:
            done.set()

    async with connection.create_session() as session:
        for queue in queues:
            (await session.create_consumer(queue)).set_message_listener(listener)
        for queue in queues:
            await fill(connection, queue, 10)
        await asyncio.wait_for(done.wait(), 30)
    assert sorted(seen) == sorted([str(number) for number in range(10)] * 2)
    for queue in queues:
        assert await rest(connection, queue, wait=0.5) == []


async def test_failing_listener_gets_the_message_again(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("failing"))
    seen: list[tuple[str, int]] = []
    reported: list[jmsaio.JMSError] = []
    done = asyncio.Event()
    connection.set_exception_listener(reported.append)

    def listener(message: jmsaio.Message) -> None:
        seen.append((message.get_body(str), message.get_int_property("JMSXDeliveryCount")))
        if len(seen) <= 2:
            raise ValueError("not yet")
        if len(seen) == 4:
            done.set()

    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(listener)
        await fill(connection, queue, 2)
        await asyncio.wait_for(done.wait(), 30)
    assert seen == [("0", 1), ("0", 2), ("0", 3), ("1", 1)]
    assert [type(error.linked_exception) for error in reported] == [ValueError, ValueError]


async def test_calls_from_inside_a_listener(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("inside"))
    found: list[object] = []
    done = asyncio.Event()
    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)

        async def listener(message: jmsaio.Message) -> None:
            for call in (session.close, connection.close, connection.stop):
                try:
                    await asyncio.ensure_future(call())
                except jmsaio.IllegalStateError as error:
                    found.append(error)
            await consumer.close()
            done.set()

        consumer.set_message_listener(listener)
        await fill(connection, queue, 2)
        await asyncio.wait_for(done.wait(), 30)
        await asyncio.sleep(0.1)
    assert len(found) == 3
    assert texts(await rest(connection, queue)) == ["1"]


async def test_stop_waits_for_the_listener(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("stop"))
    entered, leave = asyncio.Event(), asyncio.Event()
    count = 0

    async def listener(message: jmsaio.Message) -> None:
        nonlocal count
        count += 1
        entered.set()
        await leave.wait()

    async with connection.create_session() as session:
        (await session.create_consumer(queue)).set_message_listener(listener)
        await fill(connection, queue, 3)
        await asyncio.wait_for(entered.wait(), 20)
        stopping = asyncio.ensure_future(connection.stop())
        await asyncio.sleep(0.05)
        assert not stopping.done()
        leave.set()
        await asyncio.wait_for(stopping, 20)
        before = count
        await asyncio.sleep(0.2)
        assert count == before
        await connection.start()
        while count < 3:
            await asyncio.sleep(0.01)

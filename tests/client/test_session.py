"""Acknowledgement, recovery, transactions and listeners (jms-spec 6 and 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode

Name = Callable[[str], str]


async def fill(connection: jmsaio.Connection, queue: jmsaio.Queue, count: int) -> None:
    async with connection.create_session() as session, session.create_producer(queue) as producer:
        for number in range(count):
            await producer.send(str(number))


async def take(consumer: jmsaio.MessageConsumer, count: int) -> list[jmsaio.Message]:
    found = []
    for _ in range(count):
        message = await consumer.receive(timeout=20)
        assert message is not None
        found.append(message)
    return found


def texts(messages: list[jmsaio.Message]) -> list[str]:
    return [message.get_body(str) for message in messages]


async def rest(connection: jmsaio.Connection, queue: jmsaio.Queue, wait: float = 2.0) -> list[jmsaio.Message]:
    found = []
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        while (message := await consumer.receive(timeout=wait)) is not None:
            found.append(message)
    return found


async def test_client_acknowledge_settles_the_whole_session(
    connection: jmsaio.Connection, name: Name, url: str
) -> None:
    queue = jmsaio.Queue(name("client"))
    await fill(connection, queue, 5)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 4)
        await messages[0].acknowledge()
        await messages[0].acknowledge()
        await take(consumer, 1)
    left = await rest(connection, queue)
    assert texts(left) == ["4"]
    # Pulsar forgets its count when the last consumer of a subscription leaves
    assert left[0].jms_redelivered is url.startswith("memory")


async def test_group_scope_settles_up_to_the_message(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("group"))
    await fill(connection, queue, 4)
    async with connection.create_session(AcknowledgeMode.CLIENT, acknowledge_scope="group") as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 4)
        await messages[1].acknowledge()
    assert sorted(texts(await rest(connection, queue))) == ["2", "3"]


async def test_individual_settles_one(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("individual"))
    await fill(connection, queue, 3)
    async with connection.create_session(AcknowledgeMode.INDIVIDUAL) as session:
        assert session.acknowledge_mode is AcknowledgeMode.CLIENT
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 3)
        await messages[1].acknowledge()
    assert sorted(texts(await rest(connection, queue))) == ["0", "2"]


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
async def test_self_acknowledging(connection: jmsaio.Connection, name: Name, mode: AcknowledgeMode) -> None:
    queue = jmsaio.Queue(name("auto"))
    await fill(connection, queue, 3)
    async with connection.create_session(mode) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 2)
        await messages[0].acknowledge()
        await session.recover()
    assert texts(await rest(connection, queue)) == ["2"]
    with pytest.raises(jmsaio.IllegalStateError):
        await messages[0].acknowledge()


async def test_recover_keeps_the_order(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("recover"))
    await fill(connection, queue, 6)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        first = await take(consumer, 3)
        assert [message.jms_redelivered for message in first] == [False] * 3
        await session.recover()
        again = await take(consumer, 6)
        assert texts(again) == ["0", "1", "2", "3", "4", "5"]
        assert [message.jms_redelivered for message in again] == [True] * 3 + [False] * 3
        assert [message.get_int_property("JMSXDeliveryCount") for message in again] == [2, 2, 2, 1, 1, 1]
        await again[-1].acknowledge()
    assert await rest(connection, queue, wait=1.0) == []


async def test_closed_consumer_leaves_its_messages_to_the_session(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("linger"))
    await fill(connection, queue, 3)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        messages = await take(consumer, 3)
        await consumer.close()
        await messages[0].acknowledge()
    assert await rest(connection, queue, wait=1.0) == []


async def test_unacknowledged_messages_come_again(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("unacknowledged"))
    await fill(connection, queue, 2)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await take(await session.create_consumer(queue), 2)
    assert sorted(texts(await rest(connection, queue))) == ["0", "1"]


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


async def test_emulated_transaction(url: str, name: Name) -> None:
    async with jmsaio.connect(url, emulate_transactions=True) as connection:
        queue, output = jmsaio.Queue(name("in")), jmsaio.Queue(name("out"))
        await fill(connection, queue, 3)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            assert session.transacted
            consumer, producer = await session.create_consumer(queue), await session.create_producer(output)
            await take(consumer, 1)
            await producer.send("sent at once")
            assert texts(await rest(connection, output)) == ["sent at once"]
            await session.commit()
            again = await take(consumer, 2)
            await session.rollback()
            messages = await take(consumer, 2)
            assert texts(messages) == texts(again) == ["1", "2"]
            assert all(message.jms_redelivered for message in messages)
            await session.commit()
        assert await rest(connection, queue, wait=1.0) == []


async def test_real_transaction_on_the_embedded_broker(name: Name) -> None:
    async with jmsaio.connect("memory://transactions") as connection:
        queue, output = jmsaio.Queue(name("in")), jmsaio.Queue(name("out"))
        await fill(connection, queue, 2)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer, producer = await session.create_consumer(queue), await session.create_producer(output)
            await take(consumer, 1)
            await producer.send("a")
            assert await rest(connection, output, wait=0.1) == []
            await session.commit()
            assert texts(await rest(connection, output, wait=0.1)) == ["a"]
            await take(consumer, 1)
            await producer.send("b")
            await session.rollback()
            assert await rest(connection, output, wait=0.1) == []
            assert texts(await take(consumer, 1)) == ["1"]
        assert texts(await rest(connection, queue, wait=0.1)) == ["1"]


async def test_transacted_needs_transactions(pulsar_broker: object, name: Name) -> None:
    url = f"{pulsar_broker.service_url}?webServiceUrl={pulsar_broker.web_service_url}"  # type: ignore[attr-defined]
    async with jmsaio.connect(url) as connection:
        with pytest.raises(jmsaio.IllegalStateError, match=r"jms\.emulateTransactions"):
            await connection.create_session(AcknowledgeMode.TRANSACTED)


async def test_wrong_state_calls(connection: jmsaio.Connection) -> None:
    async with connection.create_session() as session:
        for call in (session.commit, session.rollback):
            with pytest.raises(jmsaio.IllegalStateError):
                await call()
    with pytest.raises(jmsaio.JMSError):
        await connection.create_session(17)
    for use in (lambda: session.create_queue("q"), lambda: session.create_text_message("t"), lambda: session.transacted):
        with pytest.raises(jmsaio.ObjectClosedError):
            use()
    await session.close()

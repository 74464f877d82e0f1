"""Transactions, emulated and real (jms-spec 6.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client.transacting import Transacting
from tests.client.helpers import fill, rest, take, texts
from tests.support.broker import TestBroker

Name = Callable[[str], str]


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


async def test_transacted_needs_transactions(pulsar_broker: TestBroker, name: Name) -> None:
    url = f"{pulsar_broker.service_url}?webServiceUrl={pulsar_broker.web_service_url}"
    async with jmsaio.connect(url) as connection:
        with pytest.raises(jmsaio.IllegalStateError, match=r"jms\.emulateTransactions"):
            await connection.create_session(AcknowledgeMode.TRANSACTED)


async def test_a_commit_that_was_rolled_back_gives_messages_again(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jmsaio.client.transacting.TRANSACTION_TIMEOUT", 0.2)
    queue, output = jmsaio.Queue(name("in")), jmsaio.Queue(name("out"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer, producer = await session.create_consumer(queue), await session.create_producer(output)
            await producer.send("out")
            await take(consumer, 1)
            await asyncio.sleep(0.5)
            with pytest.raises(jmsaio.TransactionRolledBackError):
                await session.commit()
            (again,) = await take(consumer, 1)
            assert again.jms_redelivered
            await session.commit()
        assert await rest(connection, queue, wait=0.2) == await rest(connection, output, wait=0.2) == []


async def test_a_commit_that_can_not_begin_loses_no_delivery(name: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = jmsaio.Queue(name("in"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer = await session.create_consumer(queue)
            await take(consumer, 1)

            async def refuse(self: object) -> None:
                raise jmsaio.TransportError("no coordinator")

            with monkeypatch.context() as patched:
                patched.setattr("jmsaio.client.transacting.Transacting._begin", refuse)
                with pytest.raises(jmsaio.TransportError):
                    await session.commit()
            await session.commit()
        assert await rest(connection, queue, wait=0.2) == []


async def test_a_send_beside_a_commit_is_never_outside_a_transaction(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = jmsaio.Queue(name("out"))
    begin = Transacting._begin

    async def slowly(self: Transacting) -> object:
        handle = await begin(self)
        await asyncio.sleep(0.1)
        return handle

    monkeypatch.setattr(Transacting, "_begin", slowly)
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            producer = await session.create_producer(output)
            sending = asyncio.ensure_future(producer.send("x"))
            await asyncio.sleep(0.02)
            await session.commit()
            await sending
            assert await rest(connection, output, wait=0.2) == []
            await session.commit()
        assert texts(await rest(connection, output, wait=0.2)) == ["x"]


async def test_a_stuck_listener_does_not_keep_the_transaction_open(name: Name) -> None:
    queue, entered = jmsaio.Queue(name("in")), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await asyncio.sleep(3600)

    async with jmsaio.connect(f"memory://{name('broker')}", close_timeout=0.2) as connection:
        await fill(connection, queue, 1)
        session = await connection.create_session(AcknowledgeMode.TRANSACTED)
        await (await session.create_producer(jmsaio.Queue(name("out")))).send("x")
        (await session.create_consumer(queue)).set_message_listener(listener)
        await asyncio.wait_for(entered.wait(), 10)
        assert session._transacting is not None
        handle = session._transacting.work.handle
        with pytest.raises(jmsaio.OperationTimeoutError):
            await session.close()
        with pytest.raises(jmsaio.TransactionRolledBackError):
            await handle.commit()  # type: ignore[union-attr]  # begun by the send


async def test_a_transaction_that_timed_out_gives_its_messages_back_once(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jmsaio.client import transacting

    monkeypatch.setattr(transacting, "TRANSACTION_TIMEOUT", 0.2)
    async with jmsaio.connect(f"memory://{name('late')}") as connection:
        queue = jmsaio.Queue(name("in"))
        await fill(connection, queue, 3)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
            await producer.send("begins it")
            await take(consumer, 3)
            await asyncio.sleep(0.5)
            with pytest.raises(jmsaio.TransactionRolledBackError):
                await session.commit()
            again = await take(consumer, 3)
            assert sorted(texts(again)) == ["0", "1", "2"]
            assert all(message.jms_redelivered for message in again)
            await session.commit()
            assert await consumer.receive(timeout=0.3) is None

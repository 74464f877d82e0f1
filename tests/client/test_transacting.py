"""Transactions, emulated and real (jms-spec 6.4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import fill, rest, take, texts

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


async def test_transacted_needs_transactions(pulsar_broker: object, name: Name) -> None:
    url = f"{pulsar_broker.service_url}?webServiceUrl={pulsar_broker.web_service_url}"  # type: ignore[attr-defined]
    async with jmsaio.connect(url) as connection:
        with pytest.raises(jmsaio.IllegalStateError, match=r"jms\.emulateTransactions"):
            await connection.create_session(AcknowledgeMode.TRANSACTED)

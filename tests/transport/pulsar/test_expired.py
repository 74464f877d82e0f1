"""A token that expires while connected is told as what it is, by everything that waits; a fresh one ends that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

import jmsaio
from jmsaio import ConnectionState
from jmsaio.errors import BrokerUnavailableError, JMSError, JMSSecurityError, SendInDoubtError
from tests.client.helpers import until
from tests.support.secure import SecureBroker

Value = TypeVar("Value")
#: Seconds that the token is good for, in which all is opened, and that anything takes at most.
LIFETIME, LONG = 15.0, 90.0


async def refused(producer: jmsaio.MessageProducer) -> JMSError:
    """Send until it fails."""
    while True:
        try:
            await producer.send("before the token expires")
        except JMSError as error:
            return error
        await asyncio.sleep(0.05)


async def accepted(call: Callable[[], Awaitable[Value]]) -> Value:
    """Call until the new token counts."""
    while True:
        try:
            return await call()
        except JMSSecurityError:
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("transport", ["pulsar-client", pytest.param("wire", marks=pytest.mark.slow)])
async def test_a_token_that_expires_is_told_until_there_is_another(
    secure_broker: SecureBroker, tmp_path: Path, transport: str
) -> None:
    file, told = tmp_path / "token", asyncio.Queue[JMSError]()
    async with jmsaio.connect(secure_broker.options()) as first, first.create_session() as session:
        for name in (
            f"expired-{transport}",
            f"expired-quiet-{transport}",
        ):  # a new broker takes seconds for its first topics
            await session.create_consumer(session.create_queue(name))
    file.write_text(secure_broker.token(lifetime=LIFETIME))
    expired = pytest.raises(JMSSecurityError, match=rf"the token expired at 20.*; write a valid one into {file}")
    with anyio.fail_after(LONG):
        async with (
            jmsaio.connect(secure_broker.options(params=f"file://{file}") | {"transport": transport}) as connection,
            connection.create_session() as session,
            connection.create_session() as quiet,
        ):
            connection.set_exception_listener(told.put_nowait)
            queue = session.create_queue(f"expired-{transport}")
            other = quiet.create_queue(f"expired-quiet-{transport}")
            producer, consumer = await session.create_producer(queue), await quiet.create_consumer(other)
            waiting = asyncio.create_task(consumer.receive())
            failing = await refused(producer)
            with expired:
                raise failing
            assert (await until(connection, ConnectionState.RECONNECTING)).error is not None
            with expired:
                await waiting
            while not isinstance(error := await told.get(), JMSSecurityError):
                assert isinstance(error, BrokerUnavailableError)  # the loss, which can be told before its reason
            with expired:
                raise error
            with expired as unsent:
                await producer.send("refused")
            assert not isinstance(unsent.value, SendInDoubtError)
            with expired:
                await consumer.receive()
            with expired:
                await consumer.receive_no_wait()
            with expired:  # the subscription, over REST
                await session.create_producer(session.create_queue("expired-new"))
            with expired:
                await session.create_consumer(session.create_topic("expired-topic"))
            file.write_text(secure_broker.token())
            again = await accepted(lambda: session.create_producer(other))
            await again.send("after")
            message = await accepted(consumer.receive)
            assert message is not None
            assert message.text == "after"
            await until(connection, ConnectionState.CONNECTED)

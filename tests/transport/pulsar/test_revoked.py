"""A right that is taken from a connected client is told by what it does; when it is granted again, that goes on."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.to_thread
import pytest

import jmsaio
from jmsaio.errors import JMSError, JMSSecurityError, SendInDoubtError
from tests.support.secure import SecureBroker

Value = TypeVar("Value")
#: Seconds that all of it takes at most: pulsar-client waits up to a minute before it connects again.
LONG = 120.0
REFUSED = pytest.raises(
    JMSSecurityError,  # or by REST, where a sender is opened again
    match=r"no right to do this \[(AuthorizationError\] \(Client is not authorized to|401\] \(Unauthorized to)",
)


async def granted(call: Callable[[], Awaitable[Value]]) -> Value:
    """Call until the right is back."""
    while True:
        try:
            return await call()
        except JMSSecurityError:
            await asyncio.sleep(0.2)


async def failure(producer: jmsaio.MessageProducer) -> JMSError:
    """Send until it fails."""
    while True:
        try:
            await producer.send("before the right is gone")
        except JMSError as error:
            return error
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("transport", ["pulsar-client", pytest.param("wire", marks=pytest.mark.slow)])
@pytest.mark.parametrize("left", [(), ("consume",), ("produce",)], ids=["nothing", "consume", "produce"])
async def test_a_right_that_is_revoked_is_told_until_it_is_granted(
    secure_broker: SecureBroker, left: tuple[str, ...], transport: str
) -> None:
    namespace = await anyio.to_thread.run_sync(secure_broker.namespace, uuid.uuid4().hex[:12])
    told = asyncio.Queue[JMSError]()
    with anyio.fail_after(LONG):
        async with (
            jmsaio.connect(
                secure_broker.options() | {"transport": transport}, system_namespace=namespace
            ) as connection,
            connection.create_session() as session,
            connection.create_session() as quiet,
        ):
            connection.set_exception_listener(told.put_nowait)
            producer = await session.create_producer(session.create_queue("sent"))
            consumer = await quiet.create_consumer(quiet.create_queue("received"))
            waiting = asyncio.create_task(consumer.receive())
            await producer.send("allowed")
            await anyio.to_thread.run_sync(secure_broker.allow, namespace, *left)
            if "produce" not in left:
                with REFUSED:
                    raise await failure(producer)
                with REFUSED as unsent:
                    await producer.send("refused")
                assert not isinstance(unsent.value, SendInDoubtError)
            if "consume" not in left:
                with REFUSED:
                    await waiting
                with REFUSED:
                    await consumer.receive()
            with REFUSED:
                raise await told.get()
            await anyio.to_thread.run_sync(secure_broker.allow, namespace, "produce", "consume")
            again = await quiet.create_producer(quiet.create_queue("received"))
            await again.send("granted")
            await granted(lambda: producer.send("granted"))
            message = await (waiting if "consume" in left else granted(consumer.receive))
            assert message is not None
            assert message.text == "granted"

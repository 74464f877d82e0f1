"""A tracing that raises changes nothing for messages: they are sent, received and settled; its errors are logged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType

import pytest

import jmsaio
from jmsaio import AcknowledgeMode, Destination, Message
from jmsaio.client.callbacks.traced import call_trace
from jmsaio.model.messages.tracing import EndpointTrace, SendTrace
from jmsaio.model.wire import ReceivedRecord
from tests.client.helpers import drain, texts


class Broken:
    """A tracing, its endpoints and its sends; all that may raise does."""

    context: Mapping[str, str] = MappingProxyType({})

    def at(self, destination: Destination, server: str, subscription: str | None = None) -> EndpointTrace:
        return self

    def sending(self, message: Message) -> SendTrace:
        return self

    def receiving(self) -> Callable[[Message], None]:
        def received(message: Message) -> None:
            raise RuntimeError("received")

        return received

    def processing(self, message: Message, pushed: bool = False) -> AbstractContextManager[None]:
        return nullcontext()

    def settled(self, operation: str, records: Sequence[ReceivedRecord]) -> None:
        raise RuntimeError(operation)

    def sent(self, message_id: str | None) -> None:
        raise RuntimeError("sent")

    def failed(self, error: BaseException) -> None:
        raise RuntimeError("failed")


async def test_a_trace_that_raises_loses_no_message(
    url: str, name: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    queue = jmsaio.Queue(name("broken"))
    with caplog.at_level(logging.ERROR, "jmsaio"):
        async with jmsaio.connect(url, tracing=Broken()) as connection:
            session = await connection.create_session(AcknowledgeMode.INDIVIDUAL)
            producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
            for number in range(3):
                await producer.send(str(number))
            with pytest.raises(jmsaio.MessageTooLargeError):
                await producer.send(bytes(200_000_000))
            first = await consumer.receive(10)
            assert first is not None
            await session.recover()
            async for delivery in consumer.deliveries():
                async with delivery as message:
                    await message.acknowledge()
                if message.get_body(str) == "1":
                    break
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            assert texts(await drain(await session.create_consumer(queue))) == ["2"]
    said = {str(record.exc_info[1]) for record in caplog.records if record.exc_info is not None}
    assert said == {"sent", "failed", "received", "ack", "nack"}


def test_what_a_trace_returns_is_passed_on() -> None:
    assert call_trace(len, "four") == 4
    assert call_trace(int, "four") is None

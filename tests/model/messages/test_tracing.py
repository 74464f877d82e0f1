"""The interface `Tracing`: what a tracing of an application's own is told of, in order, without OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

import jmsaio
from jmsaio import Destination, Message
from jmsaio.model.messages.tracing import EndpointTrace, SendTrace
from jmsaio.model.wire import ReceivedRecord


@attrs.define
class Told:
    """A Tracing that writes down each call."""

    lines: list[str]

    def at(self, destination: Destination, server: str, subscription: str | None = None) -> EndpointTrace:
        return ToldOfOne(self.lines, subscription)


@attrs.define
class ToldOfOne:
    lines: list[str]
    subscription: str | None

    def sending(self, message: Message) -> SendTrace:
        self.lines.append(f"sending {message.get_body(str)}")
        return ToldOfSend(self.lines, {"origin": "here"})

    def receiving(self) -> Callable[[Message], None]:
        self.lines.append(f"receiving from {self.subscription}")
        return lambda message: self.lines.append(f"received {message.get_body(str)} {message.properties['origin']}")

    @contextmanager
    def processing(self, message: Message, pushed: bool = False) -> Iterator[None]:
        self.lines.append("processing")
        yield
        self.lines.append("processed")

    def settled(self, operation: str, records: Sequence[ReceivedRecord]) -> None:
        self.lines.append(f"{operation} {len(records)}")


@attrs.define
class ToldOfSend:
    lines: list[str]
    context: Mapping[str, str]

    def sent(self, message_id: str | None) -> None:
        self.lines.append(f"sent {message_id is not None}")

    def failed(self, error: BaseException) -> None:
        self.lines.append(f"failed {error!r}")


async def test_a_tracing_is_told_of_each_step_in_order(url: str, name: Callable[[str], str]) -> None:
    told = Told([])
    async with jmsaio.connect(url, tracing=told) as connection, connection.create_session() as session:
        queue = jmsaio.Queue(name("told"))
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
        assert await consumer.receive_no_wait() is None
        await producer.send("one")
        async with consumer.process(10):
            told.lines.append("block")
    assert told.lines == [
        "receiving from jms-queue", "sending one", "sent True", "receiving from jms-queue", "received one here",
        "processing", "block", "ack 1", "processed",
    ]  # fmt: skip


async def test_a_schemas_value_is_traced_too(url: str, name: Callable[[str], str]) -> None:
    """Its send takes the general path with or without a tracing."""
    told = Told([])
    async with jmsaio.connect(url, tracing=told) as connection, connection.create_session() as session:
        producer = await session.create_producer(jmsaio.Queue(name("schema")), schema="STRING")
        await producer.send("one")
    assert told.lines == ["sending one", "sent True"]

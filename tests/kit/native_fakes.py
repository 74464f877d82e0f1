"""Fakes of pulsar-client's objects, which answer when a test says so, from a thread or inside the call."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import _pulsar
import attrs

from jmsaio.transport.pulsar.native.binding.record import PulsarRecord

OK = _pulsar.Result.Ok


def from_thread(function: Callable[..., object], *arguments: object) -> None:
    """Call as pulsar-client does, in a thread of its own; return when the call has, and raise what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function(*arguments)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


@attrs.define(eq=False)
class FakeMessage:
    """``_pulsar.Message`` in ledger 1; ``asked`` has the parts that were asked for."""

    entry: int = 0
    index: int = -1
    count: int = 0
    body: bytes = b"body"
    #: Of the batch that it is part of; 0: the broker did not tell.
    batch_size: int = 0
    published: int = 12
    key: str = ""
    null: bool = False
    values: dict[str, str] = attrs.field(factory=dict)
    asked: list[str] = attrs.field(factory=list)
    producer: str = "standalone-0-1"
    schema: bytes = b""
    #: Ledger and entry of the first of several chunks; None: it was sent as a whole.
    first: tuple[int, int] | None = None
    #: Length of the body in bytes, where nothing else is asked of it.
    size: int | None = None

    def data(self) -> bytes:
        self.asked.append("data")
        return self.body

    def has_null_value(self) -> bool:
        return self.null

    def properties(self) -> dict[str, str]:
        self.asked.append("properties")
        return dict(self.values)

    def partition_key(self) -> str:
        return self.key

    def event_timestamp(self) -> int:
        return 11

    def publish_timestamp(self) -> int:
        return self.published

    def message_id(self) -> _pulsar.MessageId:
        self.asked.append("message_id")
        place = _pulsar.MessageId(-1, 1, self.entry, self.index)
        if self.first is not None:
            first = _pulsar.MessageId(-1, *self.first, -1).serialize()
            return _pulsar.MessageId.deserialize(place.serialize() + b"\x3a" + bytes([len(first)]) + first)
        if not self.batch_size:
            return place
        # Only pulsar-client itself can make an id that knows the size.
        return _pulsar.MessageId.deserialize(place.serialize() + b"\x30" + bytes([self.batch_size]))

    def topic_name(self) -> str:
        return "persistent://a/b/told-by-message"

    def length(self) -> int:
        return len(self.body) if self.size is None else self.size

    def redelivery_count(self) -> int:
        return self.count

    def producer_name(self) -> str:
        self.asked.append("producer_name")
        return self.producer

    def schema_version(self) -> str:
        self.asked.append("schema_version")
        return self.schema.decode()


@attrs.define(eq=False)
class FakeConsumer:
    """A consumer with a queue; acknowledgements and returns are kept."""

    queue: deque[Any] = attrs.field(factory=deque)
    armed: list[Callable[[Any, Any], None]] = attrs.field(factory=list)
    acknowledged: list[Any] = attrs.field(factory=list)
    returned: list[Any] = attrs.field(factory=list)
    failure: Any = None
    deepest: int = 0
    closed: bool = False

    def consumer_name(self) -> str:
        return "fake"

    def receive_async(self, callback: Callable[[Any, Any], None]) -> None:
        if self.failure is not None:
            callback(self.failure, object())
        elif self.queue:
            callback(OK, self.queue.popleft())
        else:
            self.armed.append(callback)
            self.deepest = max(self.deepest, len(self.armed))

    def receive(self, timeout: int) -> Any:
        assert timeout == 0
        if not self.queue:
            raise _pulsar.Timeout
        return self.queue.popleft()

    def deliver(self, message: Any) -> None:
        """A message arrives: to the armed receive, or into the queue."""
        if self.armed:
            from_thread(self.armed.pop(0), OK, message)
        else:
            self.queue.append(message)

    def acknowledge_async(self, message: Any, callback: None) -> None:
        assert callback is None
        self.acknowledged.append(message)

    def negative_acknowledge(self, message: Any) -> None:
        self.returned.append(message)

    def is_connected(self) -> bool:
        return not self.closed

    def topic(self) -> str:
        return "persistent://public/default/t"

    def get_last_message_id_async(self, callback: Callable[[Any, Any], None]) -> None:
        callback(OK, _pulsar.MessageId.latest)

    def seek_async(self, position: object, callback: Callable[[Any], None]) -> None:
        callback(OK)

    def unsubscribe_async(self, callback: Callable[[Any], None]) -> None:
        callback(OK)

    def close_async(self, callback: Callable[[Any], None]) -> None:
        """Close at once: an armed receive is answered."""
        self.closed = True
        while self.armed:
            from_thread(self.armed.pop(0), _pulsar.Result.AlreadyClosed, None)
        callback(OK)


@attrs.define(eq=False)
class FakeReader(FakeConsumer):
    """A reader with a queue.

    ``looks``: what it answers, in turn, when it is asked whether there is more; then whether its queue has something.
    ``sought``: where it was moved; ``refusals``: what it answers then, in turn; then ``seeking``, which
    moves it; ``landings``: its queue afterwards, in turn.
    """

    looks: deque[tuple[Any, bool]] = attrs.field(factory=deque)
    looked: int = 0
    sought: list[Any] = attrs.field(factory=list)
    refusals: deque[Any] = attrs.field(factory=deque)
    seeking: Any = OK
    landings: deque[list[Any]] = attrs.field(factory=deque)

    def read_next_async(self, callback: Callable[[Any, Any], None]) -> None:
        self.receive_async(callback)

    def read_next(self, timeout: int) -> Any:
        return self.receive(timeout)

    def has_message_available_async(self, callback: Callable[[Any, bool], None]) -> None:
        self.looked += 1
        from_thread(callback, *(self.looks.popleft() if self.looks else (OK, bool(self.queue))))

    def seek_async(self, position: object, callback: Callable[[Any], None]) -> None:
        self.sought.append(position)
        if self.refusals:
            from_thread(callback, self.refusals.popleft())
            return
        if self.landings:
            self.queue = deque(self.landings.popleft())
            if self.armed and self.queue:
                from_thread(self.armed.pop(0), OK, self.queue.popleft())
        if self.seeking is not None:
            from_thread(callback, self.seeking)


@attrs.define(eq=False)
class FakeProducer:
    """A producer that keeps what it gets."""

    sent: list[tuple[Any, Any]] = attrs.field(factory=list)
    connected: bool = True

    def send_async(self, message: Any, callback: Any) -> None:
        self.sent.append((message, callback))

    def last_sequence_id(self) -> int:
        return -1

    def is_connected(self) -> bool:
        return self.connected

    def topic(self) -> str:
        return "persistent://public/default/t"

    def close_async(self, callback: Callable[[Any], None]) -> None:
        callback(OK)


@attrs.define(eq=False)
class FakeNativeConsumer:
    """The part of ``NativeConsumer`` that records and unacked need."""

    topic: str | None = "persistent://a/b/c"
    native: FakeConsumer = attrs.field(factory=FakeConsumer)
    serial: int = 0


def make_record(
    entry: int = 0, index: int = -1, serial: int = 0, native_consumer: Any = None, count: int = 0
) -> PulsarRecord:
    """A record of a fake message."""
    consumer: Any = FakeNativeConsumer() if native_consumer is None else native_consumer
    return PulsarRecord(FakeMessage(entry, index), consumer, serial, count)


async def unsubscribed(subscription: object, topic: str | None, size: int) -> FakeConsumer:
    """Subscribe for a receiver that is never stopped."""
    raise AssertionError(topic)


async def unanswered(topic: str, timeout: float) -> None:
    """Wait for an answer to a receiver that has no pattern."""
    raise AssertionError(topic)

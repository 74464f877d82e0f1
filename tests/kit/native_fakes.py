"""Stand-ins for pulsar-client's objects, answering when a test says so, from a thread or inside the call."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import _pulsar
import attrs

OK = _pulsar.Result.Ok


def from_thread(function: Callable[..., object], *arguments: object) -> None:
    """Call from a native-like thread, and wait until the call is over."""
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()


@attrs.define(eq=False)
class FakeMessage:
    """A received message: ledger 1, an entry, an index in a batch of some size, 0 for one that is not told."""

    entry: int = 0
    index: int = -1
    count: int = 0
    words: bytes = b"x"
    size: int = 0
    published: int = 1

    def publish_timestamp(self) -> int:
        return self.published

    def message_id(self) -> Any:
        place = _pulsar.MessageId(-1, 1, self.entry, self.index)
        # Only pulsar-client itself can make an id that knows the size.
        return _pulsar.MessageId.deserialize(place.serialize() + b"\x30" + bytes([self.size])) if self.size else place

    def redelivery_count(self) -> int:
        return self.count

    def data(self) -> bytes:
        return self.words

    def length(self) -> int:
        return len(self.words)

    def has_null_value(self) -> bool:
        return False

    def properties(self) -> dict[str, str]:
        return {}

    def partition_key(self) -> str:
        return ""

    def event_timestamp(self) -> int:
        return 0


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

    def close_async(self, callback: Callable[[Any], None]) -> None:
        """Close at once: an armed receive is answered."""
        self.closed = True
        while self.armed:
            from_thread(self.armed.pop(0), _pulsar.Result.AlreadyClosed, None)
        callback(OK)


@attrs.define(eq=False)
class FakeProducer:
    """A producer that keeps what it gets."""

    sent: list[tuple[Any, Any]] = attrs.field(factory=list)

    def send_async(self, message: Any, callback: Any) -> None:
        self.sent.append((message, callback))

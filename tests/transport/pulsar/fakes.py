"""Stand-ins for pulsar-client's objects: what a module does with them is seen without a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import attrs

from jmsaio.transport.pulsar.native.record import PulsarRecord


@attrs.define(frozen=True, order=True)
class Place:
    """``_pulsar.MessageId``."""

    ledger: int
    entry: int
    index: int = -1

    def ledger_id(self) -> int:
        return self.ledger

    def entry_id(self) -> int:
        return self.entry

    def partition(self) -> int:
        return -1

    def batch_index(self) -> int:
        return self.index


@attrs.define(eq=False)
class FakeMessage:
    """``_pulsar.Message``; counts how often each part was asked for."""

    entry: int = 0
    index: int = -1
    body: bytes = b"body"
    values: dict[str, str] = attrs.field(factory=dict)
    null: bool = False
    key: str = ""
    redelivered: int = 0
    ledger: int = 1
    asked: list[str] = attrs.field(factory=list)

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
        return 12

    def message_id(self) -> Place:
        self.asked.append("message_id")
        return Place(self.ledger, self.entry, self.index)

    def topic_name(self) -> str:
        return "persistent://a/b/told-by-message"

    def length(self) -> int:
        return len(self.body)

    def redelivery_count(self) -> int:
        return self.redelivered


@attrs.define(eq=False)
class FakeConsumer:
    """``_pulsar.Consumer``: notes what was acknowledged."""

    acknowledged: list[Any] = attrs.field(factory=list)

    def acknowledge_async(self, message: Any, callback: object) -> None:
        self.acknowledged.append(message)


@attrs.define(eq=False)
class FakeNativeConsumer:
    """The part of ``NativeConsumer`` that records and unacked need."""

    topic: str | None = "persistent://a/b/c"
    native: FakeConsumer = attrs.field(factory=FakeConsumer)
    serial: int = 0
    rewound: bool = False

    def steps_back(self, message: Any) -> bool:
        return self.rewound

    def is_behind(self, message: Any) -> bool:
        return self.rewound

    def reached(self, message: Any, rewound: bool) -> None:
        self.rewound = rewound


def make_record(
    entry: int = 0, index: int = -1, serial: int = 0, native_consumer: Any = None, count: int = 0
) -> PulsarRecord:
    """A record of a fake message."""
    consumer: Any = FakeNativeConsumer() if native_consumer is None else native_consumer
    return PulsarRecord(FakeMessage(entry, index), consumer, serial, count)


def in_thread(function: Callable[..., object], *arguments: object) -> None:
    """Call a function as pulsar-client does, in a thread of its own; return when it has returned."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function(*arguments)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert raised == []

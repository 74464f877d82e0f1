"""The bare loop: only the objects and the codec work of one message from send to acknowledge.

The difference between this row and ``embedded.through`` is the cost of the embedded broker and the client (windows,
subscriptions, permits, acknowledgement, tasks).
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import jmsaio
from jmsaio.bench.meter import Meter, Metrics
from jmsaio.bench.scenarios.setting import typed_properties
from jmsaio.bench.workload import AMOUNT, Task
from jmsaio.codec import RecordSource, Stamp, decode_with, encode, stamp_sent
from jmsaio.model.destinations import Queue
from jmsaio.model.wire import OutgoingRecord, WireId


class BareRecord:
    """A received record with the content of an outgoing one, as plain as the embedded broker's."""

    __slots__ = ("entry", "event_time", "get", "key", "payload", "properties")

    #: Equal for all records; the codec reads them only for a header.
    publish_time = 0
    redelivery_count = 0
    sequence_id: int | None = None
    producer_name: str | None = None
    schema_version: bytes | None = None
    may_expire = False
    size = 0
    batch_size = 0
    topic = "persistent://public/default/bare"

    def __init__(self, sent: OutgoingRecord, entry: int) -> None:
        self.payload = sent.payload
        self.properties: Mapping[str, str] = sent.properties
        self.get = sent.properties.get
        self.key = sent.key
        self.event_time = sent.event_time
        self.entry = entry

    @property
    def message_id(self) -> WireId:
        """Return a position that counts up."""
        return WireId(0, self.entry)


def stamped(number: int, now: int) -> Stamp:
    """Return a producer's stamp of message ``number`` at ``now`` (ms)."""
    return Stamp(
        message_id=f"ID:00000000-0000-0000-0000-000000000000:1:{number}",
        connection_id="00000000-0000-0000-0000-000000000000",
        timestamp=now,
        event_time=now,
        delivery_time=now,
        deliver_at=None,
        expiration=0,
        priority=4,
        delivery_mode=2,
        sticky_key=None,
        system_namespace="public/default",
    )


def received(number: int, text: str, queue: Queue, now: int) -> BareRecord:
    """Build, stamp and encode message ``number``, as a receiver would receive it."""
    message = jmsaio.TextMessage(text)
    for name, value in typed_properties(number).items():
        message.set_object_property(name, value)
    stamp = stamped(number, now)
    record = encode(message, stamp)
    stamp_sent(message, stamp, queue)
    return BareRecord(record, number)


def bare_loop(task: Task) -> Metrics:
    """Build, stamp, encode, decode and read each message. Raises RuntimeError if a sum is wrong."""
    work = task.workload
    text, queue = work.text, Queue(task.topic)
    source = RecordSource(queue, "public/default")
    total = characters = 0
    with Meter() as meter:
        for number in range(work.messages):
            message = decode_with(received(number, text, queue, time.time_ns() // 1_000_000), source)
            characters += len(message.text or "") if isinstance(message, jmsaio.TextMessage) else 0
            total += message.get_int_property(AMOUNT)
    if total != work.check_sum() or characters != work.messages * work.characters:
        raise RuntimeError(f"sum {total} instead of {work.check_sum()}, {characters} characters")
    return meter.metrics(work.messages)

"""What producers have sent and consumers have received so far, in numbers."""

from __future__ import annotations

import attrs

from jmsaio.model.destinations import Destination
from jmsaio.model.public import created_by, public


@attrs.define(eq=False)
class SendCounts:
    """Counters of one producer, which every send updates; `ProducerStats` has the attributes that mean the same."""

    sent: int = 0
    confirmed: int = 0
    in_doubt: int = 0
    failed: int = 0
    bytes: int = 0
    last_activity: int | None = None

    def add(self, size: int, now: int) -> None:
        """Count a message that was passed to the transport at ``now`` (ms), with a body of ``size`` bytes."""
        self.sent += 1
        self.bytes += size
        self.last_activity = now

    def fail(self, in_doubt: bool) -> None:
        if in_doubt:
            self.in_doubt += 1
        else:
            self.failed += 1


@public
@created_by("producer.stats or connection.stats")
@attrs.frozen(kw_only=True)
class ProducerStats:
    """Counters of one producer since it was created.

    Attributes:
        destination: its destination, or None if each send names one.
        sent: messages passed to the transport.
        confirmed: messages that the broker confirmed.
        in_doubt: messages without an answer of the broker, which might be stored.
        failed: messages that were certainly not stored.
        in_flight: messages whose outcome is not known yet.
        bytes: bytes of the bodies of all sent messages.
        last_activity: time of the last send, in milliseconds since the epoch; None before the first.
    """

    destination: Destination | None
    sent: int
    confirmed: int
    in_doubt: int
    failed: int
    in_flight: int
    bytes: int
    last_activity: int | None


@attrs.define(eq=False)
class ReceiveCounts:
    """Counters of one consumer, updated for each batch; `ConsumerStats` has the attributes that mean the same."""

    received: int = 0
    rejected: int = 0
    acknowledged: int = 0
    redelivered: int = 0
    reconnects: int = 0
    bytes: int = 0
    last_activity: int | None = None

    def add(self, received: int, bytes: int, now: int) -> None:
        self.received += received
        self.bytes += bytes
        self.last_activity = now


@public
@created_by("consumer.stats or connection.stats")
@attrs.frozen(kw_only=True)
class ConsumerStats:
    """Counters of one consumer since it was created.

    Attributes:
        destination: its destination.
        subscription: the name of its subscription at the broker.
        received: messages received from the broker, including repetitions.
        rejected: messages that selector, noLocal or expiration excluded.
        acknowledged: messages acknowledged for the application.
        redelivered: messages that the application received and returned, by recover, rollback or a failed listener.
        reconnects: how often its subscription, or the connection to the broker, was lost and restored.
        buffered: messages that wait for the application.
        in_flight: messages delivered to the application and not settled.
        bytes: approximate bytes that all received messages occupied.
        last_activity: when messages last arrived, in milliseconds since the epoch; None before the first.
    """

    destination: Destination
    subscription: str
    received: int
    rejected: int
    acknowledged: int
    redelivered: int
    reconnects: int
    buffered: int
    in_flight: int
    bytes: int
    last_activity: int | None

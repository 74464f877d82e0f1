"""What a consumer has received so far, in numbers."""

from __future__ import annotations

import attrs

from jmsaio.model.destinations import Destination
from jmsaio.model.public import created_by, public


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

"""A broker without an event loop, for tests of its core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jmsaio.config import ConsumerConfig
from jmsaio.errors import JMSError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import StartPosition, SubscriptionType
from jmsaio.transport.clock import ManualClock
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.consumer import Consumer
from jmsaio.transport.memory.broker.partition import Partition, StoredRecord, weigh
from jmsaio.transport.memory.broker.subscription import BrokerSubscription

TOPIC = "persistent://public/default/t"
START = 1_000_000.0
#: What each consumer of a bench belongs to.
SUBSCRIPTIONS: dict[Consumer, BrokerSubscription] = {}


class FakePort:
    """A receiver's end that only notes what happens."""

    def __init__(self) -> None:
        self.armed = True
        self.notified = 0
        self.reasons: list[JMSError | None] = []
        self.reconnected = 0

    def notify(self) -> None:
        self.armed = False
        self.notified += 1

    def reconnect(self) -> None:
        self.reconnected += 1

    def end(self, reason: JMSError | None) -> None:
        self.reasons.append(reason)


class Bench:
    """One topic of a broker whose time stands still at ``START``."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.broker = Broker("bench", self.clock)
        self.log: Partition = self.broker.open(TOPIC)[0]

    def subscribe(self, name: str = "s", position: StartPosition = StartPosition.EARLIEST) -> BrokerSubscription:
        return self.broker.subscribe(self.log, name, True, position)

    def join(
        self,
        subscription: BrokerSubscription,
        type_: SubscriptionType = SubscriptionType.SHARED,
        size: int = 1000,
        **config: Any,
    ) -> Consumer:
        consumer = subscription.join(FakePort(), type_, ConsumerConfig(receiver_queue_size=size, **config), size, {})
        SUBSCRIPTIONS[consumer] = subscription
        return consumer

    def send(self, *texts: str, **fields: Any) -> None:
        for text in texts:
            outgoing = OutgoingRecord(text.encode(), {}, **fields)
            self.log.append(outgoing, weigh(outgoing), 0, self.clock.now())


def acknowledge(consumer: Consumer, records: Sequence[StoredRecord]) -> None:
    """A consumer acknowledges records."""
    SUBSCRIPTIONS[consumer].acknowledge(consumer, records)

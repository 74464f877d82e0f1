"""A separate embedded broker for a test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from jmsaio.errors import NotFoundError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import full_name
from jmsaio.testing.faults import FaultScript
from jmsaio.transport.clock import Clock
from jmsaio.transport.memory.broker.broker import Broker, broker_named, forget_broker
from jmsaio.transport.memory.broker.subscription import subscriptions_named, subscriptions_of


class EmbeddedBroker:
    """An embedded broker as seen by a test. Created by ``embedded_broker``. Its calls are synchronous and immediate.

    Topics have full names (``persistent://tenant/namespace/name``) or short names (in ``public/default``).

    Attributes:
        url: URL for ``jmsaio.connect``.
        faults: script of faults.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.url: str = f"memory://{broker.name}"
        self.faults: FaultScript = FaultScript(broker)

    def __repr__(self) -> str:
        state = "down" if self._broker.down else f"{len(self._broker.logs)} topics, {self.used} bytes"
        return f"<EmbeddedBroker {self.url}, {state}>"

    @property
    def used(self) -> int:
        """Bytes of the stored messages."""
        return self._broker.used

    def topics(self) -> list[str]:
        """Return the full names of its topics and of each partition, sorted."""
        with self._broker.lock:
            return sorted(self._broker.logs)

    def create_topic(self, topic: str, partitions: int = 0) -> bool:
        """Create a topic, optionally with partitions; return False if it exists."""
        with self._broker.lock:
            return self._broker.create(full_name(topic), partitions)

    def deduplicate(self) -> None:
        """Discard messages whose sequence id a producer of the same name has already sent to the topic.

        Pulsar does this with ``brokerDeduplicationEnabled=true``. Receipts of discarded messages have a true
        ``place.duplicate``. Messages of transactions are always stored.
        """
        with self._broker.lock:
            self._broker.deduplicates = True
            self._broker.update_disturbed()

    def subscriptions(self, topic: str) -> list[str]:
        """Return the names of a topic's subscriptions, sorted. Raises NotFoundError for an unknown topic."""
        with self._broker.lock:
            return sorted({name for log in self._broker.find(full_name(topic)) for name in subscriptions_of(log)})

    def backlog(self, topic: str, subscription: str = "jms-queue") -> int:
        """Return the number of unacknowledged messages of a subscription, over all partitions.

        Args:
            topic: name of the topic.
            subscription: Pulsar name of the subscription; default: that of a JMS queue.

        Raises:
            NotFoundError: the topic or subscription does not exist.
        """
        with self._broker.lock:
            found = subscriptions_named(subscription, self._broker.find(full_name(topic)))
            if not found:
                raise NotFoundError(f"topic {topic} has no subscription {shown(subscription)}")
            return sum(part.size for part in found)


@contextmanager
def embedded_broker(name: str | None = None, *, clock: Clock | None = None) -> Iterator[EmbeddedBroker]:
    """Create an empty embedded broker, discarded at the end of the ``with`` block.

    Args:
        name: name of the broker, as in ``memory://name``; default: a unique one.
        clock: clock of the broker; default: that of its clients' event loop. With a ``ManualClock``, nothing that
            depends on time happens in the broker or its clients (delayed delivery, redelivery after a delay, expiry,
            the time-out of ``receive``, retries) until the test advances it. Limits that prevent hanging, such as
            ``close_timeout``, use the event loop's time.
    """
    name = f"test-{uuid.uuid4().hex}" if name is None else name
    forget_broker(name)
    broker = broker_named(name, lambda name: Broker(name, clock))
    try:
        yield EmbeddedBroker(broker)
    finally:
        forget_broker(name)

"""A separate embedded broker for a test, and the script of its faults."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from jmsaio.errors import JMSError, NotFoundError, SendError, SendInDoubtError
from jmsaio.model import durations
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import full_name
from jmsaio.transport.clock import Clock
from jmsaio.transport.memory.broker.broker import Broker, SendFault, broker_named, forget_broker
from jmsaio.transport.memory.broker.subscription import subscriptions_named, subscriptions_of


class FaultScript:
    """Faults of one embedded broker; each happens once, in the order of the calls.

    Topics have full or short names; None stands for any topic.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def fail_sends(self, times: int = 1, *, topic: str | None = None, error: JMSError | None = None) -> None:
        """Reject the next messages without storing them; the sender receives ``error`` (default: a SendError)."""
        failure = error if error is not None else SendError("the message was not stored (scripted fault)")
        self._add(times, SendFault(_name(topic), failure))

    def lose_answers(self, times: int = 1, *, topic: str | None = None) -> None:
        """Store the next messages, but lose the answers: the sender receives SendInDoubtError."""
        failure = SendInDoubtError("the broker's answer was lost (scripted fault); the message might be stored")
        self._add(times, SendFault(_name(topic), failure, stored=True))

    def delay_answers(self, seconds: float, times: int = 1, *, topic: str | None = None) -> None:
        """Store the next messages at once, but delay the sender's answer by ``seconds``."""
        self._add(times, SendFault(_name(topic), stored=True, delay=durations.seconds(seconds, "seconds")))

    def _add(self, times: int, fault: SendFault) -> None:
        with self._broker.lock:
            self._broker.faults.sends.extend([fault] * times)
            self._broker.update_disturbed()

    def lose_acknowledgements(self, times: int = 1) -> None:
        """Lose the next acknowledgements.

        Their messages are redelivered once their consumer is closed or dropped, or its ack timeout expires.
        """
        with self._broker.lock:
            self._broker.faults.lost_acknowledgements += times

    def lose_commits(self, times: int = 1) -> None:
        """Commit the next transactions, but lose the answers: the session receives TransactionInDoubtError.

        Applies to sessions with transactions of the broker (``enableTransaction``).
        """
        with self._broker.lock:
            self._broker.faults.lost_commits += times

    def drop_consumers(self, topic: str, subscription: str = "jms-queue", *, error: JMSError | None = None) -> int:
        """Disconnect the consumers of a subscription; unacknowledged messages are redelivered.

        Args:
            topic: name of the topic.
            subscription: Pulsar name of the subscription; default: the one of a JMS queue.
            error: error that ends the consumers; default: they reconnect at once, as over a real network.

        Returns:
            Number of consumers disconnected.

        Raises:
            NotFoundError: the topic does not exist.
        """
        with self._broker.lock:
            parts = subscriptions_named(subscription, self._broker.find(full_name(topic)))
            joined = [(part, consumer) for part in parts for consumer in part.consumers]
            for part, consumer in joined:
                part.remove(consumer, keep=error is None)
                if error is not None:
                    consumer.port.end(error)
            if error is None:
                for _, consumer in joined:
                    consumer.port.reconnect()
            return len(joined)

    def take_down(self) -> None:
        """Make the broker unreachable.

        Connecting fails, sends wait, nothing is delivered, open transactions end, and unacknowledged messages will be
        redelivered.
        """
        with self._broker.lock:
            self._broker.take_down()

    def bring_up(self) -> None:
        """Make the broker reachable again; everything it stored is still there."""
        with self._broker.lock:
            self._broker.bring_up()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Make the broker unreachable inside the ``with`` block."""
        self.take_down()
        try:
            yield
        finally:
            self.bring_up()


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
            subscription: Pulsar name of the subscription; default: the one of a JMS queue.

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
        clock: clock of the broker; default: the clock of its clients' event loop. With a ``ManualClock``, nothing that
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


def _name(topic: str | None) -> str | None:
    return None if topic is None else full_name(topic)

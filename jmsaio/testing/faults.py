"""The fault script of an embedded broker; each fault happens once, in the order of the calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jmsaio.errors import JMSError, SendError, SendInDoubtError
from jmsaio.model import durations
from jmsaio.model.destinations import full_name
from jmsaio.transport.memory.broker.broker import Broker, SendFault
from jmsaio.transport.memory.broker.subscription import subscriptions_named


class FaultScript:
    """Faults of one embedded broker. Topics have full or short names; None stands for any topic."""

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
            subscription: Pulsar name of the subscription; default: that of a JMS queue.
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


def _name(topic: str | None) -> str | None:
    return None if topic is None else full_name(topic)

"""The fault script: what goes wrong in an embedded broker, in the order of the calls, each fault once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jmsaio.errors import JMSError, SendError, SendInDoubtError
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.faults import SendFault
from jmsaio.transport.memory.broker.names import full_name
from jmsaio.transport.memory.broker.subscription import subscriptions_named


class FaultScript:
    """Faults of one embedded broker. Topics have full or short names; None is any topic."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def fail_sends(self, times: int = 1, *, topic: str | None = None, error: JMSError | None = None) -> None:
        """The next messages are not stored; the sender gets ``error`` (default: a SendError)."""
        failure = error if error is not None else SendError("the message was not stored (scripted fault)")
        self._add(times, SendFault(_name(topic), failure))

    def lose_answers(self, times: int = 1, *, topic: str | None = None) -> None:
        """The next messages are stored, but the sender gets no answer: SendInDoubtError."""
        failure = SendInDoubtError("the broker's answer was lost (scripted fault); the message may be stored")
        self._add(times, SendFault(_name(topic), failure, stored=True))

    def delay_answers(self, seconds: float, times: int = 1, *, topic: str | None = None) -> None:
        """The next messages are stored at once, and the sender gets its answer after ``seconds``."""
        self._add(times, SendFault(_name(topic), stored=True, delay=seconds))

    def _add(self, times: int, fault: SendFault) -> None:
        with self._broker.lock:
            self._broker.faults.sends.extend([fault] * times)
            self._broker.update_disturbed()

    def lose_acknowledgements(self, times: int = 1) -> None:
        """The broker loses the next acknowledgements: their messages are redelivered once their consumer is closed,
        is dropped, or its ack timeout is over."""
        with self._broker.lock:
            self._broker.faults.lost_acknowledgements += times

    def lose_commits(self, times: int = 1) -> None:
        """The next transactions are committed, but the session gets no answer: TransactionInDoubtError.

        For sessions whose transactions the broker keeps, that is without ``jms.emulateTransactions``.
        """
        with self._broker.lock:
            self._broker.faults.lost_commits += times

    def drop_consumers(self, topic: str, subscription: str = "jms-queue", *, error: JMSError | None = None) -> int:
        """The consumers of a subscription lose their connection; unacknowledged messages are redelivered.

        Args:
            topic: name of the topic.
            subscription: Pulsar name of the subscription; default: the one of a JMS queue.
            error: what ends the consumers; default: they connect again at once, as over a real network.

        Returns:
            How many consumers there were.

        Raises:
            NotFoundError: the topic does not exist.
        """
        with self._broker.lock:
            parts = subscriptions_named(subscription, self._broker.find(full_name(topic)))
            joined = [(part, consumer) for part in parts for consumer in part.consumers]
            for part, consumer in joined:
                part.leave(consumer, keep=error is None)
                if error is not None:
                    consumer.port.end(error)
            if error is None:
                for _, consumer in joined:
                    consumer.port.reconnect()
            return len(joined)

    def take_down(self) -> None:
        """The broker can't be reached: connecting fails, sends wait, nothing is delivered, open transactions end,
        and unacknowledged messages will be redelivered."""
        with self._broker.lock:
            self._broker.take_down()

    def bring_up(self) -> None:
        """The broker can be reached again, with all that it had stored."""
        with self._broker.lock:
            self._broker.bring_up()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """The broker can't be reached inside the ``with`` block."""
        self.take_down()
        try:
            yield
        finally:
            self.bring_up()


def _name(topic: str | None) -> str | None:
    return None if topic is None else full_name(topic)

"""What the parts of the embedded broker ask of those above them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from jmsaio.errors import JMSError
from jmsaio.transport.clock import Timers
from jmsaio.transport.memory.broker.record import StoredRecord


class Services(Protocol):
    """What a broker does for its partitions and their subscriptions; see the attributes of ``Broker``."""

    timers: Timers
    steady: Callable[[], float]
    used: int
    filters: bool

    def steady_at(self, time: float) -> float:
        """The steady time of a moment, which is given in seconds since the epoch."""

    def next_number(self) -> int:
        """A number that this broker never gave before."""

    def dead_letter(
        self, record: StoredRecord, topic: str, subscription: str | None, properties: Mapping[str, str] | None = None
    ) -> None:
        """Put a copy of ``record`` on a topic of dead letters; ``properties`` replace its own."""


class Port(Protocol):
    """A receiver's or reader's end towards its event loop.

    Attributes:
        armed: it found nothing and wants to be notified.
    """

    armed: bool

    def notify(self) -> None:
        """Something is there: disarm, and tell the application soon."""

    def reconnect(self) -> None:
        """The connection was lost and is there again: join what is still wanted."""

    def end(self, reason: JMSError | None) -> None:
        """The topic or subscription is gone; the application gets ``reason``, if there is one."""


class Owner(Protocol):
    """A sender as a log knows it."""

    def topic_ended(self, error: JMSError) -> None:
        """The topic is gone, or takes no more: what is sent from now on fails with ``error``."""


class Listener(Protocol):
    """What a log gives each new record to: a subscription or a reader."""

    def publish(self, record: StoredRecord, due: float | None) -> None:
        """Take a new record, not to be delivered before ``due``, in steady time."""

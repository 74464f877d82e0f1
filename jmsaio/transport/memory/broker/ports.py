"""Interfaces through which the parts of the embedded broker call those above them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from jmsaio.errors import JMSError
from jmsaio.transport.clock import Timers
from jmsaio.transport.memory.broker.record import StoredRecord


class Services(Protocol):
    """Services of a broker for its partitions and their subscriptions; see the attributes of ``Broker``."""

    timers: Timers
    steady: Callable[[], float]
    used: int
    filters: bool

    def steady_at(self, time: float) -> float:
        """Return the steady time of a moment given in seconds since the epoch."""

    def next_number(self) -> int:
        """Return a number never used before by this broker."""

    def dead_letter(
        self, record: StoredRecord, topic: str, subscription: str | None, properties: Mapping[str, str] | None = None
    ) -> None:
        """Store a copy of ``record`` in a dead-letter topic; ``properties`` replace its own."""


class Port(Protocol):
    """The broker's connection to a receiver or reader.

    Attributes:
        armed: whether it found nothing and is to be notified.
    """

    armed: bool

    def notify(self) -> None:
        """Disarm, and wake the application soon: records are available."""

    def reconnect(self) -> None:
        """Join the remaining subscriptions again after the connection was lost and restored."""

    def end(self, reason: JMSError | None) -> None:
        """Handle the deletion of the topic or subscription; the application receives ``reason``, if there is one."""


class SenderPort(Protocol):
    """A sender as used by a log."""

    def topic_ended(self, error: JMSError) -> None:
        """Handle the deletion or termination of the topic: later sends fail with ``error``."""


class LogListener(Protocol):
    """Recipient of each new record of a log: a subscription or a reader."""

    def publish(self, record: StoredRecord, due: float | None) -> None:
        """Receive a new record, not to be delivered before ``due``, in steady time."""

"""``Tracing``: what a connection calls with each message, so that it can be traced; see ``jmsaio.otel``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from jmsaio.model.destinations import Destination
from jmsaio.model.messages.message import Message
from jmsaio.model.wire import ReceivedRecord


class SendTrace(Protocol):
    """One send; ``context`` are string properties that the message carries in addition to its own."""

    context: Mapping[str, str]

    def sent(self, message_id: str | None) -> None:
        """Record that the broker confirmed the message."""

    def failed(self, error: BaseException) -> None:
        """Record that the message was not sent, or that its outcome is unknown."""


class EndpointTrace(Protocol):
    """The messages of one destination, or of one consumer.

    No method waits. What one raises is logged, except by ``sending``, whose caller receives it, and by ``processing``,
    where it counts as an error of the block.
    """

    def sending(self, message: Message) -> SendTrace:
        """Record that a send has begun."""

    def receiving(self) -> Callable[[Message], None]:
        """Record that a receive has begun; the result is called with its message, if it gets one."""

    def processing(self, message: Message, pushed: bool = False) -> AbstractContextManager[None]:
        """Return a context that surrounds the handling of a message by a listener (``pushed``) or block."""

    def settled(self, operation: str, records: Sequence[ReceivedRecord]) -> None:
        """Record that messages were acknowledged (``ack``) or returned for redelivery (``nack``)."""


class Tracing(Protocol):
    """Traces the messages of a connection."""

    def at(self, destination: Destination, server: str, subscription: str | None = None) -> EndpointTrace:
        """Return the trace of a destination at a broker, named by its URL; with ``subscription`` of a consumer."""

"""``Admin``: the administration of a broker, a part of the seam. ``jmsaio.transport.base`` exports all its names."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Protocol

import attrs

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.partitions import split_partition
from jmsaio.model.schema import Schema
from jmsaio.model.wire import WireId


class Position(enum.Enum):
    """Where a new subscription, a seek or a reader starts."""

    EARLIEST = "earliest"
    LATEST = "latest"


@attrs.frozen
class Cursor:
    """How far a subscription is acknowledged.

    Attributes:
        mark_delete: everything up to here (inclusive) is acknowledged; None before the first entry.
        deleted: closed ranges of ids (ledger, entry) acknowledged behind it.
        last: last entry of the topic when the cursor was asked for; None where there was none.
    """

    mark_delete: WireId | None
    deleted: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()
    last: WireId | None = None

    def is_acknowledged(self, place: WireId) -> bool:
        """True when the whole entry at ``place`` is acknowledged."""
        entry = (place.ledger, place.entry)
        if self.mark_delete is not None and entry <= (self.mark_delete.ledger, self.mark_delete.entry):
            return True
        return any(first <= entry <= last for first, last in self.deleted)

    def is_newer(self, place: WireId) -> bool:
        """True when the entry at ``place`` was stored after the cursor was asked for."""
        return self.last is not None and (place.ledger, place.entry) > (self.last.ledger, self.last.entry)


@attrs.frozen
class Ledger:
    """Consecutive entries of a topic, numbered from 0.

    Attributes:
        id: number that no other ledger has; ``WireId.ledger`` of what it holds.
        entries: how many were written to it, so that the last one is ``entries - 1``; a batch is one.
        bytes: bytes that it holds; 0 where none of its entries is kept.
    """

    id: int
    entries: int
    bytes: int


@attrs.frozen
class TopicLog:
    """What a topic without partitions, or one partition, stores.

    Attributes:
        ledgers: oldest first; the last one may be open.
        last: the last entry; None where there is none. It has no index in a batch.
        last_readable: the last entry that is given to readers now: what is behind it belongs to a transaction that is
            open, or waits for one. None where there is none, and where it is not known.
        is_readable_known: False where the broker doesn't tell ``last_readable``. It never does without the right to ask
            for it: ask ``Transport.end`` then. For a moment it doesn't after it has loaded the topic.
        deduplication: the broker drops what a producer sends again under the same sequence id.
        kept_after: the last entry that the slowest durable subscription has acknowledged: every entry that was ever
            written behind it is still stored. None where that is not known.
    """

    ledgers: tuple[Ledger, ...]
    last: WireId | None
    last_readable: WireId | None
    is_readable_known: bool
    deduplication: bool
    kept_after: WireId | None = None


@attrs.frozen
class SubscriptionStats:
    """One subscription in a topic's statistics; Pulsar counts a batch as one in ``backlog``.

    ``active_consumer``: name of the only consumer that gets messages, None if it is not known or not the only one's.
    """

    name: str
    type: str
    backlog: int
    consumers: int
    properties: Mapping[str, str] = attrs.field(factory=dict)
    active_consumer: str | None = None


@attrs.frozen
class TopicStats:
    """A topic's statistics: connected producers and its subscriptions by name."""

    producers: int
    subscriptions: Mapping[str, SubscriptionStats]


class Admin(Protocol):
    """The broker's administration. Unknown topics and subscriptions raise NotFoundError."""

    @property
    def address(self) -> str:
        """Whom it asks, as a URL."""

    async def partitions(self, topic: str) -> int:
        """Number of partitions, 0 for a topic without. Raises NotFoundError if the topic does not exist."""

    async def create_topic(self, topic: str, partitions: int = 0) -> bool:
        """Create a topic; False if it exists."""

    async def delete_topic(self, topic: str, force: bool = False) -> None:
        """Delete a topic with its subscriptions; ``force`` also with connected clients."""

    async def terminate_topic(self, topic: str) -> None:
        """Let a topic take no more records: its senders fail from now on, and are no clients of it any more."""

    async def topics(self, namespace: str) -> list[str]:
        """Full names of the topics of ``tenant/namespace``, partitions listed one by one."""

    async def stats(self, topic: str) -> TopicStats:
        """Statistics of a topic (all partitions together)."""

    async def backlog(self, topic: str, subscription: str) -> int:
        """Messages kept for a subscription, those in batches one by one; a broker may give up counting large ones."""

    async def cursor(self, topic: str, subscription: str) -> Cursor:
        """How far a subscription of an unpartitioned topic (or of one partition) is acknowledged."""

    async def log(self, topic: str) -> TopicLog:
        """What a topic without partitions, or one partition, stores.

        Raises:
            InvalidDestinationError: the topic has partitions, ask for them one by one; or it is not persistent.
            NotFoundError: no such topic.
            JMSSecurityError: no right to see its statistics.
            AdminError: the broker failed.

        Cancelling changes nothing.
        """

    async def ledgers(self, topic: str) -> tuple[Ledger, ...]:
        """The ledgers of a topic without partitions, or of one partition, oldest first: those of its log, in one call.

        Raises:
            As ``log``.

        Cancelling changes nothing.
        """

    async def entry_filters(self, topic: str) -> frozenset[str]:
        """Names of the filters that the broker applies to what it sends to consumers of a topic.

        Raises:
            NotFoundError: no such topic.
            JMSSecurityError: no right to see it, which only an administrator of the tenant has.
            AdminError: the broker failed.
        """

    async def schemas(self, topic: str) -> list[Schema]:
        """All versions of the schema of a topic (with its partitions), oldest first; none without a schema.

        Raises:
            JMSSecurityError: no right to read them.
            AdminError: the broker failed.
        """

    async def schema(self, topic: str, version: int) -> Schema:
        """A version of the schema of a topic (with its partitions, if it has any).

        Raises:
            NotFoundError: no such schema.
            JMSSecurityError: no right to read it.
            AdminError: the broker failed.
        """

    async def is_incomplete(self, topic: str, place: WireId) -> bool:
        """True for an entry that holds a chunk of a message, and not its last one: no reader gets it by itself.

        Args:
            topic: full name of a topic without partitions, or of one partition.
            place: the entry; its index in a batch is not looked at.

        Raises:
            NotFoundError: no such topic.
            AdminError: no such entry (any more), or the broker failed.
        """

    async def is_last_chunk(self, topic: str, place: WireId) -> bool:
        """True for an entry that holds the last of several chunks: a reader that begins behind the first gets none.

        Args:
            topic: full name of a topic without partitions, or of one partition.
            place: the entry; its index in a batch is not looked at.

        Raises:
            As ``is_incomplete``.
        """

    async def advance(self, topic: str, subscription: str, place: WireId) -> None:
        """Acknowledge everything up to and including the entry at ``place``, whoever has it.

        The cursor moves forward only: it stays where ``place`` lies before it. It moves on every subscription type,
        with or without consumers; records that a consumer already has may still reach its application. A batch is one
        entry and is acknowledged as a whole. When the call returns, the cursor has moved.

        Args:
            topic: full name of a topic without partitions, or of one partition.
            subscription: name of the subscription.
            place: the last entry to be acknowledged; its index in a batch is not looked at.

        Raises:
            AdminError: status 409, ``place`` is after the topic's last entry, and nothing has moved. With another
                status the broker failed, and the cursor may have moved.
            IllegalArgumentError: ``place`` is of another partition.
            InvalidDestinationError: the topic has partitions: advance them one by one.
            NotFoundError: no such topic or subscription.
            JMSSecurityError: no right to do this.

        Cancelling leaves the cursor where it was, or at ``place``; the call can be repeated.
        """

    async def create_subscription(self, topic: str, name: str, position: Position) -> bool:
        """Create a subscription (and a missing topic); False if it exists."""

    async def delete_subscription(self, topic: str, name: str, force: bool = False) -> None:
        """Delete a subscription with its backlog; ``force`` also with connected consumers."""

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        """The properties of a subscription."""

    async def set_subscription_properties(self, topic: str, name: str, properties: Mapping[str, str]) -> None:
        """Replace the properties of a subscription."""


def check_partition(topic: str, place: WireId) -> None:
    """Refuse a place of another partition than ``topic``; a place without a partition is of any.

    Raises:
        IllegalArgumentError: it is of another one.
    """
    index = split_partition(topic)[1]
    if place.partition not in (-1, index):
        raise IllegalArgumentError(f"place {place} is of partition {place.partition}, not of {topic}")

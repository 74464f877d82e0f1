"""``Admin``: the administration of a broker. ``jmsaio.transport.base`` exports all names of this module."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Protocol

import attrs

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import EntryId, WireId


class StartPosition(enum.Enum):
    """Start of a new subscription, a seek or a reader."""

    EARLIEST = "earliest"
    LATEST = "latest"


@attrs.frozen
class Cursor:
    """Acknowledged part of a subscription: everything up to and including ``mark_delete``, None before the first entry.

    ``deleted`` has closed ranges acknowledged after it; ``last`` is the topic's last entry at the time of the request.
    """

    mark_delete: WireId | None
    deleted: tuple[tuple[EntryId, EntryId], ...] = ()
    last: WireId | None = None

    def is_acknowledged(self, message_id: WireId) -> bool:
        """Return whether the whole entry at ``message_id`` is acknowledged."""
        entry = (message_id.ledger, message_id.entry)
        if self.mark_delete is not None and entry <= (self.mark_delete.ledger, self.mark_delete.entry):
            return True
        return any(first <= entry <= last for first, last in self.deleted)

    def is_newer(self, message_id: WireId) -> bool:
        """Return whether the entry at ``message_id`` was stored after the cursor was requested."""
        return self.last is not None and (message_id.ledger, message_id.entry) > (self.last.ledger, self.last.entry)


@attrs.frozen
class Ledger:
    """Consecutive entries of a topic, numbered from 0; a batch is one entry.

    ``id`` is unique in the cluster (``WireId.ledger``), ``entries`` were written, ``bytes`` are 0 if none is kept.
    """

    id: int
    entries: int
    bytes: int


@attrs.frozen
class TopicLog:
    """Storage of a topic without partitions, or of one partition.

    Attributes:
        ledgers: oldest first; the last one can be open.
        last: the last entry, without an index in a batch; None if there is none.
        last_readable: the last entry that readers receive now: later ones belong to an open transaction or wait for
            one. None if there is none or it is not known.
        is_readable_known: False for a moment after loading the topic, and without the permission to read
            ``last_readable``; use ``Transport.end`` then.
        deduplication: whether the broker drops records that a producer sends again with the same sequence id.
        kept_after: last entry acknowledged by the slowest durable subscription, if known; all later ones are stored.
    """

    ledgers: tuple[Ledger, ...]
    last: WireId | None
    last_readable: WireId | None
    is_readable_known: bool
    deduplication: bool
    kept_after: WireId | None = None


@attrs.frozen
class StoredEntry:
    """A stored entry of a topic, published at a time in ms since the epoch; of a batch, that of its first message.

    ``chunks_left``: number of the following chunks, None if it is not one of several. ``hidden``: it is a marker, or of
    an aborted transaction: no reader receives it. ``transaction``: most and least significant bits of its transaction.
    """

    publish_time: int
    chunks_left: int | None = None
    hidden: bool = False
    transaction: tuple[int, int] | None = None

    @property
    def is_message(self) -> bool:
        """Whether it is a message or a batch: readers receive it, unless compaction or a filter leaves it out."""
        return not self.hidden and self.chunks_left is None


@attrs.frozen(kw_only=True)
class OpenTransaction:
    """An open transaction that holds a topic back: what is sent after its first message waits until it ends.

    ``id`` has its most and its least significant bits. In ms since the epoch, its first message in the topic was
    published ``since``, and the broker rolls it back when it ``ends``; None if that is not known. ``owner``: role of
    its client, if the broker reports it. ``is_known`` is False if its coordinator does not know it: a message was sent
    after its end, or no client has used that coordinator since its broker started.
    """

    id: tuple[int, int]
    since: int
    ends: int | None = None
    owner: str | None = None
    is_known: bool = True


@attrs.frozen(kw_only=True)
class ConnectedConsumer:
    """Statistics of one connected consumer; ``address`` is that of its client.

    Pulsar counts ``unacknowledged`` messages on shared subscriptions only. ``last_acknowledged``, or connected without
    an acknowledgement, is in ms since the epoch. ``blocked``: the broker sends nothing more until it acknowledges.
    ``selector`` is the beginning of its selector, if its client reports it.
    """

    name: str
    address: str = ""
    unacknowledged: int = 0
    last_acknowledged: int | None = None
    blocked: bool = False
    selector: str | None = None


@attrs.frozen
class SubscriptionStats:
    """Statistics of one subscription; Pulsar counts a batch as one in ``backlog``.

    ``type`` is in Pulsar's terms. ``active_consumer`` is the only one that receives messages. With several partitions,
    consumers of one index are combined in ``connected``. ``delayed`` messages wait for their delivery time.
    ``rate`` and ``redelivery_rate`` are messages sent to consumers, and again, per second; None if not reported.
    """

    name: str
    type: str
    backlog: int
    consumers: int
    properties: Mapping[str, str] = attrs.field(factory=dict)
    active_consumer: str | None = None
    connected: tuple[ConnectedConsumer, ...] = ()
    delayed: int = 0
    rate: float | None = None
    redelivery_rate: float | None = None

    @property
    def unacknowledged(self) -> int:
        """Number of messages that connected consumers hold."""
        return sum(one.unacknowledged for one in self.connected)


@attrs.frozen
class TopicStats:
    """Statistics of a topic; ``rate`` is messages received per second, None if the broker does not report it."""

    producers: int
    subscriptions: Mapping[str, SubscriptionStats]
    rate: float | None = None


@attrs.frozen
class SubscriptionActivity:
    """Number of connected consumers of a subscription, and its last activity in ms since the epoch; None if unknown."""

    consumers: int
    last: int | None


@attrs.frozen
class Activity:
    """Activity of a topic without partitions, or of one partition; times are in ms since the epoch.

    ``last`` is that of the topic itself (created, loaded, message sent), None if unknown; ``now`` is the broker's.
    """

    producers: int
    last: int | None
    now: int
    subscriptions: Mapping[str, SubscriptionActivity]

    @property
    def clients(self) -> int:
        """Number of connected producers and consumers."""
        return self.producers + sum(one.consumers for one in self.subscriptions.values())

    @property
    def last_of_all(self) -> int | None:
        """Last activity of the topic and its subscriptions; None if unknown for one of them."""
        return latest([self.last, *(one.last for one in self.subscriptions.values())])


def latest(times: list[int | None]) -> int | None:
    """Return the latest of ``times``; None if one is unknown."""
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


class Browsable(Protocol):
    """What a browser needs to know of the broker. Unknown topics and subscriptions raise NotFoundError."""

    async def partitions(self, topic: str) -> int:
        """Return the number of partitions, 0 for a topic without. Raises NotFoundError if the topic does not exist."""

    async def topics(self, namespace: str) -> list[str]:
        """Return the full names of the topics of ``tenant/namespace``, with partitions listed one by one."""

    async def cursor(self, topic: str, subscription: str) -> Cursor:
        """Return the acknowledged part of a subscription of a topic without partitions, or of one partition."""


class Admin(Browsable, Protocol):
    """Administration of the broker. Unknown topics and subscriptions raise NotFoundError.

    Other refusals and failures of the broker are JMSSecurityError, without the required permission, and AdminError.
    Cancelling a call that only reads changes nothing.
    """

    @property
    def address(self) -> str:
        """URL of the administration interface."""

    async def create_topic(self, topic: str, partitions: int = 0) -> bool:
        """Create a topic; return False if it exists."""

    async def delete_topic(self, topic: str, force: bool = False) -> None:
        """Delete a topic with its subscriptions, with ``force`` even if clients are connected."""

    async def terminate_topic(self, topic: str) -> None:
        """Terminate a topic: its senders fail from now on and no longer count as its clients."""

    async def stats(self, topic: str) -> TopicStats:
        """Return the statistics of a topic, over all partitions."""

    async def subscriptions(self, topic: str) -> list[str]:
        """Return the names of a topic's subscriptions."""

    async def activity(self, topic: str) -> Activity:
        """Return the activity of a topic without partitions, or of one partition."""

    async def backlog(self, topic: str, subscription: str) -> int:
        """Count the messages kept for a subscription, including those in batches; a broker might limit the count."""

    async def log(self, topic: str) -> TopicLog:
        """Return the storage of a topic without partitions, or of one partition.

        Raises InvalidDestinationError: the topic has partitions (request them one by one) or is not persistent.
        """

    async def held_back(self, topic: str) -> OpenTransaction | None:
        """Return the open transaction that holds back a topic without partitions, or one partition, as ``log``.

        None without one, or if the rights to read that are missing.
        """

    async def ledgers(self, topic: str) -> tuple[Ledger, ...]:
        """Return the ledgers of a topic without partitions, or of one partition, oldest first; one call, as ``log``."""

    async def entry_filters(self, topic: str) -> frozenset[str]:
        """Return the names of the entry filters that the broker applies to messages for consumers of a topic.

        Only an administrator of the tenant has the permission to read them.
        """

    async def schemas(self, topic: str) -> list[Schema]:
        """Return all versions of a topic's schema (shared by its partitions), oldest first; empty without a schema."""

    async def schema(self, topic: str, version: int) -> Schema:
        """Return a version of a topic's schema (shared by its partitions); NotFoundError if there is none."""

    async def entry(self, topic: str, message_id: WireId) -> StoredEntry:
        """Return what is known of a stored entry; the index of ``message_id`` in a batch is ignored.

        Raises AdminError: the entry does not exist (any more).
        """

    async def first_since(self, topic: str, time: int) -> WireId:
        """Return the id of the first entry published at ``time`` (in ms since the epoch) or later.

        It is the one after the last entry if there is none. For a topic without partitions, or one partition.
        """

    async def advance(self, topic: str, subscription: str, message_id: WireId) -> None:
        """Acknowledge everything up to and including the entry at ``message_id``, including records held by consumers.

        The cursor only moves forward, and has moved when the call returns. Every subscription type is supported;
        records already sent to a consumer can still reach its application. An index in a batch is ignored: it is
        acknowledged whole.

        Raises:
            AdminError: with status 409, ``message_id`` is after the topic's last entry, and nothing has changed. With
                another status, as after a cancellation, the cursor might have moved; the call can be repeated.
            IllegalArgumentError: ``message_id`` is in another partition.
            InvalidDestinationError: the topic has partitions; advance them one by one.
        """

    async def create_subscription(self, topic: str, name: str, position: StartPosition) -> bool:
        """Create a subscription (and a missing topic); return False if it exists."""

    async def delete_subscription(self, topic: str, name: str, force: bool = False) -> None:
        """Delete a subscription with its backlog, with ``force`` even if consumers are connected."""

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        """Return the properties of a subscription."""

    async def set_subscription_properties(self, topic: str, name: str, properties: Mapping[str, str]) -> None:
        """Replace the properties of a subscription."""


def check_partition(topic: str, message_id: WireId) -> None:
    """Raise IllegalArgumentError if an id is not in the partition ``topic``; one without a partition is valid."""
    index = split_partition(topic)[1]
    if message_id.partition not in (-1, index):
        raise IllegalArgumentError(f"message id {message_id} is of partition {message_id.partition}, not of {topic}")

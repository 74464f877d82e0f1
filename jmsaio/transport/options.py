"""How senders, receivers and readers of a transport are made."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from jmsaio.config import ConsumerConfig, ProducerConfig
from jmsaio.errors import JMSError
from jmsaio.model.schema import Schema
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.transport.administration import Position

#: What the caller of ``Sender.send`` knows a record by: any object, which the transport hands back untouched.
Token = Any
#: Called with the tokens of records that share an outcome, in the order of sending, and the place of the first or the
#: error of all. See ``SenderOptions.settled``.
Settled = Callable[[Sequence[Token], WireId | None, JMSError | None], None]
#: Chooses a partition index for a record given the number of partitions (>= 2); None leaves it to the transport.
Route = Callable[[OutgoingRecord, int], int | None]

#: Keys that Starlight's filter plugin reads: in the metadata of a consumer and in the properties of a subscription, ...
FILTERING, SELECTOR = "jms.filtering", "jms.selector"
#: ... and in the metadata of a consumer only. What becomes of rejected messages, and whose messages to leave out.
REJECT_ACTION, FORCE_DROP = "jms.selector.reject.action", "jms.force.drop.rejected"
NOT_FROM = "jms.filter.JMSConnectionID"
#: Key of the metadata of a consumer: "queue" or "topic".
DESTINATION_TYPE = "jms.destination.type"
#: Name of the plugin among the entry filters of a broker.
PLUGIN = "jms"
#: ``error_code`` of the TransportError of a subscription whose metadata is larger than the broker's limit.
METADATA_TOO_LARGE = "MetadataTooLarge"

#: Property of a durable subscription: "true" when its consumers may share it, else "false". See ``Subscription``.
SHARED_PROPERTY = "jmsaio.shared"


class SubscriptionType(enum.Enum):
    """How the consumers of one subscription share it (Pulsar's words)."""

    EXCLUSIVE = "Exclusive"
    SHARED = "Shared"
    FAILOVER = "Failover"
    KEY_SHARED = "Key_Shared"


@attrs.frozen
class SenderOptions:
    """How a sender is made.

    Attributes:
        config: producerConfig with its defaults.
        settled: told the outcome of records once it is known: each record's once, those of a partition in the order of
            sending, never inside ``Sender.send``. Records that share an answer may be told together: an error is that
            of all of them; a place is that of the first, and the rest lie behind it in the same entry, each with the
            next batch index. The place is None where the transport does not know it, which is never the case with
            ``Capabilities.places`` outside of transactions; records whose places it knows and others are told in calls
            of their own. The place of a record that the broker left out as a duplicate is ``WireId.duplicate``.
        metadata: producer metadata shown by the broker's statistics.
        route: choice of the partition; None or a None answer: by key (Java's string hash), else in turn.
        window_records: records on their way at most, before ``Sender.full``.
        window_bytes: bytes on their way at most.
        transacted: each of its records is sent in a transaction; otherwise none is, unless its producer has a
            configured name: that sender takes both.
        topic_changed: called with the name of the topic, or of one of its partitions, when it may have been
            deleted and recreated without its subscriptions. Transports whose senders end then (``Sender.deleted``)
            never call it.
        schema: the schema of all its records, registered with the topic; None: untyped bytes.
    """

    config: ProducerConfig
    settled: Settled
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    route: Route | None = None
    window_records: int = 5000
    window_bytes: int = 64 * 1024 * 1024
    transacted: bool = False
    topic_changed: Callable[[str], object] = lambda topic: None
    schema: Schema | None = None


@attrs.frozen
class Subscription:
    """What a receiver subscribes to.

    Attributes:
        topics: full topic names; one or more, empty only with ``pattern``.
        pattern: full topics pattern (``persistent://tenant/namespace/regex``), or None.
        name: subscription name.
        type: how its consumers share it.
        position: where it starts if it is new.
        durable: it outlives its consumers; else it is deleted with the last of them.
        config: consumerConfig with its defaults, already merged for this consumer.
        metadata: consumer metadata (``jms.destination.type`` ...).
        properties: subscription properties, stored with a new subscription (``Capabilities.stores_properties``).
        replace: what this name stood for before counts: a subscription of it that has these properties with other
            values, or that was made for other topics, is deleted with what it holds and recreated; if it has
            consumers, or is shared otherwise, that is a ConsumerBusyError. One without these properties gets them.
            Without ``Capabilities.replaces_properties`` the subscription is resumed as it is.
        selective: this consumer, or the broker for it and others, rejects records and gives them back. They count as
            failed only if an application of this process gave them back.
    """

    topics: tuple[str, ...]
    name: str
    type: SubscriptionType
    config: ConsumerConfig
    position: Position = Position.LATEST
    pattern: str | None = None
    durable: bool = True
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    properties: Mapping[str, str] = attrs.field(factory=dict)
    replace: bool = False
    selective: bool = False

    @property
    def identity(self) -> tuple[str, tuple[str, ...], str | None]:
        """Its name and what it stands for: two with the same identity are one subscription."""
        return self.name, self.topics, self.pattern


@attrs.frozen
class ReaderOptions:
    """How a reader starts.

    Attributes:
        topic: full name of a topic without partitions, or of one partition.
        start: an end of the topic, the id of a record, or a publish time in milliseconds since the epoch: the first
            record published at or after it, be it stored already or not, and all that are stored behind that one.
            A sender's batch has one publish time, so it is read whole or not at all.
        inclusive: with an id: that record is read, too.
        name: reader name shown by the broker.
        prefix: what the name of its subscription begins with, where pulsar-client gives it one.
        config: consumerConfig, for the receiver queue size.
    """

    topic: str
    config: ConsumerConfig
    start: Position | WireId | int = Position.EARLIEST
    inclusive: bool = True
    name: str | None = None
    prefix: str = ""

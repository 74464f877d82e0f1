"""Options for senders, receivers and readers of a transport."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from jmsaio.config import ConsumerConfig, ProducerConfig
from jmsaio.errors import JMSError
from jmsaio.model.schema import Schema
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.transport.administration import StartPosition

#: Identifies a record passed to ``Sender.send``: any object, which the transport returns unchanged.
Token = Any
#: Called with the tokens of records that share an outcome, in the order of sending, and the id of the first or the
#: error of all. See ``SenderOptions.settled``.
Settled = Callable[[Sequence[Token], WireId | None, JMSError | None], None]
#: Chooses a partition index for a record given the number of partitions (>= 2); None leaves it to the transport.
Route = Callable[[OutgoingRecord, int], int | None]

#: Keys read by Starlight's filter plugin in the metadata of a consumer and in the properties of a subscription.
FILTERING, SELECTOR = "jms.filtering", "jms.selector"
#: Keys read in the metadata of a consumer only: the action for rejected messages, and whose messages to skip.
REJECT_ACTION, FORCE_DROP = "jms.selector.reject.action", "jms.force.drop.rejected"
NOT_FROM = "jms.filter.JMSConnectionID"
#: Metadata key of a consumer: "queue" or "topic".
DESTINATION_TYPE = "jms.destination.type"
#: Name of the plugin among the entry filters of a broker.
PLUGIN = "jms"
#: ``error_code`` of the TransportError for a subscription whose metadata exceeds the broker's limit.
METADATA_TOO_LARGE = "MetadataTooLarge"

#: Property of a durable subscription: "true" if its consumers can share it, else "false". See ``Subscription``.
SHARED_PROPERTY = "jmsaio.shared"


class SubscriptionType(enum.Enum):
    """How the consumers of a subscription share it (in Pulsar's terms)."""

    EXCLUSIVE = "Exclusive"
    SHARED = "Shared"
    FAILOVER = "Failover"
    KEY_SHARED = "Key_Shared"


@attrs.frozen
class SenderOptions:
    """Options of a sender.

    Attributes:
        config: producerConfig with its defaults.
        settled: called with the outcomes of records once known: each record's once, those of a partition in the order
            of sending, never inside ``Sender.send``. Records that share an answer can be reported together: an error
            applies to all of them; an id is that of the first, and the rest follow it in the same entry, each with
            the next batch index. The id is None if the transport does not know it, which never happens with
            ``Capabilities.message_ids`` outside transactions; records with and without known ids are reported in
            separate calls. The id of a record that the broker discarded as a duplicate is ``WireId.duplicate``.
        metadata: producer metadata shown by the broker's statistics.
        route: choice of the partition; without it, or if it returns None: by key (Java's string hash), else in turn.
        window_records: maximum number of records in flight before ``Sender.full``.
        window_bytes: maximum bytes in flight before ``Sender.full``.
        transacted: whether its records are sent in transactions; a sender whose producer has a configured name accepts
            records with and without.
        topic_changed: called with the name of the topic, or of one of its partitions, when it might have been deleted
            and recreated without its subscriptions. Transports whose senders end then (``Sender.deleted``) never call
            it.
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
    """Options of a subscription to open.

    Attributes:
        topics: full topic names; one or more, empty only with ``pattern``.
        pattern: full topics pattern (``persistent://tenant/namespace/regex``), or None.
        name: subscription name.
        type: how its consumers share it.
        position: start of a new subscription.
        durable: whether it outlives its consumers; otherwise it is deleted with the last of them.
        config: consumerConfig with its defaults, already merged for this consumer.
        metadata: consumer metadata (``jms.destination.type`` ...).
        properties: subscription properties, stored with a new subscription (``Capabilities.stores_properties``).
        replace: an existing subscription of this name that has these properties with other values, or was created for
            other topics, is deleted with its backlog and recreated; if it has consumers, or is shared otherwise,
            ConsumerBusyError is raised. A subscription without these properties receives them. Without
            ``Capabilities.replaces_properties`` an existing subscription is resumed unchanged.
        selective: whether this consumer, or the broker on behalf of consumers, rejects records and returns them. They
            count as failed only if an application of this process returned them.
    """

    topics: tuple[str, ...]
    name: str
    type: SubscriptionType
    config: ConsumerConfig
    position: StartPosition = StartPosition.LATEST
    pattern: str | None = None
    durable: bool = True
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    properties: Mapping[str, str] = attrs.field(factory=dict)
    replace: bool = False
    selective: bool = False

    @property
    def identity(self) -> tuple[str, tuple[str, ...], str | None]:
        """Name and topics: two subscriptions with the same identity are the same one."""
        return self.name, self.topics, self.pattern


@attrs.frozen
class ReaderOptions:
    """Options of a reader.

    Attributes:
        topic: full name of a topic without partitions, or of one partition.
        start: an end of the topic, the id of a record, or a publish time in milliseconds since the epoch: reads the
            first record published at or after it, already stored or not, and all records stored after that one. A
            sender's batch has one publish time, so it is read whole or not at all.
        inclusive: with an id: whether that record is read, too.
        name: reader name shown by the broker.
        prefix: prefix of its subscription's name, if pulsar-client creates the name.
        config: consumerConfig, for the receiver queue size.
    """

    topic: str
    config: ConsumerConfig
    start: StartPosition | WireId | int = StartPosition.EARLIEST
    inclusive: bool = True
    name: str | None = None
    prefix: str = ""

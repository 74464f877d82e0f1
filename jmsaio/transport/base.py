"""The transport interface: operations that every transport supports, and nothing specific to one of them.

Rules for every implementation (checked by the contract suite in ``tests/transport/contract``):

* All calls are made on one event loop's thread. Callbacks (``settled``, ``wake``) run on that thread, never inside
  another call: ``wake`` can call ``receive`` at once. Callbacks given to a transport do not raise.
* Messages are passed in lists. Objects of a transport's own library are not exposed, except inside a
  ``ReceivedRecord``, which the caller returns unchanged to acknowledge it.
* Errors are ``jmsaio.errors``; a library's own errors are translated and chained.
* Every coroutine is bounded in time and can be cancelled at any await; a cancelled call loses no record.
* Durations are seconds, points in time are milliseconds since the epoch.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from jmsaio.config import ConsumerConfig, ProducerConfig
from jmsaio.errors import JMSError
from jmsaio.model.schema import Schema
from jmsaio.model.wire import OutgoingRecord, ReceivedRecord, SetAside, WireId
from jmsaio.transport.administration import (
    Admin as Admin,
    Browsable as Browsable,
    ConnectedConsumer as ConnectedConsumer,
    Cursor as Cursor,
    Ledger as Ledger,
    StartPosition as StartPosition,
    SubscriptionStats as SubscriptionStats,
    TopicLog as TopicLog,
    TopicStats as TopicStats,
)
from jmsaio.transport.clock import Clock

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
#: Metadata key of a consumer: the beginning of the selector that its client applies, for statistics.
CLIENT_SELECTOR = "jmsaio.selector"
#: Metadata key of a consumer: "queue" or "topic".
DESTINATION_TYPE = "jms.destination.type"
#: Name of the plugin among the entry filters of a broker.
PLUGIN = "jms"
#: ``error_code`` of the TransportError for a subscription whose metadata exceeds the broker's limit.
METADATA_TOO_LARGE = "MetadataTooLarge"

#: Property of a durable subscription: "true" if its consumers can share it, else "false". See ``Subscription``.
SHARED_PROPERTY = "jmsaio.shared"
#: Property "true" of a durable subscription that others created and jmsaio resumed: ``unsubscribe(name)`` keeps it.
FOREIGN_PROPERTY = "jmsaio.foreign"


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
            and recreated without its subscriptions. Transports whose senders end then (``Sender.outdated``) never call
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
            ConsumerBusyError is raised. A subscription without these properties receives them (``added_to``). Without
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
    def shared(self) -> bool:
        """Whether several consumers receive its messages at once."""
        return self.type in (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)

    @property
    def identity(self) -> tuple[str, tuple[str, ...], str | None]:
        """Name and topics: two subscriptions with the same identity are the same one."""
        return self.name, self.topics, self.pattern

    def added_to(self, found: Mapping[str, str]) -> dict[str, str]:
        """Return the properties that an existing subscription with the properties ``found`` receives."""
        foreign = {} if self.properties.keys() & found.keys() else {FOREIGN_PROPERTY: "true"}
        return {**foreign, **self.properties}

    def showing(self, selector: str | None) -> Subscription:
        """Return it with the selector that statistics show; None: none."""
        metadata = {key: value for key, value in self.metadata.items() if key != CLIENT_SELECTOR}
        return attrs.evolve(self, metadata=metadata if selector is None else metadata | {CLIENT_SELECTOR: selector})


@attrs.frozen
class ReaderOptions:
    """Options of a reader.

    Attributes:
        topic: full name of a topic without partitions, or of one partition.
        start: an end of the topic, the id of a record, or a publish time in milliseconds since the epoch: reads the
            first record published at or after it, already stored or not, and all records stored after that one. A
            sender's batch has one publish time, so it is read whole or not at all.
        inclusive: with an id: whether that record itself is also read.
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


#: Called when ``Receiver.receive`` might return records again; spurious calls are allowed.
Wake = Callable[[], None]


@attrs.frozen
class LinkChange:
    """A change of the connection to the broker, or of one subscription's, that no call reports.

    Attributes:
        text: sentence for the log.
        error: error on a loss; None on recovery.
        whole: whether it affects the whole connection to the broker instead of one subscription.
        receiver: the only receiver affected, if there is one.
    """

    text: str
    error: JMSError | None = None
    whole: bool = False
    receiver: object = None


#: Called with changes of the connection, on the loop's thread.
LinkListener = Callable[[LinkChange], None]


@attrs.frozen
class Capabilities:
    """Capabilities of a transport, which the client checks instead of the transport's name.

    Attributes:
        transactions: ``Transport.begin`` works and is atomic if the broker supports it: see
            ``Transport.ready_for_transactions``.
        sequence_ids: received records contain the producer's sequence id.
        exact_redelivery_count: only records returned by ``negative_acknowledge`` or a lost consumer after delivery are
            counted, on every subscription type; records that never reached the application are not.
        most_unacknowledged: maximum number of unacknowledged records at which a receiver of a shared subscription is
            still sent more; infinity: no limit.
        acknowledges_at_once: the broker has received an acknowledgement when ``Receiver.acknowledge`` returns, and one
            call per record is cheap: acknowledgements by an application are visible at once.
        packed: senders read ``OutgoingRecord.packed`` instead of the map; the codec writes that form.
        non_durable: subscription types for which the broker itself deletes a subscription that is not
            ``Subscription.durable`` with its last consumer, so that a crashed client leaves nothing behind. For other
            types the transport deletes it on close, and a crash leaves it; the client names unnamed ones so that
            ``jmsaio sweep`` finds them.
        stores_properties: a new subscription has its ``Subscription.properties`` when ``Transport.open_receiver``
            returns. Pulsar's protocol stores them with it; pulsar-client can't, and uses the admin interface.
            Properties of a pattern are not stored, because its topics are not yet known.
        replaces_properties: ``Subscription.replace`` is supported: the properties of an existing subscription are
            compared. Pulsar's protocol does not report them; only the admin interface does. Without it an existing
            subscription is resumed, whatever its properties.
        message_ids: ``SenderOptions.settled`` receives the id of every stored record, except in transactions.
    """

    transactions: bool
    sequence_ids: bool
    exact_redelivery_count: bool
    most_unacknowledged: float = math.inf
    acknowledges_at_once: bool = False
    packed: bool = False
    non_durable: frozenset[SubscriptionType] = frozenset()
    stores_properties: bool = False
    replaces_properties: bool = False
    message_ids: bool = False


class Transaction(Protocol):
    """An open transaction, ended by exactly one of ``commit`` and ``abort``."""

    def join(self, topic: str, subscription: str) -> None:
        """Announce that records of a subscription will be acknowledged in it, which saves the commit a wait.

        ``topic`` is the full name of the topic without partitions, or of the partition.
        """

    async def commit(self) -> None:
        """Commit the transaction.

        Raises:
            TransactionRolledBackError: it was rolled back, without any effect.
            TransactionInDoubtError: no answer was received, for example because the connection was lost.

        Cancelling before the broker is asked rolls it back; else the commit continues.
        """

    async def abort(self) -> None:
        """Roll back: sent records never appear; acknowledged records, including late ones, are redelivered.

        Raises TransportError if no answer was received; the broker then rolls back after the transaction's time-out.
        """


class Sender(Protocol):
    """Sends records to one topic, in order per partition. Cancelling a call changes nothing, except for ``aclose``."""

    @property
    def full(self) -> bool:
        """Whether the window is full: await ``ready`` before the next ``send``."""

    @property
    def outdated(self) -> bool:
        """Whether a new sender must replace it: its topic was deleted, or it has not been connected for long."""

    @property
    def last_sequence_ids(self) -> Mapping[str, int]:
        """Last sequence ids by the full name of each partition or of the topic; -1 if there is none.

        The initial value is ``initial_sequence_id``; without it, the one that a deduplicating broker had stored for a
        producer of this name when the sender was opened. Later, the highest of its confirmed records with a given
        sequence id.
        """

    def send(self, record: OutgoingRecord, token: Token, transaction: Transaction | None = None) -> None:
        """Send a record; ``SenderOptions.settled`` later receives its outcome with this token.

        Never blocks, and accepts records even if the window is full. If it raises, no outcome is reported.

        Raises:
            MessageTooLargeError: it is larger than the broker accepts.
            MessageFormatError: text contains lone surrogates.
            IllegalStateError: it has a sequence id, and would be sent in a batch (``batching_enabled``).
            IllegalArgumentError: no broker accepts its sequence id.
            ObjectClosedError: the sender or the transport is closed; ForkError in a child process.
            JMSSecurityError: the broker currently refuses the credentials.
        """

    async def ready(self) -> None:
        """Wait until the window has room or the sender is closed.

        Raises:
            OperationTimeoutError: records in flight fill the window for the whole send time-out.
            JMSSecurityError: the broker currently refuses the credentials.
        """

    async def drain(self, timeout: float) -> None:
        """Wait until every record sent has an outcome. Raises OperationTimeoutError."""

    async def aclose(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds for records in flight, fail the rest as in doubt, and close. Idempotent.

        Cancellation: closing continues; records without an outcome fail in the next turns of the loop.
        """


class Receiver(Protocol):
    """Receives records of one subscription. Receiving a record returns its permit to the broker.

    Calls raise ObjectClosedError once the receiver or the transport is closed.
    """

    def receive(self, limit: int) -> list[ReceivedRecord]:
        """Return up to ``limit`` available records, without waiting.

        After a call that returned fewer than ``limit``, ``wake`` is called when more are available. Calling again
        earlier is allowed. Raises the TransportError that ended the receiver, once no records are left.
        """

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Queue acknowledgements, sent in groups within 130 ms; records that are already settled are ignored.

        Raises IllegalStateError for a transaction if the transport has none.
        """

    def negative_acknowledge(self, records: Sequence[SetAside], delay: float, *, counted: bool = True) -> None:
        """Return records; they are redelivered, to any consumer, after about ``delay`` seconds.

        For records that were set aside, pass the values that ``set_aside`` returned. With ``counted=False``, records
        that never reached the application keep their redelivery count, if the transport supports it.
        """

    def set_aside(self, records: Sequence[ReceivedRecord]) -> Sequence[SetAside]:
        """Keep records unacknowledged, without delivering them, until they are returned.

        Returns the values to return in their place. For shared and key-shared subscriptions.
        """

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        """Move a record to the dead-letter topic of ``Subscription.config``, with these properties replacing its own.

        The record is acknowledged once it is stored there, and redelivered if that fails. Without a dead-letter policy
        it is only acknowledged.
        """

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """Count another delivery of records that the application still holds: the redelivery count grows by one.

        Nothing is sent again; a transport that can't inform the broker counts locally.
        """

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        """Wait until the queued acknowledgements are sent.

        With ``receipt`` or ``ackReceiptEnabled``: until the broker has received them. If the link is lost meanwhile,
        they are repeated for what is redelivered; of the others it is not known whether the broker has them.

        Raises the TransportError of an acknowledgement that failed since the last call, or OperationTimeoutError.

        Cancellation: acknowledgements are still sent.
        """

    async def unsubscribe(self, timeout: float) -> None:
        """Delete the subscription. The receiver must be closed afterwards.

        Raises ConsumerBusyError: the subscription has other consumers; OperationTimeoutError: no answer in time.
        """

    async def seek(self, position: StartPosition | WireId | int, timeout: float) -> None:
        """Move the subscription to an end, to a record (delivered next), or to a publish time in milliseconds.

        Raises TransportError: the broker refused, or the record's partition has no consumer; OperationTimeoutError: no
        answer in time.
        """

    async def stop(self, timeout: float) -> None:
        """Stop receiving from the broker until ``resume``.

        Records not yet received are returned, uncounted. Received records can still be settled, and no other receiver
        of this transport delivers them before. If the broker can't be informed, receivers of other clients might or
        might not receive them. For shared and key-shared subscriptions; on others, no other consumer waits for these
        records.

        Cancellation: stopping continues.
        """

    async def resume(self, timeout: float, selector: str | None = None) -> None:
        """Receive records again after ``stop``; no effect otherwise.

        Statistics show ``selector`` from now on (``CLIENT_SELECTOR``); None: none. Raises as
        ``Transport.open_receiver``, and then stays stopped.
        """

    async def aclose(self, timeout: float) -> None:
        """Send queued acknowledgements, return unacknowledged records, and close. Idempotent.

        A subscription that is not durable is deleted with its last consumer.

        Cancellation: closing continues.
        """


class Reader(Protocol):
    """Reads one topic (or one partition) without leaving a subscription behind.

    Calls raise ObjectClosedError once the reader or the transport is closed. Cancelling a call loses no record: the
    next call returns it. Closing continues if it is cancelled.
    """

    async def read(self, limit: int, timeout: float) -> list[ReceivedRecord]:
        """Return the next records, at least one unless ``timeout`` seconds passed or the end was reached.

        While the broker can't report whether there are more, the request is repeated for up to ``timeout`` seconds.

        Raises:
            TransportError: the reader failed, or the broker could not report whether there are more records.
            OperationTimeoutError: the broker did not report it within 30 seconds, or ``timeout`` if longer.
        """

    async def at_end(self) -> bool:
        """Return whether no records are stored after the last record read.

        While the broker can't report this, the request is repeated for up to 30 seconds. Raises the broker's last
        error, a TransportError, or OperationTimeoutError.
        """

    async def aclose(self, timeout: float) -> None:
        """Close. Idempotent."""


class Transport(Protocol):
    """A client of one broker (or cluster).

    Calls that ask the broker raise BrokerUnavailableError if it is unreachable, OperationTimeoutError if it does not
    answer in time, and JMSSecurityError without the permission. A missing topic is created if the broker allows it,
    else they raise NotFoundError. An opening that is cancelled closes anything already opened again; closing the
    transport continues; any other cancelled call changes nothing and leaves nothing on the broker.
    """

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of this transport."""

    @property
    def admin(self) -> Admin | None:
        """Administration, or None if disabled by the configuration (``jms.usePulsarAdmin=false``)."""

    @property
    def browsable(self) -> Browsable | None:
        """What browsers need: the administration, or what replaces it; None if nothing does."""

    @property
    def clock(self) -> Clock:
        """Clock used by the broker and for the client's own timers."""

    @property
    def link_listeners(self) -> set[LinkListener]:
        """Functions called when the connection to the broker is lost or restored: add or remove one."""

    async def open_sender(self, topic: str, options: SenderOptions) -> Sender:
        """Open a sender to a full topic name.

        Raises ResourceAllocationError: an open sender to the topic has its configured name: error code ProducerBusy.
        """

    async def open_receiver(self, subscription: Subscription, wake: Wake) -> Receiver:
        """Subscribe. Raises ConsumerBusyError: the subscription already has its only consumer."""

    async def open_reader(self, options: ReaderOptions) -> Reader:
        """Open a reader."""

    async def end(self, topic: str) -> WireId | None:
        """Return the id of the last record that a reader of a topic or partition can receive now; None if it is empty.

        In a batch, this is the id of its last record. Later records, and records of open transactions committed later,
        follow it. Raises InvalidDestinationError: the topic has partitions; request them one by one.
        """

    async def ping(self, timeout: float) -> None:
        """Send a request to the broker and wait up to ``timeout`` seconds for its answer, whatever it is.

        Raises TransportError: the connection is lost.
        """

    async def ready_for_transactions(self, timeout: float) -> None:
        """Wait until this broker is known to support transactions. Called before the first ``begin`` of each session.

        Raises:
            IllegalStateError: the transport does not support transactions, or this broker has them disabled.
            TransportError: the broker can't report it, or does not answer within ``timeout`` seconds.
        """

    async def begin(self, timeout: float) -> Transaction:
        """Open a transaction that the broker aborts after ``timeout`` seconds."""

    async def aclose(self, timeout: float) -> None:
        """Close everything opened by this transport; pending callbacks receive an error. Idempotent, bounded."""

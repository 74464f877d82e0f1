"""The seam: what every transport under jmsaio offers, and nothing that only one of them knows.

Rules for every implementation (the contract suite in ``tests/transport/contract`` checks them):

* All calls come from one event loop's thread; every callback (``settled``, ``wake``) runs on that thread, never inside
  another call: ``wake`` may lead to ``receive`` at once. Callbacks given to a transport do not raise.
* Messages cross in lists. No object of a transport's own library crosses, except hidden inside a ``ReceivedRecord``,
  which the application of the seam hands back untouched to acknowledge it.
* Errors are ``jmsaio.errors``; a library's own errors are translated before they cross, and chained.
* Every coroutine is bounded in time and may be cancelled at any await; a cancelled call loses no record.
* Durations are seconds, points in time are milliseconds since the epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import attrs

from jmsaio.errors import JMSError
from jmsaio.model.wire import OutgoingRecord, ReceivedRecord, SetAside, WireId
from jmsaio.transport.administration import Admin, Cursor, Ledger, Position, SubscriptionStats, TopicLog, TopicStats
from jmsaio.transport.clock import Clock
from jmsaio.transport.options import (
    SHARED_PROPERTY,
    ReaderOptions,
    Route,
    SenderOptions,
    Settled,
    Subscription,
    SubscriptionType,
    Token,
)

__all__ = [
    "SHARED_PROPERTY",
    "Admin",
    "Capabilities",
    "Cursor",
    "Ledger",
    "LinkChange",
    "LinkListener",
    "Position",
    "Reader",
    "ReaderOptions",
    "Receiver",
    "Route",
    "Sender",
    "SenderOptions",
    "Settled",
    "Subscription",
    "SubscriptionStats",
    "SubscriptionType",
    "Token",
    "TopicLog",
    "TopicStats",
    "Transaction",
    "Transport",
    "Wake",
]

#: Called when ``Receiver.receive`` may have something again; may be called without need.
Wake = Callable[[], None]


@attrs.frozen
class LinkChange:
    """A change of the link to the broker, or of one subscription's, that no call reports.

    Attributes:
        text: a sentence for the log.
        error: what was lost; None when it is back.
        whole: it concerns the link to the broker, not a subscription alone.
        receiver: the receiver that it concerns alone, if there is one.
    """

    text: str
    error: JMSError | None = None
    whole: bool = False
    receiver: object = None


#: Called with changes of the link, on the loop's thread.
LinkListener = Callable[[LinkChange], None]


@attrs.frozen
class Capabilities:
    """What a transport can do; the client asks here, never for the transport's name.

    Attributes:
        transactions: ``Transport.begin`` works and is atomic, with a broker that does its part: see
            ``Transport.ready_for_transactions``.
        sequence_ids: received records know the producer's sequence id.
        exact_redelivery_count: counts only what ``negative_acknowledge`` or a lost consumer gave back after delivery,
            on every subscription type; what the application never got is not counted.
        most_unacknowledged: records that a receiver of a shared subscription may keep unacknowledged and still be sent
            others; infinity: any number.
        acknowledges_at_once: the broker knows an acknowledgement when ``Receiver.acknowledge`` returns, and a call for
            each record costs little: what an application has acknowledged shows at once.
        packed: senders read ``OutgoingRecord.packed`` and not the map: the codec writes that form.
        non_durable: the types whose subscriptions the broker itself ends with their last consumer where they are not
            ``Subscription.durable``: a client that crashes leaves nothing behind. On other types the transport deletes
            them when they are closed, and a crash leaves them; the client gives those without a name of their own one
            that ``jmsaio sweep`` finds.
        stores_properties: a new subscription has its ``Subscription.properties`` when ``Transport.open_receiver``
            returns. Pulsar's protocol stores them with it; pulsar-client can't, and has the admin interface do it.
            Those of a pattern are not stored: its topics are not known by then.
        replaces_properties: ``Subscription.replace`` is kept: what a subscription was opened with before is compared.
            Pulsar's protocol tells no client; only the admin interface does. Without it an existing subscription is
            resumed, whatever its properties.
        places: ``SenderOptions.settled`` is told the place of every record that was stored, transactions aside.
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
    places: bool = False


class Transaction(Protocol):
    """One open transaction; ended by exactly one of its two calls."""

    async def commit(self) -> None:
        """Make all of it happen.

        Raises:
            TransactionRolledBackError: it ended in a rollback, and nothing of it happened.
            TransactionInDoubtError: no answer, for example because the connection was lost on the way.
        """

    async def abort(self) -> None:
        """Undo all of it: sent records never appear, acknowledged ones, also late, are redelivered.

        Raises TransportError where no answer came; the broker undoes it then when its time is over.
        """


class Sender(Protocol):
    """Sends records to one topic, in order for each partition."""

    @property
    def full(self) -> bool:
        """True when the window has no room: await ``ready`` before the next ``send``."""

    @property
    def deleted(self) -> bool:
        """True once the topic was deleted and every send fails. A new sender recreates the topic."""

    @property
    def last_sequence_ids(self) -> Mapping[str, int]:
        """The last sequence id by the full name of each partition, or of the topic; -1 for none.

        At first ``initial_sequence_id``; without it, what a broker that deduplicates knew of a producer of this name
        when the sender was opened. From then on the highest of its confirmed records that were given one.
        """

    def send(self, record: OutgoingRecord, token: Token, transaction: Transaction | None = None) -> None:
        """Take a record; ``SenderOptions.settled`` tells its outcome later, with this token.

        Never blocks and never refuses because of a full window.

        Raises MessageTooLargeError and ObjectClosedError at once; the token is not told then. Likewise, for a record
        with a sequence id, IllegalStateError where it would be sent in a batch (``batching_enabled``), and
        IllegalArgumentError where no broker takes that id.
        """

    async def ready(self) -> None:
        """Wait until the window has room, or the sender is closed. Cancelling changes nothing.

        Raises OperationTimeoutError where what is on its way keeps the window full for the whole send time-out.
        """

    async def drain(self, timeout: float) -> None:
        """Wait until every record taken has its outcome. Raises OperationTimeoutError."""

    async def aclose(self, timeout: float) -> None:
        """Let records on their way end within ``timeout`` seconds, fail the rest as in doubt, and close. Idempotent."""


class Receiver(Protocol):
    """Takes records of one subscription. A record that is taken gives its permit back to the broker."""

    def receive(self, limit: int) -> list[ReceivedRecord]:
        """Take up to ``limit`` records that are here, without waiting.

        After a call that returned fewer than ``limit``, ``wake`` is called when there are more. Calling again before
        that is allowed. Raises the TransportError that ended the receiver, once nothing is left.
        """

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Take acknowledgements; they leave for the broker grouped, within 130 ms. What is settled is left alone."""

    def negative_acknowledge(self, records: Sequence[SetAside], delay: float, *, counted: bool = True) -> None:
        """Give records back; they are redelivered, to any consumer, after about ``delay`` seconds.

        What was set aside is given back as what ``set_aside`` returned for it.
        ``counted=False``: the application never got them, so the redelivery count stays, where that can be done.
        """

    def set_aside(self, records: Sequence[ReceivedRecord]) -> Sequence[SetAside]:
        """The application does not want these records now: they stay unacknowledged until they are given back.

        For shared and key-shared subscriptions.

        Returns:
            What to give back in place of each of them.
        """

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        """Move a record to the dead-letter topic of ``Subscription.config``, with these properties as its own.

        It is acknowledged when it is stored there; where that fails it is redelivered. Without a dead-letter policy it
        is only acknowledged.
        """

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """The application gets these records, which it holds, once more: the redelivery count grows by one.

        Nothing is sent again; a transport that can't tell the broker counts by itself.
        """

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        """Wait until the acknowledgements taken so far are sent.

        With ``receipt`` or ``ackReceiptEnabled``: until the broker has them.

        Raises the TransportError of an acknowledgement that failed since the last call.
        """

    async def unsubscribe(self, timeout: float) -> None:
        """Delete the subscription. The receiver must be closed afterwards."""

    async def seek(self, position: Position | WireId | int, timeout: float) -> None:
        """Move the subscription: to an end, to a record (which comes next), or to a publish time in milliseconds."""

    async def stop(self, timeout: float) -> None:
        """Take nothing more from the broker, until ``resume``.

        What was not taken goes back, uncounted. What was taken can still be settled, and no other receiver of this
        transport hands it out before. A broker that can't be told keeps it from the receivers of other clients, or
        not. For shared and key-shared subscriptions; on others, no one waits for what a receiver holds back.

        Cancellation: stopping goes on.
        """

    async def resume(self, timeout: float) -> None:
        """Take records again after ``stop``. Raises as ``Transport.open_receiver``; the receiver is stopped then."""

    async def aclose(self, timeout: float) -> None:
        """Send grouped acknowledgements, give back what is not acknowledged, and close. Idempotent."""


class Reader(Protocol):
    """Reads one topic (or one partition) without a subscription of its own that would stay behind."""

    async def read(self, limit: int, timeout: float) -> list[ReceivedRecord]:
        """Next records, at least one unless ``timeout`` seconds passed or the end was reached.

        A broker that can't tell for the moment whether there is more is asked again, for ``timeout`` seconds.
        """

    async def at_end(self) -> bool:
        """True when there is nothing stored behind the last record read.

        A broker that can't tell for the moment is asked again, for 30 seconds. Raises its last answer, a
        TransportError, or OperationTimeoutError.
        """

    async def aclose(self, timeout: float) -> None:
        """Close. Idempotent."""


class Transport(Protocol):
    """One client of one broker (or cluster)."""

    @property
    def capabilities(self) -> Capabilities:
        """What this transport can do."""

    @property
    def admin(self) -> Admin | None:
        """Administration, or None when the configuration forbids it (``jms.usePulsarAdmin=false``)."""

    @property
    def clock(self) -> Clock:
        """The clock that its broker goes by, and the client's own timers with it."""

    @property
    def link_listeners(self) -> set[LinkListener]:
        """The functions called when the link to the broker was lost or is back: add or remove one."""

    async def open_sender(self, topic: str, options: SenderOptions) -> Sender:
        """Make a sender to a full topic name; the topic is created where the broker allows it."""

    async def open_receiver(self, subscription: Subscription, wake: Wake) -> Receiver:
        """Subscribe. Raises ConsumerBusyError, NotFoundError, JMSSecurityError, OperationTimeoutError."""

    async def open_reader(self, options: ReaderOptions) -> Reader:
        """Make a reader.

        Raises:
            NotFoundError: no such topic, and the broker creates none.
            OperationTimeoutError: no answer in time.

        Cancellation: what was opened is closed again.
        """

    async def end(self, topic: str) -> WireId | None:
        """The last place that a reader of a topic without partitions, or of one partition, would be given now.

        In a batch it is that of its last record. What comes later, and what of an open transaction is committed later,
        lies behind it. A topic that does not exist is created where the broker allows it, as by ``open_reader``.

        Returns:
            The place; None of an empty topic.

        Raises:
            InvalidDestinationError: the topic has partitions: ask for them one by one.
            NotFoundError: no such topic, and the broker creates none.
            JMSSecurityError: no right to consume from it.
            OperationTimeoutError: no answer in time.

        Cancellation: nothing stays behind on the broker.
        """

    async def ready_for_transactions(self, timeout: float) -> None:
        """Wait until this broker is known to take transactions. Asked before the first ``begin`` of each session.

        Raises:
            IllegalStateError: the transport has none, or this broker is set up without.
            TransportError: the broker can't tell, or gives no answer within ``timeout`` seconds.

        Cancelling changes nothing.
        """

    async def begin(self, timeout: float) -> Transaction:
        """Open a transaction that the broker aborts after ``timeout`` seconds."""

    async def aclose(self, timeout: float) -> None:
        """Close everything made from it; callbacks not called yet get an error. Idempotent, bounded."""

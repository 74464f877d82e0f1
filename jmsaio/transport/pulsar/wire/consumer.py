"""The consumer of one topic without partitions, or of one partition: permits, entries and acknowledgements.

What happens to a record is decided by ``jmsaio.rules.record_life``; this carries it out.
"""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from jmsaio.errors import (
    ConsumerBusyError,
    JMSError,
    OperationTimeoutError,
    ProtocolError,
    TransactionRolledBackError,
    TransportError,
)
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import EntryId, PlainWireId, SetAside, WireId
from jmsaio.protocol import acks
from jmsaio.protocol.batch import Span, split
from jmsaio.protocol.chunks import Whole
from jmsaio.protocol.codes import InitialPosition, SubType
from jmsaio.protocol.commands import Command, encode_command, key_values
from jmsaio.protocol.framing import Frame
from jmsaio.protocol.messages import Delivery
from jmsaio.rules import record_life as life
from jmsaio.rules.record_life import Action, RecordEvent
from jmsaio.transport.base import StartPosition, Subscription, SubscriptionType
from jmsaio.transport.clock import DelayQueue
from jmsaio.transport.names import CLIENT, process_name
from jmsaio.transport.pulsar.wire.answers import error_of
from jmsaio.transport.pulsar.wire.arriving import (
    Arrival,
    announced,
    assembled,
    is_as_sent,
    is_chunk,
    read_arrival,
)
from jmsaio.transport.pulsar.wire.chunks import Chunks
from jmsaio.transport.pulsar.wire.client import Client
from jmsaio.transport.pulsar.wire.connection import Connection
from jmsaio.transport.pulsar.wire.damages import Damages
from jmsaio.transport.pulsar.wire.early import Early
from jmsaio.transport.pulsar.wire.keeper import Keeper, registering
from jmsaio.transport.pulsar.wire.permits import Permits
from jmsaio.transport.pulsar.wire.record import ENDS, Entry, Owner, WireRecord, may_expire, signed
from jmsaio.transport.pulsar.wire.silence import Silence
from jmsaio.transport.pulsar.wire.transaction import WireTransaction, Work
from jmsaio.transport.waiting import Waiters, to_the_end

_log = logging.getLogger(__name__)
_TYPES: Final = {
    SubscriptionType.EXCLUSIVE: SubType.Exclusive,
    SubscriptionType.SHARED: SubType.Shared,
    SubscriptionType.FAILOVER: SubType.Failover,
    SubscriptionType.KEY_SHARED: SubType.Key_Shared,
}
#: Ids in one ACK frame: far below the broker's limit of a frame.
_MOST_IDS: Final = 1000
#: States of a record that an application or this client has: its consumer returns it on close.
_OUT: Final = frozenset((life.HELD, life.ASIDE, life.RETURNED, life.LETTER, life.IN_TRANSACTION))
#: Seconds before a stopped consumer returns an entry that it returned before, at first and at most.
_RETURN, _RETURN_MOST = 0.1, 10.0
#: Seconds until records returned without a delay are requested again: a close that follows returns them by itself.
_GATHER: Final = 0.01
#: Seconds for which a cancelled opening waits for the broker's answer.
_SUBSCRIBING: Final = 1.0
#: The broker's words where a subscription has other consumers.
_OTHERS: Final = "shared consumer attempting to unsubscribe"

_Places = list[tuple[Entry, int | None]]
_LateAcks = tuple[WireTransaction, _Places, asyncio.Future[None]]


class Consumer:
    """Receives from one topic or partition, over any number of connections.

    Args:
        client: the transport's part that all share.
        topic: full name of the topic without partitions, or of the partition.
        subscription: what is subscribed.
        queue_size: number of records that the broker can send ahead; 0: one, while a receive waits.
        woken: called when records might be available, or it has failed.
        dying: called with a record whose failures exceed the dead-letter policy's limit.
        refused: called with the topic as ``Keeper`` calls it.

    Attributes:
        topic: as above.
        failure: why it ended for good, or None.
    """

    def __init__(
        self, client: Client, topic: str, subscription: Subscription, queue_size: int, woken: Callable[[], object],
        dying: Callable[[Consumer, WireRecord, int], object], refused: Callable[[str, JMSError | None], object],
    ) -> None:  # fmt: skip
        self.topic = topic
        self.failure: JMSError | None = None
        self._client = client
        self._subscription = subscription
        self._woken = woken
        self._dying = dying
        self._partition = split_partition(topic)[1]
        self._persistent = not topic.startswith("non-persistent:")
        self._ordered = not subscription.shared
        policy = subscription.config.dead_letter
        self._dead_after = None if policy is None else policy.max_redeliver_count
        self._fails_here = subscription.shared and subscription.selective
        self._id = next(client.ids)
        self._keeper = Keeper(self, client.topics, client.tasks, client.backoff, partial(refused, topic))
        self._connection: Connection | None = None
        self._permits = Permits(queue_size, client.share)
        self._stopped = False
        self._parked = False  # stopped, and closed at the broker
        self._bounces = Counter[Entry]()  # how often each was returned since it is stopped
        self._bouncing = DelayQueue[Entry](client.loop, self._return_queued)
        self._waiting = DelayQueue[tuple[Entry, int, float]](client.loop, self._due)
        self._ready = deque[WireRecord]()
        self._early = Early(topic, client.loop, self._permits, self.due_here, self._fill)
        self._damages = Damages(topic, subscription.name, self._persistent, client.report)
        self._known = client.known(topic, subscription.name)
        self._entries = self._known.entries
        self._numbers = 0  # entries of a non-persistent topic so far
        self._acked: dict[Entry, None] = {}
        self._grouping: asyncio.TimerHandle | None = None
        self._elsewhere: set[Owner] = set()  # that send acknowledgements for this one
        self._late: asyncio.Task[None] | None = None
        self._receipts: set[asyncio.Future[dict[str, object]]] = set()
        self._unconfirmed = weakref.WeakSet[Entry]()  # sent by another one, or again when they arrive again
        self._refused: JMSError | None = None
        self._late_acks: list[_LateAcks] = []  # in transactions, while it is closed at the broker
        self._unacknowledged: set[Entry] = set()  # by transactions that are still to end
        self._dropped = weakref.WeakSet[Entry]()  # that the broker no longer counts as this consumer's
        self._transacted: set[asyncio.Future[None]] = set()  # acknowledgements in transactions without an outcome
        self._changed = Waiters()  # it is registered, or has failed
        config = subscription.config
        self._chunks = Chunks(
            topic, config.max_pending_chunked_message, config.auto_ack_oldest_chunked_message_on_queue_full,
            config.expire_time_of_incomplete_chunked_message, self._redeliver_places, self._acknowledge_places,
            client.report,
        )  # fmt: skip
        self._silence: Silence | None = None
        if subscription.type is SubscriptionType.FAILOVER and self._persistent:
            self._silence = Silence(topic, client.tasks, self._withheld, self._subscribe_again)
        self._first: WireId | None = None  # after a seek into a batch: earlier records of it are acknowledged
        self._closed = False

    async def open(self, timeout: float) -> None:
        """Subscribe within ``timeout`` seconds. Raises as ``Transport.open_receiver``."""
        await self._keeper.open(timeout)

    @property
    def subscription_name(self) -> str:
        """Name of its subscription."""
        return self._subscription.name

    # the keeper's side

    async def register(self, connection: Connection) -> None:
        """Subscribe at a broker. Raises TransportError."""
        wanted, config = self._subscription, self._subscription.config
        number = self._id = next(self._client.ids)  # what the last one still brings is dropped
        metadata = {CLIENT: process_name(), **config.properties, **wanted.metadata}
        earliest = wanted.position is StartPosition.EARLIEST
        with registering(connection, connection.consumers, number, self, Command.SUBSCRIBE, self.topic):
            asked = connection.request(
                f"subscribe {wanted.name} of {self.topic}", self._client.config.operation_timeout, Command.SUBSCRIBE,
                topic=self.topic, subscription=wanted.name, sub_type=int(_TYPES[wanted.type]), consumer_id=number,
                consumer_name=config.consumer_name, priority_level=config.priority_level or None,
                metadata=key_values(metadata),
                read_compacted=config.read_compacted or None,
                initial_position=int(InitialPosition.Earliest if earliest else InitialPosition.Latest),
                replicate_subscription_state=config.replicate_subscription_state or None,
                subscription_properties=key_values(wanted.properties),
            )  # fmt: skip
            # A broker that has to close what it is subscribing creates the subscription nevertheless, later: one
            # that ends with this consumer could not be deleted before that.
            await (asked if wanted.durable else to_the_end(asked, _SUBSCRIBING))
        self._connection = connection
        self._changed.wake()
        self._permits.begin(connection, number)
        self._fill()

    def failed(self, error: JMSError) -> None:
        """End with an error, which the next receive raises."""
        self.failure = error
        self._changed.wake()
        self._known.confirmed.wake()
        self._woken()

    # the connection's side

    def ended(self, error: JMSError, assigned: str) -> None:
        """Take the end on this connection: the broker sends everything unacknowledged again on the next one."""
        self._connection = None
        self._permits.end()
        self.activated(False)
        self._clear(RecordEvent.LINK_LOST)
        self._chunks.clear()
        if not self._parked:
            self._unconfirmed.update(self._acked)
            self._acked.clear()
        for receipt in list(self._receipts):
            receipt.cancel()  # a broker does not answer a consumer that it has closed
        self._keeper.ended(error, assigned)

    def migrated(self, cluster: str) -> None:
        """Take the service URL of the cluster to which its topic has moved."""
        self._keeper.migrated(cluster)

    def _clear(self, event: RecordEvent) -> None:
        """Pass an event of all records that wait here for being handed out, which empties the queue."""
        for record in [*self._ready, *self._early.take_all()]:
            states = record.entry.states
            if states[record.index] in (life.QUEUED, life.EARLY):
                life.step(states, record.index, event)
        self._ready.clear()

    def topic_ended(self) -> None:
        """Take that nothing follows: the topic is terminated."""
        _log.info("topic %s is terminated; nothing follows what is stored", self.topic)

    def activated(self, active: bool) -> None:
        """Take whether it is the consumer of a failover subscription that receives."""
        if self._silence is not None:
            if active:
                self._silence.begin()
            else:
                self._silence.end()

    async def _withheld(self) -> bool:
        """Return whether the broker has messages that it could send, and does not."""
        connection, what = self._connection, f"look for the end of {self.topic}"
        if connection is None or not self._permits.granted:
            return False
        try:
            timeout = self._client.config.operation_timeout
            answer = await connection.request(what, timeout, Command.GET_LAST_MESSAGE_ID, consumer_id=self._id)
        except JMSError:
            return False
        last, taken = answer["last_message_id"], answer.get("consumer_mark_delete_position")
        if taken is None or signed(last["entry_id"]) < 0 or connection is not self._connection:
            return False
        return (signed(taken["ledger_id"]), signed(taken["entry_id"])) < (last["ledger_id"], last["entry_id"])

    def _subscribe_again(self, why: str = "the broker sends nothing") -> None:
        connection = self._connection
        if connection is not None and connection.consumers.pop(self._id, None) is not None:
            connection.send_request(Command.CLOSE_CONSUMER, consumer_id=self._id)
            self.ended(TransportError(why), "")

    def arrived(self, delivery: Delivery, frame: Frame) -> None:
        """Take an entry."""
        if self._silence is not None:
            self._silence.broken()
        found = self._read(delivery, frame)
        if found is None:
            return
        (metadata, data, spans), whole = found
        size = 1 if spans is None else len(spans)
        if self._persistent:
            key = delivery.ledger, delivery.entry
            known = self._entries.get(key)
            if known is not None:
                self._known.confirmed.wake()  # the broker might tell what it knows to be acknowledged
            if known is not None and (known.metadata.publish_time, len(known.states)) != (metadata.publish_time, size):
                life.step_all(known.states, RecordEvent.REPLACED)
                known = None
        else:
            self._numbers += 1
            key, known = (0, self._numbers), None
        if known is None:
            entry = Entry(
                *key, self._partition, self.topic, metadata, data, life.arrived(size, delivery.ack_set),
                self, self._id, delivery.redelivery_count,
            )  # fmt: skip
            self._known.add(entry)
            if self._first is not None and key == self._first[:2]:
                self._leave_out(entry, self._first.batch_index)
            queued: Iterable[int] = _queued(entry)
        else:
            entry = known
            entry.metadata, entry.data = metadata, data
            queued = self._arrived_again(entry, delivery)
        damages = self._damages.take(key)
        entry.returns += damages
        if whole is not None:
            entry.chunks = tuple(dict.fromkeys((*entry.chunks, *whole.places[:-1])))
            entry.returns = max(entry.returns, min(whole.returns, entry.broker_count))
        again = self._ordered and (damages > 0 or known is not None) and bool(self._ready)
        late = again and _place(self._ready[-1])[:2] > key
        self._queue(entry, spans, queued)
        if late:
            self._sort()
        left = delivery.ack_set
        self._permits.used(
            size if left is None else (left & (1 << size) - 1).bit_count(),
            len(data) if whole is None else frame.end - frame.rest,
        )  # fmt: skip
        self._fill()

    def _arrived_again(self, entry: Entry, delivery: Delivery) -> list[int]:
        """Take an entry that is known; return the indexes of the records to queue."""
        if entry.owner is not self:
            self._take_over(entry)
        entry.registration, entry.broker_count = self._id, delivery.redelivery_count
        entry.returned = False
        queued, repeated = life.arrived_again(entry.states, delivery.ack_set)
        if entry.holders:
            for index in queued:
                entry.holders.pop(index, None)
        if repeated:
            self._acknowledge_later(entry)
        if life.IN_TRANSACTION in entry.states:
            self._known.recognised.add(entry)
        return queued

    def _read(self, delivery: Delivery, frame: Frame) -> tuple[Arrival, Whole | None] | None:
        """Read an entry, which can be the last chunk of a message; return None if nothing is complete with it."""
        key = delivery.ledger, delivery.entry
        try:
            arrival = read_arrival(frame)
            self._chunks.damaged.discard(key)
            if not is_chunk(arrival.metadata):
                return arrival, None
            whole = self._chunks.add(key, arrival.metadata, arrival.data, self._stopped)
            if whole is not None:
                return assembled(whole), whole
            self._damages.take(key)
            self._permits.used(1, len(arrival.data))
        except ProtocolError as error:
            self._permits.used(announced(frame), 0)
            self._chunks.damaged.add(key)
            again = self._damages.add(key, error, is_as_sent(frame))
            if again is not None:
                self._client.loop.call_later(again, self._request_again, key, self._id)
        self._fill()
        return None

    def _take_over(self, entry: Entry) -> None:
        """Become the owner of an entry of which another consumer might still have records."""
        other = entry.owner
        assert other is not None  # only a reader's has none
        other.release(entry)
        for index, state in enumerate(entry.states):
            if state in _OUT:
                entry.holders.setdefault(index, (other, entry.registration))
        entry.owner = self

    def redelivered(self, entry: Entry) -> None:
        """Take that the broker redelivers an entry by itself, to any consumer."""
        if not entry.returned:
            entry.returns += 1
            entry.returned = True
        self.release(entry)

    def release(self, entry: Entry) -> None:
        """Remove the records of an entry from the queue, because the broker gives it to another consumer."""
        life.step_all(entry.states, RecordEvent.LINK_LOST)
        self._ready = deque(one for one in self._ready if one.entry is not entry)
        self._fill()

    def _queue(self, entry: Entry, spans: Sequence[Span] | None, indexes: Iterable[int]) -> None:
        """Add records of an entry that has arrived to the queue, unless they are early or die."""
        if self._stopped:
            times = self._bounces[entry]
            self._bouncing.add(entry, min(_RETURN * 2 ** (times - 1), _RETURN_MOST) if times else 0.0)
        expires, failures = may_expire(entry), entry.failures
        base = life.redelivery_count(0, entry.broker_count, entry.returns)
        due = entry.metadata.deliver_at_time if self._ordered else None
        delay = 0.0 if due is None else due / 1000 - self._client.clock.now()
        compacted = self._subscription.config.read_compacted
        most = math.inf if self._dead_after is None else self._dead_after
        if not failures and not compacted and delay <= 0 and (0 if self._fails_here else base) <= most:
            self._ready += [  # as nearly all do
                WireRecord(entry, index, None if spans is None else spans[index], base, expires) for index in indexes
            ]
            return
        for index in indexes:
            if compacted and spans is not None and spans[index].single.compacted_out:
                entry.step(index, RecordEvent.ACKNOWLEDGED)  # there is no message any more
                self._acknowledge_later(entry)
                continue
            count = failures.get(index, 0) + base if failures else base
            record = WireRecord(entry, index, None if spans is None else spans[index], count, expires)
            if delay > 0:
                entry.step(index, RecordEvent.EARLY)
                self._early.keep(record, due or 0, delay)
            elif self.failures_of(entry, index) > most:
                self._bury(record)
            else:
                self._ready.append(record)

    def _leave_out(self, entry: Entry, first: int) -> None:
        """Acknowledge the records of a batch before the one that the subscription was moved to."""
        self._first = None
        for index in _queued(entry):
            if index < first:
                entry.step(index, RecordEvent.ACKNOWLEDGED)
                self._acknowledge_later(entry)

    def _request_again(self, key: EntryId, registration: int) -> None:
        if registration == self._id and self._connection is not None:  # else it comes by itself
            self._redeliver_places(self._chunks.with_incomplete(key))

    def announce(self) -> None:
        """Report what arrived."""
        if self._ready:
            self._woken()

    def _fill(self, waiting: bool | None = None) -> None:
        self._permits.fill(len(self._ready), waiting)

    def take(self, limit: int) -> list[WireRecord]:
        """Return up to ``limit`` records for the application."""
        if self._stopped:
            return []
        ready, found = self._ready, list[WireRecord]()
        while ready and len(found) < limit:
            record = ready.popleft()
            states, index = record.entry.states, record.index
            if states[index] == life.QUEUED:
                states[index] = life.HELD
                found.append(record)
        self._fill(len(found) < limit)
        if found:
            timeout = self._subscription.config.ack_timeout
            if timeout is not None:
                deadline = self._client.loop.time() + timeout
                for record in found:
                    record.entry.due[record.index] = deadline
                entries = [weakref.ref(entry) for entry in {record.entry: None for record in found}]
                self._client.loop.call_at(deadline, self._overdue, deadline, entries)
        return found

    # settling

    def acknowledge(self, records: Iterable[WireRecord]) -> None:
        """Acknowledge records, in the next group."""
        number = -1 if self._connection is None else self._id
        last: Entry | None = None
        for record in records:
            entry, index = record.entry, record.index
            states = entry.states
            if states[index] == life.HELD:
                states[index] = life.ACKED
            elif life.step(states, index, RecordEvent.ACKNOWLEDGED).action is not Action.ACKNOWLEDGE:
                continue
            if entry is last:
                continue
            last = entry
            if entry.registration == number:
                self._acknowledge_later(entry)
            else:
                self._settle(entry)

    def _settle(self, entry: Entry) -> None:
        """Acknowledge through the consumer that received an entry last."""
        owner = entry.owner
        assert owner is not None  # only a reader's has none
        self._unconfirmed.add(entry)
        if owner is not self:
            self._elsewhere.add(owner)
        owner.settle_later(entry)

    def settle_later(self, entry: Entry) -> None:
        """Acknowledge an entry in the next group; otherwise it is acknowledged when it arrives again."""
        if self._parked or (entry.registration == self._id and self._connection is not None):
            self._acknowledge_later(entry)

    def _acknowledge_later(self, entry: Entry) -> None:
        self._acked[entry] = None
        if self._grouping is None:
            wait = self._subscription.config.acknowledgements_group_time
            self._grouping = self._client.loop.call_later(wait, self.flush)

    def flush(self) -> None:
        """Send the acknowledgements that wait."""
        if self._grouping is not None:
            self._grouping.cancel()
            self._grouping = None
        connection, acked = self._connection, self._acked
        if connection is None and self._parked:
            if (acked or self._late_acks) and self._late is None:
                self._late = self._client.tasks.start(self._acknowledge_late())
            return
        self._acked = {}
        if connection is None or not acked:
            return
        whole = not self._subscription.config.batch_index_ack_enabled
        entries = [(entry, life.ack_set(entry.states)) for entry in acked]
        if whole:
            entries = [(entry, left) for entry, left in entries if not life.unacknowledged(entry.states)]
        for first in range(0, len(entries), _MOST_IDS):
            self._send_acks(connection, entries[first : first + _MOST_IDS])

    def _send_acks(self, connection: Connection, entries: list[tuple[Entry, int | None]]) -> None:
        ids = [acks.message_id(entry.ledger, entry.number, left, len(entry.states)) for entry, left in entries]
        chunks = [place for entry, _ in entries for place in entry.chunks]
        ids += [acks.message_id(*place) for place in chunks[:_MOST_IDS]]
        number = self._id
        receipt = connection.start_framed(Command.ACK, lambda request: acks.ack(number, ids, request_id=request))
        self._receipts.add(receipt)
        receipt.add_done_callback(partial(self._confirmed, entries))
        self._acknowledge_places(chunks[_MOST_IDS:])

    def _acknowledge_places(self, places: Iterable[EntryId]) -> None:
        """Acknowledge whole entries without a receipt."""
        for some in _some(places):
            if self._connection is not None:
                self._connection.write(acks.ack(self._id, [acks.message_id(*place) for place in some]))

    def _confirmed(self, entries: list[tuple[Entry, int | None]], receipt: asyncio.Future[dict[str, object]]) -> None:
        self._receipts.discard(receipt)
        self._known.confirmed.wake()
        if receipt.cancelled() or receipt.exception() is not None:
            self._unconfirmed.update(entry for entry, _ in entries)  # repeated when they are redelivered
            return
        error = receipt.result().get("error")
        if error is not None:
            what = f"acknowledge on {self._subscription.name} of {self.topic}"
            self._refused = error_of(what, int(str(error)), str(receipt.result().get("message") or ""))
            return
        for entry, left in entries:
            if life.confirm(entry.states, left):
                self._known.forget(entry)

    def acknowledge_in(self, transaction: WireTransaction, records: Iterable[WireRecord]) -> None:
        """Acknowledge records in a transaction, which can't be committed if one of them can't be."""
        entries: dict[Entry, list[int]] = {}
        elsewhere: dict[Owner, list[WireRecord]] = {}
        for record in records:
            entry, index, owner = record.entry, record.index, record.entry.owner
            if owner is not None and owner is not self:
                elsewhere.setdefault(owner, []).append(record)
            elif not transaction.contains(self, entry, index) and self._joins(transaction, record):
                transaction.acknowledged(self, entry, index)
                entries.setdefault(entry, []).append(index)
        for owner, others in elsewhere.items():
            owner.acknowledge_in(transaction, others)
        if not self._persistent:
            return  # nothing is stored, so nothing is acknowledged
        places = [(entry, _ack_set_in(entry, indexes)) for entry, indexes in entries.items()]
        for some in _apart(places):
            outcome: asyncio.Future[None] = self._client.loop.create_future()
            self._transacted.add(outcome)
            outcome.add_done_callback(self._transacted.discard)
            number = None if self._parked else self._id
            write = partial(self._send_acks_in, transaction, some, number, outcome)
            transaction.add(self.topic, self._subscription.name, Work(write, partial(self._end_ack, some, outcome)))

    def _joins(self, transaction: WireTransaction, record: WireRecord) -> bool:
        """Pass that a record is acknowledged in a transaction; if it can't be, neither can the transaction commit."""
        entry, index = record.entry, record.index
        state = entry.states[index]
        if not self._parked and (entry.registration != self._id or self._connection is None):
            why = "the connection was lost since it arrived"
        elif entry.step(index, RecordEvent.ACKNOWLEDGED_IN).action is Action.ACKNOWLEDGE_IN:
            return True
        elif state == life.IN_TRANSACTION:
            why = "another transaction acknowledged it"
        else:
            why = "it was acknowledged or given back"
        self._refused = TransactionRolledBackError(f"conflict on {record.message_id} of {self.topic}: {why}")
        transaction.fail(self._refused)
        return False

    def _end_ack(self, places: _Places, outcome: asyncio.Future[None], error: JMSError | None) -> None:
        if error is not None:
            self._unacknowledged.update(entry for entry, _ in places)
        outcome.set_result(None)

    def _send_acks_in(
        self, transaction: WireTransaction, places: _Places, number: int | None,
        outcome: asyncio.Future[None],
    ) -> None:  # fmt: skip
        """Send acknowledgements on a registration; None: on the next one, since it is closed at the broker."""
        connection = self._connection
        if connection is None and number is None and self._parked:
            self._late_acks.append((transaction, places, outcome))
            self.flush()
            return
        if connection is None or number not in (None, self._id):
            error = TransportError("the connection was lost since the messages arrived", "Disconnected")
            self._answer_in(transaction, places, outcome, error)
            return
        registration = self._id
        ids = [acks.message_id(entry.ledger, entry.number, left, len(entry.states)) for entry, left in places]
        ids += [acks.message_id(*place) for entry, _ in places for place in entry.chunks]
        sent = connection.start_framed(
            Command.ACK, lambda request: acks.ack(registration, ids, txn=transaction.txn, request_id=request)
        )
        self._receipts.add(sent)
        sent.add_done_callback(partial(self._answered_in, transaction, places, outcome))

    def _answered_in(
        self, transaction: WireTransaction, places: _Places, outcome: asyncio.Future[None],
        sent: asyncio.Future[dict[str, Any]],
    ) -> None:  # fmt: skip
        self._receipts.discard(sent)
        error: JMSError | None = None
        what = f"acknowledge in a transaction on {self._subscription.name} of {self.topic}"
        if sent.cancelled() or sent.exception() is not None:
            error = TransportError(f"{what}: the answer is lost with the connection", "Disconnected")
        elif "error" in sent.result():
            error = self._refused = error_of(what, sent.result()["error"], sent.result().get("message") or "")
            self._dropped.update(entry for entry, left in places if left is None)
        self._answer_in(transaction, places, outcome, error)

    def _answer_in(
        self, transaction: WireTransaction, places: _Places, outcome: asyncio.Future[None], error: JMSError | None
    ) -> None:
        """Report the answer to acknowledgements in a transaction, None if there is no error."""
        transaction.answered(error)
        self._end_ack(places, outcome, error)

    def records_ended(self, entries: Mapping[Entry, list[int]], committed: bool) -> None:
        """Take how records end that were acknowledged in a transaction; if not committed, they can arrive from now."""
        event = RecordEvent.COMMITTED if committed else RecordEvent.ABORTED
        for entry, indexes in entries.items():
            for index in indexes:
                entry.step(index, event)
            if not committed:
                owner = entry.owner
                assert owner is not None  # only a reader's has none
                owner.redelivered(entry)
            elif life.settled(entry.states):
                self._known.forget(entry)

    def transaction_ended(self, entries: Iterable[Entry], redelivered: bool) -> None:
        """Take that the broker has ended a transaction that had records of these entries.

        Those that arrived meanwhile were not handed out. Unless it is ``redelivered`` by the end, ask for them again,
        and always for those that were not acknowledged in it because that failed.
        """
        recognised = self._known.recognised.intersection(entries)
        self._known.recognised -= recognised
        missed = self._unacknowledged.intersection(entries)
        self._unacknowledged -= missed
        if not redelivered:
            missed |= recognised
        again = sorted(
            (entry for entry in missed if life.BACK in entry.states), key=lambda one: (one.ledger, one.number)
        )
        for entry in again:
            entry.returned = False
        if any(entry in self._dropped and entry.registration == self._id for entry in again):
            self._subscribe_again("the broker refused an acknowledgement and lost the message from its list")
        else:
            self.redeliver(again)

    async def _acknowledge_late(self) -> None:
        """Subscribe for what was acknowledged since the consumer was closed at the broker, and receive nothing."""
        config = self._client.config
        try:
            await self.open(config.operation_timeout)
            self.flush()
            late, self._late_acks = self._late_acks, []
            for transaction, places, outcome in late:
                self._send_acks_in(transaction, places, None, outcome)
            if self._receipts:
                await asyncio.wait(list(self._receipts), timeout=config.operation_timeout)
        except JMSError as error:
            self._refused = error  # the next settle raises it; the broker redelivers
            late, self._late_acks = self._late_acks, []
            for transaction, places, outcome in late:
                self._answer_in(transaction, places, outcome, error)
        finally:
            self._acked = {}
            await self._leave(config.close_timeout)
            self._late = None

    def find(self, record: SetAside) -> tuple[Entry, int] | None:
        """Return the entry and index of a record, or of one that was set aside; None if it is not of this consumer."""
        if isinstance(record, WireRecord):
            return record.entry, record.index
        assert isinstance(record, tuple)
        entry = self._entries.get((record[0], record[1]))
        return None if entry is None else (entry, max(0, record[3]))

    def set_aside(self, record: WireRecord) -> SetAside:
        """Keep only the id of a record."""
        record.entry.step(record.index, RecordEvent.SET_ASIDE)
        place: PlainWireId = tuple(record.message_id)  # type: ignore[assignment]  # of these four
        return place

    def give_back(self, entry: Entry, index: int, delay: float, counted: bool) -> None:
        """Return a record after ``delay`` seconds."""
        self._step_back(entry, index, RecordEvent.RETURNED if counted else RecordEvent.RETURNED_UNSEEN, delay)

    def _step_back(self, entry: Entry, index: int, event: RecordEvent, delay: float) -> None:
        step = entry.step(index, event)
        if step.counted and self._dead_after is not None and self.failures_of(entry, index) > self._dead_after:
            self._bury(self._record_of(entry, index))
            return
        if step.action is Action.WAIT:
            when = entry.due[index] = self._client.loop.time() + max(0.0 if self._ordered else _GATHER, delay)
            self._waiting.add_at((entry, index, when), when)

    def _count_of(self, entry: Entry, index: int) -> int:
        return life.redelivery_count(entry.failures.get(index, 0), entry.broker_count, entry.returns)

    def _record_of(self, entry: Entry, index: int) -> WireRecord:
        """Create the object of a record again."""
        count = entry.metadata.num_messages_in_batch
        span = None if count is None else split(entry.data, 0, count)[index]
        return WireRecord(entry, index, span, self._count_of(entry, index), may_expire(entry))

    def _due(self, items: list[tuple[Entry, int, float]]) -> None:
        """Redeliver records whose delay is over, each entry once."""
        back = []
        for entry, index, when in items:
            if self._closed or entry.states[index] != life.RETURNED or entry.due.get(index) != when:
                continue
            if self._ordered:
                self.due_here(self._record_of(entry, index))
            else:
                entry.step(index, RecordEvent.DUE)
                back.append(entry)
        if back:
            self.redeliver(back)

    def due_here(self, record: WireRecord) -> None:
        """Queue a record that waited in this process, in the topic's order."""
        owner = record.entry.owner
        if owner is not None and owner is not self:
            owner.due_here(record)
            return
        if self._closed or record.entry.states[record.index] not in (life.RETURNED, life.EARLY):
            return
        record.entry.step(record.index, RecordEvent.DUE_HERE)
        self._ready.append(record)
        self._sort()
        self._woken()

    def _sort(self) -> None:
        """Put the queue into the topic's order."""
        self._ready = deque(sorted(self._ready, key=_place))

    def redeliver(self, entries: Iterable[Entry]) -> None:
        """Have the broker redeliver entries; acknowledgements of their other records go first.

        Each is redelivered through the consumer that received it last: the broker ignores the others.
        """
        self.flush()
        chosen = []
        for entry in dict.fromkeys(entries):
            if entry.registration == self._id:
                if not entry.returned:
                    chosen.append(entry)
            elif entry.owner is not None and entry.owner is not self:
                entry.owner.redeliver([entry])
        if self._connection is None or not chosen:
            return
        for entry in chosen:
            entry.returns += 1
            entry.returned = True
        self._redeliver_places(place for entry in chosen for place in (*entry.chunks, (entry.ledger, entry.number)))

    def _redeliver_places(self, places: Iterable[EntryId]) -> None:
        command = Command.REDELIVER_UNACKNOWLEDGED_MESSAGES
        for some in _some(places):
            ids = [{"ledger_id": ledger, "entry_id": entry} for ledger, entry in some]
            if self._connection is not None:
                self._connection.write(encode_command(command, consumer_id=self._id, message_ids=ids))

    def _overdue(self, deadline: float, entries: list[weakref.ref[Entry]]) -> None:
        """Return records whose acknowledgement timeout is over; entries that are settled are gone."""
        backoff = self._subscription.config.ack_timeout_backoff
        for entry in [entry for reference in entries if (entry := reference()) is not None]:
            for index in [index for index, when in entry.due.items() if when == deadline]:
                if not self._closed and entry.states[index] == life.HELD:
                    delay = 0.0 if backoff is None else backoff.delay(self._count_of(entry, index))
                    self._step_back(entry, index, RecordEvent.TIME_OVER, delay)

    def count_delivery(self, record: WireRecord) -> None:
        """Count another delivery of a record that the application still holds."""
        if record.entry.step(record.index, RecordEvent.DELIVERED_AGAIN).counted:
            record.redelivery_count += 1

    # dead letters

    def failures_of(self, entry: Entry, index: int) -> int:
        """Return the number of failed deliveries of a record, as counted for dead letters.

        If selectors reject records, only those returned by applications of this process count: the broker's count
        includes the rejections.
        """
        return entry.failures.get(index, 0) if self._fails_here else self._count_of(entry, index)

    def _bury(self, record: WireRecord) -> None:
        failures = self.failures_of(record.entry, record.index)
        record.entry.step(record.index, RecordEvent.DEAD_LETTERED)
        self._dying(self, record, failures)

    def dead_letter(self, record: WireRecord) -> bool:
        """Take a record out for the dead letters; return whether it is to be stored there."""
        return record.entry.step(record.index, RecordEvent.DEAD_LETTERED).action is Action.STORE

    def letter_ended(self, record: WireRecord, stored: bool) -> None:
        """Take whether a dead letter is stored."""
        entry, index = record.entry, record.index
        if stored:
            if entry.step(index, RecordEvent.LETTER_STORED).action is Action.ACKNOWLEDGE:
                self._settle(entry)
        else:
            self._step_back(entry, index, RecordEvent.LETTER_FAILED, 1.0)

    # requests

    async def settle(self, timeout: float, receipt: bool) -> None:
        """Send the acknowledgements that wait, and wait for their receipts. Raises as ``Receiver.settle``."""
        self.flush()
        elsewhere, self._elsewhere = self._elsewhere, set()
        for owner in elsewhere:
            owner.flush()
        waiting: set[asyncio.Future[Any]] = {*self._transacted, *(self._receipts if receipt else ())}
        if self._late is not None:
            waiting.add(self._late)
        try:
            async with asyncio.timeout(timeout):
                if waiting:
                    await asyncio.wait(waiting)
                if receipt and self._unconfirmed:
                    await self._repeated()
        except TimeoutError:
            raise OperationTimeoutError(
                f"acknowledge on {self._subscription.name} of {self.topic}: no receipt within {timeout:g} s"
            ) from None
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused

    async def _repeated(self) -> None:
        """Wait for receipts that this consumer can't receive; what the broker does not redeliver has none, and ends it.

        A consumer that closes does not wait: the link might be lost for long.
        """
        entries, self._unconfirmed = self._unconfirmed, weakref.WeakSet()
        whole = not self._subscription.config.batch_index_ack_enabled
        while not self._closed:
            left = [
                one for one in entries if life.ACKED in one.states and not (whole and life.unacknowledged(one.states))
            ]
            if not left:
                return
            if self.failure is not None:
                raise self.failure
            for owner in {one.owner for one in left if one.owner is not None}:
                owner.flush()
            await self._known.confirmed.wait()

    async def _request(self, what: str, timeout: float, command: Command, **fields: Any) -> None:
        what = f"{what} {self._subscription.name} of {self.topic}"
        deadline = self._client.loop.time() + timeout
        try:
            async with asyncio.timeout(max(0.01, timeout)):
                while self._connection is None:  # for example after another seek, which closes the consumer
                    if self.failure is not None:
                        raise self.failure
                    await self._changed.wait()
        except TimeoutError:
            raise OperationTimeoutError(f"{what}: not connected to the broker within {timeout:g} s") from None
        left = max(0.01, deadline - self._client.loop.time())
        await self._connection.request(what, left, command, consumer_id=self._id, **fields)

    async def unsubscribe(self, timeout: float) -> None:
        """Delete the subscription. Raises as ``Receiver.unsubscribe``."""
        self.flush()
        try:
            await self._request("unsubscribe", timeout, Command.UNSUBSCRIBE)
        except TransportError as error:
            if error.error_code != "BrokerMetadataError" or _OTHERS not in str(error):
                raise
            what = f"unsubscribe {self._subscription.name} of {self.topic}"
            raise ConsumerBusyError(f"{what}: the subscription has other consumers; close them first") from error
        self._moved(next(self._client.ids))

    async def seek(self, position: StartPosition | WireId | int, timeout: float) -> None:
        """Move the subscription. Raises as ``Receiver.seek``."""
        self.flush()
        moved = next(self._client.ids)
        self._first = position if isinstance(position, WireId) and position.batch_index > 0 else None
        place: Mapping[str, Any] = {"message_publish_time": position}
        if isinstance(position, WireId):
            known = self._entries.get(position[:2])
            ledger, number = position[:2] if known is None or not known.chunks else known.chunks[0]
            index = position.batch_index
            place = {"message_id": {"ledger_id": ledger, "entry_id": number, "batch_index": index}}
        elif isinstance(position, StartPosition):
            place = {"message_id": ENDS[position]}
        try:
            await self._request("seek", timeout, Command.SEEK, **place)
        except BaseException:
            self._first = None  # if it was not moved, the records before that one must not be acknowledged
            raise
        self._moved(moved)

    def _moved(self, number: int) -> None:
        """Forget what arrived on registrations before ``number``: the broker sends other records now."""
        self._known.forget_past()
        self._known.confirmed.wake()
        for entry in list(self._entries.values()):
            if entry.registration <= number:
                life.step_all(entry.states, RecordEvent.MOVED)
                self._known.forget(entry)
        self._ready = deque(one for one in self._ready if one.entry.states[one.index] == life.QUEUED)
        self._fill()

    async def stop(self, timeout: float) -> None:
        """Return what was not handed out, and hold back permits; see ``Receiver.stop``.

        The broker redelivers whole entries: this process recognises the records of them that are handed out. On a
        key-shared subscription the consumer is closed at the broker, or its keys would have no consumer.
        """
        if self._stopped:
            return
        self._stopped = self._permits.held = True
        self.flush()
        if self._subscription.type is SubscriptionType.KEY_SHARED:
            self._parked = True
            self._clear(RecordEvent.STOPPED)
            await self._leave(timeout)
        else:
            self._return_queued(record.entry for record in self._ready)

    def _return_queued(self, entries: Iterable[Entry]) -> None:
        """Return what a stopped consumer has in its queue.

        While it has permits left, the broker still sends it records, which other consumers wait for: each is returned
        at once. If the broker sends it once more, perhaps there is no other, so that it is returned ever more slowly.
        """
        if not self._stopped or self._closed:
            return
        self._chunks.stop()
        chosen, rest = dict.fromkeys(entries), deque[WireRecord]()
        for record in self._ready:
            if record.entry not in chosen:
                rest.append(record)
            elif record.entry.states[record.index] == life.QUEUED:
                record.entry.step(record.index, RecordEvent.STOPPED)
        self._ready = rest
        self._bounces.update(chosen.keys())
        self.redeliver(chosen)

    async def resume(self, timeout: float, subscription: Subscription) -> None:
        """Receive again, with other metadata from the next registration on. Raises as ``open``, then stays stopped."""
        self._subscription = subscription
        if not self._stopped:
            return
        if self._parked:
            deadline = self._client.loop.time() + timeout
            if self._late is not None:
                await asyncio.wait({self._late}, timeout=timeout)
            await self.open(max(0.01, deadline - self._client.loop.time()))
            self._parked = False
        self._bouncing.close()
        self._bounces.clear()
        self._stopped = self._permits.held = False
        self._fill()
        self._woken()

    async def _leave(self, timeout: float) -> None:
        """Close it at the broker, which redelivers what is not acknowledged."""
        self._chunks.clear()
        await self._keeper.aclose()
        connection, self._connection = self._connection, None
        self._permits.end()
        self.activated(False)
        if connection is None or connection.consumers.pop(self._id, None) is None:
            return
        try:
            await connection.request(
                f"close the consumer of {self.topic}", max(0.01, timeout), Command.CLOSE_CONSUMER, consumer_id=self._id
            )
        except JMSError:
            return  # the connection is lost or silent: the broker redelivers when it notices

    def leave(self) -> None:
        """Request nothing more before the close, which returns everything.

        A broker whose last consumer leaves while it reads what it was asked to redeliver forgets the rest of the
        backlog until the next message is sent, or all consumers have left again.
        """
        self._closed = self._permits.held = True
        self._known.confirmed.wake()

    async def aclose(self, timeout: float) -> None:
        """Close it, and leave what is not acknowledged to other consumers, marked in this process."""
        self.leave()
        self.flush()
        if self._late is not None:
            await asyncio.wait({self._late}, timeout=timeout)
        self._permits.close()
        for entry in list(self._entries.values()):
            if entry.owner is self or any(holder is self for holder, _ in entry.holders.values()):
                self._give_up(entry)
        self._ready.clear()
        self._waiting.close()
        self._bouncing.close()
        await self._leave(timeout)

    def _give_up(self, entry: Entry) -> None:
        """Return all records of an entry that this consumer has."""
        returned = False
        for index, state in enumerate(entry.states):
            holder = entry.holders[index][0] if index in entry.holders else entry.owner
            if holder is self and (state in _OUT or state in (life.QUEUED, life.EARLY)):
                entry.step(index, RecordEvent.CLOSED)
                entry.holders.pop(index, None)
                returned = True
            elif holder is self and state == life.ACKED:  # redelivered if the rest of its batch is
                entry.count_failure(index)
        if entry.owner is not self:
            if returned and entry.owner is not None:
                entry.owner.redeliver([entry])
        elif entry.holders:
            entry.owner, entry.registration = next(iter(entry.holders.values()))
        else:
            self._known.leave(entry)


def _some(places: Iterable[EntryId]) -> Iterator[list[EntryId]]:
    """Yield as many ids as fit into a frame, until all are."""
    rest = iter(places)
    while found := list(islice(rest, _MOST_IDS)):
        yield found


def _apart(places: _Places) -> Iterator[_Places]:
    """Yield what each ACK in a transaction acknowledges: many whole entries, or a part of one.

    A broker that recovers a subscription ignores an ACK from the first entry on that is acknowledged meanwhile. A part
    of a batch behind it would arrive again although the transaction was committed.
    """
    whole = [place for place in places if not place[1]]
    for first in range(0, len(whole), _MOST_IDS):
        yield whole[first : first + _MOST_IDS]
    for place in places:
        if place[1]:
            yield [place]


def _ack_set_in(entry: Entry, indexes: list[int]) -> int | None:
    """Return the ack set for records acknowledged in a transaction; None without a batch.

    After a conflict about an entry without an ack set, the broker no longer redelivers the rest of a batch.
    """
    if entry.metadata.num_messages_in_batch is None:
        return None
    return life.ack_set_of(len(entry.states), indexes) or 0


def _queued(entry: Entry) -> list[int]:
    return [index for index, state in enumerate(entry.states) if state == life.QUEUED]


def _place(record: WireRecord) -> tuple[int, int, int]:
    return record.entry.ledger, record.entry.number, record.index

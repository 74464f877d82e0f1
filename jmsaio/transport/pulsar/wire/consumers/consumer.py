"""The consumer of one topic without partitions, or of one partition: permits, entries and acknowledgements.

What happens to a record is decided by ``jmsaio.rules.record_life``; this carries it out.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from jmsaio.errors import ConsumerBusyError, JMSError, OperationTimeoutError, TransportError
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import SetAside, WireId
from jmsaio.protocol.batch import Span
from jmsaio.protocol.commands import Command, InitialPosition, SubType, key_values
from jmsaio.protocol.framing import Frame
from jmsaio.protocol.messages import Delivery
from jmsaio.rules import record_life as life
from jmsaio.rules.record_life import RecordEvent
from jmsaio.transport.base import StartPosition, Subscription, SubscriptionType
from jmsaio.transport.clock import DelayQueue
from jmsaio.transport.names import CLIENT, process_name
from jmsaio.transport.pulsar.dead_letters import DeadLetters
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.connections.connection import Connection
from jmsaio.transport.pulsar.wire.connections.registration import Registration
from jmsaio.transport.pulsar.wire.consumers.acknowledging import Acknowledging
from jmsaio.transport.pulsar.wire.consumers.entries import ArrivingEntries
from jmsaio.transport.pulsar.wire.consumers.permits import Permits, Silence
from jmsaio.transport.pulsar.wire.consumers.returning import Early, Returning
from jmsaio.transport.pulsar.wire.records.record import ENDS, Entry, WireRecord, may_expire
from jmsaio.transport.waiting import to_the_end

_log = logging.getLogger(__name__)
#: States of a record that an application or this client has: its consumer returns it on close.
_OUT: Final = frozenset((life.HELD, life.ASIDE, life.RETURNED, life.LETTER, life.IN_TRANSACTION))
#: Seconds before a stopped consumer returns an entry that it returned before, at first and at most.
_RETURN, _RETURN_MOST = 0.1, 10.0
#: Seconds for which a cancelled opening waits for the broker's answer.
_SUBSCRIBING: Final = 1.0
#: The broker's words where a subscription has other consumers.
_OTHERS: Final = "shared consumer attempting to unsubscribe"


class Consumer:
    """Receives from one topic or partition, over any number of connections."""

    def __init__(
        self, client: Client, topic: str, subscription: Subscription, queue_size: int, woken: Callable[[], object],
        letters: DeadLetters | None, refused: Callable[[str, JMSError | None], object],
    ) -> None:  # fmt: skip
        self.topic = topic
        self._client = client
        self._at = Registration(client, self, topic, subscription.name, refused=partial(refused, topic))
        self._subscription = subscription
        self._woken = woken
        self._partition = split_partition(topic)[1]
        self._ordered = not subscription.shared
        self._permits = Permits(self._at, queue_size, client.share)
        self._stopped = False
        self._bounces = Counter[Entry]()  # how often each was returned since it is stopped
        self._bouncing = DelayQueue[Entry](client.loop, self._return_queued)
        self._ready = deque[WireRecord]()
        self._early = Early(topic, client.loop, self.due_here, self._fill)
        self._unsettled = client.unsettled(topic, subscription.name)
        self._entries = self._unsettled.entries
        self._numbers = 0  # entries of a non-persistent topic so far
        self.returning = Returning(self, self._at, subscription, letters)
        self.acks = Acknowledging(self, self._at, self._unsettled, subscription.config)
        self._arriving = ArrivingEntries(self._at, subscription.config, self._permits)
        self._silence: Silence | None = None
        if subscription.type is SubscriptionType.FAILOVER and self._at.persistent:
            self._silence = Silence(self._at, self._permits)
        self._first: WireId | None = None  # after a seek into a batch: earlier records of it are acknowledged

    async def open(self, timeout: float) -> None:
        await self._at.open(timeout)

    @property
    def failure(self) -> JMSError | None:
        return self._at.failure

    # the registration's side

    async def register(self, connection: Connection) -> dict[str, Any]:
        wanted, config = self._subscription, self._subscription.config
        metadata = {CLIENT: process_name(), **config.properties, **wanted.metadata}
        earliest = wanted.position is StartPosition.EARLIEST
        asked = connection.request(
            f"subscribe {wanted.name} of {self.topic}", self._client.config.operation_timeout, Command.SUBSCRIBE,
            topic=self.topic, subscription=wanted.name, sub_type=int(SubType[wanted.type.value]),
            consumer_id=self._at.number, consumer_name=config.consumer_name,
            priority_level=config.priority_level or None, metadata=key_values(metadata),
            read_compacted=config.read_compacted or None,
            initial_position=int(InitialPosition.Earliest if earliest else InitialPosition.Latest),
            replicate_subscription_state=config.replicate_subscription_state or None,
            subscription_properties=key_values(wanted.properties),
        )  # fmt: skip
        # A broker that has to close what it is subscribing creates the subscription nevertheless, later: one that ends
        # with this consumer could not be deleted before that.
        return await (asked if wanted.durable else to_the_end(asked, _SUBSCRIBING))

    def registered(self, connection: Connection, answer: dict[str, Any]) -> None:
        self._permits.restart()
        self._fill()

    def failed(self, error: JMSError) -> None:
        self._unsettled.confirmed.wake()
        self._woken()

    # the connection's side

    def ended(self, error: JMSError, assigned: str) -> None:
        """Drop what waits: the broker sends everything unacknowledged again on the next connection."""
        self._at.ended(error, assigned)
        self.activated(False)
        self._clear(RecordEvent.LINK_LOST)
        self._arriving.clear()
        self.acks.link_lost()

    def migrated(self, cluster: str) -> None:
        self._at.migrated(cluster)

    def _clear(self, event: RecordEvent) -> None:
        """Pass an event of all records that wait here for being handed out, which empties the queue."""
        for record in [*self._ready, *self._early.clear()]:
            states = record.entry.states
            if states[record.index] in (life.QUEUED, life.EARLY):
                life.step(states, record.index, event)
        self._ready.clear()

    def activated(self, active: bool) -> None:
        if self._silence is not None:
            if active:
                self._silence.begin()
            else:
                self._silence.end()

    def arrived(self, delivery: Delivery, frame: Frame) -> None:
        if self._silence is not None:
            self._silence.broken()
        found = self._arriving.read(delivery, frame, self._stopped)
        if found is None:
            self._fill()
            return
        (metadata, data, spans), whole = found
        size = 1 if spans is None else len(spans)
        if self._at.persistent:
            key = delivery.ledger, delivery.entry
            known = self._entries.get(key)
            if known is not None:
                self._unsettled.confirmed.wake()  # the broker might tell what it knows to be acknowledged
            if known is not None and (known.metadata.publish_time, len(known.states)) != (metadata.publish_time, size):
                life.step_all(known.states, RecordEvent.REPLACED)
                known = None
        else:
            self._numbers += 1
            key, known = (0, self._numbers), None
        if known is None:
            entry = Entry(
                *key, self._partition, self.topic, metadata, data, life.arrived(size, delivery.ack_set),
                self, self._at.number, delivery.redelivery_count,
            )  # fmt: skip
            self._unsettled.add(entry)
            queued = [index for index, state in enumerate(entry.states) if state == life.QUEUED]
        else:
            entry = known
            if entry.owner is not self:
                self._supersede(entry)
            entry.received(metadata, data, self, self._at.number, delivery.redelivery_count)
            queued = self._arrived_again(entry, delivery.ack_set)
        damages = self._arriving.pop_damages(key)
        if whole is not None:
            entry.complete(damages, whole.places[:-1], whole.returns)
        elif damages:
            entry.complete(damages)
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

    def _arrived_again(self, entry: Entry, left: int | None) -> list[int]:
        """Return the indexes of the records to queue of an entry that is known."""
        queued, repeated = life.arrived_again(entry.states, left)
        if entry.holders:
            for index in queued:
                entry.holders.pop(index, None)
        if repeated:
            self.acks.later(entry)
        if life.IN_TRANSACTION in entry.states:
            self._unsettled.recognised.add(entry)
        return queued

    def _supersede(self, entry: Entry) -> None:
        """Note which records of an entry another consumer, its owner, still has."""
        other = entry.owner
        assert other is not None  # only a reader's has none
        other.release(entry)
        for index, state in enumerate(entry.states):
            if state in _OUT:
                entry.holders.setdefault(index, (other, entry.registration))

    def redelivered(self, entry: Entry) -> None:
        entry.mark_returned()
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
        due = entry.metadata.deliver_at_time  # the broker delays on shared subscriptions only, and ends early
        delay = 0.0 if due is None else due / 1000 - self._client.clock.now()
        compacted, first = self._subscription.config.read_compacted, 0
        if self._first is not None and self._first[:2] == (entry.ledger, entry.number):
            first, self._first = self._first.batch_index, None
        if not (failures or compacted or first) and delay <= 0 and base <= self.returning.most:
            self._ready += [  # as nearly all do
                WireRecord(entry, index, None if spans is None else spans[index], base, expires) for index in indexes
            ]
            return
        for index in indexes:
            if index < first or (compacted and spans is not None and spans[index].single.compacted_out):
                entry.step(index, RecordEvent.ACKNOWLEDGED)  # before the place of a seek, or there is none any more
                self.acks.later(entry)
                continue
            count = failures.get(index, 0) + base if failures else base
            record = WireRecord(entry, index, None if spans is None else spans[index], count, expires)
            if delay > 0:
                entry.step(index, RecordEvent.EARLY)
                self._early.add(record, delay)
            elif self.returning.dies(entry, index):
                self.returning.dead_letter(record)
            else:
                self._ready.append(record)

    def announce(self) -> None:
        if self._ready:
            self._woken()

    def _fill(self, waiting: bool | None = None) -> None:
        held = self._stopped or self._at.closed or self._early.full
        self._permits.fill(len(self._ready), waiting, held)

    def receive(self, limit: int) -> list[WireRecord]:
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
            self.returning.watch(found)
        return found

    # settling

    def find(self, record: SetAside) -> tuple[Entry, int] | None:
        """Return the entry and index of a record, or of one that was set aside; None if it is not of this consumer."""
        if isinstance(record, WireRecord):
            return record.entry, record.index
        assert isinstance(record, tuple)
        entry = self._entries.get((record[0], record[1]))
        return None if entry is None else (entry, max(0, record[3]))

    def due_here(self, record: WireRecord) -> None:
        """Queue a record that waited in this process, in the topic's order if the subscription has one."""
        owner = record.entry.owner
        if owner is not None and owner is not self:
            owner.due_here(record)
            return
        if self._at.closed or record.entry.states[record.index] not in (life.RETURNED, life.EARLY):
            return
        record.entry.step(record.index, RecordEvent.DUE_HERE)
        self._ready.append(record)
        if self._ordered:
            self._sort()
        self._woken()

    def _sort(self) -> None:
        self._ready = deque(sorted(self._ready, key=_place))

    def redeliver(self, entries: Iterable[Entry]) -> None:
        """Have the broker redeliver entries, through the consumers that received them last: it ignores others."""
        self.acks.flush()
        chosen = []
        for entry in dict.fromkeys(entries):
            if entry.registration == self._at.number:
                if not entry.returned:
                    chosen.append(entry)
            elif entry.owner is not None and entry.owner is not self:
                entry.owner.redeliver([entry])
        if self._at.connection is None or not chosen:
            return
        for entry in chosen:
            entry.mark_returned()
        self._at.redeliver(place for entry in chosen for place in (*entry.chunks, (entry.ledger, entry.number)))

    # requests

    async def unsubscribe(self, timeout: float) -> None:
        self.acks.flush()
        if self._at.parked and await self.acks.late_sent(timeout):
            await self._at.open(timeout)
        try:
            await self._at.request("unsubscribe", timeout, Command.UNSUBSCRIBE)
        except TransportError as error:
            if error.error_code != "BrokerMetadataError" or _OTHERS not in str(error):
                raise
            what = f"unsubscribe {self._subscription.name} of {self.topic}"
            raise ConsumerBusyError(f"{what}: the subscription has other consumers; close them first") from error
        self._moved(next(self._client.ids))

    async def seek(self, position: StartPosition | WireId | int, timeout: float) -> None:
        self.acks.flush()
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
            await self._at.request("seek", timeout, Command.SEEK, **place)
        except BaseException:
            self._first = None  # if it was not moved, the records before that one must not be acknowledged
            raise
        self._moved(moved)

    def _moved(self, number: int) -> None:
        """Forget what arrived on registrations before ``number``: the broker sends other records now."""
        self._unsettled.forget_past()
        self._unsettled.confirmed.wake()
        for entry in list(self._entries.values()):
            if entry.registration <= number:
                life.step_all(entry.states, RecordEvent.MOVED)
                self._unsettled.remove(entry)
        self._ready = deque(one for one in self._ready if one.entry.states[one.index] == life.QUEUED)
        self._fill()

    async def stop(self, timeout: float) -> None:
        """Return what was not handed out, and hold back permits; see ``Receiver.stop``.

        The broker redelivers whole entries: this process recognises the records of them that are handed out. On a
        key-shared subscription the consumer is closed at the broker, or its keys would have no consumer.
        """
        if self._stopped:
            return
        self._stopped = True
        self.acks.flush()
        if self._subscription.type is SubscriptionType.KEY_SHARED:
            self._clear(RecordEvent.STOPPED)
            self._arriving.clear()
            await self._at.park(timeout)
        else:
            self._return_queued(record.entry for record in self._ready)

    def _return_queued(self, entries: Iterable[Entry]) -> None:
        """Return what a stopped consumer has in its queue.

        While it has permits left, the broker still sends it records, which other consumers wait for: each is returned
        at once. If the broker sends it once more, perhaps there is no other, so that it is returned ever more slowly.
        """
        if not self._stopped or self._at.closed:
            return
        self._arriving.stop()
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
        if self._at.parked:
            deadline = self._client.loop.time() + timeout
            if not await self.acks.late_sent(timeout):  # one registration after the other
                what = f"resume {subscription.name} of {self.topic}"
                raise OperationTimeoutError(f"{what}: acknowledgements were not sent within {timeout:g} s")
            try:
                await self._at.resume(max(0.01, deadline - self._client.loop.time()))
            finally:
                self.acks.send_late()
        self._bouncing.close()
        self._bounces.clear()
        self._stopped = False
        self._fill()
        self._woken()

    def begin_close(self) -> None:
        """Request nothing more before the close, which returns everything.

        A broker whose last consumer leaves while it reads what it was asked to redeliver forgets the rest of the
        backlog until the next message is sent, or all consumers have left again.
        """
        self._at.begin_close()
        self._unsettled.confirmed.wake()

    async def aclose(self, timeout: float) -> None:
        """Close it, and leave what is not acknowledged to other consumers, marked in this process."""
        self.begin_close()
        self.acks.flush()
        await self.acks.late_sent(timeout)
        self._permits.close()
        for entry in list(self._entries.values()):
            if entry.owner is self or any(holder is self for holder, _ in entry.holders.values()):
                self._return_all(entry)
        self._ready.clear()
        self.returning.close()
        self._bouncing.close()
        self._arriving.clear()
        self.activated(False)
        await self._at.close(timeout)

    def _return_all(self, entry: Entry) -> None:
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
            entry.move_to(*next(iter(entry.holders.values())))
        else:
            self._unsettled.retire(entry)


def _place(record: WireRecord) -> tuple[int, int, int]:
    return record.entry.ledger, record.entry.number, record.index

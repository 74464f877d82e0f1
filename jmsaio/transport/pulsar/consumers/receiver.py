"""``PulsarReceiver``: records of one subscription, from one native consumer for each topic or partition.

pulsar-client's own consumer over several topics is used for patterns only: with one consumer a partition every call
knows its topic, acknowledgement receipts are possible, and a message passes one queue and one thread less.

Exclusive and failover subscriptions: what is given back is redelivered from here, in order. pulsar-client would make
the broker send everything unacknowledged again, behind what is already prefetched. Shared ones: given back to the
broker.
"""

from __future__ import annotations

import asyncio
import logging
import re
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from jmsaio.errors import (
    ConsumerBusyError,
    IllegalStateError,
    JMSError,
    NotFoundError,
    ObjectClosedError,
    TransportError,
)
from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.rules.share import Share
from jmsaio.transport.base import Position, Subscription, SubscriptionType, Transaction, Wake
from jmsaio.transport.pulsar.consumers.sizing import Sizing
from jmsaio.transport.pulsar.consumers.stopping import OpenNative, Stopping
from jmsaio.transport.pulsar.emulation.dead_letters import DeadLetters
from jmsaio.transport.pulsar.emulation.unacked.delay_queue import DelayQueue
from jmsaio.transport.pulsar.emulation.unacked.delays import DelayedRecords
from jmsaio.transport.pulsar.emulation.unacked.prior_deliveries import PriorDeliveries
from jmsaio.transport.pulsar.emulation.unacked.tally import Tally
from jmsaio.transport.pulsar.emulation.unacked_tracker import UnackedTracker
from jmsaio.transport.pulsar.native.bridge import Bridge, end, wait_for
from jmsaio.transport.pulsar.native.handles import ConsumerHandle, MessageHandle
from jmsaio.transport.pulsar.native.native_consumer import NativeConsumer
from jmsaio.transport.pulsar.native.native_log import Damage
from jmsaio.transport.pulsar.native.options import NATIVE_NACK_DELAY, native_position
from jmsaio.transport.pulsar.native.record import PulsarRecord

_log = logging.getLogger("jmsaio")

#: pulsar-client sends grouped acknowledgements this often, in seconds; the wheel has no setting for it.
ACK_GROUP_TIME = 0.1
#: Bytes that the receivers of a transport prefetch, unless its configuration says something else.
PREFETCH_BYTES = 32 * 1024 * 1024
#: Seconds until a copy of what another receiver has goes back.
COPY_DELAY = 1.0
#: Types whose records go back to the broker, one entry at a time.
SHARED = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)

#: Errors that the broker itself answers with, so that it has read what was sent before.
_ANSWERS = ("BrokerMetadataError", "BrokerPersistenceError", "UnknownError", "AuthorizationError", "TopicNotFound")


class PulsarReceiver:
    """Takes records of one subscription. Made by ``Subscriber``.

    Attributes:
        subscription: what it subscribed to.
        dead_letters: where records go that were given back too often, or None.
        after_close: called at last, with the seconds left, if the subscription ends with its last consumer and this
            receiver could not delete it because there were others.
    """

    def __init__(
        self,
        bridge: Bridge,
        subscription: Subscription,
        wake: Wake,
        closed: Callable[[PulsarReceiver], None],
        handed: PriorDeliveries | None = None,
        counts: Tally | None = None,
        share: Share | None = None,
    ) -> None:
        self.subscription = subscription
        self.dead_letters: DeadLetters | None = None
        self.after_close: Callable[[float], Awaitable[None]] | None = None
        self._bridge = bridge
        self._wake = wake
        self._on_closed = closed
        self._shared = subscription.type in SHARED
        self._native_consumers: list[NativeConsumer] = []
        self._unacked = UnackedTracker(bridge, self._shared, subscription.name, handed, self._come_back)
        self._tally = Tally() if counts is None else counts
        if self._shared:
            self._tally.trackers.add(self._unacked)
        self._back: deque[PulsarRecord] = deque()
        self._was_early: deque[PulsarRecord] = deque()  # delayed ones that are due, in the order of their times
        self._uncounted: set[PulsarRecord] = set()  # on their way back without being counted
        self._stopping = Stopping(bridge, subscription, self._unacked, self._native_consumers, self._woken)
        self._share = Share(PREFETCH_BYTES) if share is None else share
        self._sizing = Sizing(bridge, self._stopping, self._native_consumers, self._share)
        source = ", ".join(subscription.topics) or subscription.pattern or ""
        self.delayed = None if self._shared else DelayedRecords(source)
        self._nacked = DelayQueue(bridge.loop, self._due)
        self._late = DelayQueue(bridge.loop, self._timed_out)
        self._endings: list[Callable[[], object]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._turn = 0
        self._closed = False
        self._timeout = subscription.config.ack_timeout

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._unacked.out)} records out"
        return f"<PulsarReceiver {self.subscription.name}, {len(self._native_consumers)} native consumers, {state}>"

    def add_native_consumer(self, native: ConsumerHandle, topic: str | None) -> None:
        """Receive from one more native consumer; ``wake`` is called, for it may have something."""
        what = f"receive from {topic or self.subscription.pattern}, subscription {self.subscription.name}"
        native_consumer = NativeConsumer(
            self._bridge, native, native.receive_async, native.receive, topic, what, self._woken
        )
        self._native_consumers.append(native_consumer)
        self._share.join(native_consumer)
        self._stopping.sized()
        self._bridge.loop.call_soon(self._woken)

    @property
    def topics(self) -> list[str]:
        """Topics and partitions received from; empty with a pattern."""
        return [
            native_consumer.topic for native_consumer in self._native_consumers if native_consumer.topic is not None
        ]

    @property
    def natives(self) -> list[ConsumerHandle]:
        """Its native consumers; none while it is stopped."""
        return [native_consumer.native for native_consumer in self._native_consumers if not native_consumer.stopped]

    @property
    def heard(self) -> int:
        """Records that came, up to now."""
        return sum(native_consumer.serial for native_consumer in self._native_consumers)

    @property
    def stopped(self) -> bool:
        """Nothing is received until ``resume``."""
        return self._stopping.stopped

    def opens_with(self, open_native: OpenNative) -> None:
        """How to subscribe once more, after ``stop``."""
        self._stopping.open_native = open_native

    def on_close(self, function: Callable[[], object]) -> None:
        """Call a function when the receiver is closed."""
        self._endings.append(function)

    def owns(self, task: asyncio.Task[None]) -> None:
        """End a task when the receiver is closed."""
        self._tasks.append(task)

    @property
    def closed(self) -> bool:
        """True after ``aclose`` was called."""
        return self._closed

    def _woken(self) -> None:
        if not self._closed and self._bridge.failure is None:
            self._sizing.look()
            self._wake()

    def receive(self, limit: int) -> list[ReceivedRecord]:
        """Take up to ``limit`` records that are here, without waiting (see ``Receiver.receive``).

        Raises:
            TransportError: the one that ended the receiver, once nothing is left.
            ObjectClosedError: the receiver or the transport is closed.
        """
        self._check()
        taken: list[PulsarRecord] = []
        for waiting in (self._back, self._was_early):
            while waiting and len(taken) < limit:
                record = waiting.popleft()
                self._unacked.out[record] = False
                taken.append(record)
        most = limit if self.delayed is None else min(limit, len(taken) + self.delayed.room())
        if not self._sizing.waiting and len(taken) < most:
            self._take(taken, most)
        came = len(taken)
        if self.delayed is not None:
            taken = self._keep_early(self.delayed, taken)
        if self._tally and self._shared:
            taken = self._without_copies(taken)
            self._count_anew(taken)
        if self._timeout is not None or self.dead_letters is not None:
            taken = self._inspect(taken)
        if len(taken) < came:  # though the native consumers may have more: what lies behind is looked at soon
            self._bridge.loop.call_soon(self._woken)
        elif not taken and limit > 0:
            self._raise_failure()
        return list[ReceivedRecord](taken)

    def _take(self, taken: list[PulsarRecord], limit: int) -> None:
        """Take from the native consumers in turn, until there are ``limit`` records."""
        native_consumers, first = self._native_consumers, self._turn
        self._turn += 1
        for offset in range(len(native_consumers)):
            native_consumer = native_consumers[(first + offset) % len(native_consumers)]
            while len(taken) < limit:
                wanted = limit - len(taken)
                natives = native_consumer.take(wanted)
                if natives:
                    if self._sizing.too_large(natives):
                        return  # of no native consumer: nothing may come to the application before all are closed
                    self._unacked.admit(native_consumer, natives, taken)
                if len(natives) < wanted:
                    break

    def _check(self) -> None:
        if self._bridge.failure is not None:
            self._bridge.check()
        if self._closed:
            raise ObjectClosedError(f"the receiver of subscription {self.subscription.name} is closed")

    def _raise_failure(self) -> None:
        for native_consumer in self._native_consumers:
            if native_consumer.failure is not None:
                raise native_consumer.failure

    def _without_copies(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Keep back what another receiver of this process has got, too: it is settled there."""
        held, settled = self._tally.copies(self._unacked, taken, self._bridge.loop.time())
        if not held and not settled:
            return taken
        self._unacked.acknowledge(settled)
        turned = self._unacked.turn_back(held)
        self._uncounted.update(turned)
        for record in turned:
            self._nacked.add(record, COPY_DELAY)
        copies = {*held, *settled}
        return [record for record in taken if record not in copies]

    def _count_anew(self, taken: list[PulsarRecord]) -> None:
        """Leave out what the broker counted although no application had the record."""
        for record in taken:
            counted = record.native.redelivery_count() if record.redelivery_count else 0
            if counted:
                count = self._tally.redeliveries(record.place, counted)
                record.redelivery_count = max(count, int(record in self._unacked.handed.marked))

    def failures(self, record: PulsarRecord) -> int:
        """How often a record came again, for the dead letters.

        Where selectors reject records, only what applications of this process gave back counts: the broker's number
        tells of the rejections of other processes, too.
        """
        here = self._shared and self.subscription.selective
        return self._tally.failures(record.place) if here else record.redelivery_count

    def _keep_early(self, delayed: DelayedRecords, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Keep back what was delivered before its time: it is redelivered then, uncounted."""
        early = delayed.early(taken)
        if not early:
            return taken
        for record in self._unacked.turn_back(early):
            delayed.keep(record)
            self._uncounted.add(record)
            self._nacked.add_at(record, early[record])
        return [record for record in taken if record not in early]

    def _inspect(self, taken: list[PulsarRecord]) -> list[PulsarRecord]:
        """Keep back what came too often, and start the acknowledgement timers of the rest."""
        letters = self.dead_letters
        if letters is not None:
            dead = self._unacked.turn_back(record for record in taken if letters.came_too_often(record))
            if dead:
                letters.put(dead)
                taken = [record for record in taken if not letters.came_too_often(record)]
        if self._timeout is not None:
            for record in taken:
                self._late.add(weakref.ref(record), self._timeout)
        return taken

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Take acknowledgements; pulsar-client sends them every 100 ms, a batch at once (``UnackedTracker``).

        Records already settled are ignored.

        Raises:
            ObjectClosedError: the receiver or the transport is closed.
            IllegalStateError: ``transaction`` is given, which pulsar-client does not offer.
        """
        self._check()
        if transaction is not None:
            raise IllegalStateError("pulsar-client has no transactions (Capabilities.transactions)")
        self._acknowledge(records)

    def _acknowledge(self, records: Sequence[object], waiting: bool = False) -> None:
        self._unacked.acknowledge(records, waiting)
        if self._stopping.held:
            self._stopping.settled(records, acknowledged=True)

    def negative_acknowledge(self, records: Sequence[SetAside], delay: float, *, counted: bool = True) -> None:
        """Give records back; they are redelivered after about ``delay`` seconds.

        On shared subscriptions the broker counts always, and the delay is at least 0.1 s, pulsar-client's smallest.

        Raises:
            ObjectClosedError: the receiver or the transport is closed.
        """
        self._check()
        turned = self._unacked.turn_back(records)
        letters = self.dead_letters
        if letters is not None and counted:
            letters.put([record for record in turned if letters.given_back_too_often(record)])
            turned = [record for record in turned if not letters.given_back_too_often(record)]
        wait = delay - NATIVE_NACK_DELAY if self._shared else delay
        if not counted:
            self._uncounted.update(turned)
        elif self._shared:
            for record in turned:
                self._tally.record_failed(record.place)
        for record in turned:
            self._nacked.add(record, wait)

    def set_aside(self, records: Sequence[ReceivedRecord]) -> list[SetAside]:
        """Keep only the places of records that are given back later."""
        return self._unacked.set_aside(records)

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        """Move a record to the dead letters (see ``Receiver.dead_letter``).

        Raises:
            ObjectClosedError: the receiver or the transport is closed.
        """
        if self.dead_letters is None:
            self.acknowledge((record,))
            return
        self._check()
        self.dead_letters.put(self._unacked.turn_back((record,)), properties)

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """Count one more delivery, here alone: the broker can't be told; others learn it when a record goes back."""
        for record in records:
            if self._unacked.out.get(record) is False:  # type: ignore[call-overload]  # foreign ones are not in it
                assert isinstance(record, PulsarRecord)
                record.redelivery_count += 1

    def letter_moved(self, record: PulsarRecord) -> None:
        """A dead letter is stored in its topic: it is acknowledged here."""
        if self._bridge.failure is None:
            self._acknowledge((record,), waiting=True)

    def letter_failed(self, record: PulsarRecord) -> None:
        """A dead letter could not be stored: it is redelivered in a second."""
        if not self._closed and self._bridge.failure is None:
            self._nacked.add(record, 1.0)

    def _due(self, records: list[PulsarRecord]) -> None:
        """Records whose delay is over go back: to the broker, or on ordered subscriptions to the head of the queue."""
        if self._bridge.failure is not None:
            return
        early = set() if self.delayed is None else self.delayed.release(records)
        dismissed = self._unacked.dismiss(records)
        reread = self._unacked.reread
        here = [record for record in dismissed if not self._shared or record in reread]
        if self._shared:
            there = [record for record in dismissed if record not in reread] if reread else dismissed
            self._give_back(there)
            self._unacked.unseen([record for record in there if record in self._uncounted])
            if self._stopping.held:
                self._stopping.settled(there, acknowledged=False)
        if here:
            self._was_early.extend(self._unacked.again((one for one in here if one in early), self._uncounted))
            self._come_back(self._unacked.again((one for one in here if one not in early), self._uncounted))
        self._uncounted.difference_update(dismissed)

    def _come_back(self, records: list[PulsarRecord]) -> None:
        """Records that are on their way back come next, in their order."""
        if not self._closed:
            self._back = deque(sorted((*records, *self._back), key=lambda record: record.place))
            self._woken()

    def receives(self, damage: Damage) -> bool:
        """Whether an entry was meant for this subscription."""
        return damage.subscription == self.subscription.name and self._native_consumer_of(damage.topic) is not None

    def _native_consumer_of(self, topic: str) -> NativeConsumer | None:
        pattern = self.subscription.pattern
        if pattern is not None:  # its topics are not known; one of the namespace is taken for one of them
            same = pattern.rpartition("/")[0] == topic.rpartition("/")[0]
            return self._native_consumers[0] if same and self._native_consumers else None
        return next(
            (native_consumer for native_consumer in self._native_consumers if native_consumer.topic == topic), None
        )

    def deliver_again(self, topic: str, natives: list[MessageHandle]) -> None:
        """Hand out an entry that was read again, because pulsar-client acknowledged it unseen (``Rereading``)."""
        native_consumer = self._native_consumer_of(topic)
        if native_consumer is not None:
            self._come_back(self._unacked.admit_again(native_consumer, natives))

    def unsettled(self, ledger: int, entry: int) -> int:
        """Records of an entry that was read again which are not acknowledged."""
        return sum(record.place[:2] == (ledger, entry) for record in self._unacked.reread)

    def renew(self) -> None:
        """Reopen the native consumers as soon as the application has settled what it has, or 3 seconds later."""
        self._sizing.renew()

    def _give_back(self, records: list[PulsarRecord]) -> None:
        """Give records back to the broker, which takes entries: a batch once."""
        before: tuple[NativeConsumer, int, int] | None = None
        for record in records:
            place = record.message_id
            entry = record.native_consumer, place.ledger, place.entry
            if entry != before:
                native = record.native if record.native is not None else native_position(place)
                record.native_consumer.native.negative_acknowledge(native)
                self._tally.entry_returned(place.ledger, place.entry)
                before = entry

    def _timed_out(self, references: list[weakref.ref[PulsarRecord]]) -> None:
        """Records that were not acknowledged in time go back; our own timer, for pulsar-client's starts at 10 s."""
        if self._bridge.failure is not None:
            return
        backoff = self.subscription.config.ack_timeout_backoff
        for record in [record for reference in references if (record := reference()) is not None]:
            delay = 0.0 if backoff is None else backoff.delay(record.redelivery_count)
            self.negative_acknowledge([record], delay)

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        """Wait until the acknowledgements taken so far are sent.

        With ``receipt`` or ``ackReceiptEnabled``: until the broker has them.

        pulsar-client offers neither a flush nor receipts: it sends every 100 ms, so that time is waited for; the
        broker works off one connection in order, so its answer to a later request is the receipt.

        Raises:
            OperationTimeoutError: no receipt in time.
            ObjectClosedError: closed meanwhile.

        Cancellation: acknowledgements go out nevertheless.
        """
        self._check()
        self._unacked.tell_all()
        loop = self._bridge.loop
        deadline = loop.time() + timeout
        await self._stopping.drain(timeout)
        told = self._unacked.told_at
        if told is None:
            return
        pause = told + 1.5 * ACK_GROUP_TIME - loop.time()
        if pause > 0:
            await asyncio.sleep(min(pause, timeout))
        if receipt or self.subscription.config.ack_receipt_enabled:
            await self._receipts(deadline - loop.time())
        if self._unacked.told_at == told:
            self._unacked.told_at = None

    async def _receipts(self, timeout: float) -> None:
        """Wait until the broker has worked off what was sent before: any answer of the broker tells it."""
        asking = self._start(
            lambda native_consumer: native_consumer.native.get_last_message_id_async, "wait for receipts"
        )
        try:
            await self._bridge.ask_all(asking, timeout)
        except TransportError as error:
            if error.error_code not in _ANSWERS:
                raise

    def _start(
        self,
        start: Callable[[NativeConsumer], Callable[[Callable[..., None]], object]],
        what: str,
        native_consumers: Sequence[NativeConsumer] | None = None,
    ) -> dict[asyncio.Future[object], str]:
        """Start one native operation on every native consumer."""
        futures = {}
        for native_consumer in self._native_consumers if native_consumers is None else native_consumers:
            if native_consumer.stopped:  # nothing native stands behind it
                continue
            words = (
                f"{what}, {native_consumer.topic or self.subscription.pattern}, subscription {self.subscription.name}"
            )
            futures[self._bridge.start(start(native_consumer), words)] = words
        return futures

    async def unsubscribe(self, timeout: float) -> None:
        """Delete the subscription. The receiver must be closed afterwards.

        Raises:
            ConsumerBusyError: others consume from it.
            OperationTimeoutError: no answer in time.
        """
        self._check()
        await self._unsubscribe(timeout)

    async def _unsubscribe(self, timeout: float) -> None:
        await self._sizing.settled(timeout)
        await self._stopping.resume(timeout, prefetch=False)
        try:
            await self._bridge.ask_all(
                self._start(lambda native_consumer: native_consumer.native.unsubscribe_async, "unsubscribe"), timeout
            )
        except TransportError as error:
            if error.error_code != "BrokerMetadataError":
                raise
            # The broker's answer to the unsubscribing of one of several consumers, whatever its name says.
            raise ConsumerBusyError(
                f"unsubscribe {self.subscription.name}: others consume from the subscription; close them first"
            ) from error

    async def seek(self, position: Position | WireId | int, timeout: float) -> None:
        """Move the subscription: to an end, to a record (which comes next), or to a publish time in milliseconds.

        Raises:
            TransportError: the broker refused; the record's partition is not received from.
            OperationTimeoutError: no answer in time.
            IllegalStateError: the receiver is stopped, so that there is nothing that could be moved.
        """
        self._check()
        await self._sizing.settled(timeout)
        if self._stopping.stopped:
            raise IllegalStateError(f"seek {self.subscription.name}: the receiver is stopped; resume it first")
        target = native_position(position)
        native_consumers = self._native_consumers
        if isinstance(position, WireId) and len(native_consumers) > 1:
            native_consumers = [
                native_consumer
                for native_consumer in native_consumers
                if (native_consumer.topic or "").endswith(f"-partition-{position.partition}")
            ]
            if not native_consumers:
                raise NotFoundError(f"seek to {position}: no such partition is received from")
        for native_consumer in native_consumers:
            # Not afterwards: pulsar-client may hand over the first record of the new place before it says "moved".
            native_consumer.discard()
        self._unacked.tell_all()
        seeking = self._start(
            lambda native_consumer: partial(native_consumer.native.seek_async, target), "seek", native_consumers
        )
        await self._bridge.ask_all(seeking, timeout)
        self._nacked.close()
        self._late.close()
        self._unacked.clear()
        pattern, topics = self.subscription.pattern, {native_consumer.topic for native_consumer in native_consumers}
        moved = topics.__contains__ if pattern is None else re.compile(pattern).match
        self._unacked.handed.forget(self.subscription.name, lambda topic: bool(moved(topic)))
        if self.delayed is not None:
            self.delayed.clear()
        self._uncounted.clear()
        self._back.clear()
        self._was_early.clear()

    async def stop(self, timeout: float) -> None:
        """Take nothing more (see ``Receiver.stop``): the native consumers are closed (see ``Stopping``)."""
        self._check()
        await self._sizing.settled(timeout)
        if self._shared:
            reread = self._unacked.reread
            self._back = deque(record for record in self._back if record in reread)
            self._unacked.forget_aside()
            waiting = self._nacked.take_all()
            self._due([record for record in waiting if record in reread])
            unseen, self._uncounted = self._uncounted, set()
            seen = [record for record in waiting if record not in unseen and record not in reread]
            await self._stopping.stop(seen, list(unseen), timeout)

    async def resume(self, timeout: float) -> None:
        """Take records again after ``stop``.

        Raises:
            JMSError: as of subscribing; the receiver is stopped then.
        """
        self._check()
        await self._sizing.settled(timeout)
        await self._stopping.resume(timeout)

    async def aclose(self, timeout: float) -> None:
        """Send grouped acknowledgements, give back what is not acknowledged, and close. Idempotent.

        A subscription that is not durable is deleted with its last consumer.

        Cancellation: closing goes on.
        """
        if self._closed:
            return
        self._closed = True
        self._tally.trackers.discard(self._unacked)
        self._nacked.close()
        self._late.close()
        self._on_closed(self)
        for ending in self._endings:
            ending()
        if self._bridge.forked:
            return
        for task in self._tasks:
            task.cancel()
        deadline = self._bridge.loop.time() + timeout
        deleted = False
        try:
            deleted = self.subscription.durable or await self._delete(timeout / 2)
        finally:
            await self._close(deadline)
        if not deleted and self.after_close is not None:
            await self.after_close(deadline - self._bridge.loop.time())

    async def _delete(self, timeout: float) -> bool:
        """Delete the subscription; False where other consumers use it, or the broker does not answer."""
        try:
            await self._unsubscribe(timeout)
        except JMSError as error:
            _log.info("the subscription %s is left to its other consumers: %s", self.subscription.name, error)
            return False
        return True

    async def _close(self, deadline: float) -> None:
        """Tell acknowledgements and close the native consumers."""
        timeout = deadline - self._bridge.loop.time()
        await self._sizing.settled(timeout / 2)
        try:
            if self.dead_letters is not None:
                await self.dead_letters.aclose(timeout / 2)
        finally:
            self._unacked.tell_all()
            closing = self._start(lambda native_consumer: native_consumer.native.close_async, "close")
            self._stopping.leave(self._uncounted)
        await self._stopping.aclose(deadline - self._bridge.loop.time())
        await end(self._tasks, deadline - self._bridge.loop.time())
        try:
            await self._bridge.ask_all(closing, deadline - self._bridge.loop.time())
        except JMSError:
            # The connection is gone or silent: the broker gives everything back when it notices.
            return
        for native_consumer in self._native_consumers:
            await wait_for(native_consumer.disarmed(), deadline - self._bridge.loop.time())

"""``PulsarReceiver``: records of one subscription, from one native consumer for each topic or partition.

What was taken and is not settled belongs to its ``UnackedTracker``.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from jmsaio.errors import IllegalStateError, JMSError, ObjectClosedError
from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.rules.share import Share
from jmsaio.transport.base import Position, Subscription, Transaction, Wake
from jmsaio.transport.pulsar.consumers.native_consumers import Answered, NativeConsumers
from jmsaio.transport.pulsar.consumers.sizing import Sizing
from jmsaio.transport.pulsar.consumers.stopping import OpenNative, Stopping
from jmsaio.transport.pulsar.emulation.dead_letters import DeadLetters
from jmsaio.transport.pulsar.emulation.unacked.prior_deliveries import PriorDeliveries
from jmsaio.transport.pulsar.emulation.unacked.tally import Tally
from jmsaio.transport.pulsar.emulation.unacked_tracker import UnackedTracker
from jmsaio.transport.pulsar.native.bridge import Bridge, end
from jmsaio.transport.pulsar.native.handles import ConsumerHandle, MessageHandle
from jmsaio.transport.pulsar.native.native_log import NATIVE_LOG, Damage
from jmsaio.transport.pulsar.native.record import PulsarRecord

_log = logging.getLogger("jmsaio")

#: pulsar-client sends grouped acknowledgements this often, in seconds; the wheel has no setting for it.
ACK_GROUP_TIME = 0.1
#: Bytes that the receivers of a transport prefetch, unless its configuration says something else.
PREFETCH_BYTES = 32 * 1024 * 1024


class PulsarReceiver:
    """Takes records of one subscription. Made by ``Subscriber``.

    Args:
        bridge: the way back from native threads.
        subscription: what is subscribed to.
        wake: called when there may be something to receive.
        closed: called when the receiver is closed.
        prior: what applications got from receivers of the transport that stopped.
        tally: what this process gave back of the subscription.
        share: bytes that the receivers of the transport prefetch.
        letters: where records go that were given back too often, or None.

    Attributes:
        subscription: what it subscribed to.
        after_close: called at last, with the seconds left, if the subscription ends with its last consumer and this
            receiver could not delete it because there were others.
    """

    def __init__(
        self,
        bridge: Bridge,
        subscription: Subscription,
        wake: Wake,
        closed: Callable[[PulsarReceiver], None],
        prior: PriorDeliveries | None = None,
        tally: Tally | None = None,
        share: Share | None = None,
        letters: DeadLetters | None = None,
    ) -> None:
        self.subscription = subscription
        self.after_close: Callable[[float], Awaitable[None]] | None = None
        self._bridge = bridge
        self._wake = wake
        self._on_closed = closed
        self._letters = letters
        self._unacked = UnackedTracker(bridge, subscription, self._woken, prior, tally, letters)
        self._natives = NativeConsumers(bridge, subscription, self._woken)
        self._stopping = Stopping(bridge, subscription, self._unacked, self._natives, self._woken)
        self._share = Share(PREFETCH_BYTES) if share is None else share
        self._sizing = Sizing(bridge, self._stopping, self._natives, self._share)
        self._endings: list[Callable[[], object]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self._unacked.count} records out"
        return f"<PulsarReceiver {self.subscription.name}, {len(self._natives)} native consumers, {state}>"

    def add_native_consumer(self, native: ConsumerHandle, topic: str | None) -> None:
        """Receive from one more native consumer; ``wake`` is called, for it may have something."""
        self._share.join(self._natives.add(native, topic))
        self._stopping.sized()
        self._bridge.loop.call_soon(self._woken)

    @property
    def topics(self) -> list[str]:
        """Topics and partitions received from; empty with a pattern."""
        return self._natives.topics

    @property
    def natives(self) -> list[ConsumerHandle]:
        """Its native consumers; none while it is stopped."""
        return [native_consumer.native for native_consumer in self._natives if not native_consumer.stopped]

    @property
    def heard(self) -> int:
        """Records that came, up to now."""
        return sum(native_consumer.serial for native_consumer in self._natives)

    @property
    def waiting(self) -> list[tuple[ConsumerHandle, int]]:
        """While all records are settled: the consumers that wait for one, with the number of those that came.

        None with a pattern, whose consumer has many topics.
        """
        if self.subscription.pattern is not None or not self._unacked.idle:
            return []
        return [(one.native, one.serial) for one in self._natives if one.waits]

    @property
    def stopped(self) -> bool:
        """Nothing is received until ``resume``."""
        return self._stopping.stopped

    @property
    def closed(self) -> bool:
        """True after ``aclose`` was called."""
        return self._closed

    def opens_with(self, open_native: OpenNative, answered: Answered | None = None) -> None:
        """Set the functions that subscribe once more, after ``stop``, and that have a topic's broker answer."""
        self._stopping.open_native = open_native
        self._natives.answered = answered

    def on_close(self, function: Callable[[], object]) -> None:
        """Call a function when the receiver is closed."""
        self._endings.append(function)

    def owns(self, task: asyncio.Task[None]) -> None:
        """End a task when the receiver is closed."""
        self._tasks.append(task)

    def _woken(self) -> None:
        if not self._closed and self._bridge.failure is None:
            self._sizing.look()
            self._wake()

    def _check(self) -> None:
        if self._bridge.failure is not None:
            self._bridge.check()
        if self._closed:
            raise ObjectClosedError(f"the receiver of subscription {self.subscription.name} is closed")

    def receive(self, limit: int) -> list[ReceivedRecord]:
        """Take up to ``limit`` records that are here, without waiting (see ``Receiver.receive``).

        Raises:
            TransportError: the one that ended the receiver, once nothing is left.
            ObjectClosedError: the receiver or the transport is closed.
        """
        self._check()
        unacked = self._unacked
        taken = unacked.take(limit)
        most = len(taken) + unacked.room(limit - len(taken))
        if not self._sizing.waiting and len(taken) < most:
            self._take(taken, most)
        records = unacked.deliverable(taken)
        if len(records) < len(taken):  # though the native consumers may have more: what lies behind is looked at soon
            self._bridge.loop.call_soon(self._woken)
        elif not records and limit > 0:
            self._natives.raise_failure()
        return [*records]

    def _take(self, taken: list[PulsarRecord], limit: int) -> None:
        """Take from the native consumers in turn, until there are ``limit`` records."""
        for native_consumer in self._natives.in_turn():
            while len(taken) < limit:
                wanted = limit - len(taken)
                natives = native_consumer.take(wanted)
                if natives:
                    if self._sizing.too_large(natives):
                        return  # of no native consumer: nothing may come to the application before all are closed
                    self._unacked.admit(native_consumer, natives, taken)
                if len(natives) < wanted:
                    break

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Take acknowledgements; pulsar-client sends them every 100 ms, a batch at once.

        Records already settled are ignored.

        Raises:
            ObjectClosedError: the receiver or the transport is closed.
            IllegalStateError: ``transaction`` is given, which pulsar-client does not offer.
        """
        self._check()
        if transaction is not None:
            raise IllegalStateError("pulsar-client has no transactions (Capabilities.transactions)")
        self._unacked.acknowledge(records)

    def negative_acknowledge(self, records: Sequence[SetAside], delay: float, *, counted: bool = True) -> None:
        """Give records back; they are redelivered after about ``delay`` seconds.

        On shared subscriptions the broker counts always, and the delay is at least 0.1 s, pulsar-client's smallest.

        Raises:
            ObjectClosedError: the receiver or the transport is closed.
        """
        self._check()
        self._unacked.give_back(records, delay, counted=counted)

    def set_aside(self, records: Sequence[ReceivedRecord]) -> list[SetAside]:
        """Keep only the places of records that are given back later."""
        return self._unacked.set_aside(records)

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        """Move a record to the dead letters (see ``Receiver.dead_letter``).

        Raises:
            ObjectClosedError: the receiver or the transport is closed.
        """
        self._check()
        self._unacked.dead_letter(record, properties)

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """Count one more delivery, here alone; other receivers learn the count when a record goes back."""
        self._unacked.count_delivery(records)

    def receives(self, damage: Damage) -> bool:
        """Whether an entry was meant for this subscription."""
        return damage.subscription == self.subscription.name and self._natives.of_topic(damage.topic) is not None

    def deliver_again(self, topic: str, natives: list[MessageHandle]) -> None:
        """Deliver an entry that was read again, because pulsar-client acknowledged it unseen (``Rereading``)."""
        native_consumer = self._natives.of_topic(topic)
        if native_consumer is not None:
            self._unacked.redeliver_reread(native_consumer, natives)

    def unsettled(self, ledger: int, entry: int) -> int:
        """Records of an entry that was read again which are not acknowledged."""
        return self._unacked.unsettled_of(ledger, entry)

    def renew(self) -> None:
        """Reopen the native consumers as soon as the application has settled what it has, or 3 seconds later."""
        self._sizing.renew()

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
        unacked, loop = self._unacked, self._bridge.loop
        unacked.flush()
        deadline = loop.time() + timeout
        await self._stopping.drain(timeout)
        last = unacked.last_ack
        if last is None:
            return
        pause = last + 1.5 * ACK_GROUP_TIME - loop.time()
        if pause > 0:
            await asyncio.sleep(min(pause, timeout))
        if receipt or self.subscription.config.ack_receipt_enabled:
            await self._natives.wait_for_answers(deadline - loop.time(), unacked.acknowledged_topics)
        unacked.sent(last)

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
        await self._natives.unsubscribe(timeout)

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
        native_consumers = self._natives.moved_by(position)
        self._unacked.flush()
        await self._natives.seek(native_consumers, position, timeout)
        pattern, topics = self.subscription.pattern, {native_consumer.topic for native_consumer in native_consumers}
        moved = topics.__contains__ if pattern is None else re.compile(pattern).match
        self._unacked.clear(lambda topic: bool(moved(topic)))

    async def stop(self, timeout: float) -> None:
        """Take nothing more (see ``Receiver.stop``): the native consumers are closed (see ``Stopping``)."""
        self._check()
        await self._sizing.settled(timeout)
        if self._unacked.shared:
            await self._stopping.stop(timeout)

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
        NATIVE_LOG.read()  # what arrived damaged until now is known
        self._closed = True
        self._unacked.close()
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
        """Send acknowledgements and close the native consumers."""
        timeout = deadline - self._bridge.loop.time()
        try:
            await self._sizing.settled(timeout / 2)
            if self._letters is not None:
                await self._letters.aclose(timeout / 2)
        finally:
            self._sizing.give_up()
            self._unacked.flush()
            closing = self._natives.close()
            self._unacked.leave()
        await self._stopping.aclose(deadline - self._bridge.loop.time())
        await end(self._tasks, deadline - self._bridge.loop.time())
        try:
            await self._bridge.ask_all(closing, deadline - self._bridge.loop.time())
        except JMSError:
            # The connection is gone or silent: the broker gives everything back when it notices.
            return
        await self._natives.disarmed(deadline)

"""``PulsarReceiver``: records of one subscription, with one native consumer per topic or partition."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from jmsaio.errors import IllegalStateError, JMSError, ObjectClosedError
from jmsaio.model.log_fields import log_fields
from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.rules.share import Share
from jmsaio.transport.base import StartPosition, Subscription, Transaction, Wake
from jmsaio.transport.pulsar.dead_letters import DeadLetters
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.handles import ConsumerHandle, MessageHandle
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG, Damage
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.consumers.native_consumers import Answered, NativeConsumers
from jmsaio.transport.pulsar.native.consumers.pausing import Pausing
from jmsaio.transport.pulsar.native.records.subscription_records import SubscriptionRecords
from jmsaio.transport.pulsar.native.records.unacked_tracker import UnackedTracker
from jmsaio.transport.waiting import end

_log = logging.getLogger(__name__)


#: Subscribes to a topic (None: the subscription's pattern), with a given receiver queue size.
Subscribe = Callable[[Subscription, str | None, int], Coroutine[Any, Any, ConsumerHandle]]

#: Seconds between pulsar-client's sends of grouped acknowledgements; the Python package has no setting for it.
ACK_GROUP_TIME = 0.1


class PulsarReceiver:
    """A ``Receiver`` of one subscription, and a ``SubscriptionEnd``. Created by ``Subscriber``."""

    def __init__(
        self,
        bridge: Bridge,
        subscription: Subscription,
        wake: Wake,
        closed: Callable[[PulsarReceiver], None],
        others: SubscriptionRecords,
        share: Share,
        subscribe: Subscribe,
        answered: Answered,
        letters: DeadLetters | None = None,
    ) -> None:
        self.subscription = subscription
        self.after_close: Callable[[float], Awaitable[None]] | None = None
        self._bridge = bridge
        self._wake = wake
        self._on_closed = closed
        self._letters = letters
        self._unacked = UnackedTracker(bridge, subscription, self._woken, others, letters, self.renew)
        self._natives = NativeConsumers(bridge, subscription, self._woken, answered)
        self._share = share
        self._pausing = Pausing(
            bridge, subscription, self._unacked, self._natives, share,
            lambda topic, size: subscribe(self.subscription, topic, size), self._woken,
        )  # fmt: skip
        self.tasks: list[asyncio.Task[None]] = []  # to be ended when it is closed
        self.closed = False

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self._unacked.count} records out"
        return f"<PulsarReceiver {self.subscription.name}, {len(self._natives)} native consumers, {state}>"

    def add_native_consumer(self, native: ConsumerHandle, topic: str | None) -> None:
        self._share.join(self._natives.add(native, topic))
        self._pausing.sized()
        self._bridge.loop.call_soon(self._woken)

    @property
    def topics(self) -> list[str]:
        return self._natives.topics

    @property
    def natives(self) -> list[ConsumerHandle]:
        """Its native consumers; empty while it is stopped."""
        return [native_consumer.native for native_consumer in self._natives if not native_consumer.stopped]

    @property
    def received_count(self) -> int:
        return sum(native_consumer.serial for native_consumer in self._natives)

    @property
    def waiting(self) -> list[tuple[ConsumerHandle, int]]:
        """While all records are settled: the consumers waiting for a record, with their counts; empty for a pattern."""
        if self.subscription.pattern is not None or not self._unacked.idle:
            return []
        return [(one.native, one.serial) for one in self._natives if one.waits]

    @property
    def stopped(self) -> bool:
        return self._pausing.stopped

    def _woken(self) -> None:
        if not self.closed and self._bridge.failure is None:
            self._pausing.check_sizes()
            self._wake()

    def _check(self) -> None:
        if self._bridge.failure is not None:
            self._bridge.check()
        if self.closed:
            raise ObjectClosedError(f"the receiver of subscription {self.subscription.name} is closed")

    def receive(self, limit: int) -> list[ReceivedRecord]:
        self._check()
        unacked = self._unacked
        taken = unacked.pop(limit)
        most = len(taken) + unacked.room(limit - len(taken))
        if not self._pausing.waiting and len(taken) < most:
            self._receive(taken, most)
        records = unacked.deliverable(taken)
        if len(records) < len(taken):  # the native consumers might have more, so later ones are checked soon
            self._bridge.loop.call_soon(self._woken)
        elif not records and limit > 0:
            self._natives.raise_failure()
        return [*records]

    def _receive(self, taken: list[PulsarRecord], limit: int) -> None:
        for native_consumer in self._natives.in_turn():
            while len(taken) < limit:
                wanted = limit - len(taken)
                natives = native_consumer.receive(wanted)
                if natives:
                    if self._pausing.too_large(natives):
                        return  # from no consumer: nothing must reach the application before all are closed
                    self._unacked.admit(native_consumer, natives, taken)
                if len(natives) < wanted:
                    break

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Queue acknowledgements; pulsar-client sends them every 100 ms, those of a batch at once."""
        self._check()
        if transaction is not None:
            raise IllegalStateError("pulsar-client has no transactions (Capabilities.transactions)")
        self._unacked.acknowledge(records)

    def negative_acknowledge(self, records: Sequence[SetAside], delay: float, *, counted: bool = True) -> None:
        self._check()
        self._unacked.give_back(records, delay, counted=counted)

    def set_aside(self, records: Sequence[ReceivedRecord]) -> list[SetAside]:
        return self._unacked.set_aside(records)

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        self._check()
        self._unacked.dead_letter(record, properties)

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        self._unacked.count_delivery(records)

    def receives(self, damage: Damage) -> bool:
        return damage.subscription == self.subscription.name and self._natives.of_topic(damage.topic) is not None

    def deliver_again(self, topic: str, natives: list[MessageHandle]) -> None:
        native_consumer = self._natives.of_topic(topic)
        if native_consumer is not None:
            self._unacked.redeliver_reread(native_consumer, natives)

    def unsettled(self, ledger: int, entry: int) -> int:
        return self._unacked.unsettled_of(ledger, entry)

    def renew(self) -> None:
        self._pausing.renew()

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        """Wait until acknowledgements are sent. A later request's answer is the receipt: pulsar-client has no other."""
        self._check()
        acks, loop = self._unacked.acks, self._bridge.loop
        acks.flush()
        deadline = loop.time() + timeout
        await self._pausing.drain(timeout)
        last = acks.last
        if last is None:
            return
        pause = last + 1.5 * ACK_GROUP_TIME - loop.time()
        if pause > 0:
            await asyncio.sleep(min(pause, timeout))
        if receipt or self.subscription.config.ack_receipt_enabled:
            await self._natives.wait_for_answers(deadline - loop.time(), frozenset(acks.topics))
        acks.sent(last)

    async def unsubscribe(self, timeout: float) -> None:
        self._check()
        await self._unsubscribe(timeout)

    async def _unsubscribe(self, timeout: float) -> None:
        await self._pausing.changed(timeout, abandon=self.closed)
        await self._pausing.resume(timeout, prefetch=False)
        await self._natives.unsubscribe(timeout)

    async def seek(self, position: StartPosition | WireId | int, timeout: float) -> None:
        self._check()
        await self._pausing.changed(timeout)
        if self._pausing.stopped:
            raise IllegalStateError(f"seek {self.subscription.name}: the receiver is stopped; resume it first")
        native_consumers = self._natives.moved_by(position)
        self._unacked.acks.flush()
        await self._natives.seek(native_consumers, position, timeout)
        pattern, topics = self.subscription.pattern, {native_consumer.topic for native_consumer in native_consumers}
        moved = topics.__contains__ if pattern is None else re.compile(pattern).match
        self._unacked.clear(lambda topic: bool(moved(topic)))

    async def stop(self, timeout: float) -> None:
        self._check()
        if self._unacked.shared:
            await self._pausing.changed(timeout, abandon=True)
            await self._pausing.stop(timeout)

    async def resume(self, timeout: float, selector: str | None = None) -> None:
        self._check()
        await self._pausing.changed(timeout)
        if self._pausing.stopped:
            self.subscription = self.subscription.showing(selector)
        await self._pausing.resume(timeout)

    async def aclose(self, timeout: float) -> None:
        if self.closed:
            return
        NATIVE_LOG.read()  # learn of all entries that arrived damaged until now
        self.closed = True
        self._unacked.close()
        self._on_closed(self)
        if self._bridge.forked:
            return
        for task in self.tasks:
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
        try:
            await self._unsubscribe(timeout)
        except JMSError as error:
            text, name = "the subscription %s was not deleted: %s", self.subscription.name
            _log.info(text, name, error, extra=log_fields(subscription=name))
            return False
        return True

    async def _close(self, deadline: float) -> None:
        timeout = deadline - self._bridge.loop.time()
        try:
            await self._pausing.changed(timeout / 2, abandon=True)
            if self._letters is not None:
                await self._letters.aclose(timeout / 2)
        finally:
            self._pausing.give_up()
            self._unacked.acks.flush()
            closing = self._natives.close()
            self._unacked.release()
        await self._pausing.aclose(deadline - self._bridge.loop.time())
        await end(self.tasks, deadline - self._bridge.loop.time())
        try:
            await self._bridge.ask_all(closing, deadline - self._bridge.loop.time())
        except JMSError:
            # The connection is lost or silent: the broker returns everything when it notices.
            return
        await self._natives.disarmed(deadline)

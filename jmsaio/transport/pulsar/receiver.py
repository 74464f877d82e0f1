"""``PulsarReceiver``: records of one subscription, from one native consumer for each topic or partition.

pulsar-client's own consumer over several topics is used for patterns only: with one consumer a partition every call
knows its topic, acknowledgement receipts are possible, and a message passes one queue and one thread less.

Exclusive and failover subscriptions: what is given back comes again from here, in order. pulsar-client would make the
broker send everything unacknowledged again, behind what is already prefetched. Shared ones: given back to the broker.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from jmsaio.errors import IllegalStateError, NotFoundError, ObjectClosedError, TransportError
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.transport.base import Position, Subscription, SubscriptionType, Transaction, Wake
from jmsaio.transport.pulsar.bridge import Bridge
from jmsaio.transport.pulsar.feed import Feed
from jmsaio.transport.pulsar.options import NATIVE_NACK_DELAY, native_position
from jmsaio.transport.pulsar.record import PulsarRecord
from jmsaio.transport.pulsar.returns import Returns
from jmsaio.transport.pulsar.settled import Settled

#: pulsar-client sends grouped acknowledgements this often, in seconds; the wheel has no setting for it.
ACK_GROUP_TIME = 0.1
#: Types whose records go back to the broker, one entry at a time.
SHARED = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)


class PulsarReceiver:
    """Takes records of one subscription. Made by ``open_pulsar_receiver``.

    Attributes:
        subscription: what it subscribed to.
    """

    def __init__(
        self, bridge: Bridge, subscription: Subscription, wake: Wake, closed: Callable[[PulsarReceiver], None]
    ) -> None:
        self.subscription = subscription
        self._bridge = bridge
        self._wake = wake
        self._on_closed = closed
        self._shared = subscription.type in SHARED
        self._feeds: list[Feed] = []
        self._out: dict[PulsarRecord, bool] = {}  # not settled: False with the application, True on its way back
        self._back: deque[PulsarRecord] = deque()
        self._settled = Settled()
        self._returns = Returns(bridge.loop, self._due)
        self._late = Returns(bridge.loop, self._timed_out)
        self._last: dict[Feed, PulsarRecord] = {}
        self._turn = 0
        self._acked_at: float | None = None
        self._closed = False
        self._timeout = subscription.config.ack_timeout

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._out)} records out"
        return f"<PulsarReceiver {self.subscription.name}, {len(self._feeds)} feeds, {state}>"

    def add_feed(self, native: Any, topic: str | None) -> None:
        """Receive from one more native consumer."""
        what = f"receive from {topic or self.subscription.pattern}, subscription {self.subscription.name}"
        self._feeds.append(Feed(self._bridge, native, native.receive_async, topic, what, self._woken))

    @property
    def topics(self) -> list[str]:
        """Topics and partitions received from; empty with a pattern."""
        return [feed.topic for feed in self._feeds if feed.topic is not None]

    def _woken(self) -> None:
        if not self._closed:
            self._wake()

    def receive(self, limit: int) -> list[ReceivedRecord]:
        """Take up to ``limit`` records that are here, without waiting (see ``Receiver.receive``).

        Raises:
            TransportError: the one that ended the receiver, once nothing is left.
            ObjectClosedError: the receiver or the transport is closed.
        """
        if self._closed or self._bridge.failure is not None:
            self._refuse()
        taken: list[PulsarRecord] = []
        while self._back and len(taken) < limit:
            record = self._back.popleft()
            self._out[record] = False
            taken.append(record)
        feeds = self._feeds
        for offset in range(len(feeds)):
            feed = feeds[(self._turn + offset) % len(feeds)]
            while len(taken) < limit:
                wanted = limit - len(taken)
                natives = feed.take(wanted)
                if natives:
                    self._admit(feed, natives, taken)
                if len(natives) < wanted:
                    break
        self._turn += 1
        if self._timeout is not None:
            self._watch(taken, self._timeout)
        if not taken and limit > 0:
            self._raise_failure()
        return list[ReceivedRecord](taken)

    def _refuse(self) -> None:
        self._bridge.check()
        raise ObjectClosedError(f"the receiver of subscription {self.subscription.name} is closed")

    def _raise_failure(self) -> None:
        for feed in self._feeds:
            if feed.failure is not None:
                raise feed.failure

    def _admit(self, feed: Feed, natives: list[Any], taken: list[PulsarRecord]) -> None:
        """Make records; what comes again is compared with what is out and what is settled."""
        out = self._out
        serial = feed.serial
        known: dict[tuple[int, int, int], PulsarRecord] | None = None
        for native in natives:
            serial += 1
            record = PulsarRecord(native, feed, serial)
            if self._shared:
                again = record._count = native.redelivery_count()
            else:
                again = self._went_back(feed, native)
            if again:
                if known is None:
                    known = self._known()
                if self._is_known(record, known):
                    continue
                known[record.place] = record
            out[record] = False
            taken.append(record)
        feed.serial = serial
        self._last[feed] = record

    def _went_back(self, feed: Feed, native: Any) -> bool:
        """On ordered subscriptions the broker's count is always 0: a step back in the order tells a redelivery."""
        if feed.topic is None:
            return False  # a pattern's topics are mixed: their ids have no common order
        place = native.message_id()
        last = feed.last
        if last is not None and place <= last:
            return True
        feed.last = place
        return False

    def _known(self) -> dict[tuple[int, int, int], PulsarRecord]:
        self._settled.fold()
        return {record.place: record for record in (*self._out, *self._back)}

    def _is_known(self, record: PulsarRecord, known: dict[tuple[int, int, int], PulsarRecord]) -> bool:
        """True when the record is out already, or was acknowledged here and is acknowledged again now."""
        place = record.place
        if place in self._settled:
            record.feed.native.acknowledge_async(record.native, None)
            return True
        first = known.get(place)
        if first is None or first.feed is not record.feed:
            return False
        # Acknowledged together: without batch-index acknowledgement each copy of an entry counts for itself.
        first.twins = [*(first.twins or ()), record.native]
        return True

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Take acknowledgements; pulsar-client sends them every 100 ms. Records already settled are ignored."""
        if self._closed or transaction is not None or self._bridge.failure is not None:
            self._refuse_settling(transaction)
        out = self._out
        settled = self._settled
        remember = settled.recent.append
        for record in records:
            if out.get(record, True):  # type: ignore[call-overload]  # only our own records come back here
                continue
            assert isinstance(record, PulsarRecord)
            del out[record]
            acknowledge = record.feed.native.acknowledge_async
            acknowledge(record.native, None)
            if record.twins is not None:
                for native in record.twins:
                    acknowledge(native, None)
            remember(record)
        self._acked_at = self._bridge.loop.time()
        if settled.many:
            settled.prune(out, self._last.values())

    def _refuse_settling(self, transaction: Transaction | None) -> None:
        if self._closed or self._bridge.failure is not None:
            self._refuse()
        if transaction is not None:
            raise IllegalStateError("pulsar-client has no transactions (Capabilities.transactions)")

    def negative_acknowledge(self, records: Sequence[ReceivedRecord], delay: float, *, counted: bool = True) -> None:
        """Give records back; they come again after about ``delay`` seconds.

        On shared subscriptions the broker counts always, and the delay is at least 0.1 s, pulsar-client's smallest.
        """
        if self._closed or self._bridge.failure is not None:
            self._refuse()
        wait = delay - NATIVE_NACK_DELAY if self._shared else delay
        for record in records:
            if isinstance(record, PulsarRecord) and self._out.get(record, True) is False:
                self._out[record] = True
                record.counted = counted
                self._returns.add(record, wait)

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """Nothing: the broker counts by itself and can't be told."""

    def _due(self, records: list[PulsarRecord]) -> None:
        """Records whose delay is over go back."""
        if self._closed or self._bridge.failure is not None:
            return
        waiting = [record for record in records if record in self._out]
        if self._shared:
            self._give_back(waiting)
            return
        for record in waiting:
            del self._out[record]
        again = (record.again() for record in waiting)
        self._back = deque(sorted((*again, *self._back), key=lambda record: record.place))
        self._woken()

    def _give_back(self, records: list[PulsarRecord]) -> None:
        if records:
            self._settled.fold()
        for record in records:
            del self._out[record]
            record.feed.native.negative_acknowledge(record.native)

    def _watch(self, records: list[PulsarRecord], timeout: float) -> None:
        for record in records:
            self._late.add(record, timeout)

    def _timed_out(self, records: list[PulsarRecord]) -> None:
        """Records that were not acknowledged in time go back; our own timer, for pulsar-client's starts at 10 s."""
        backoff = self.subscription.config.ack_timeout_backoff
        for record in records:
            if self._out.get(record) is False and not self._closed:
                delay = 0.0 if backoff is None else backoff.delay(record.redelivery_count)
                self.negative_acknowledge([record], delay)

    async def settle(self, timeout: float) -> None:
        """Wait until the acknowledgements taken so far are sent; with ``ackReceiptEnabled``: until the broker has them.

        pulsar-client offers neither a flush nor receipts: it sends every 100 ms, so that time is waited for; the
        broker works off one connection in order, so its answer to a later request is the receipt.

        Raises:
            OperationTimeoutError: no receipt in time.
            ObjectClosedError: closed meanwhile.

        Cancellation: acknowledgements go out nevertheless.
        """
        if self._closed or self._bridge.failure is not None:
            self._refuse()
        acked = self._acked_at
        if acked is None:
            return
        loop = self._bridge.loop
        deadline = loop.time() + timeout
        pause = acked + 1.5 * ACK_GROUP_TIME - loop.time()
        if pause > 0:
            await asyncio.sleep(min(pause, timeout))
        if self.subscription.config.ack_receipt_enabled:
            await self._each(lambda feed: feed.native.get_last_message_id_async, "wait for receipts", deadline)
        if self._acked_at == acked:
            self._acked_at = None

    async def _each(
        self,
        start: Callable[[Feed], Callable[[Callable[..., None]], object]],
        what: str,
        deadline: float,
        feeds: Sequence[Feed] | None = None,
    ) -> None:
        """One native operation on every feed at the same time; raises the first failure when all have ended."""
        answers = await asyncio.gather(
            *(
                self._bridge.ask(
                    start(feed),
                    f"{what}, {feed.topic or self.subscription.pattern}, subscription {self.subscription.name}",
                    deadline - self._bridge.loop.time(),
                )
                for feed in (self._feeds if feeds is None else feeds)
            ),
            return_exceptions=True,
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def unsubscribe(self, timeout: float) -> None:
        """Delete the subscription. The receiver must be closed afterwards."""
        if self._closed or self._bridge.failure is not None:
            self._refuse()
        deadline = self._bridge.loop.time() + timeout
        await self._each(lambda feed: feed.native.unsubscribe_async, "unsubscribe", deadline)

    async def seek(self, position: Position | WireId | int, timeout: float) -> None:
        """Move the subscription: to an end, to a record (which comes next), or to a publish time in milliseconds.

        Raises:
            TransportError: the broker refused; the record's partition is not received from.
            OperationTimeoutError: no answer in time.
        """
        if self._closed or self._bridge.failure is not None:
            self._refuse()
        deadline = self._bridge.loop.time() + timeout
        target = native_position(position)
        feeds = self._feeds
        if isinstance(position, WireId) and len(feeds) > 1:
            feeds = [feed for feed in feeds if (feed.topic or "").endswith(f"-partition-{position.partition}")]
            if not feeds:
                raise NotFoundError(f"seek to {position}: no such partition is received from")
        await self._each(lambda feed: partial(feed.native.seek_async, target), "seek", deadline, feeds)
        self._returns.close()
        self._late.close()
        self._out.clear()
        self._back.clear()
        self._settled.clear()
        for feed in feeds:
            feed.discard()

    async def aclose(self, timeout: float) -> None:
        """Send grouped acknowledgements, give back what is not acknowledged, and close. Idempotent.

        Cancellation: closing goes on.
        """
        if self._closed:
            return
        self._closed = True
        self._returns.close()
        self._late.close()
        self._on_closed(self)
        if not self._bridge.forked:
            deadline = self._bridge.loop.time() + timeout
            try:
                await self._each(lambda feed: feed.native.close_async, "close", deadline)
            except TransportError:
                # The connection is gone or silent: the broker gives everything back when it notices.
                return

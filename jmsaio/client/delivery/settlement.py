"""``Settlement``: settles the records of one inbox, each at the receiver that received it, and counts their returns.

A sibling can have received a record, see ``jmsaio.client.delivery.inbox.Siblings``.

The count reported to an application is the larger of the broker's count and this client's own, because Pulsar's count
is always 0 on exclusive and failover subscriptions.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import attrs

from jmsaio.client.lifetime.stats import ReceiveCounts
from jmsaio.client.senders.pending import call_trace
from jmsaio.errors import JMSError, ObjectClosedError
from jmsaio.model.messages.tracing import EndpointTrace
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.rules.fate import GiveBackDelays, asks_for_delay, give_back_delays
from jmsaio.transport.base import Receiver, Subscription, Transaction, Transport
from jmsaio.transport.clock import LoopTimers, Timer

_log = logging.getLogger(__name__)

#: Maximum number of messages whose returns are counted; beyond it the oldest count is forgotten.
MOST_COUNTS = 100_000
#: Maximum number and bytes of unreadable records retained per inbox.
MOST_RECORDS, MOST_BYTES = 100, 16 * 1024 * 1024
#: Maximum number of waiting acknowledgements, and seconds: a task that always finds a message never yields to the loop.
_MOST_ACKS, _LONGEST_TURN = 32, 0.001


class Adopter(Protocol):
    """An inbox that has a record of another one's receiver."""

    def retain(self, inbox: Any, transport: Transport) -> bool: ...


@attrs.define(eq=False)
class Settlement:
    """Settles the records of one inbox.

    Acknowledgements of one turn of the loop are sent together, in groups of up to 32 records or a millisecond.
    """

    own: Receiver  # of the inbox
    subscription: Subscription
    max_at_once: int = 0  # immediate redeliveries before a message is returned to the broker with a delay
    max_resting: float = math.inf  # maximum number of records of ``own`` that rest (see ``Siblings``)
    acks_at_once: bool = False  # acknowledgements are never grouped
    trace: EndpointTrace | None = None
    timers: LoopTimers = attrs.field(factory=LoopTimers)
    counts: ReceiveCounts = attrs.field(factory=ReceiveCounts, init=False)
    counting: bool = attrs.field(default=False, init=False)  # whether redelivered records are unsettled
    transferred: dict[int, Adopter] = attrs.field(factory=dict, init=False)  # who has records of ``own``, by ``id``
    _failed: Callable[[JMSError], None] = attrs.field(init=False)
    _adopted: dict[int, tuple[ReceivedRecord, Settlement]] = attrs.field(factory=dict, init=False)
    _unconfirmed: dict[Settlement, None] = attrs.field(factory=dict, init=False)  # others, since the last ``settle``
    _waiting: list[ReceivedRecord] = attrs.field(factory=list, init=False)  # to be acknowledged at the end of this turn
    _turn_begun: bool = attrs.field(default=False, init=False)  # whether the end of this turn is scheduled
    _turn_ends: float = attrs.field(default=0.0, init=False)  # the first call after this time acknowledges
    _closed: bool = attrs.field(default=False, init=False)
    _returns: OrderedDict[WireId, int] = attrs.field(factory=OrderedDict, init=False)  # by the application
    _delays: GiveBackDelays = attrs.field(init=False)
    _unreadable: dict[WireId, tuple[ReceivedRecord, Timer]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._delays = give_back_delays(self.subscription.config)

    def report_to(self, failed: Callable[[JMSError], None]) -> None:
        self._failed = failed

    def adopt(self, record: ReceivedRecord, owner: Settlement, adopter: Adopter) -> None:
        """Settle ``record``, which is in the inbox ``adopter`` now, at ``owner``."""
        self._adopted[id(record)] = record, owner
        owner.transferred[id(record)] = adopter

    def owner(self, record: ReceivedRecord) -> Settlement:
        adopted = self._adopted.get(id(record))
        return self if adopted is None else adopted[1]

    def release(self, record: ReceivedRecord) -> Settlement:
        """Drop ``record`` from this inbox; return its owner."""
        adopted = self._adopted.pop(id(record), None)
        if adopted is None:
            return self
        adopted[1].transferred.pop(id(record), None)
        return adopted[1]

    def _by_owner(
        self, records: Sequence[ReceivedRecord], *, release: bool = True
    ) -> list[tuple[Settlement, list[ReceivedRecord]]]:
        """Group records by their owners, this one last: its error is raised, and must not affect the others."""
        parts: dict[Settlement, list[ReceivedRecord]] = {}
        for record in records:
            parts.setdefault(self.release(record) if release else self.owner(record), []).append(record)
        return sorted(parts.items(), key=lambda part: part[0] is self)

    def acknowledge_soon(self, record: ReceivedRecord) -> None:
        """Acknowledge a record, for which no caller waits, at the end of this turn."""
        self._waiting.append(record)
        if not self._turn_begun:
            self._begin_turn()
        else:
            self._send_many()

    def acknowledge_for_caller(self, records: Sequence[ReceivedRecord]) -> None:
        """Acknowledge at once in a new turn, so that the caller receives an error; later at the turn's end."""
        if self.acks_at_once or self._adopted:
            self.acknowledge(records)
        elif not self._turn_begun or self._closed:
            self.acknowledge(records)
            if not self._turn_begun:
                self._begin_turn()
        else:
            self._waiting += records
            self._send_many()

    def _begin_turn(self) -> None:
        self._turn_begun = True
        self._turn_ends = time.perf_counter() + _LONGEST_TURN
        asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_begun = False
        self.flush()

    def _send_many(self) -> None:
        if len(self._waiting) >= _MOST_ACKS or time.perf_counter() > self._turn_ends:
            self._turn_ends = time.perf_counter() + _LONGEST_TURN
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            try:
                self.acknowledge(waiting)
            except JMSError as error:
                self._failed(error)

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Acknowledge records; those of another receiver that was closed meanwhile are redelivered, with a warning.

        Raises ObjectClosedError for such a record in a transaction, which must not be committed without it.
        """
        self._acknowledge_by_owner(records, transaction)
        self.counts.acknowledged += len(records)
        if self.trace is not None:
            call_trace(self.trace.settled, "ack", records)
        if self.counting:
            for record in records:
                self.forget(record)

    def _acknowledge_by_owner(self, records: Sequence[ReceivedRecord], transaction: Transaction | None) -> None:
        if not self._adopted:
            self.own.acknowledge(records, transaction)
            return
        closed: ObjectClosedError | None = None
        for owner, part in self._by_owner(records):
            if owner is self:
                self.own.acknowledge(part, transaction)
                continue
            self._unconfirmed[owner] = None
            try:
                owner.own.acknowledge(part, transaction)
            except ObjectClosedError as error:
                closed = error
                _log.warning("%d acknowledged messages are redelivered: %s", len(part), error)
        if closed is not None and transaction is not None:
            raise closed

    def drop(self, record: ReceivedRecord) -> None:
        self._acknowledge_by_owner((record,), None)
        self.forget(record)

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        """Wait until all acknowledgements so far are sent, whichever receiver sends them."""
        others, self._unconfirmed = self._unconfirmed, {}
        await self.own.settle(timeout, receipt=receipt)
        for owner in others:
            try:
                await owner.own.settle(timeout, receipt=receipt)
            except ObjectClosedError as error:
                _log.info("acknowledgements were sent before: %s", error)

    def negative_acknowledge(
        self, records: Sequence[ReceivedRecord], delay: float = 0.0, *, counted: bool = True
    ) -> None:
        """Return records to the broker; a receiver that was closed meanwhile has already returned its own."""
        if not self._adopted:
            self.own.negative_acknowledge(records, delay, counted=counted)
            return
        for owner, part in self._by_owner(records):
            try:
                owner.own.negative_acknowledge(part, delay, counted=counted)
            except ObjectClosedError as error:
                if owner is self:
                    raise
                _log.info("%d messages were given back before: %s", len(part), error)

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        self.release(record).own.dead_letter(record, properties)
        self.forget(record)

    def redeliver(self, records: Sequence[ReceivedRecord]) -> list[ReceivedRecord]:
        """Count the return of records by the application; return those to redeliver at once, settle the others."""
        self.counts.redelivered += len(records)
        if self.trace is not None:
            call_trace(self.trace.settled, "nack", records)
        policy, shared = self.subscription.config.dead_letter, self.subscription.shared
        at_once: list[ReceivedRecord] = []
        for record in records:
            times = self._count_return(record)
            # On shared subscriptions the broker counts for the policy, so it has to redeliver.
            if policy is not None and not shared and times > policy.max_redeliver_count:
                self.count_delivery((record,))  # the letter says how many deliveries failed
                self.dead_letter(record, record.properties)
            elif (policy is not None and shared) or times > self.max_at_once:
                self.negative_acknowledge((record,), self._delays.next(record.message_id))
            else:
                at_once.append(record)
        self.count_delivery(at_once)
        return at_once

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        for owner, part in self._by_owner(records, release=False):
            owner.own.count_delivery(part)

    def _count_return(self, record: ReceivedRecord) -> int:
        times = self.delivery_count(record)
        self._returns.pop(record.message_id, None)
        self._returns[record.message_id] = times
        if len(self._returns) > MOST_COUNTS:
            self._returns.popitem(last=False)
        self.counting = True
        return times

    def delivery_count(self, record: ReceivedRecord) -> int:
        """Return JMSXDeliveryCount of a delivery of ``record``: 1 for the first."""
        return max(self._returns.get(record.message_id, 0), record.redelivery_count) + 1

    def forget(self, record: ReceivedRecord) -> None:
        self._returns.pop(record.message_id, None)
        self.counting = bool(self._returns)
        self._delays.forget(record.message_id)

    def return_unsettled(self, records: Sequence[ReceivedRecord]) -> None:
        """Return a closed consumer's deliveries to the broker: at once, unless a delay is configured."""
        delays: dict[float, list[ReceivedRecord]] = {}
        for record in records:
            delay = self._delays.next(record.message_id) if asks_for_delay(self.subscription.config) else 0.0
            delays.setdefault(delay, []).append(record)
        for delay, group in delays.items():
            self.negative_acknowledge(group, delay)

    def retain(self, record: ReceivedRecord) -> None:
        """Retain an unreadable record until it is claimed, the delay of a redelivery has passed, or too many follow."""
        self.claim(record)  # the transport might redeliver it after a reconnect
        delay = self._delays.next(record.message_id)
        timer = self.timers.call_later(delay, partial(self._return_unreadable, record))
        self._unreadable[record.message_id] = record, timer
        size = sum(retained.size for retained, _ in self._unreadable.values())
        for oldest, _ in list(self._unreadable.values())[:-1]:
            if len(self._unreadable) <= MOST_RECORDS and size <= MOST_BYTES:
                break
            size -= oldest.size
            self._return_unreadable(oldest)

    def claim(self, record: ReceivedRecord) -> ReceivedRecord | None:
        """Remove an unreadable record, to settle it; return its latest copy, or None if it is no longer retained."""
        record, timer = self._unreadable.pop(record.message_id, (record, None))
        if timer is None:
            return None
        timer.cancel()
        return record

    def _return_unreadable(self, record: ReceivedRecord) -> None:
        retained = self.claim(record)
        if retained is not None:
            try:
                self.negative_acknowledge((retained,))
            except JMSError as error:
                self._failed(error)

    def detach(self) -> None:
        self.flush()
        unreadable = [record for record, _ in self._unreadable.values()]
        for record in unreadable:
            self.claim(record)
        if unreadable:
            self.negative_acknowledge(unreadable)

    async def aclose(self, timeout: float) -> None:
        self._closed = True
        self.flush()
        rest = [record for record, _ in self._adopted.values()]
        if rest:
            self.negative_acknowledge(rest)
        await self.own.aclose(timeout)

"""Records of one consumer that wait in this process: early ones, and those that it returns, also overdue ones."""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules import record_life as life
from jmsaio.rules.record_life import Action, RecordEvent
from jmsaio.transport.base import Subscription
from jmsaio.transport.clock import DelayQueue
from jmsaio.transport.pulsar.dead_letters import DeadLetters
from jmsaio.transport.pulsar.wire.connections.registration import Registration
from jmsaio.transport.pulsar.wire.records.record import Entry, Owner, WireRecord, record_of

_log = logging.getLogger(__name__)
#: Records that one consumer keeps; the last one can exceed the bytes.
_MOST, _MOST_BYTES = 10_000, 64 * 1024 * 1024
#: Seconds until records returned without a delay are requested again: a close that follows returns them by itself.
_GATHER: Final = 0.01


@attrs.define(eq=False)
class Early:
    """The early records of one consumer, which receives later ones meanwhile, unless too many are kept."""

    _topic: str
    _loop: asyncio.AbstractEventLoop
    _due: Callable[[WireRecord], object]
    _resumed: Callable[[], object]
    _count: int = attrs.field(default=0, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    full: bool = attrs.field(default=False, init=False)  # whether too many are kept: the broker is to send none
    _records: DelayQueue[WireRecord] = attrs.field(init=False)

    @_records.default
    def _queue(self) -> DelayQueue[WireRecord]:
        return DelayQueue(self._loop, self._due_now)

    def add(self, record: WireRecord, delay: float) -> None:
        self._records.add(record, delay + 0.001)  # the queue can be so early
        self._count += 1
        self._bytes += record.size
        if not self.full and (self._count >= _MOST or self._bytes >= _MOST_BYTES):
            self.full = True
            _log.warning(
                "receiving from %s pauses: %d delayed messages of %d bytes are kept in the client, the maximum; later "
                "messages wait until some are due. The broker itself delays on shared subscriptions (for simple topic "
                "consumers: jms.useExclusiveSubscriptionsForSimpleConsumers=false)",
                self._topic, self._count, self._bytes,
            )  # fmt: skip

    def _due_now(self, records: list[WireRecord]) -> None:
        for record in records:
            self._count -= 1
            self._bytes -= record.size
            self._due(record)
        if self.full and 2 * self._count < _MOST and 2 * self._bytes < _MOST_BYTES:
            self.full = False
            self._resumed()

    def clear(self) -> list[WireRecord]:
        self._count = self._bytes = 0
        self.full = False
        return self._records.remove_all()


class Returning:
    """Returns the records of one consumer, whose queue and acknowledgements it uses.

    On an ordered subscription a record that is returned waits in this process; on others the broker redelivers it.
    """

    def __init__(
        self, consumer: Owner, at: Registration, subscription: Subscription, letters: DeadLetters | None
    ) -> None:
        self._consumer = consumer
        self._at = at
        self._config = subscription.config
        self._letters = letters
        self._ordered = not subscription.shared
        policy = subscription.config.dead_letter
        self._most = math.inf if policy is None else policy.max_redeliver_count
        self._fails_here = subscription.shared and subscription.selective
        self.most = math.inf if self._fails_here else self._most  # by the broker's count, without failures here
        self._waiting = DelayQueue[tuple[Entry, int, float]](at.client.loop, self._due)

    def close(self) -> None:
        self._waiting.close()

    def dies(self, entry: Entry, index: int) -> bool:
        """Return whether a record has failed so often that it moves to the dead letters."""
        return self._failures_of(entry, index) > self._most

    def watch(self, records: list[WireRecord]) -> None:
        """Return records that were handed out and are not acknowledged in time."""
        timeout = self._config.ack_timeout
        if timeout is not None:
            loop = self._at.client.loop
            deadline = loop.time() + timeout
            for record in records:
                record.entry.due[record.index] = deadline
            entries = [weakref.ref(entry) for entry in {record.entry: None for record in records}]
            loop.call_at(deadline, self._overdue, deadline, entries)

    def nack(self, entry: Entry, index: int, delay: float, counted: bool) -> None:
        self._step_back(entry, index, RecordEvent.RETURNED if counted else RecordEvent.RETURNED_UNSEEN, delay)

    def _step_back(self, entry: Entry, index: int, event: RecordEvent, delay: float) -> None:
        step = entry.step(index, event)
        if step.counted and self.dies(entry, index):
            self.dead_letter(record_of(entry, index))
            return
        if step.action is Action.WAIT:
            when = entry.due[index] = self._at.client.loop.time() + max(0.0 if self._ordered else _GATHER, delay)
            self._waiting.add_at((entry, index, when), when)

    def _due(self, items: list[tuple[Entry, int, float]]) -> None:
        """Redeliver records whose delay is over, each entry once."""
        back = []
        for entry, index, when in items:
            if self._at.closed or entry.states[index] != life.RETURNED or entry.due.get(index) != when:
                continue
            if self._ordered:
                self._consumer.due_here(record_of(entry, index))
            else:
                entry.step(index, RecordEvent.DUE)
                back.append(entry)
        if back:
            self._consumer.redeliver(back)

    def _overdue(self, deadline: float, entries: list[weakref.ref[Entry]]) -> None:
        """Return records whose acknowledgement timeout is over; entries that are settled are gone."""
        backoff = self._config.ack_timeout_backoff
        for entry in [entry for reference in entries if (entry := reference()) is not None]:
            for index in [index for index, when in entry.due.items() if when == deadline]:
                if not self._at.closed and entry.states[index] == life.HELD:
                    delay = 0.0 if backoff is None else backoff.delay(entry.redelivery_count(index))
                    self._step_back(entry, index, RecordEvent.TIME_OVER, delay)

    def _failures_of(self, entry: Entry, index: int) -> int:
        """Return the number of failed deliveries of a record, as counted for dead letters.

        If selectors reject records, only those returned by applications of this process count: the broker's count
        includes the rejections.
        """
        return entry.failures.get(index, 0) if self._fails_here else entry.redelivery_count(index)

    def dead_letter(self, record: WireRecord, properties: Mapping[str, str] | None = None) -> None:
        """Move a record to the dead letters, with other properties than its own unless None."""
        failures = self._failures_of(record.entry, record.index)
        if record.entry.step(record.index, RecordEvent.DEAD_LETTERED).action is Action.STORE:
            assert self._letters is not None  # a consumer with a policy
            self._letters.put([(record, failures)], self._letter_ended, properties)

    def _letter_ended(self, record: ReceivedRecord, stored: bool) -> None:
        assert isinstance(record, WireRecord)
        entry, index = record.entry, record.index
        if not stored:
            self._step_back(entry, index, RecordEvent.LETTER_FAILED, 1.0)
        elif entry.step(index, RecordEvent.LETTER_STORED).action is Action.ACKNOWLEDGE:
            self._consumer.acks.acknowledged(entry)

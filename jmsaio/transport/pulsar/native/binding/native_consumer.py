"""``NativeConsumer``: one native consumer or reader, drained inline from the loop's thread.

Only one native receive is pending at a time. If pulsar-client's queue has a message, it answers inside the call, on
this thread; otherwise it stays armed and is answered from a native thread, through ``Bridge.post``. It is never
cancelled: its message is stored here, so a cancelled caller loses nothing. A ``message_listener`` would create a thread
state for every message and compete with the loop for the GIL.

After an answer inside the call, further messages are received by the blocking receive with a time limit of 0, which
never waits and uses no callback (a sixth of the time per message, measured).

pulsar-client checks for an armed receive under a lock, but puts a message into its queue after releasing it. A receive
armed in between receives the next message only: if none follows, the message would stay in the queue forever. So the
queue is checked once after each arming, which is sufficient:

* While a receive is armed, a message enters the queue only if it arrived before the arming, or after the one that
  answers. The first can't happen later, and the second needs no check: the answer is pending.
* One thread of pulsar-client processes all messages of a topic in sequence, so there is at most one such message. A
  pattern's consumer has several, but keeps the lock. If a message was found, there is another check nevertheless.
* A receive with a time limit of 0 leaves no such gap behind. pulsar-client allows it while another one is armed.
* A thread of pulsar-client delayed between the two steps for longer than ``DELAY`` is missed. Then the message waits
  for the next one, which it precedes (``NativeConsumer.receive``).

A found message might also follow an answer pending from a native thread, which waits for a processor on a busy machine.
So unless it directly follows the last message received, it is retained until that answer arrives, for up to ``HOLD``.

``BatchAcker`` acknowledges the records of one stored entry with one call, once all are acknowledged: otherwise each
costs both sides about as much as the record. Reading an id costs as much: if the first and the last available message
belong to one entry and their distance matches their indices, all in between are known.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import _pulsar
import attrs

from jmsaio.errors import JMSError
from jmsaio.model.wire import EntryId
from jmsaio.protocol.fields import walk
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, Released, ignore
from jmsaio.transport.pulsar.native.binding.handles import (
    ConsumerHandle,
    MessageHandle,
    MessageIdHandle,
    OnMessage,
    Result,
    SettlingHandle,
)
from jmsaio.transport.pulsar.native.binding.results import OK, translate
from jmsaio.transport.waiting import Waiters


class BatchAcker:
    """An entry all of whose records so far arrived from one native consumer, in order, starting with the first."""

    __slots__ = ("_ids", "_next", "_size", "first", "left", "parts", "published", "settled")

    def __init__(self, ledger: int, entry: int, partition: int, size: int, published: int) -> None:
        self._ids = (ledger, entry, partition)
        self._size = size
        self._next = 0
        self.published = published
        self.first = 0  # serial number of its first record
        self.left = size  # number of unacknowledged records, including those not yet received
        self.settled = 0  # bits of the acknowledged indices
        self.parts: list[MessageHandle] = []  # its native messages with waiting acknowledgements

    def __repr__(self) -> str:
        return f"<BatchAcker {self._ids[0]}:{self._ids[1]}, {self.left} of {self._size} left>"

    @property
    def entry(self) -> EntryId:
        return self._ids[:2]

    def whole(self) -> MessageIdHandle:
        ledger, entry, partition = self._ids
        whole: MessageIdHandle = _pulsar.MessageId(partition, ledger, entry, -1)
        return whole

    def extend(self, natives: Sequence[MessageHandle], start: int) -> int:
        """Add the messages that continue this entry; return the index after them, ``start`` if there are none."""
        end = min(len(natives), start + self._size - self._next)
        if end == start or not self._is_at(natives[start], self._next):
            return start
        last = self._next + end - 1 - start
        if end - 1 > start and not self._is_at(natives[end - 1], last):
            return start
        self._next = last + 1
        return end

    def _is_at(self, native: MessageHandle, index: int) -> bool:
        message_id = native.message_id()
        ledger, entry, partition = self._ids
        return bool(
            message_id.batch_index() == index
            and message_id.entry_id() == entry
            and message_id.ledger_id() == ledger
            and message_id.partition() == partition
        )


def begin_batch(native: MessageHandle) -> BatchAcker | None:
    first = native.message_id()
    if first.batch_index() != 0:
        return None
    size = batch_size(first)
    if size <= 1:
        return None
    return BatchAcker(first.ledger_id(), first.entry_id(), first.partition(), size, native.publish_timestamp())


def directly_follows(message_id: MessageIdHandle, last: MessageIdHandle) -> bool:
    """Return whether no message can be stored between ``last`` and ``message_id``, ids of one topic or partition."""
    if message_id.ledger_id() != last.ledger_id():
        return False
    if message_id.entry_id() == last.entry_id():
        return message_id.batch_index() == last.batch_index() + 1
    is_next_entry = message_id.entry_id() == last.entry_id() + 1 and message_id.batch_index() <= 0
    return is_next_entry and last.batch_index() + 1 >= batch_size(last)


#: Tags of ``MessageIdData``: batch size, first chunk of a message; and of the latter, ledger and entry.
_BATCH_SIZE, _FIRST_CHUNK, _LEDGER, _ENTRY = 0x30, 0x3A, 0x08, 0x10


def batch_size(message_id: MessageIdHandle) -> int:
    """Return the batch size of a native id, read from its serialized form; 0 if it is missing."""
    data = message_id.serialize()
    return next((value for tag, value, _ in walk(data, 0, len(data)) if tag == _BATCH_SIZE), 0)


def first_chunk(message_id: MessageIdHandle) -> EntryId | None:
    data = message_id.serialize()
    for tag, start, end in walk(data, 0, len(data)):
        if tag == _FIRST_CHUNK:
            first = {part: value for part, value, _ in walk(data, start, end)}
            return first[_LEDGER], first[_ENTRY]
    return None


#: Seconds that a receive is armed before the check for a message that was not reported to it.
DELAY: Final = 0.1
#: Maximum seconds to hold a found message for an answer that might be pending.
HOLD: Final = 1.0
#: Seconds that a timer can fire early.
_TOLERANCE: Final = 0.001


@attrs.define(eq=False, repr=False, slots=False)
class NativeConsumer:
    """Receives native messages from one native consumer or reader."""

    _bridge: Bridge
    native: ConsumerHandle
    _receive: Callable[[OnMessage], None]
    _receive_now: Callable[[int], MessageHandle]  # with a time limit in milliseconds
    topic: str | None  # of all its messages; None if it has several (a pattern)
    _what: str  # for errors
    _wake: Callable[[], None]  # called when an armed receive was answered, or an unreported message was found
    settling: SettlingHandle = attrs.field(init=False)  # ``native``, or what settles records while it is stopped
    failure: JMSError | None = attrs.field(default=None, init=False)  # which ended it
    stopped: bool = attrs.field(default=False, init=False)
    serial: int = attrs.field(default=0, init=False)  # of the last record created from its messages
    batch: BatchAcker | None = attrs.field(default=None, init=False)  # of its last message
    persistent: bool = attrs.field(init=False)  # whether the ids of its messages belong to one persistent topic
    _high: MessageIdHandle | None = attrs.field(default=None, init=False)
    _again: bool = attrs.field(default=False, init=False)
    _armed: bool = attrs.field(default=False, init=False)
    _late: list[MessageHandle] = attrs.field(factory=list, init=False)
    _found: MessageHandle | None = attrs.field(default=None, init=False)  # held for an answer that might be pending
    _check_due: float | None = attrs.field(default=None, init=False)  # loop time of the next check, if it is not done
    _timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)  # reused for the next armed receive
    _answered: Waiters = attrs.field(factory=Waiters, init=False)
    _inline: list[Any] = attrs.field(factory=lambda: [None, None], init=False)
    _fired: OnMessage = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.settling = self.native
        self.persistent = self.topic is not None and not self.topic.startswith("non-persistent://")
        self._fired = self._callback()
        self._bridge.made(self)

    def release(self) -> None:
        self.native = self.settling = Released()  # type: ignore[assignment]  # its calls return nothing
        self._receive, self._receive_now = ignore, ignore  # type: ignore[assignment]  # likewise
        self._cancel_check()

    def _callback(self) -> OnMessage:
        inline = self._inline
        own, current = self._bridge.thread, threading.get_ident
        post, arrived = self._bridge.post, self._arrived

        def fired(result: Result, message: MessageHandle) -> None:
            if current() == own:
                inline[0] = message
                inline[1] = result
            else:
                post(arrived, result, message)

        return fired

    @property
    def has_messages(self) -> bool:
        """Whether messages that pulsar-client counts as received are stored here, even if not yet for ``receive``."""
        return bool(self._late) or self._found is not None

    @property
    def ready(self) -> bool:
        return bool(self._late)

    @property
    def waits(self) -> bool:
        """Whether no message is available here or in pulsar-client's queue, so that the next one wakes."""
        return self._armed and not self.stopped and not self.has_messages

    async def disarmed(self) -> None:
        """Wait after the close until no native callback is pending: at the interpreter's end it aborts the process."""
        while self._armed:
            await self._answered.wait()

    def _arrived(self, result: Result, message: MessageHandle) -> None:
        self._armed = False
        self._answered.wake()
        found, self._found, self._check_due = self._found, None, None
        if self.stopped:
            return
        if int(result) != OK:
            self.fail(translate(result, self._what))
        elif self._late:
            self._store(message)
        else:
            self._late = [message]
        if found is not None:
            self._store(found)
        self._wake()

    def _plan_check(self) -> None:
        self._check_due = self._bridge.loop.time() + DELAY
        if self._timer is None:
            self._timer = self._bridge.loop.call_at(self._check_due, self._check)

    def _cancel_check(self) -> None:
        self._found = self._check_due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        if self._check_due is None or self._bridge.failure is not None:
            return
        loop = self._bridge.loop
        if self._check_due - loop.time() > _TOLERANCE:  # armed again meanwhile
            self._timer = loop.call_at(self._check_due, self._check)
            return
        held, self._found, self._check_due = self._found, None, None
        with suppress(_pulsar.PulsarException):  # no message, or the consumer failed: the armed receive is answered
            self._found = self._receive_now(0)
        if self._found is not None:
            self._check_due = loop.time() + (0 if self._follows(self._found) else HOLD)
            self._timer = loop.call_at(self._check_due, self._check)
        if held is not None:
            self._store(held)
            self._wake()

    def _follows(self, message: MessageHandle) -> bool:
        return self._high is not None and directly_follows(message.message_id(), self._high)

    def _store(self, message: MessageHandle) -> None:
        self._late.append(message)
        self._sort_in(self._late, len(self._late) - 1)

    def _sort_in(self, messages: list[MessageHandle], index: int) -> None:
        """Move a message before those that it precedes; if ids have no order, it stays."""
        while index > 0 and self.persistent and messages[index].message_id() < messages[index - 1].message_id():
            messages[index - 1], messages[index] = messages[index], messages[index - 1]
            index -= 1

    def receive(self, limit: int) -> list[MessageHandle]:
        """Return up to ``limit`` available messages, without waiting; if fewer, more messages call ``wake``."""
        if self._late and limit > 0:
            return self._receive_with_late(limit)
        taken: list[MessageHandle] = []
        self._receive_to(taken, limit)
        return taken

    def _receive_to(self, taken: list[MessageHandle], limit: int) -> None:
        while len(taken) < limit and not self._armed and self.failure is None and not self.stopped:
            self._receive_now_to(taken, limit)

    def _receive_with_late(self, limit: int) -> list[MessageHandle]:
        """Receive after a late message, which might have overtaken the queue's first: seen once in 2,000 receives."""
        taken, self._late = self._late, []
        count = len(taken)
        if count <= limit:
            self._receive_to(taken, max(limit, count + 1))
        if len(taken) > count:
            self._sort_in(taken, count)
        if len(taken) > limit:
            self._late = taken[limit:]
            del taken[limit:]
        return taken

    def peek(self) -> MessageHandle | None:
        """Return the next message of ``receive``, or None; ``wake`` is called when there is one."""
        if not self._late and not self._armed and self.failure is None and not self.stopped:
            self._receive_now_to(self._late, 1)
        return self._late[0] if self._late else None

    def _receive_now_to(self, taken: list[MessageHandle], limit: int) -> None:
        """Receive the messages in pulsar-client's queue; the receive stays armed if it is empty."""
        inline = self._inline
        inline[0] = None
        self._receive(self._fired)
        message = inline[0]
        if message is None:
            self._armed = True
            self._plan_check()
        elif int(inline[1]) != OK:
            self.failure = translate(inline[1], self._what)
        else:
            inline[0] = None  # a large message is not kept here
            taken.append(message)
            receive_now = self._receive_now
            # No message, or the consumer failed: the next receive stays armed, or reports the failure.
            with suppress(_pulsar.PulsarException):
                while len(taken) < limit:
                    taken.append(receive_now(0))

    def entries(self, natives: list[MessageHandle]) -> Iterator[tuple[list[MessageHandle], BatchAcker | None, bool]]:
        """Yield the messages of each entry (a pattern's: all), their batch, and whether they don't follow the last one.

        In that case pulsar-client reconnected, or the broker redelivers. A non-persistent topic never redelivers.
        """
        start = 0
        while start < len(natives):
            end, batch = start, self.batch
            if self.topic is None:
                end = len(natives)
            elif batch is not None:
                end = batch.extend(natives, start)
            if end == start:
                self._again = self.is_known(natives[start])
                self.batch = batch = begin_batch(natives[start])
                end = start + 1 if batch is None else batch.extend(natives, start)
            if end == start:  # the broker left out some: those acknowledged before
                self.batch, batch, end = None, None, start + 1
            yield natives[start:end], batch, self._again
            if self.persistent:
                last = natives[end - 1].message_id()
                if not self._again or last > self._high:  # type: ignore[operator]  # there is a last one when one is redelivered
                    self._high = last
            start = end

    def is_known(self, message: MessageHandle) -> bool:
        """Return whether a message does not follow the last one seen before, in the order of ids."""
        return self._high is not None and bool(message.message_id() <= self._high)

    def forget(self) -> None:
        self._high = None
        self._again = False

    def stop(self, settling: SettlingHandle) -> None:
        self.stopped = True
        self.settling = settling
        self._late = []
        self._cancel_check()
        self.batch = None

    def resume(self, native: ConsumerHandle) -> None:
        """Receive from another consumer of the same topic, after the old one's receive was answered (``disarmed``)."""
        self.native = self.settling = native
        self._receive, self._receive_now = native.receive_async, native.receive
        self.failure = None
        self.stopped = False

    def fail(self, error: JMSError) -> None:
        self.failure = self.failure or error

    def discard(self) -> None:
        self._late = []
        self._cancel_check()
        self.batch = None
        self.forget()

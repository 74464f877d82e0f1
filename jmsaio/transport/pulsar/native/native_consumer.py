"""``NativeConsumer``: one native consumer or reader, drained inline from the loop's thread.

At most one native receive is outstanding. With something in pulsar-client's queue it answers inside the call, on our
thread; else it stays armed and its answer comes from a native thread, through ``Bridge.post``. It is never cancelled:
what it brings is kept here, so a caller that went away loses nothing. No ``message_listener``: it would make a thread
state for every message and fight the loop for the GIL.

pulsar-client may fail to tell an armed receive of a message: see ``SecondLook``.

One that answered inside the call shows that there is more: the rest is taken by the blocking receive with a time limit
of 0, which never waits and makes no callback (a sixth of the time of a message, measured).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import _pulsar

from jmsaio.errors import JMSError
from jmsaio.transport.pulsar.native.batch_acker import BatchAcker, begin_batch
from jmsaio.transport.pulsar.native.bridge import Bridge, Released, ignore
from jmsaio.transport.pulsar.native.handles import (
    ConsumerHandle,
    MessageHandle,
    MessageIdHandle,
    OnMessage,
    Result,
    SettlingHandle,
)
from jmsaio.transport.pulsar.native.results import OK, translate
from jmsaio.transport.pulsar.native.second_look import HOLD, SecondLook
from jmsaio.transport.waiters import Waiters


class NativeConsumer:
    """Takes native messages from one native consumer or reader.

    Args:
        bridge: the way back from native threads.
        native: ``_pulsar.Consumer`` or ``_pulsar.Reader``.
        receive: its ``receive_async`` or ``read_next_async``.
        receive_now: its ``receive`` or ``read_next``, with a time limit in milliseconds.
        topic: the topic of all its messages, or None where it has several (a pattern).
        what: it in words, for errors.
        wake: called when an armed receive was answered, or a message was found that it was not told of.
        hold: seconds that such a message waits for an answer that may be on its way.

    Attributes:
        failure: what ended it, or None.
        serial: number of the last record made of its messages.
        batch: the batch that its last message belongs to, or None.
        stopped: its consumer was closed until ``resume``.
        persistent: the ids of its messages are those of one persistent topic.
    """

    def __init__(
        self,
        bridge: Bridge,
        native: ConsumerHandle,
        receive: Callable[[OnMessage], None],
        receive_now: Callable[[int], MessageHandle],
        topic: str | None,
        what: str,
        wake: Callable[[], None],
        hold: float = HOLD,
    ) -> None:
        self.native = native
        self.topic = topic
        self.failure: JMSError | None = None
        self.stopped = False
        self.serial = 0
        self.batch: BatchAcker | None = None
        self.persistent = topic is not None and not topic.startswith("non-persistent://")
        self._high: MessageIdHandle | None = None
        self._again = False
        self._bridge = bridge
        self._receive = receive
        self._receive_now = receive_now
        self._what = what
        self._wake = wake
        self._armed = False
        self._late: list[MessageHandle] = []
        self._second_look = SecondLook(bridge, lambda: self._receive_now(0), self._unannounced, hold)
        self._answered = Waiters()
        self._inline: list[Any] = [None, None]
        self._fired = self._callback()
        bridge.made(self)

    def release(self) -> None:
        """Let go of the native consumer or reader, which is closed."""
        self.native = Released()  # type: ignore[assignment]  # its calls return nothing
        self._receive, self._receive_now = ignore, ignore  # type: ignore[assignment]  # likewise
        self._second_look.cancel()

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
    def holds(self) -> bool:
        """True when a message lies here that pulsar-client counts as received; ``take`` may not get it yet."""
        return bool(self._late) or self._second_look.holds

    @property
    def ready(self) -> bool:
        """True when ``take`` gets a message that lies here."""
        return bool(self._late)

    @property
    def waits(self) -> bool:
        """True when nothing lies here or in pulsar-client's queue, and the next message wakes."""
        return self._armed and not self.stopped and not self.holds

    async def disarmed(self) -> None:
        """Wait until no native callback is outstanding: the consumer answers it when it is closed.

        A callback that pulsar-client still holds at the end of the interpreter aborts the process.
        """
        while self._armed:
            await self._answered.wait()

    def _arrived(self, result: Result, message: MessageHandle) -> None:
        self._armed = False
        self._answered.wake()
        found = self._second_look.answered()
        if self.stopped:
            return
        if int(result) != OK:
            self.failure = self.failure or translate(result, self._what)
        elif self._late:
            self._keep(message)
        else:
            self._late = [message]
        if found is not None:
            self._keep(found)
        self._wake()

    def _unannounced(self, message: MessageHandle) -> None:
        """A message was found of which the armed receive was not told."""
        self._keep(message)
        self._wake()

    def _keep(self, message: MessageHandle) -> None:
        self._late.append(message)
        self._sort_in(self._late, len(self._late) - 1)

    def _sort_in(self, messages: list[MessageHandle], place: int) -> None:
        """Move a message before those that it precedes; where ids have no order, it stays."""
        while place > 0 and self.persistent and messages[place].message_id() < messages[place - 1].message_id():
            messages[place - 1], messages[place] = messages[place], messages[place - 1]
            place -= 1

    def take(self, limit: int) -> list[MessageHandle]:
        """Up to ``limit`` native messages that are here, without waiting; fewer: ``wake`` comes with more."""
        if self._late and limit > 0:
            return self._take_behind_late(limit)
        taken: list[MessageHandle] = []
        self._take_to(taken, limit)
        return taken

    def _take_to(self, taken: list[MessageHandle], limit: int) -> None:
        while len(taken) < limit and not self._armed and self.failure is None and not self.stopped:
            self._take_here(taken, limit)

    def _take_behind_late(self, limit: int) -> list[MessageHandle]:
        """The same where a message came late, which may have overtaken the one before it.

        pulsar-client first looks for an armed receive, and then puts a message in its queue. A receive that is armed
        between the two gets the next message, while this one waits in the queue (seen once in 2,000 receives on a busy
        machine). So the first of the queue may belong before the late one.
        """
        taken, self._late = self._late, []
        count = len(taken)
        if count <= limit:
            self._take_to(taken, max(limit, count + 1))
        if len(taken) > count:
            self._sort_in(taken, count)
        if len(taken) > limit:
            self._late = taken[limit:]
            del taken[limit:]
        return taken

    def peek(self) -> MessageHandle | None:
        """The first message, which the next ``take`` gets, or None: ``wake`` comes with it."""
        if not self._late and not self._armed and self.failure is None and not self.stopped:
            self._take_here(self._late, 1)
        return self._late[0] if self._late else None

    def _take_here(self, taken: list[MessageHandle], limit: int) -> None:
        """Take what lies in pulsar-client's queue; the receive stays armed when it is empty."""
        inline = self._inline
        inline[0] = None
        self._receive(self._fired)
        message = inline[0]
        if message is None:
            self._armed = True
            self._second_look.arm()
        elif int(inline[1]) != OK:
            self.failure = translate(inline[1], self._what)
        else:
            inline[0] = None  # a large message is not kept here
            taken.append(message)
            receive_now = self._receive_now
            # Nothing there, or the consumer failed: the next receive stays armed, or reports the failure.
            with suppress(_pulsar.PulsarException):
                while len(taken) < limit:
                    taken.append(receive_now(0))

    def entries(self, natives: list[MessageHandle]) -> Iterator[tuple[list[MessageHandle], BatchAcker | None, bool]]:
        """Messages that were taken, by the entry that they belong to.

        A pattern's topics are mixed, and the ids of a topic that is not persistent are all alike: never behind.

        Yields:
            Messages of one entry (of a pattern: all), their batch if they have one, and whether the first of them is
            not behind the last message seen before: pulsar-client reconnected, or the broker gave something back.
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
            if end == start:  # the broker left out some: what was acknowledged before
                self.batch, batch, end = None, None, start + 1
            yield natives[start:end], batch, self._again
            if self.persistent:
                last = natives[end - 1].message_id()
                if not self._again or last > self._high:  # type: ignore[operator]  # there is a last one when one is redelivered
                    self._high = last
            start = end

    def is_known(self, message: MessageHandle) -> bool:
        """True when a message is not behind the last one seen before, in the order of ids."""
        return self._high is not None and bool(message.message_id() <= self._high)

    def forget(self) -> None:
        """Forget how far it was: ids start over."""
        self._high = None
        self._again = False

    def stop(self, native: SettlingHandle) -> None:
        """Take nothing more: the consumer is being closed, and ``native`` takes what is still to be settled."""
        self.stopped = True
        self.native = native  # type: ignore[assignment]  # nothing else is asked of a stopped one
        self._late = []
        self._second_look.cancel()
        self.batch = None

    def resume(
        self, native: ConsumerHandle, receive: Callable[[OnMessage], None], receive_now: Callable[[int], MessageHandle]
    ) -> None:
        """Take from another consumer of the same topic; the answer of the old one must have come (``disarmed``)."""
        self.native = native
        self._receive = receive
        self._receive_now = receive_now
        self.failure = None
        self.stopped = False

    def discard(self) -> None:
        """Forget what was received but not taken, and how far it was; for seek."""
        self._late = []
        self._second_look.cancel()
        self.batch = None
        self.forget()

"""``SecondLook``: finds a message that pulsar-client put in its queue without telling the receive that is armed.

pulsar-client takes a message that arrives to an armed receive, or else puts it in its queue. It asks for an armed
receive under a lock, but puts the message in the queue after letting go of it. A receive that looks into the queue and
is armed in between gets the next message only: if none follows, the message would lie in the queue for ever.

One look after each arming is enough:

* While a receive is armed, a message gets into the queue only if it arrived before the arming, or behind the one that
  answers. The first can't happen later on, and the second is no reason to look: the answer is on its way.
* One thread of pulsar-client brings all messages of a topic, one after the other, so that there is one such message at
  most. The consumer of a pattern has several of these threads, but keeps the lock. If something was found, there is
  another look nevertheless.
* Looking makes no such gap itself: a receive with a time limit of 0 leaves nothing behind.
* A thread of pulsar-client that is held up between the two steps for longer than ``DELAY`` is missed. Then the message
  waits for the next one, which it precedes (``NativeConsumer.take``).

A message that is found may also lie behind an answer on its way from a native thread. So it is held until that comes,
or has not come for a while: on a busy machine the thread may wait for a processor for longer than ``HOLD``. A reader,
which tells the end of a topic by what it has read, holds it longer.

pulsar-client lets one receive with a time limit while a receive is armed, on consumers of a topic, of a pattern, and
on readers. It refuses where the queue has no room at all (``receiverQueueSize`` 0): there it can't leave a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import _pulsar

from jmsaio.transport.pulsar.native.bridge import Bridge
from jmsaio.transport.pulsar.native.handles import MessageHandle

#: Seconds without an answer before the look.
DELAY: Final = 0.1
#: Seconds that a message which was found waits for an answer that may be on its way, where nothing else is said.
HOLD: Final = 0.05
#: Seconds that a timer may be early.
_TOLERANCE: Final = 0.001


class SecondLook:
    """Looks once more after each arming of one native consumer's receive. It has one timer at most, none when idle.

    Args:
        bridge: the way back from native threads.
        look: takes the first message of the queue without waiting; raises ``_pulsar.PulsarException`` if there is none.
        found: called with a message when no answer came after it was found,
        hold: for so many seconds.
    """

    __slots__ = ("_bridge", "_due", "_found", "_held", "_hold", "_look", "_timer")

    def __init__(
        self,
        bridge: Bridge,
        look: Callable[[], MessageHandle],
        found: Callable[[MessageHandle], object],
        hold: float = HOLD,
    ) -> None:
        self._bridge = bridge
        self._look = look
        self._found = found
        self._hold = hold
        self._held: MessageHandle | None = None
        self._due: float | None = None  # loop's time of what is next; None: no receive is armed, or it was looked
        self._timer: asyncio.TimerHandle | None = None

    @property
    def holds(self) -> bool:
        """True while a message that was found waits for an answer that may be on its way."""
        return self._held is not None

    def arm(self) -> None:
        """A receive was armed. The timer of the one before, if it still runs, serves this one, too."""
        loop = self._bridge.loop
        self._due = loop.time() + DELAY
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._ring)

    def answered(self) -> MessageHandle | None:
        """The receive was answered. Returns the message that was held, if there is one."""
        held, self._held, self._due = self._held, None, None
        return held

    def cancel(self) -> None:
        """Forget what is held, and look no more for the receive that is armed: the queue is emptied or closed."""
        self._held = self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        if self._due is None or self._bridge.failure is not None:
            return
        loop = self._bridge.loop
        if self._due - loop.time() > _TOLERANCE:  # armed again since
            self._timer = loop.call_at(self._due, self._ring)
            return
        held, self._held, self._due = self._held, None, None
        with suppress(_pulsar.PulsarException):  # nothing there, or the consumer failed: the armed receive is told
            self._held = self._look()
        if self._held is not None:
            self._due = loop.time() + self._hold
            self._timer = loop.call_at(self._due, self._ring)
        if held is not None:
            self._found(held)

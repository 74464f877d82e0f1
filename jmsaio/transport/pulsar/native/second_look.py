"""``SecondLook``: finds a message that pulsar-client put into its queue without reporting it to the armed receive.

pulsar-client passes an arriving message to an armed receive, or else puts it into its queue. It checks for an armed
receive under a lock, but puts the message into the queue after releasing it. A receive that checks the queue and is
armed in between receives the next message only: if none follows, the message would stay in the queue forever.

One check after each arming is sufficient:

* While a receive is armed, a message enters the queue only if it arrived before the arming, or after the one that
  answers. The first can't happen later, and the second needs no check: the answer is pending.
* One thread of pulsar-client processes all messages of a topic in sequence, so there is at most one such message. The
  consumer of a pattern has several of these threads, but keeps the lock. If a message was found, there is another check
  nevertheless.
* Checking creates no such gap itself: a receive with a time limit of 0 leaves nothing behind.
* A thread of pulsar-client delayed between the two steps for longer than ``DELAY`` is missed. Then the message waits
  for the next one, which it precedes (``NativeConsumer.take``).

A found message might also follow an answer pending from a native thread, which waits for a processor on a busy machine.
So unless it directly follows the last message taken, it is held until that answer arrives, for up to ``HOLD``.

pulsar-client allows a receive with a time limit while a receive is armed, on consumers of a topic, of a pattern, and on
readers. It refuses this if the queue has no room at all (``receiverQueueSize`` 0): then no message can be left in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import _pulsar

from jmsaio.transport.pulsar.native.bridge import Bridge
from jmsaio.transport.pulsar.native.handles import MessageHandle

#: Seconds without an answer before the check.
DELAY: Final = 0.1
#: Maximum seconds to hold a found message for an answer that might be pending.
HOLD: Final = 1.0
#: Seconds that a timer can fire early.
_TOLERANCE: Final = 0.001


class SecondLook:
    """Checks the queue after each arming of one native consumer's receive. Uses a single timer, none when idle.

    Args:
        bridge: bridge to the native threads.
        look: receives the first message of the queue without waiting; raises ``_pulsar.PulsarException`` if there is
            none.
        found: called with a found message that follows, or if no answer has arrived within ``HOLD``.
        follows: returns whether no message is missing between the last one taken and a found one.
    """

    __slots__ = ("_bridge", "_due", "_follows", "_found", "_held", "_look", "_timer")

    def __init__(
        self,
        bridge: Bridge,
        look: Callable[[], MessageHandle],
        found: Callable[[MessageHandle], object],
        follows: Callable[[MessageHandle], bool],
    ) -> None:
        self._bridge = bridge
        self._look = look
        self._found = found
        self._follows = follows
        self._held: MessageHandle | None = None
        self._due: float | None = None  # loop time of the next step; None: no receive is armed, or the check is done
        self._timer: asyncio.TimerHandle | None = None

    @property
    def holds(self) -> bool:
        """Whether a found message is held for an answer that might be pending."""
        return self._held is not None

    def arm(self) -> None:
        """Schedule the check for a newly armed receive. A timer still running for the previous one is reused."""
        loop = self._bridge.loop
        self._due = loop.time() + DELAY
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._ring)

    def answered(self) -> MessageHandle | None:
        """Handle the answer of the receive. Returns the held message, if there is one."""
        held, self._held, self._due = self._held, None, None
        return held

    def cancel(self) -> None:
        """Discard the held message and cancel the check of the armed receive: the queue is emptied or closed."""
        self._held = self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        if self._due is None or self._bridge.failure is not None:
            return
        loop = self._bridge.loop
        if self._due - loop.time() > _TOLERANCE:  # armed again meanwhile
            self._timer = loop.call_at(self._due, self._ring)
            return
        held, self._held, self._due = self._held, None, None
        with suppress(_pulsar.PulsarException):  # no message, or the consumer failed: the armed receive is answered
            self._held = self._look()
        if self._held is not None:
            self._due = loop.time() + (0 if self._follows(self._held) else HOLD)
            self._timer = loop.call_at(self._due, self._ring)
        if held is not None:
            self._found(held)

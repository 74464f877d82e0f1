"""Connection from the broker to an event loop: grouped callbacks, one ``call_soon`` per turn, one timer."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Protocol

import attrs

from jmsaio.transport.base import LinkChange, LinkListener
from jmsaio.transport.memory.broker.broker import Broker


class Deferred(Protocol):
    """An object with a pending callback to its application."""

    def run_deferred(self) -> None:
        """Make the callback. Called on the loop's thread, without the lock."""


@attrs.define(eq=False)
class Link:
    """A client's connection from the broker to its event loop; ``listeners`` receive changes of the connection."""

    broker: Broker
    loop: asyncio.AbstractEventLoop
    listeners: set[LinkListener] = attrs.field(factory=set, init=False)
    _thread: int = attrs.field(factory=threading.get_ident, init=False)
    _deferred: list[Deferred] = attrs.field(factory=list, init=False)
    _scheduled: bool = attrs.field(default=False, init=False)
    _handle: asyncio.TimerHandle | None = attrs.field(default=None, init=False)
    _armed: float | None = attrs.field(default=None, init=False)
    _cut: bool = attrs.field(default=False, init=False)
    _changes: deque[LinkChange] = attrs.field(factory=deque, init=False)

    def notify(self, change: LinkChange) -> None:
        """Call the listeners with a change soon. With the broker's lock held, from any thread."""
        self._changes.append(change)
        self.defer(self)

    def run_deferred(self) -> None:
        change = self._changes.popleft()  # there is one deferred call per change
        for listener in list(self.listeners):
            listener(change)

    def defer(self, deferred: Deferred) -> None:
        """Call ``deferred.run_deferred`` soon. With the broker's lock held, from any thread."""
        self._deferred.append(deferred)
        self.wake()

    def wake(self) -> None:
        """Process deferred calls and the next timer soon, on the loop. With the lock held, from any thread."""
        if self._scheduled:
            return
        self._scheduled = True
        try:
            if threading.get_ident() == self._thread:
                self.loop.call_soon(self._flush)
            else:
                self.loop.call_soon_threadsafe(self._flush)
        except RuntimeError:
            self._scheduled = False  # the loop is closed: there is no one to inform

    def _flush(self) -> None:
        with self.broker.lock:
            calls, self._deferred = self._deferred, []
            self._scheduled = False
        for deferred in calls:
            try:
                deferred.run_deferred()
            except Exception as error:
                context = {"message": "a callback passed to the embedded broker raised", "exception": error}
                self.loop.call_exception_handler(context)
        self._arm()

    def _arm(self) -> None:
        if not self.broker.self_timed or self._cut:
            return
        due = self.broker.timers.due
        if due == self._armed:
            return
        if self._handle is not None:
            self._handle.cancel()
        self._armed = due
        if due is not None:
            self._handle = self.loop.call_later(max(0.0, due - self.broker.steady()), self._ring)

    def _ring(self) -> None:
        self._handle = self._armed = None
        self.broker.tick()
        self._arm()

    def cut(self) -> None:
        """Make the deferred calls and stop the timer. Calls deferred by these follow in the next turns."""
        self._cut = True
        self._flush()
        if self._handle is not None:
            self._handle.cancel()

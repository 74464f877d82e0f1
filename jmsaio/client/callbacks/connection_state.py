"""The state of a connection to the broker, and who is informed of its changes."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import attrs

from jmsaio.client.callbacks.callback_context import SerialCalls
from jmsaio.client.callbacks.worker import call
from jmsaio.errors import IllegalArgumentError, JMSError
from jmsaio.model.arguments import with_article
from jmsaio.model.public import public
from jmsaio.transport.waiting import Waiters


@public
class ConnectionState(enum.Enum):
    """State of a connection to the broker.

    Attributes:
        CONNECTING: the broker has not answered yet.
        CONNECTED: the broker answers.
        RECONNECTING: the connection is lost; it is restored without any call.
        CLOSED: ``close`` was called.
    """

    CONNECTING = "connecting"
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"
    CLOSED = "closed"


@public
@attrs.frozen
class StateChange:
    """A connection's state since its last change.

    Attributes:
        state: the state.
        error: why the connection is RECONNECTING; None in other states.
    """

    state: ConnectionState
    error: JMSError | None = None


#: Called with each change of state: a plain or coroutine function.
StateCallback = Callable[[StateChange], Any]


@attrs.define(eq=False)
class ConnectionStates:
    """The current state of one connection, its callbacks and those that wait for a change.

    Attributes:
        outage: why the connection is lost, or was when it was closed; None if it is not known to be lost.
        reconnects: how often the connection was lost and restored.
    """

    calls: SerialCalls = attrs.field(factory=SerialCalls)
    last: StateChange = StateChange(ConnectionState.CONNECTING)
    outage: JMSError | None = attrs.field(default=None, init=False)
    reconnects: int = attrs.field(default=0, init=False)
    _callbacks: dict[StateCallback, None] = attrs.field(factory=dict, init=False)
    _waiters: Waiters = attrs.field(factory=Waiters, init=False)

    def change(self, state: ConnectionState, error: JMSError | None = None) -> None:
        """Change the state, unless the connection is closed."""
        change = StateChange(state, error)
        if self.last.state is ConnectionState.CLOSED or change == self.last:
            return
        if state is ConnectionState.CONNECTED and self.last.state is ConnectionState.RECONNECTING:
            self.reconnects += 1
        self.last = change
        if state is not ConnectionState.CLOSED:  # what is pending then still fails because of the outage
            self.outage = error
        self._waiters.wake()
        for callback in self._callbacks:
            self._call(callback)

    def _call(self, callback: StateCallback) -> None:
        self.calls.add("a state callback", partial(call, callback, self.last))

    def add(self, callback: StateCallback, *, now: bool = False) -> Callable[[], None]:
        """Call ``callback`` with later changes, until the returned function is called; with ``now`` also at once."""
        if not callable(callback):
            raise IllegalArgumentError(
                f"on_state must be a function of one StateChange, and is {with_article(type(callback).__name__)}"
            )
        self._callbacks[callback] = None
        if now:
            self._call(callback)
        return partial(self._callbacks.pop, callback, None)

    async def follow(self) -> AsyncIterator[StateChange]:
        """Yield the last change, then each later one; a slow reader gets the latest. Ends after CLOSED."""
        seen = None
        while seen is None or seen.state is not ConnectionState.CLOSED:
            while seen is self.last:
                await self._waiters.wait()
            seen = self.last
            yield seen

"""What a connection reports: changes of its state, and problems without a caller (Jakarta Messaging 3.1, 6.1.7)."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import attrs

from jmsaio.client.callbacks.callback_context import unmark
from jmsaio.client.callbacks.worker import call, function_of
from jmsaio.errors import IllegalArgumentError, JMSError
from jmsaio.model.arguments import with_article
from jmsaio.model.public import public

_log = logging.getLogger(__name__)

#: Maximum number of calls that wait for a slow function.
_MOST = 1000
#: Maximum number of kinds of errors that are counted.
_MOST_KINDS = 100

_calling: ContextVar[SerialCalls | None] = ContextVar("jmsaio_calling", default=None)


@attrs.define(eq=False)
class SerialCalls:
    """The calls of one connection's exception listener and state callbacks, in order, ``count`` so far.

    The task belongs to no task group: a function can close its connection and continue afterwards.
    """

    count: int = 0
    _waiting: deque[tuple[str, Callable[[], Awaitable[None]]]] = attrs.field(factory=deque, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def add(self, what: str, function: Callable[[], Awaitable[None]]) -> None:
        self.count += 1
        if len(self._waiting) >= _MOST:
            _log.warning("%s is too slow; a call was dropped", what)
            return
        self._waiting.append((what, function))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="jmsaio callbacks of a connection")

    async def _run(self) -> None:
        unmark()
        _calling.set(self)
        try:
            while self._waiting:
                what, function = self._waiting.popleft()
                try:
                    await function()
                except Exception:
                    _log.exception("%s raised", what)
        finally:
            self._task = None

    def called_from_here(self) -> bool:
        """Return whether this code runs in one of the functions, or in a task that one started."""
        return _calling.get() is self

    async def wait(self, timeout: float) -> None:
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=timeout)


@public
class ConnectionState(enum.Enum):
    """State of a connection to the broker.

    Attributes:
        CONNECTED: the broker answers.
        RECONNECTING: the connection is lost; it is restored without any call.
        CLOSED: ``close`` was called.
    """

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
    """The current state of one connection, and its callbacks."""

    calls: SerialCalls = attrs.field(factory=SerialCalls)
    last: StateChange = StateChange(ConnectionState.CONNECTED)
    outage: JMSError | None = attrs.field(default=None, init=False)  # why it is lost, or was when it was closed
    reconnects: int = attrs.field(default=0, init=False)
    _callbacks: dict[StateCallback, None] = attrs.field(factory=dict, init=False)

    def change(self, state: ConnectionState, error: JMSError | None = None) -> None:
        change = StateChange(state, error)
        if self.last.state is ConnectionState.CLOSED or change == self.last:
            return
        if state is ConnectionState.CONNECTED and self.last.state is ConnectionState.RECONNECTING:
            self.reconnects += 1
        self.last = change
        if state is not ConnectionState.CLOSED:  # what is pending then still fails because of the outage
            self.outage = error
        for callback in self._callbacks:
            self.calls.add("a state callback", partial(call, callback, change))

    def add(self, callback: StateCallback) -> Callable[[], None]:
        """Call ``callback`` with later changes, until the returned function is called."""
        if not callable(callback):
            raise IllegalArgumentError(
                f"on_state must be a function of one StateChange, and is {with_article(type(callback).__name__)}"
            )
        self._callbacks[callback] = None
        return partial(self._callbacks.pop, callback, None)


class HasOnException(Protocol):
    """An exception listener as in Java; a plain or coroutine function."""

    def on_exception(self, error: JMSError) -> Any:
        """Handle a problem."""


#: Receives problems that no caller can receive: a plain or coroutine function of the error, or an object with such a
#: function as ``on_exception``.
ExceptionListener = Callable[[JMSError], Any] | HasOnException


@attrs.define(eq=False)
class ExceptionReports:
    """The reports of one connection, delivered one at a time; ``where`` returns the fields of each log record."""

    calls: SerialCalls
    listener: ExceptionListener | None = None
    where: Callable[[], Mapping[str, object]] = dict
    _lost: JMSError | None = attrs.field(default=None, init=False)
    _warned: set[str] = attrs.field(factory=set, init=False)
    _failures: dict[object, int] = attrs.field(factory=dict, init=False)  # by the kind and line of the error

    def listen(self, listener: ExceptionListener | None) -> None:
        if listener is not None and function_of(listener, "on_exception") is None:
            raise IllegalArgumentError(
                f"listener must be a function of one error, or have on_exception, and is {type(listener).__name__}"
            )
        self.listener = listener

    def warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text, extra=self.where())

    def add(
        self,
        error: Exception,
        circumstances: str = "",
        *,
        logged: bool = False,
        about: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Log a problem now and report it to the listener later, unless ``lost`` has already reported it."""
        if error is self._lost:
            return
        if not logged:
            self.log(error, circumstances, about)
        self._report_later(error)

    def log(self, error: Exception, circumstances: str, about: Mapping[str, object]) -> None:
        """Log a problem; if the same line of code raised it before, with its number in place of the traceback."""
        text = str(error) or type(error).__name__
        text = f"{circumstances}: {text}" if circumstances else text
        number = self._number(error)
        again = "" if number == 1 else f" ({number} times from the same line; its first traceback is above)"
        _log.error("%s%s", text, again, exc_info=error if number == 1 else None, extra={**self.where(), **about})

    def _number(self, error: Exception) -> int:
        """Return how often an error like this one has been logged, with this time; 1 without a traceback."""
        trace = error.__traceback__
        if trace is None:
            return 1
        while trace.tb_next is not None:
            trace = trace.tb_next
        like = (type(error), trace.tb_frame.f_code, trace.tb_lineno)
        if len(self._failures) >= _MOST_KINDS:
            self._failures.clear()
        self._failures[like] = number = self._failures.get(like, 0) + 1
        return number

    def lost(self, error: JMSError, about: Mapping[str, object] = MappingProxyType({})) -> None:
        """Log that the broker or a subscription was lost, as a warning, and report it to the listener later."""
        self._lost = error
        _log.warning("%s", error, extra={**self.where(), **about})
        self._report_later(error)

    def _report_later(self, error: Exception) -> None:
        if not isinstance(error, JMSError):
            wrapped = JMSError(f"{type(error).__name__}: {error}")
            wrapped.__cause__ = error
            error = wrapped
        if self.listener is not None:
            self.calls.add("the exception listener", partial(self._report, error))

    async def _report(self, error: JMSError) -> None:
        listener = function_of(self.listener, "on_exception")
        if listener is not None:
            await call(listener, error)

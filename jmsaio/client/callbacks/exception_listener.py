"""Problems without a caller: logged, and reported to the connection's ExceptionListener.

Jakarta Messaging 3.1, 6.1.7 ExceptionListener.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.callbacks.worker import call, function_of
from jmsaio.errors import IllegalArgumentError, JMSError

_log = logging.getLogger("jmsaio")


class HasOnException(Protocol):
    """An exception listener as in Java; a plain or coroutine function."""

    def on_exception(self, error: JMSError) -> Any:
        """Handle a problem."""


#: Receives problems that no caller can receive: a plain or coroutine function of the error, or an object with such a
#: function as ``on_exception``.
ExceptionListener = Callable[[JMSError], Any] | HasOnException

#: Maximum number of reports that wait for a slow listener.
_MOST = 1000

_reporting: ContextVar[ExceptionReports | None] = ContextVar("jmsaio_reports", default=None)


@attrs.define(eq=False)
class ExceptionReports:
    """The reports of one connection, delivered one at a time by a task that runs only while reports are waiting.

    The task belongs to no task group: a listener can close its connection and continue afterwards.

    Attributes:
        listener: the exception listener, or None.
        count: number of reports so far.
    """

    listener: ExceptionListener | None = None
    count: int = attrs.field(default=0, init=False)
    _waiting: deque[JMSError] = attrs.field(factory=deque, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _lost: JMSError | None = attrs.field(default=None, init=False)
    _warned: set[str] = attrs.field(factory=set, init=False)

    def listen(self, listener: ExceptionListener | None) -> None:
        """Set the listener; see ``Connection.set_exception_listener``."""
        if listener is not None and function_of(listener, "on_exception") is None:
            raise IllegalArgumentError(
                f"listener must be a function of one error, or have on_exception, and is {type(listener).__name__}"
            )
        self.listener = listener

    def warn_once(self, text: str) -> None:
        """Log a warning, only the first time."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)

    def add(self, error: Exception, circumstances: str = "", *, logged: bool = False) -> None:
        """Log a problem now and report it to the listener later, unless ``lost`` has already reported it.

        Args:
            error: the problem.
            circumstances: prefix of the log entry.
            logged: whether the problem is already logged.
        """
        if error is self._lost:
            return
        if not logged:
            text = str(error) or type(error).__name__
            _log.error("%s", f"{circumstances}: {text}" if circumstances else text, exc_info=error)
        self._report_later(error)

    def lost(self, error: JMSError) -> None:
        """Log that the broker or a subscription was lost, as a warning, and report it to the listener later."""
        self._lost = error
        _log.warning("%s", error)
        self._report_later(error)

    def _report_later(self, error: Exception) -> None:
        self.count += 1
        if not isinstance(error, JMSError):
            wrapped = JMSError(f"{type(error).__name__}: {error}")
            wrapped.__cause__ = error
            error = wrapped
        if self.listener is None:
            return
        if len(self._waiting) >= _MOST:
            _log.warning("the exception listener is too slow; a report was dropped after it was logged")
            return
        self._waiting.append(error)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="jmsaio exception listener")

    async def _run(self) -> None:
        callback_context.leave()
        _reporting.set(self)
        try:
            while self._waiting:
                error, listener = self._waiting.popleft(), function_of(self.listener, "on_exception")
                if listener is None:
                    continue
                try:
                    await call(listener, error)
                except Exception:
                    _log.exception("the exception listener raised")
        finally:
            self._task = None

    def called_from_listener(self) -> bool:
        """Return whether this code runs in the listener, or in a task that it started."""
        return _reporting.get() is self

    async def wait_reported(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds until the listener has received all reports. Cancelling changes nothing."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=timeout)

"""Problems without a caller: logged, and reported to the connection's ExceptionListener.

Jakarta Messaging 3.1, 6.1.7 ExceptionListener.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import attrs

from jmsaio.client.callbacks.callback_context import SerialCalls
from jmsaio.client.callbacks.worker import call, function_of
from jmsaio.errors import IllegalArgumentError, JMSError

_log = logging.getLogger(__name__)
#: Maximum number of kinds of errors that are counted.
_MOST_KINDS = 100


class HasOnException(Protocol):
    """An exception listener as in Java; a plain or coroutine function."""

    def on_exception(self, error: JMSError) -> Any:
        """Handle a problem."""


#: Receives problems that no caller can receive: a plain or coroutine function of the error, or an object with such a
#: function as ``on_exception``.
ExceptionListener = Callable[[JMSError], Any] | HasOnException


@attrs.define(eq=False)
class ExceptionReports:
    """The reports of one connection, delivered one at a time.

    Attributes:
        listener: the exception listener, or None.
        where: returns the fields of each log record; see ``jmsaio.model.log_fields``.
    """

    calls: SerialCalls
    listener: ExceptionListener | None = None
    where: Callable[[], Mapping[str, object]] = dict
    _lost: JMSError | None = attrs.field(default=None, init=False)
    _warned: set[str] = attrs.field(factory=set, init=False)
    _failures: dict[object, int] = attrs.field(factory=dict, init=False)  # by the kind and line of the error

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
            _log.warning("%s", text, extra=self.where())

    def add(
        self,
        error: Exception,
        circumstances: str = "",
        *,
        logged: bool = False,
        about: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Log a problem now and report it to the listener later, unless ``lost`` has already reported it.

        Args:
            circumstances: prefix of the log entry.
            logged: whether the problem is already logged.
            about: more fields of the log record.
        """
        if error is self._lost:
            return
        if not logged:
            self.log(error, circumstances, about)
        self._report_later(error)

    def log(self, error: Exception, circumstances: str, about: Mapping[str, object]) -> None:
        """Log a problem; if the same line of code raised it before, with its number in place of the traceback.

        Args:
            circumstances: prefix of the log entry.
            about: more fields of the log record.
        """
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

"""Calls completion listeners in the order of the sends, never inside ``send``.

Jakarta Messaging 3.1, 7.3.3 Message order and 7.3.8 Use of the CompletionListener by the Jakarta Messaging provider.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

import anyio
import attrs

from jmsaio.client.callbacks.callback_context import CallbackContext, CallbackKind
from jmsaio.client.callbacks.reports import ExceptionReports
from jmsaio.client.callbacks.worker import CallbackWorker, run_inside
from jmsaio.client.senders.pending import PendingSend, Receipt
from jmsaio.errors import IllegalArgumentError, OperationTimeoutError, SendInDoubtError
from jmsaio.model.arguments import with_article
from jmsaio.model.log_fields import log_fields
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.sequential import BytesMessage, StreamMessage
from jmsaio.model.public import public


@public
class CompletionListener(Protocol):
    """Receives the outcome of an asynchronous send; its methods are plain or coroutine functions."""

    def on_completion(self, message: Message) -> Awaitable[None] | None:
        """Handle that the broker confirmed ``message``, the object that was sent."""

    def on_exception(self, message: Message, error: Exception) -> Awaitable[None] | None:
        """Handle that ``message`` was not sent, or that its outcome is unknown (SendInDoubtError)."""


def check_listener(listener: CompletionListener) -> None:
    for call in ("on_completion", "on_exception"):
        if not callable(getattr(listener, call, None)):
            raise IllegalArgumentError(
                f"completion_listener needs on_completion(message) and on_exception(message, error); "
                f"{with_article(type(listener).__name__)} has no {call}"
            )


def _ignore_outcome(future: asyncio.Future[Receipt]) -> None:
    """Retrieve the error, which the listener already received; otherwise asyncio logs that it was never retrieved."""
    if not future.cancelled():
        future.exception()


@attrs.define(eq=False)
class _Expected:
    message: Message
    listener: CompletionListener
    producer: object
    future: PendingSend


@attrs.define(eq=False)
class Completions:
    """A session's completion listeners that have not returned yet, in the order of the sends."""

    session: object
    connection: object
    callbacks: CallbackWorker
    reports: ExceptionReports  # logs what listeners raise
    where: Callable[[], Mapping[str, object]] = dict  # returns the session's fields of log records
    _expected: deque[_Expected] = attrs.field(factory=deque, init=False)
    _calling: bool = attrs.field(default=False, init=False)
    _ended: bool = attrs.field(default=False, init=False)  # no outcome is waited for any longer

    def __len__(self) -> int:
        return len(self._expected) + self._calling

    def expect(self, message: Message, listener: CompletionListener, producer: object, future: PendingSend) -> None:
        self._expected.append(_Expected(message, listener, producer, future))
        future.add_done_callback(self._call_next)

    async def finish(self, timeout: float) -> None:
        """Call the remaining listeners after session and workers have ended; sends without an outcome are in doubt."""
        self._ended = True
        self._call_next()
        with anyio.move_on_after(timeout) as scope:
            await self.callbacks.run_added()
        if scope.cancelled_caught:
            raise OperationTimeoutError(f"a completion listener did not return within {timeout} s")

    def _call_next(self, _: object = None) -> None:
        """Call the next listener unless one is running: they run one by one, however many workers the session has."""
        if self._expected and not self._calling and (self._ended or self._expected[0].future.done()):
            self._calling = True
            self.callbacks.add(partial(self._call, self._expected.popleft()))

    async def _call(self, expected: _Expected) -> None:
        try:
            await self._report(expected)
        finally:
            self._calling = False
            self._call_next()

    async def _report(self, expected: _Expected) -> None:
        message, future = expected.message, expected.future
        error: BaseException | None
        if not future.done():
            doubt = SendInDoubtError("the session closed before the broker answered; it might have stored the message")
            error = future.origin.sends.explained(doubt)
            future.add_done_callback(_ignore_outcome)
        elif future.cancelled():
            error = SendInDoubtError("the send's future was cancelled; the broker might have stored the message")
        else:
            error = future.exception()
        callback = CallbackContext(CallbackKind.COMPLETION, self.connection, self.session, expected.producer)
        if error is not None:
            failed = await run_inside(callback, expected.listener.on_exception, message, error)
        else:
            if isinstance(message, BytesMessage | StreamMessage):
                message.reset()
            failed = await run_inside(callback, expected.listener.on_completion, message)
        if failed is not None:
            which = f"{message.jms_message_id} to {message.jms_destination!r}" if isinstance(message, Message) else ""
            about = {**self.where()}
            if isinstance(message, Message):
                about |= log_fields(destination=message.jms_destination, message_id=message.jms_message_id)
            self.reports.log(failed, f"the completion listener of message {which}".rstrip(), about)

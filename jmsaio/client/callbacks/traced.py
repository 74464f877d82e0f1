"""Calls of a trace: what one raises is logged, and changes nothing for messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from jmsaio.client.senders.pending import PendingSend, Receipt
from jmsaio.model.messages.tracing import SendTrace

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


def call_trace(method: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T | None:
    """Call a method of a trace; if it raises, log the error and return None."""
    try:
        return method(*arguments, **keywords)
    except Exception:
        _log.exception("tracing failed; messages are not affected")
        return None


class TracedSend(PendingSend):
    """A PendingSend that reports its outcome to a trace, too."""

    __slots__ = ("trace",)

    trace: SendTrace

    def set_result(self, receipt: Receipt) -> None:
        """Set the receipt."""
        call_trace(self.trace.sent, receipt.jms_message_id)
        super().set_result(receipt)

    def set_exception(self, error: BaseException | type[BaseException]) -> None:
        """Set the error."""
        assert isinstance(error, BaseException)  # senders pass no classes
        call_trace(self.trace.failed, error)
        super().set_exception(error)

    def cancel(self, msg: object = None) -> bool:
        """Cancel the future; the message's outcome remains unknown to its sender."""
        cancelled = super().cancel(msg)
        if cancelled:
            call_trace(self.trace.failed, asyncio.CancelledError("the future of the send was cancelled"))
        return cancelled

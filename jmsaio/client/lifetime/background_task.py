"""``BackgroundTask``: start and end of a session's or connection's task, as seen by other tasks."""

from __future__ import annotations

import asyncio

import anyio
import attrs

from jmsaio.client.lifetime.deadline import GRACE, Deadline
from jmsaio.client.lifetime.first_error import FirstError
from jmsaio.errors import OperationTimeoutError


@attrs.define(eq=False)
class BackgroundTask:
    """The task of a session or connection.

    Attributes:
        running: set by the task once it runs.
        requested: set when the task should end.
        ended: set by the task at its end.
        deadline: when it should have ended: the earliest of all requests.
        errors: errors during its end.
    """

    running: asyncio.Event = attrs.field(factory=asyncio.Event)
    requested: asyncio.Event = attrs.field(factory=asyncio.Event)
    ended: asyncio.Event = attrs.field(factory=asyncio.Event)
    deadline: Deadline | None = None
    errors: FirstError = attrs.field(factory=FirstError)

    async def end(self, what: str, deadline: Deadline, close_timeout: float) -> None:
        """Request the task's end, and wait for it until the deadline.

        The task reserves a share of the time for itself (``Deadline.before``), so that steps that it cancels can end.

        Args:
            what: name of the session or connection, for the error.
            deadline: when it should have ended; an earlier one stays in force.
            close_timeout: the option, for the error.

        Raises:
            OperationTimeoutError: it did not end in time; the error names the first problem so far, which is not raised
                again.

        Cancelling: it ends nevertheless.
        """
        if self.deadline is None or deadline.at < self.deadline.at:
            self.deadline = deadline
        self.requested.set()
        with anyio.move_on_after(max(self.deadline.left(), GRACE)):
            await self.ended.wait()
        if not self.ended.is_set():
            text, problem = f"{what} did not close within {close_timeout:g} s (close_timeout)", self.errors.take()
            raise OperationTimeoutError(text if problem is None else f"{text}: {problem}") from problem

"""``Shutdown``: asks the task behind a session or connection to end, and waits until it has."""

from __future__ import annotations

import asyncio

import anyio
import attrs

from jmsaio.client.lifetime.deadline import GRACE, Deadline
from jmsaio.errors import OperationTimeoutError


@attrs.define(eq=False)
class Shutdown:
    """The request to end a task, from any other task.

    Attributes:
        requested: set when the task is to end.
        ended: set by the task at its end.
        deadline: by when it is to end, the earliest of all requests.
    """

    requested: asyncio.Event = attrs.field(factory=asyncio.Event)
    ended: asyncio.Event = attrs.field(factory=asyncio.Event)
    deadline: Deadline | None = None

    async def request(self, what: str, deadline: Deadline, close_timeout: float) -> None:
        """Ask the task to end, and wait until it has; a moment longer than the deadline.

        Args:
            what: the name of what ends, for the error.
            deadline: by when it is to end; an earlier one stays.
            close_timeout: the option, for the error.

        Raises:
            OperationTimeoutError: it did not end in time.

        Cancelling: it ends nevertheless.
        """
        if self.deadline is None or deadline.at < self.deadline.at:
            self.deadline = deadline
        self.requested.set()
        with anyio.move_on_after(self.deadline.left() + GRACE):
            await self.ended.wait()
        if not self.ended.is_set():
            raise OperationTimeoutError(f"{what} did not close within {close_timeout:g} s (close_timeout)")

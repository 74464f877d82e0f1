"""How sessions and connections end: the time limit of a close, its first error, and the task that ends.

The limit, a ``Deadline``, is passed on to everything that closes with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import attrs

from jmsaio.errors import JMSError, OperationTimeoutError

#: The share of its time, and the maximum seconds, that a step reserves for each later step.
_SHARE, _LONGEST_SHARE = 0.05, 1.0
#: Minimum seconds that a caller waits for a close, even if its deadline has passed: cancelled steps need a moment.
GRACE = 0.1


@attrs.frozen
class Deadline:
    """A point in time by which everything has to be closed.

    Attributes:
        at: the running event loop's time in seconds.
        share: seconds reserved for each later step, so that a step that hangs leaves them some time.
    """

    at: float
    share: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline ``seconds`` from now."""
        return cls(asyncio.get_running_loop().time() + seconds, min(_LONGEST_SHARE, _SHARE * seconds))

    def before(self, steps: int) -> Deadline:
        """Return the deadline of a step that is followed by ``steps`` more steps."""
        return Deadline.after(max(0.0, self.at - steps * self.share - asyncio.get_running_loop().time()))

    def left(self, steps: int = 0) -> float:
        """Return the seconds left for a step that is followed by ``steps`` more steps; 0 if its time is over."""
        return max(0.0, self.at - steps * self.share - asyncio.get_running_loop().time())


@attrs.define(eq=False)
class FirstError:
    """The first JMSError of several calls.

    Attributes:
        error: the error, or None.
    """

    error: JMSError | None = None

    async def guard(self, call: Callable[[], Awaitable[object]]) -> None:
        """Await ``call()``; keep the JMSError that it raises if it is the first. Other exceptions propagate."""
        try:
            await call()
        except JMSError as error:
            self.keep(error)

    def keep(self, error: JMSError) -> None:
        """Keep an error if it is the first."""
        self.error = self.error or error

    async def guard_within(
        self, deadline: Deadline, call: Callable[[], Awaitable[object]], what: str, steps: int = 0
    ) -> None:
        """Guard a call, and cancel it when the time of a step that is followed by ``steps`` more steps is over.

        A cancelled one counts as an OperationTimeoutError.
        """
        with anyio.move_on_after(deadline.left(steps)) as scope:
            await self.guard(call)
        if scope.cancelled_caught:
            self.keep(OperationTimeoutError(f"{what} did not end within close_timeout"))

    def take(self) -> JMSError | None:
        """Return the error, the first time only."""
        error, self.error = self.error, None
        return error

    def raise_once(self) -> None:
        """Raise the error, if any, the first time only."""
        error = self.take()
        if error is not None:
            raise error


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

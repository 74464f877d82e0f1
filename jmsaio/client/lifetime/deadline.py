"""``Deadline``: the time limit of a close, passed on to everything that closes with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import anyio
import attrs

from jmsaio.errors import OperationTimeoutError

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

    async def bound(self, work: Awaitable[object], what: str, steps: int = 0) -> None:
        """Await ``work``, and cancel it when the time of a step that is followed by ``steps`` more steps is over.

        Raises:
            OperationTimeoutError: it was cancelled.
        """
        with anyio.move_on_after(self.left(steps)) as scope:
            await work
        if scope.cancelled_caught:
            raise OperationTimeoutError(f"{what} did not end within close_timeout")

"""``FirstError``: runs several closing steps, each whatever the others raise, and keeps the first error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from jmsaio.client.lifetime.deadline import Deadline
from jmsaio.errors import JMSError


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
            self.error = self.error or error

    async def guard_within(
        self, deadline: Deadline, call: Callable[[], Awaitable[object]], what: str, steps: int = 0
    ) -> None:
        """Guard a call, and cancel it when the time of a step that is followed by ``steps`` more steps is over."""
        await self.guard(lambda: deadline.bound(call(), what, steps))

    def take(self) -> JMSError | None:
        """Return the error, the first time only."""
        error, self.error = self.error, None
        return error

    def raise_once(self) -> None:
        """Raise the error, if any, the first time only."""
        error = self.take()
        if error is not None:
            raise error

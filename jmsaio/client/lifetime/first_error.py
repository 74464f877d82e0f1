"""``FirstError``: closes many things, each of them whatever the others raise, and keeps the first error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from jmsaio.client.lifetime.deadline import Deadline
from jmsaio.errors import JMSError


@attrs.define(eq=False)
class FirstError:
    """The first JMSError of several calls.

    Attributes:
        error: the error, None while there is none.
    """

    error: JMSError | None = None

    async def guard(self, call: Callable[[], Awaitable[object]]) -> None:
        """Await ``call()``; keep the JMSError that it raises if it is the first. Other exceptions pass."""
        try:
            await call()
        except JMSError as error:
            self.error = self.error or error

    async def guard_within(
        self, deadline: Deadline, call: Callable[[], Awaitable[object]], what: str, steps: int = 0
    ) -> None:
        """As ``guard``, and cancel the call when the time of a step that ``steps`` more follow is over."""
        await self.guard(lambda: deadline.bound(call(), what, steps))

    def raise_once(self) -> None:
        """Raise the error if there is one, the first time only."""
        error, self.error = self.error, None
        if error is not None:
            raise error

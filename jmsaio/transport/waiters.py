"""``Waiters``: tasks that wait until something has changed, woken all at once."""

from __future__ import annotations

import asyncio

import attrs


@attrs.define(eq=False)
class Waiters:
    """The tasks that wait for one kind of change; each looks again by itself whether it is the change it needs."""

    _futures: list[asyncio.Future[None]] = attrs.field(factory=list, init=False)

    def __len__(self) -> int:
        return len(self._futures)

    async def wait(self) -> None:
        """Wait for the next ``wake``. Cancelling changes nothing for the others."""
        future = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future in self._futures:
                self._futures.remove(future)
            raise

    def wake(self) -> None:
        """Let every task go on that waits now."""
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():  # done only when its task was cancelled
                future.set_result(None)

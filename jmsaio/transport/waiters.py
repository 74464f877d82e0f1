"""``Waiters``: tasks waiting for a change, all woken at once."""

from __future__ import annotations

import asyncio

import attrs


@attrs.define(eq=False)
class Waiters:
    """Tasks waiting for one kind of change; each checks by itself whether it is the one it needs."""

    _futures: list[asyncio.Future[None]] = attrs.field(factory=list, init=False)

    def __len__(self) -> int:
        return len(self._futures)

    async def wait(self) -> None:
        """Wait for the next ``wake``. Cancelling does not affect other tasks."""
        future = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future in self._futures:
                self._futures.remove(future)
            raise

    def wake(self) -> None:
        """Wake all tasks that wait now."""
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():  # done only if its task was cancelled
                future.set_result(None)

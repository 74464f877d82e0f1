"""``Transaction`` of the embedded broker, as passed to the client."""

from __future__ import annotations

import asyncio
from functools import partial

from jmsaio.errors import TransactionInDoubtError
from jmsaio.transport.memory.broker.transactions import Unit


class MemoryTransaction:
    """An open transaction. See ``jmsaio.transport.base.Transaction``.

    Args:
        unit: the work of the transaction in the broker.
    """

    __slots__ = ("unit",)

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    async def commit(self) -> None:
        """Commit the transaction, once none of its sends waits for memory.

        Raises:
            TransactionRolledBackError: it was rolled back.
            TransactionInDoubtError: a scripted fault lost the answer.

        Cancelling leaves it open, to be committed or aborted.
        """
        await self._sends_taken()
        with self.unit.broker.lock:
            self.unit.commit()
            if self.unit.broker.faults.loses_commit():
                raise TransactionInDoubtError("the broker's answer to the commit was lost (scripted fault)")

    async def abort(self) -> None:
        """Roll back; ignored if the transaction has ended."""
        with self.unit.broker.lock:
            self.unit.abort()

    async def _sends_taken(self) -> None:
        """Wait until no send of the transaction waits for memory; each waits for the send timeout at the longest."""
        while True:
            with self.unit.broker.lock:
                if not self.unit.waiting:
                    return
                woken = asyncio.get_running_loop().create_future()
                loop = woken.get_loop()
                self.unit.notify = partial(_notify, loop, woken)
            await woken


def _notify(loop: asyncio.AbstractEventLoop, woken: asyncio.Future[None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(_wake, woken)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)

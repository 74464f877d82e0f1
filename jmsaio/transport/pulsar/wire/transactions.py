"""The transactions of one transport: begun, begun ahead for the next unit of work, and rolled back when it closes."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from functools import partial

from jmsaio.transport.pulsar.wire.client import Client
from jmsaio.transport.pulsar.wire.coordinators import Coordinators
from jmsaio.transport.pulsar.wire.tasks import shielded
from jmsaio.transport.pulsar.wire.transaction import FindOutcome, WireTransaction

#: Seconds for which a transaction that was begun ahead is kept, and that part of its time at most.
_KEPT, _PART = 5.0, 0.1
_Begun = asyncio.Task[WireTransaction]


class Transactions:
    """Begins transactions, and knows those that are open.

    When a transaction ends, the next one is begun at once: a session that commits usually continues. If nothing uses it
    within 5 seconds, it is rolled back; it is empty, and so holds nothing back.

    Args:
        client: the transport's part that all share.
        find: tells how a transaction ended if its commit has no answer.
    """

    def __init__(self, client: Client, find: FindOutcome) -> None:
        self._client = client
        self._find = find
        self._coordinators = Coordinators(client.topics, client.backoff)
        self._open: set[WireTransaction] = set()
        self._ahead: defaultdict[float, list[_Begun]] = defaultdict(list)  # by their time-outs
        self._beginning: set[_Begun] = set()
        self._closing = False

    def __len__(self) -> int:
        return len(self._open)

    async def ready(self, timeout: float) -> None:
        """Find the coordinators. Raises as ``Transport.ready_for_transactions``."""
        await self._coordinators.ready(timeout)

    async def begin(self, timeout: float) -> WireTransaction:
        """Return a new transaction. Cancelling leaves it to the next call. See ``Transport.begin``."""
        ahead = self._ahead[timeout]
        task = ahead.pop() if ahead else self._start(timeout)
        try:
            return await shielded(task)
        except asyncio.CancelledError:
            self._keep(timeout, task)
            raise

    def _start(self, timeout: float) -> _Begun:
        task = self._client.tasks.start(self._begin(timeout))
        self._beginning.add(task)
        task.add_done_callback(partial(self._begun, timeout))
        return task

    async def _begin(self, timeout: float) -> WireTransaction:
        deadline = self._client.loop.time() + self._client.config.operation_timeout
        txn, since = await self._coordinators.begin(timeout, deadline)
        made = WireTransaction(
            self._client,
            self._coordinators,
            txn,
            since + timeout,
            self._find,
            partial(self._begin_ahead, timeout),
            self._open.discard,
        )
        self._open.add(made)
        return made

    def _begun(self, timeout: float, task: _Begun) -> None:
        """Forget one that could not be begun; whoever waits for it has the error."""
        self._beginning.discard(task)
        if _failed(task) and task in self._ahead[timeout]:
            self._ahead[timeout].remove(task)

    def _begin_ahead(self, timeout: float) -> None:
        """Begin another transaction, because one is about to end."""
        if not self._closing:
            self._keep(timeout, self._start(timeout))

    def _keep(self, timeout: float, task: _Begun) -> None:
        if _failed(task):
            return
        self._ahead[timeout].append(task)
        self._client.loop.call_later(min(_KEPT, timeout * _PART), self._drop, timeout, task)

    def _drop(self, timeout: float, task: _Begun) -> None:
        """Roll back a transaction that nothing has used."""
        if task in self._ahead[timeout]:
            self._ahead[timeout].remove(task)
            task.add_done_callback(_roll_back)

    async def aclose(self, timeout: float) -> None:
        """Roll back all open transactions; what is not answered within ``timeout`` seconds ends with its time."""
        self._closing = True
        for transaction in list(self._open):
            transaction.roll_back()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await asyncio.gather(*self._beginning, return_exceptions=True)
                await asyncio.gather(*(one.abort() for one in self._open), return_exceptions=True)


def _failed(task: _Begun) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _roll_back(task: _Begun) -> None:
    if not _failed(task):
        task.result().roll_back()

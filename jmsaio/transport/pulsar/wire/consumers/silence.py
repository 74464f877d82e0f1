"""Failover subscriptions that the broker no longer serves: their active consumer subscribes again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import attrs

from jmsaio.transport.pulsar.wire.connections.tasks import Tasks

_log = logging.getLogger(__name__)
#: Seconds before the broker is asked whether it has messages, at first and at most.
_FIRST: Final = 10.0
_MOST: Final = 300.0


@attrs.define(eq=False)
class Silence:
    """The time in which a consumer is the active one of its subscription, and nothing has arrived.

    Pulsar 4.0.7 waits ``activeConsumerFailoverDelayTimeMillis`` before it reads for a new active consumer. If that one
    closes just when this time ends, the next one becomes active, but nothing is read for it until the consumers change
    again.

    Args:
        withheld: returns whether the broker has messages for the consumer, which it could send.
    """

    _topic: str
    _tasks: Tasks
    _withheld: Callable[[], Awaitable[bool]]
    _subscribe: Callable[[], object]
    _times: int = attrs.field(default=0, init=False)  # that the broker was asked since something arrived
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def begin(self) -> None:
        """Take that the consumer has become the active one."""
        self.end()
        self._task = self._tasks.start(self._watch())

    def broken(self) -> None:
        """Take that something has arrived."""
        if self._task is not None:
            self.end()
            self._times = 0

    def end(self) -> None:
        """Take that the consumer is not the active one any more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(min(_FIRST * 2**self._times, _MOST))
            self._times = min(self._times + 1, 10)
            if await self._withheld():
                _log.warning("the broker has messages on %s and sends none; subscribing again", self._topic)
                self._task = None
                self._subscribe()
                return

"""Failover subscriptions that the broker no longer serves: their active consumer subscribes again."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import attrs

from jmsaio.errors import JMSError
from jmsaio.protocol.commands import Command
from jmsaio.transport.pulsar.wire.connections.registration import Registration
from jmsaio.transport.pulsar.wire.consumers.permits import Permits
from jmsaio.transport.pulsar.wire.records.record import signed

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

    """

    _at: Registration
    _permits: Permits
    _times: int = attrs.field(default=0, init=False)  # that the broker was asked since something arrived
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def begin(self) -> None:
        self.end()
        self._task = self._at.client.tasks.start(self._watch())

    def broken(self) -> None:
        if self._task is not None:
            self.end()
            self._times = 0

    def end(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(min(_FIRST * 2**self._times, _MOST))
            self._times = min(self._times + 1, 10)
            if await self._withheld():
                _log.warning("the broker has messages on %s and sends none; subscribing again", self._at.topic)
                self._task = None
                self._at.renew("the broker sends nothing")
                return

    async def _withheld(self) -> bool:
        """Return whether the broker has messages that it could send, and does not."""
        at, connection = self._at, self._at.connection
        if connection is None or not self._permits.granted:
            return False
        try:
            what, timeout = f"look for the end of {at.topic}", at.client.config.operation_timeout
            answer = await connection.request(what, timeout, Command.GET_LAST_MESSAGE_ID, consumer_id=at.number)
        except JMSError:
            return False
        last, taken = answer["last_message_id"], answer.get("consumer_mark_delete_position")
        if taken is None or signed(last["entry_id"]) < 0 or connection is not at.connection:
            return False
        return (signed(taken["ledger_id"]), signed(taken["entry_id"])) < (last["ledger_id"], last["entry_id"])

"""Where a consumer is registered, for its parts that send on its behalf."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import attrs

from jmsaio.errors import JMSError, OperationTimeoutError
from jmsaio.model.wire import EntryId
from jmsaio.protocol import acks
from jmsaio.protocol.commands import Command, encode_command
from jmsaio.transport.pulsar.wire.client import Client
from jmsaio.transport.pulsar.wire.connection import Connection
from jmsaio.transport.pulsar.wire.record import Entry
from jmsaio.transport.waiting import Waiters

#: Ids in one frame: far below the broker's limit of a frame.
MOST_IDS: Final = 1000


@attrs.define(eq=False)
class Registration:
    """The registrations of one consumer, one after the other, each on one connection.

    Attributes:
        client: the transport's part that all share.
        topic: full name of the topic without partitions, or of the partition.
        subscription: name of the subscription.
        persistent: whether the topic stores anything.
        number: number of the present registration, or of the last one; never used twice.
        connection: where it is registered, or None.
        parked: whether it is stopped, and closed at the broker.
        closed: whether it is closed for good.
        failure: why it ended for good, or None.
        changed: tasks that wait until it is registered, or has failed.
    """

    client: Client
    topic: str
    subscription: str
    number: int = 0
    connection: Connection | None = None
    parked: bool = False
    closed: bool = False
    failure: JMSError | None = None
    persistent: bool = attrs.field(init=False)
    changed: Waiters = attrs.field(factory=Waiters, init=False)

    @persistent.default
    def _is_persistent(self) -> bool:
        return not self.topic.startswith("non-persistent:")

    def has(self, entry: Entry) -> bool:
        """Return whether an entry arrived here, on the present connection."""
        return self.connection is not None and entry.registration == self.number

    async def request(self, what: str, timeout: float, command: Command, **fields: Any) -> None:
        """Send a request once it is registered, and wait for the answer. Raises as ``Connection.request``."""
        what = f"{what} {self.subscription} of {self.topic}"
        deadline = self.client.loop.time() + timeout
        try:
            async with asyncio.timeout(max(0.01, timeout)):
                while self.connection is None:  # for example after another seek, which closes the consumer
                    if self.failure is not None:
                        raise self.failure
                    await self.changed.wait()
        except TimeoutError:
            raise OperationTimeoutError(f"{what}: not connected to the broker within {timeout:g} s") from None
        left = max(0.01, deadline - self.client.loop.time())
        await self.connection.request(what, left, command, consumer_id=self.number, **fields)

    def redeliver(self, places: Iterable[EntryId]) -> None:
        """Have the broker redeliver whole entries, unless it is not registered."""
        rest = iter(places)
        while self.connection is not None and (some := list(islice(rest, MOST_IDS))):
            ids = [{"ledger_id": ledger, "entry_id": entry} for ledger, entry in some]
            command = Command.REDELIVER_UNACKNOWLEDGED_MESSAGES
            self.connection.write(encode_command(command, consumer_id=self.number, message_ids=ids))

    def acknowledge(self, places: Iterable[EntryId]) -> None:
        """Acknowledge whole entries without a receipt, unless it is not registered."""
        rest = iter(places)
        while self.connection is not None and (some := list(islice(rest, MOST_IDS))):
            self.connection.write(acks.ack(self.number, [acks.message_id(*place) for place in some]))

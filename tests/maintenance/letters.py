"""A queue whose consumers fail, and its dead letters."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import attrs

from jmsaio.config import Configuration, DeadLetterPolicy
from jmsaio.maintenance.transfer import (
    TransferProgress,
    TransferRange,
    TransferRequest,
    TransferResult,
    transfer_range,
)
from jmsaio.model.destinations import Queue
from jmsaio.model.topic_names import dead_letter_topic
from jmsaio.model.wire import MESSAGE_TYPE, REAL_TOPIC, OutgoingRecord, ReceivedRecord
from jmsaio.transport.base import StartPosition
from tests.kit.records import record
from tests.transport.contract.harness import GUARD, Harness, Inbox

QUEUE = "jms-queue"


def message(text: str, key: str | None = None, **properties: str) -> OutgoingRecord:
    """A text message with properties that are strings."""
    return record(text, {MESSAGE_TYPE: "text", **properties}, key)


@attrs.define(eq=False)
class Letters:
    """A client, a topic with the subscription of a queue, and its dead letter topic with one, too."""

    harness: Harness
    topic: str

    @classmethod
    async def start(cls, configuration: Configuration) -> Self:
        """Make the topics."""
        harness = await Harness.start(configuration)
        letters = cls(harness, harness.topic("orders"))
        for topic in (letters.topic, letters.dead):
            await harness.admin.create_subscription(topic, QUEUE, StartPosition.EARLIEST)
        return letters

    @property
    def dead(self) -> str:
        """Where messages go that fail."""
        return dead_letter_topic(self.topic, QUEUE)

    async def stop(self) -> None:
        """Close the client."""
        await self.harness.stop()

    async def fail(self, *texts: OutgoingRecord | str) -> None:
        """Send messages, unless they are there, and give them back until they are dead letters."""
        if texts:
            await self.harness.fill(self.topic, *[message(each) if isinstance(each, str) else each for each in texts])
        dead = await self.harness.inbox(self.dead, name="watcher", durable=False)
        await dead.rest()
        wanted = len(texts) or 1
        inbox = await self.harness.inbox(
            self.topic, name=QUEUE, dead_letter=DeadLetterPolicy(max_redeliver_count=1)
        )  # fmt: skip
        found = 0
        async with asyncio.timeout(GUARD):
            while found < wanted:
                inbox.receiver.negative_acknowledge(await inbox.rest(), 0.0)
                found += len(await dead.rest())
        await dead.close()
        await inbox.close()

    async def range(self, **changes: Any) -> TransferRange:
        """All dead letters of now."""
        end = await self.harness.transport.end(self.dead)
        assert end is not None
        return TransferRange(**{"topic": self.dead, "subscription": QUEUE, "end": end, **changes})

    async def redrive(self, letters: TransferRange | None = None, **changes: Any) -> TransferResult:
        """Send them again: these, or all of now."""
        request = TransferRequest(**{"destination": Queue(self.dead), "patience": 3.0, **changes})
        letters = letters or await self.range()
        harness, progress = self.harness, TransferProgress()
        return await transfer_range(harness.transport, harness.configuration, request, letters, progress)

    async def inbox(self, topic: str | None = None) -> Inbox:
        """A consumer of the queue, or of another."""
        return await self.harness.inbox(topic or self.topic, name=QUEUE)

    async def put(self, *letters: OutgoingRecord | str) -> None:
        """Dead letters of this queue, one to an entry, without the time that consumers take to fail."""
        origin = {REAL_TOPIC: self.topic}
        records = [message(each) if isinstance(each, str) else each for each in letters]
        sender = await self.harness.sender(self.dead, batching_enabled=False)
        await self.harness.send(
            sender, *[attrs.evolve(each, properties={**origin, **each.properties}) for each in records]
        )
        await sender.aclose(GUARD)

    async def waiting(self, topic: str | None = None) -> list[ReceivedRecord]:
        """What the queue, or another, has not acknowledged; entries with several messages count whole."""
        name = topic or self.topic
        cursor = await self.harness.admin.cursor(name, QUEUE)
        reader, found = await self.harness.reader(name), list[ReceivedRecord]()
        while not await reader.at_end():
            found += await reader.read(100, GUARD)
        await reader.aclose(GUARD)
        return [each for each in found if not cursor.is_acknowledged(each.message_id)]

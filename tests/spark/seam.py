"""A client at the seam, topics that keep what they are sent, and the rows of their ranges."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import httpx

from jmsaio.codec.rows import RawRow
from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.model.destinations import Resolved, Topic, resolve
from jmsaio.model.schema import Schema
from jmsaio.model.wire import MESSAGE_TYPE, OutgoingRecord, WireId
from jmsaio.spark.model.schema import Body, columns_of
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.planning.reading import RangeReading
from jmsaio.testing import FaultProxy, FaultScript
from jmsaio.transport.base import SenderOptions, StartPosition, Transport
from tests.kit.records import Outcomes, rows_of, tell_each
from tests.support.broker import TestBroker

#: Nothing takes as many seconds.
HANG = 30


def texts(rows: Sequence[RawRow]) -> list[str | None]:
    """The texts of rows."""
    return [row.text for row in rows]


def source(topic: str, **options: Any) -> tuple[Resolved, SourceOptions]:
    """A topic to read, and how it is to be read."""
    destination = Topic(topic)
    return resolve(destination), SourceOptions(connection={}, destination=destination, columns=(), **options)


async def unload(broker: TestBroker, topic: str) -> None:
    """Let a broker close a topic, and the newest ledger with it, and delete what nobody keeps when it opens again."""
    path = f"{broker.web_service_url}/admin/v2/persistent/{topic.partition('://')[2]}"
    async with httpx.AsyncClient(timeout=HANG) as client:
        (await client.put(f"{path}/unload")).raise_for_status()


@attrs.define
class Seam:
    """A client, and short ways to use it."""

    transport: Transport

    async def topic(self, *bodies: str, partitions: int = 0, **producer: Any) -> str:
        """A topic that holds text messages and keeps them, or one with partitions that do."""
        name = f"persistent://public/default/spark-{uuid.uuid4()}"
        admin = self.transport.admin
        assert admin is not None
        await admin.create_topic(name, partitions)
        await admin.create_subscription(name, "keeper", StartPosition.EARLIEST)
        if bodies:
            await self.send(name, *bodies, **producer)
        return name

    async def send(
        self, topic: str, *bodies: str | OutgoingRecord, schema: Schema | None = None, **producer: Any
    ) -> list[WireId]:
        """Send messages, one to an entry unless ``producer`` says otherwise; their places."""
        config = ProducerConfig(**{"batching_enabled": False, "send_timeout": 60.0, **producer})
        options, outcomes = SenderOptions(config, tell_each, schema=schema), Outcomes()
        sender = await self.transport.open_sender(topic, options)
        for body in bodies:
            text = OutgoingRecord(body.encode(), {MESSAGE_TYPE: "text"}) if isinstance(body, str) else body
            sender.send(text, outcomes)
            if sender.full:
                await sender.ready()
        await sender.drain(60)
        await sender.aclose(HANG)
        assert outcomes.failures == []
        return [place for place in outcomes.places if place is not None]

    def reading(self, range: Range, config: ConsumerConfig | None = None, **options: Any) -> RangeReading:
        """The reading of a range."""
        configuration = attrs.evolve(load("memory:"), consumer=config or ConsumerConfig())
        chosen: dict[str, Any] = {
            "connection": {}, "destination": None, "columns": columns_of(Body.TYPED),
            "receiver_queue": configuration.consumer.receiver_queue_size, **options,
        }  # fmt: skip
        return RangeReading(self.transport, range, SourceOptions(**chosen), configuration)

    async def rows(self, range: Range, **options: Any) -> list[RawRow]:
        """All rows of a range."""
        found: list[RawRow] = []
        async with contextlib.aclosing(self.reading(range, **options)) as reading:
            while (columns := await reading.next_columns()) is not None:
                found += rows_of(columns)
        return found

    async def all_texts(self, ranges: Sequence[Range], **options: Any) -> list[str | None]:
        """The texts of all ranges, one after another."""
        return [text for one in ranges for text in texts(await self.rows(one, **options))]


@attrs.define
class Breakable(Seam):
    """A client of a broker that can become unreachable."""

    ways: Sequence[FaultProxy | FaultScript]

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """Nothing reaches the broker inside the block."""
        with contextlib.ExitStack() as stack:
            for way in self.ways:
                stack.enter_context(way.outage())
            yield

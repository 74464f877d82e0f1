"""Producers whose sends are held against each other: what each hands to the transport, and what it tells."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock

import attrs

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client.runtime.stamping import Stamper
from jmsaio.client.senders.pending import PendingSends, Receipt
from jmsaio.model.wire import OutgoingRecord
from jmsaio.testing import EmbeddedBroker, ManualClock, embedded_broker
from jmsaio.transport.memory.sender import MemorySender
from tests.kit.inside import runtime_of


@attrs.define
class Desk:
    """Producers on a broker whose clock stands still, so that all sends are in one millisecond; what they sent.

    Attributes:
        producer: to a queue.
        anywhere: without a destination.
        plain: the fast path of ``producer``.
        pending: the sends of the session without an outcome.
        deleted: a temporary queue that was there for a while.
        records: what the transport got.
        circumstances: with each of them, its topic, the transport's transaction and the unit of work.
    """

    broker: EmbeddedBroker
    clock: ManualClock
    connection: jmsaio.Connection
    session: jmsaio.Session
    producer: jmsaio.MessageProducer
    anywhere: jmsaio.MessageProducer
    plain: Stamper
    pending: PendingSends
    deleted: jmsaio.Destination
    records: list[OutgoingRecord] = attrs.field(factory=list)
    circumstances: list[tuple[object, ...]] = attrs.field(factory=list)


@asynccontextmanager
async def desk(mode: AcknowledgeMode = AcknowledgeMode.AUTO, **options: Any) -> AsyncIterator[Desk]:
    """A desk whose senders are open, and whose transaction has begun."""
    clock, send = ManualClock(1_700_000_000.0), MemorySender.send
    with embedded_broker(clock=clock) as broker:
        async with jmsaio.connect(broker.url, **options) as connection, connection.create_session(mode) as session:
            producer, anywhere = await session.create_producer(jmsaio.Queue("orders")), await session.create_producer()
            deleted = await session.create_temporary_queue()
            for destination in (deleted, jmsaio.Topic("news"), jmsaio.Queue("orders")):
                await anywhere.send(destination, "takes this millisecond's turn of the loop")
            await deleted.delete()
            made = Desk(
                broker, clock, connection, session, producer, anywhere, producer._stamper,
                runtime_of(session).sends, deleted,
            )  # fmt: skip

            def noted(self: MemorySender, record: OutgoingRecord, token: Any, transaction: Any = None) -> None:
                made.records.append(record)
                made.circumstances.append((self._topic, transaction, id(token.origin.work)))
                send(self, record, token, transaction)

            with mock.patch.object(MemorySender, "send", noted):
                yield made


async def outcome(here: Desk, producer: jmsaio.MessageProducer, send: Callable[[], Any]) -> Any:
    """What a send with a number of its own tells and hands to the transport, or what it raises."""
    here.records.clear()
    here.circumstances.clear()
    producer._stamper.sequence = 9
    try:
        future = await send()
        receipt: Receipt = await future
    except jmsaio.JMSError as error:
        return type(error), str(error), producer._stamper.sequence, here.circumstances.copy()
    (record,) = here.records
    fields = [getattr(record, field.name) for field in attrs.fields(OutgoingRecord) if field.eq]
    own_id = receipt.jms_message_id == str(receipt.place) or receipt.jms_message_id
    told = own_id, receipt.destination, receipt.timestamp, receipt.place is not None
    circumstances = here.circumstances.copy()
    return fields, list(record.properties.items()), record.packed, told, producer._stamper.sequence, circumstances

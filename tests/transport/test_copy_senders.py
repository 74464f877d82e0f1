"""Senders for copies: one for each schema, in chunks once a copy is large, and the older versions first."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jmsaio.config import ProducerConfig, load
from jmsaio.errors import NotFoundError, TransportError
from jmsaio.model.schema import Schema
from jmsaio.testing import embedded_broker
from jmsaio.transport.base import Sender, SenderOptions, StartPosition
from jmsaio.transport.copy_senders import INCOMPATIBLE, LARGE, CopySenders
from tests.kit.records import ORDER, Outcomes, Record, record, tell_each
from tests.transport.contract.harness import GUARD, Harness

FIRST, LATER = (
    Schema("AVRO", {**ORDER, "fields": [*ORDER["fields"], *more]})
    for more in ([], [{"name": "note", "type": "string", "default": "-"}])
)
SMALL = record("x")


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    with embedded_broker() as broker:
        harness = await Harness.start(load(broker.url))
        yield harness
        await harness.stop()


async def nothing(topic: str) -> None:
    """What is to be done before an outdated sender is replaced: nothing."""


def senders(harness: Harness, opened: list[SenderOptions], **options: int) -> CopySenders:
    """Senders whose options are kept when they are opened."""

    async def open_sender(topic: str, options: SenderOptions) -> Sender:
        opened.append(options)
        return await harness.transport.open_sender(topic, options)

    config = ProducerConfig(producer_name="p", compression_type="ZLIB")
    return CopySenders(open_sender, harness.admin, nothing, SenderOptions(config, tell_each), **options)


async def test_from_the_first_large_copy_on_all_are_sent_in_chunks_and_in_order(harness: Harness) -> None:
    """They are compressed, too. The name of the service's producer is left to it."""
    opened: list[SenderOptions] = []
    copies, topic, outcomes = senders(harness, opened), harness.topic(), Outcomes()
    inbox = await harness.inbox(topic)
    sent = [SMALL, record("y" * (LARGE + 1)), SMALL]
    for copy in sent:
        (await copies.sender(topic, copy, None, topic)).send(copy, outcomes)
    await copies.drain()
    assert [(one.config.chunking_enabled, one.config.compression_type) for one in opened] == [
        (False, "ZLIB"), (True, "ZLIB"),
    ]  # fmt: skip
    assert all(one.config.producer_name is None for one in opened)
    assert [one.payload for one in await inbox.take(3)] == [one.payload for one in sent]
    assert (await harness.admin.stats(topic)).producers == 1
    await copies.aclose()


async def test_an_outdated_sender_is_replaced_before_the_next_copy(harness: Harness) -> None:
    """What its topic needs is made first; the rest of the senders stay."""
    reopened, outcomes, topic, other = list[str](), Outcomes(), harness.topic(), harness.topic()

    async def reopening(topic: str) -> None:
        reopened.append(topic)
        await harness.admin.create_subscription(topic, "s", StartPosition.EARLIEST)

    options = SenderOptions(ProducerConfig(), tell_each)
    copies = CopySenders(harness.transport.open_sender, harness.admin, reopening, options)
    first, second = [await copies.sender(one, SMALL, None, topic) for one in (topic, other)]
    await harness.admin.delete_topic(topic, force=True)
    assert [await copies.sender(one, SMALL, None, topic) is old for one, old in ((topic, first), (other, second))] == [
        False, True,
    ]  # fmt: skip
    (await copies.sender(topic, SMALL, None, topic)).send(SMALL, outcomes)
    await copies.drain()
    assert (reopened, len(outcomes.stored), (await harness.admin.stats(topic)).producers) == ([topic], 1, 1)
    await copies.aclose()


async def test_a_version_is_registered_after_the_older_ones(harness: Harness) -> None:
    """A topic can accept them in their order only."""
    opened: list[SenderOptions] = []
    copies, source, topic = senders(harness, opened, most=1), harness.topic(), harness.topic()
    for schema in (FIRST, LATER):
        await (await harness.sender(source, schema=schema)).aclose(GUARD)
    received = Record(schema_version=(1).to_bytes(8, "big"), topic=f"{source}-partition-3")
    for _ in range(2):
        assert await copies.schema_of(received) == LATER
        await copies.sender(topic, SMALL, LATER, received.topic)
    assert await harness.admin.schemas(topic) == [FIRST, LATER]
    await copies.sender(topic, SMALL, FIRST, received.topic)
    assert [one.schema for one in opened] == [FIRST, LATER, FIRST]
    assert await copies.missing(topic, source) == []
    assert (await harness.admin.stats(topic)).producers == 1
    await copies.aclose()


async def test_a_schema_that_is_not_there_or_refused_is_told(harness: Harness) -> None:
    copies, source, topic = senders(harness, []), harness.topic(), harness.topic()
    await (await harness.sender(source, schema=FIRST)).aclose(GUARD)
    await (await harness.sender(topic, schema=Schema("STRING"))).aclose(GUARD)
    assert await copies.schema_of(Record(topic=source)) is None
    for version in (b"\xff" * 9, (7).to_bytes(8, "big")):
        with pytest.raises(NotFoundError):
            await copies.schema_of(Record(schema_version=version, topic=source))
    alone = CopySenders(harness.transport.open_sender, None, nothing, SenderOptions(ProducerConfig(), tell_each))
    with pytest.raises(NotFoundError, match="usePulsarAdmin"):
        await alone.schema_of(Record(schema_version=bytes(8), topic=source))
    assert await copies.missing(topic, source) == [FIRST]
    with pytest.raises(TransportError) as raised:
        await copies.register(topic, [FIRST])
    assert raised.value.error_code == INCOMPATIBLE
    await copies.aclose()

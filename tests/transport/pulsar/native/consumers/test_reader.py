"""``PulsarReader`` on the real broker: beyond the contract suite."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import anyio
import pytest

from jmsaio.config import ConsumerConfig, load
from jmsaio.errors import ObjectClosedError, TransportError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import ReaderOptions, StartPosition
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native.consumers.reader import PulsarReader
from tests.kit.records import texts
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, send


async def test_reads_and_waits(kit: Kit) -> None:
    sender = await kit.sender()
    await send(sender, *"abc")
    reader = await kit.transport.open_reader(ReaderOptions(kit.topic, ConsumerConfig(), name="mine"))
    with anyio.fail_after(HANG):
        found: list[str] = []
        while len(found) < 3:
            found += texts(await reader.read(2, 5))
    assert found == ["a", "b", "c"]
    assert await reader.at_end()
    assert await reader.read(5, 0.05) == []


async def test_from_a_record(kit: Kit) -> None:
    box = await kit.box()
    await send(await kit.sender(), *"abcd")
    records = await box.take(4)
    for inclusive, expected in ((True, ["c", "d"]), (False, ["d"])):
        options = ReaderOptions(kit.topic, ConsumerConfig(), records[2].message_id, inclusive)
        reader = await kit.transport.open_reader(options)
        found: list[str] = []
        while not await reader.at_end():
            found += texts(await reader.read(10, 5))
        assert found == expected


async def test_closing_ends_a_waiting_read(kit: Kit) -> None:
    reader = await kit.transport.open_reader(ReaderOptions(kit.topic, ConsumerConfig(), StartPosition.LATEST))
    await reader.aclose(HANG)
    await reader.aclose(HANG)
    with pytest.raises(ObjectClosedError):
        await reader.read(1, 1)
    with pytest.raises(ObjectClosedError):
        await reader.at_end()


@pytest.mark.parametrize("pause", [None, 0.0, 0.02, 0.05, 0.1, 0.2])
async def test_a_reader_from_a_time_begins_there_though_the_connection_breaks(
    pulsar_broker: TestBroker, kit: Kit, pause: float | None
) -> None:
    """Some seconds after its opening began, or after it (None). An error is told, a wrong place never taken."""
    sender = await kit.sender()
    await send(sender, "a", "b")
    await anyio.sleep(0.05)
    await send(sender, "c", "d")
    everything = await kit.transport.open_reader(ReaderOptions(kit.topic, ConsumerConfig()))
    records: list[ReceivedRecord] = []
    while not await everything.at_end():
        records += await everything.read(10, 5)
    options = ReaderOptions(kit.topic, ConsumerConfig(), records[2].publish_time)
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        transport = await open_transport(load(proxy.url, web_service_url=pulsar_broker.web_service_url))
        opening = asyncio.ensure_future(transport.open_reader(options))
        if pause is None:
            await opening
        else:
            await anyio.sleep(pause)
        proxy.reset()
        try:
            reader = await opening
        except TransportError:
            reader = await transport.open_reader(options)
        found: list[str] = []
        with anyio.fail_after(HANG):
            while len(found) < 2:
                with suppress(TransportError):  # the connection may break while the reader asks whether there is more
                    found += texts(await reader.read(10, 5))
        assert found == ["c", "d"]
        await transport.aclose(10)


async def test_a_reader_that_cannot_be_moved_to_its_time_is_closed(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await send(await kit.sender(), "a")

    async def fail(reader: PulsarReader, time: int, timeout: float) -> None:
        raise TransportError("refused")

    monkeypatch.setattr(PulsarReader, "seek", fail)
    with pytest.raises(TransportError, match="refused"):
        await kit.transport.open_reader(ReaderOptions(kit.topic, ConsumerConfig(), 1))
    assert kit.transport.admin is not None
    with anyio.fail_after(HANG):
        while (await kit.transport.admin.stats(kit.topic)).subscriptions:
            await anyio.sleep(0.05)

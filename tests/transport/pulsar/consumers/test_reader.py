"""``PulsarReader`` on the real broker: beyond the contract suite."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ObjectClosedError
from jmsaio.transport.base import Position, ReaderOptions
from tests.kit.records import texts
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
    reader = await kit.transport.open_reader(ReaderOptions(kit.topic, ConsumerConfig(), Position.LATEST))
    await reader.aclose(HANG)
    await reader.aclose(HANG)
    with pytest.raises(ObjectClosedError):
        await reader.read(1, 1)
    with pytest.raises(ObjectClosedError):
        await reader.at_end()

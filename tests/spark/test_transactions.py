"""Plans and readings of a topic that the Java client sends to in transactions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jmsaio.launcher import tools
from jmsaio.spark.model.place import Place
from jmsaio.spark.planning.batch_planning import find_stores, plan_batch
from jmsaio.spark.planning.plan import advance, between, split
from tests.spark.seam import HANG, Seam, source
from tests.support.broker import TestBroker
from tests.support.java import class_path

Do = Callable[[str], Awaitable[None]]


@asynccontextmanager
async def transactions(classes: str, broker: TestBroker, topic: str) -> AsyncIterator[Do]:
    """``Transactions.java``: does one line."""
    configuration = {
        "brokerServiceUrl": broker.service_url, "webServiceUrl": broker.web_service_url, "enableTransaction": True,
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        str(tools.find("java")), "-cp", classes, "Transactions", json.dumps(configuration), topic,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    async def do(line: str) -> None:
        stdin.write(f"{line}\n".encode())
        async with asyncio.timeout(2 * HANG):
            assert await stdout.readline() == f"{line}\n".encode()

    try:
        yield do
    finally:
        stdin.close()
        try:
            async with asyncio.timeout(HANG):
                await process.wait()
        except TimeoutError:
            process.kill()


@pytest.mark.parametrize("max_entries", [1, 50])
async def test_nothing_behind_an_open_transaction_is_planned_and_nothing_of_it_lost(
    pulsar: Seam, pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path, max_entries: int
) -> None:
    """A batch and a stream, while a transaction is open, when it is committed, and when another is rolled back."""
    topic = await pulsar.topic("before")
    wanted = source(topic, max_entries_per_partition=max_entries)
    offsets: dict[str, Place] = {}
    streamed: list[str | None] = []

    async def batch() -> list[str | None]:
        return await pulsar.all_texts(await plan_batch(pulsar.transport, *wanted), read_timeout=20)

    async def stream() -> list[str | None]:
        nonlocal offsets
        stores = await find_stores(pulsar.transport, [topic])
        step = advance(offsets, stores)
        ranges, losses = between(offsets, step.end, stores)
        assert (step.losses, losses) == ((), ())
        offsets = step.end
        streamed.extend(await pulsar.all_texts(split(ranges, None, max_entries), read_timeout=20))
        return streamed

    async with transactions(class_path(java_classpath, java_peer_dir), pulsar_broker, topic) as do:
        await do("committed")
        await pulsar.send(topic, "beside")
        assert await batch() == await stream() == ["before"]
        await do("COMMIT")
        assert await batch() == await stream() == ["before", "committed", "beside"]
        await do("rolled back")
        await pulsar.send(topic, "after")
        assert await batch() == await stream() == ["before", "committed", "beside"]
        await do("ROLLBACK")
        assert await batch() == await stream() == ["before", "committed", "beside", "after"]
        await pulsar.send(topic, "last")
        assert await batch() == await stream() == ["before", "committed", "beside", "after", "last"]

"""Connects, sends, receives and closes many times while a frame from the broker is truncated; prints what is left.

Arguments: service URL, REST URL, what happens to the frame: half of it comes (``cut``), or its size announces more
than what follows (``short``, ``huge``). Then the connection breaks. Each round does that to a later frame, until one
has not so many. Prints a line of JSON: descriptors, threads and resident bytes before, after that, and after rounds
without faults.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import uuid
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import jmsaio
from jmsaio.testing import FaultProxy

#: Bytes that a frame announces, where only a few follow.
ANNOUNCED = {"short": 100_000, "huge": 200_000_000}


class Relay:
    """Passes bytes between clients and a broker until a frame of the broker is due to be damaged."""

    def __init__(self, url: str, damage: str) -> None:
        parts = urlsplit(url)
        self._broker = (parts.hostname, parts.port)
        self._damage = damage
        self._tasks: set[asyncio.Task[None]] = set()
        self.left: int | None = None
        self.hits = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        source, target = await asyncio.open_connection(*self._broker)
        up = asyncio.create_task(self._up(reader, target))
        self._tasks.add(up)
        up.add_done_callback(self._tasks.discard)
        with suppress(OSError, asyncio.IncompleteReadError):
            await self._down(source, writer)
        for each in (writer, target):
            each.transport.abort()

    async def _up(self, reader: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    async def _down(self, source: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size = await source.readexactly(4)
            frame = await source.readexactly(int.from_bytes(size))
            if self.left is not None:
                self.left -= 1
                if self.left == 0:
                    break
            writer.write(size + frame)
        self.hits += 1
        if self._damage == "cut":
            writer.write(size + frame[: len(frame) // 2])
        else:
            writer.write(ANNOUNCED[self._damage].to_bytes(4) + frame)
        await writer.drain()
        await asyncio.sleep(0.05)


def resident(name: str) -> int:
    """A number of bytes of this process's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


def held() -> dict[str, int]:
    """What this process has open."""
    gc.collect()
    descriptors, threads = Path("/proc/self/fd"), Path("/proc/self/task")
    return {
        "descriptors": len(list(descriptors.iterdir())),
        "threads": len(list(threads.iterdir())),
        "bytes": resident("VmRSS:"),
    }


async def one_round(url: str, web_url: str) -> None:
    """Everything once; what fails, fails with one of our errors."""
    queue = jmsaio.Queue(f"broken-{uuid.uuid4()}")
    with suppress(jmsaio.JMSError):
        async with jmsaio.connect(
            url,
            web_service_url=web_url,
            connect_timeout=2.0,
            operation_timeout=2.0,
            close_timeout=2.0,
            producer={"send_timeout": 2.0},
        ) as connection:
            async with connection.create_session() as session:
                consumer = await session.create_consumer(queue)
                producer = await session.create_producer(queue)
                await producer.send("x" * 1000)
                await consumer.receive(timeout=2.0)


async def settled(before: dict[str, int]) -> dict[str, int]:
    """What is held once nothing more goes away."""
    for _ in range(100):
        after = held()
        if all(after[name] <= before[name] for name in ("descriptors", "threads")):
            break
        await asyncio.sleep(0.1)
    return after


async def main(url: str, web_url: str, damage: str) -> None:
    async with FaultProxy.of(url) as proxy:  # its answers to look-ups keep the client on the way through the relay
        relay = Relay(proxy.url, damage)
        server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
        via = f"pulsar://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await one_round(via, web_url)
        before, rounds = await settled(held()), 0
        while relay.hits == rounds:
            rounds += 1
            relay.left = rounds
            await one_round(via, web_url)
        relay.left = None
        after = await settled(before)
        for _ in range(3):
            await one_round(via, web_url)
        clean = await settled(after)
        print(json.dumps({"hits": relay.hits, "before": before, "after": after, "clean": clean}))
        server.close()


asyncio.run(main(*sys.argv[1:]))

"""Receives messages of some size from a queue and prints the largest resident memory in bytes.

Arguments: URL, queue, number, size. On the embedded broker it sends them itself, one before each receive.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import jmsaio


def peak() -> int:
    """Largest resident memory of this program; ``getrusage`` would count what its parent had when it was forked."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024


async def main(url: str, name: str, count: int, size: int) -> None:
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        queue = jmsaio.Queue(name)
        consumer = await session.create_consumer(queue)
        producer = await session.create_producer(queue) if url.startswith("memory:") else None
        await asyncio.sleep(1.0)  # a queue that is not bounded fills
        for _ in range(count):
            if producer is not None:
                await producer.send(bytes(size))
            message = await consumer.receive(timeout=60)
            assert message is not None
            body = message.get_body(bytes)
            assert body is not None and len(body) == size
    print(peak())


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))

"""Sends that are awaited one after another wait for the default batching delay of 10 ms."""

import asyncio
import json
import sys
import time
import uuid

from pulsar import asyncio as pulsar_asyncio


async def main(url: str) -> None:
    client = pulsar_asyncio.Client(url)
    producer = await client.create_producer(f"non-persistent://public/default/naive-{uuid.uuid4()}")
    start = time.perf_counter()
    for _ in range(50):
        await producer.send(b"x")
    print(json.dumps({"milliseconds": (time.perf_counter() - start) / 50 * 1000}), flush=True)
    await client.close()


asyncio.run(main(sys.argv[1]))

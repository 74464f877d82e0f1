"""A receive of pulsar.asyncio that timed out swallows the next message."""

import asyncio
import contextlib
import json
import sys
import uuid

from pulsar import asyncio as pulsar_asyncio


async def main(url: str) -> None:
    client = pulsar_asyncio.Client(url)
    topic = f"naive-{uuid.uuid4()}"
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic)
    with contextlib.suppress(TimeoutError):  # nothing was sent yet: the timeout of a polling application
        await asyncio.wait_for(consumer.receive(), 0.3)
    for text in ("m0", "m1", "m2"):
        await producer.send(text.encode())
    got = [(await asyncio.wait_for(consumer.receive(), 10)).data().decode() for _ in range(2)]
    print(json.dumps({"got": got}), flush=True)
    await client.close()


asyncio.run(main(sys.argv[1]))

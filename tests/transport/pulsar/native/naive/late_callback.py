"""The loop ends with a receive pending; the callback of the next message raises in a native thread."""

import asyncio
import sys
import time
import uuid

import pulsar
from pulsar import asyncio as pulsar_asyncio

topic = f"naive-{uuid.uuid4()}"
kept: list[object] = []


async def main(url: str) -> None:
    client = pulsar_asyncio.Client(url)
    consumer = await client.subscribe(topic, "s")
    kept.extend([client, consumer, asyncio.ensure_future(consumer.receive())])
    await asyncio.sleep(0.1)


asyncio.run(main(sys.argv[1]))
sender = pulsar.Client(sys.argv[1])
sender.create_producer(topic).send(b"x")
time.sleep(2)
print("survived", flush=True)

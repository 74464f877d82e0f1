"""A cancelled send of pulsar.asyncio is stored nevertheless."""

import asyncio
import json
import sys
import uuid

from pulsar import asyncio as pulsar_asyncio


async def main(url: str) -> None:
    client = pulsar_asyncio.Client(url)
    topic = f"naive-{uuid.uuid4()}"
    consumer = await client.subscribe(topic, "s")
    producer = await client.create_producer(topic)
    task = asyncio.ensure_future(producer.send(b"cancelled"))
    await asyncio.sleep(0)
    task.cancel()
    got = (await asyncio.wait_for(consumer.receive(), 10)).data().decode()
    print(json.dumps({"cancelled": task.cancelled(), "got": got}), flush=True)
    await client.close()


asyncio.run(main(sys.argv[1]))

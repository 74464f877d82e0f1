"""What close does to pending receives and sends of pulsar.asyncio is left to chance."""

import asyncio
import json
import sys
import uuid
from collections import Counter

from pulsar import asyncio as pulsar_asyncio


async def main(url: str) -> None:
    client = pulsar_asyncio.Client(url)
    topic = f"naive-{uuid.uuid4()}"
    consumer = await client.subscribe(f"{topic}-empty", "s")
    producer = await client.create_producer(topic, max_pending_messages=10000)
    receives = [asyncio.ensure_future(consumer.receive()) for _ in range(20)]
    sends = [asyncio.ensure_future(producer.send(b"x")) for _ in range(500)]
    await asyncio.sleep(0)
    await client.close()
    await asyncio.wait([*receives, *sends], timeout=2)
    ends = Counter(
        "never" if not task.done() else type(task.exception()).__name__ if task.exception() else "ok"
        for task in [*receives, *sends]
    )
    for task in [*receives, *sends]:
        task.cancel()
    print(json.dumps(ends), flush=True)


asyncio.run(main(sys.argv[1]))

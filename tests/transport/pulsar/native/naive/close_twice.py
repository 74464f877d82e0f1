"""A second close fails, a dead port is only a time-out, and every failure has the same class."""

import asyncio
import json
import sys
import uuid

from pulsar import asyncio as pulsar_asyncio


async def failure(call: object) -> list[str]:
    try:
        await call  # type: ignore[misc]  # a coroutine
    except BaseException as error:
        return [type(error).__name__, str(error)]
    return []


async def main(url: str) -> None:
    client = pulsar_asyncio.Client(url)
    consumer = await client.subscribe(f"naive-{uuid.uuid4()}", "s")
    answer = {}
    await client.close()
    answer["close"] = await failure(client.close())
    answer["receive"] = await failure(consumer.receive())
    dead = pulsar_asyncio.Client("pulsar://127.0.0.1:1", operation_timeout_seconds=2)
    answer["dead port"] = await failure(dead.create_producer("x"))
    print(json.dumps(answer), flush=True)


asyncio.run(main(sys.argv[1]))

"""The callback of close_async is destroyed by a thread that outlives it: some programs abort at their end."""

import asyncio
import sys
import uuid

from pulsar import asyncio as pulsar_asyncio


async def main(url: str) -> None:
    client = pulsar_asyncio.Client(url)
    await client.subscribe(f"naive-{uuid.uuid4()}", "s")
    await client.close()


asyncio.run(main(sys.argv[1]))

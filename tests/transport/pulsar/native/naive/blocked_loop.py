"""With block_if_queue_full the event loop stands still; without, sends fail for a full queue."""

import asyncio
import json
import sys
import time
import uuid

from pulsar import asyncio as pulsar_asyncio


async def longest_pause(stop: asyncio.Event) -> float:
    longest = 0.0
    while not stop.is_set():
        start = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - start)
    return longest


async def main(url: str) -> None:
    client = pulsar_asyncio.Client(url)
    answer = {}
    for block, count in ((True, 1000), (False, 300)):
        producer = await client.create_producer(
            f"naive-{uuid.uuid4()}", block_if_queue_full=block, max_pending_messages=5, batching_enabled=False
        )
        stop = asyncio.Event()
        watch = asyncio.ensure_future(longest_pause(stop))
        await asyncio.sleep(0)
        results = await asyncio.gather(*(producer.send(b"x" * 100) for _ in range(count)), return_exceptions=True)
        stop.set()
        failed = sum(isinstance(result, BaseException) for result in results)
        answer["blocking" if block else "failing"] = {"failed": failed, "pause": await watch}
    print(json.dumps(answer), flush=True)
    await client.close()


asyncio.run(main(sys.argv[1]))

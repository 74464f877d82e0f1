"""The memory row: what an idle consumer costs, counted by tracemalloc."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import AsyncExitStack

import jmsaio
from jmsaio.bench.meter import Metrics
from jmsaio.bench.workload import Task


async def idle_consumers(task: Task) -> Metrics:
    """Consumers on some sessions, each on a queue of its own: bytes of Python memory for each, broker included.

    One consumer is made and closed first, so that modules and caches that all of them share don't count.
    """
    work = task.workload
    async with jmsaio.connect(task.url) as connection:
        async with connection.create_session() as session:
            await (await session.create_consumer(session.create_queue(f"{task.topic}-first"))).close()
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        async with AsyncExitStack() as stack:
            sessions = [await stack.enter_async_context(connection.create_session()) for _ in range(work.sessions)]
            consumers = []
            for number in range(work.consumers):
                session = sessions[number % work.sessions]
                consumers.append(await session.create_consumer(session.create_queue(f"{task.topic}-{number}")))
            gc.collect()
            used = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            if any(consumer.closed for consumer in consumers):
                raise RuntimeError("a consumer closed by itself")
    return {"kb_each": used / work.consumers / 1e3}

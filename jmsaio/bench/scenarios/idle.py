"""The memory row: the size of an idle consumer, measured with tracemalloc."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import AsyncExitStack

import jmsaio
from jmsaio.bench.meter import Metrics
from jmsaio.bench.workload import Task


async def idle_consumers(task: Task) -> Metrics:
    """Measure the Python memory per consumer, broker included, of consumers on some sessions, each with its own queue.

    One consumer is created and closed first, so that shared modules and caches don't count.
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

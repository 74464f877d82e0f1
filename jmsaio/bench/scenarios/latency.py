"""The latency row: one task sends at a fixed rate, another receives, in one loop."""

from __future__ import annotations

import asyncio
import time

import jmsaio
from jmsaio.bench.meter import Meter, Metrics, latency_metrics
from jmsaio.bench.scenarios.setting import tuned_url, typed_properties
from jmsaio.bench.workload import AMOUNT, Task

_GUARD = 30.0


async def latency(task: Task) -> Metrics:
    """Measure the latency from the call of ``send_async`` until the receiver has the text, AUTO mode."""
    work = task.workload
    clock = time.perf_counter
    count = work.warm_messages + int(work.rate * work.seconds)
    sent, late, latencies = [0.0] * count, [0.0] * count, [0.0] * count
    async with (
        jmsaio.connect(tuned_url(task), send_window_messages=work.window) as connection,
        connection.create_session() as sending,
        connection.create_session() as receiving,
        sending.create_producer(sending.create_queue(task.topic)) as producer,
    ):
        consumer = await receiving.create_consumer(receiving.create_queue(task.topic))

        async def take() -> None:
            for _ in range(count):
                message = await consumer.receive(_GUARD)
                if not isinstance(message, jmsaio.TextMessage) or message.text is None:
                    raise RuntimeError(f"not the message that was sent: {message!r}")
                number = message.get_int_property(AMOUNT)
                latencies[number] = clock() - sent[number]

        meter = Meter()
        async with asyncio.TaskGroup() as group:
            group.create_task(take())
            begin = clock()
            for number in range(count):
                if number == work.warm_messages:
                    meter.start()
                due = begin + number / work.rate
                if (wait := due - clock()) > 0:
                    await asyncio.sleep(wait)
                sent[number] = now = clock()
                late[number] = now - due
                await producer.send_async(work.text, properties=typed_properties(number))
        meter.stop()
        await consumer.close()
    return latency_metrics(latencies[work.warm_messages :], late[work.warm_messages :], meter)

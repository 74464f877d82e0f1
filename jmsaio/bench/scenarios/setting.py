"""Shared by all rows of jmsaio: the URL with the workload's options, and the properties of a message."""

from __future__ import annotations

from jmsaio.bench.workload import AMOUNT, KIND, KIND_VALUE, REGION, REGION_VALUE, Task


def tuned_url(task: Task) -> str:
    """Return the task's URL with window, prefetch and batch of its workload, by their Java names."""
    work = task.workload
    options = {
        "producerConfig.batchingMaxMessages": work.batch_messages,
        "producerConfig.batchingMaxPublishDelayMicros": round(work.batch_delay * 1e6),
        "consumerConfig.receiverQueueSize": work.window,
    }
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"{task.url}{'&' if '?' in task.url else '?'}{query}"


def typed_properties(number: int) -> dict[str, str | int]:
    """Return three properties, two strings and an int."""
    return {REGION: REGION_VALUE, AMOUNT: number, KIND: KIND_VALUE}

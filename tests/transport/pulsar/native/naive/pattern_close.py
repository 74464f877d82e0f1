"""A consumer of a pattern that is closed and dropped while it looks for new topics crashes the process, by chance."""

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import _pulsar

ROUNDS, CONSUMERS = 8, 30


def wait(start: Callable[[Callable[..., None]], object]) -> Any:
    """Return the last argument of the callback."""
    answered, answer = threading.Event(), []

    def arrived(*arguments: Any) -> None:
        answer.append(arguments[-1])
        answered.set()

    start(arrived)
    assert answered.wait(20)
    return answer[0]


def main(url: str) -> None:
    client = _pulsar.Client(url, _pulsar.ClientConfiguration())
    name = f"public/default/naive-{uuid.uuid4()}"
    wait(partial(client.create_producer_async, f"persistent://{name}", _pulsar.ProducerConfiguration()))
    configuration = _pulsar.ConsumerConfiguration()
    configuration.consumer_type(_pulsar.ConsumerType.Shared)
    configuration.pattern_auto_discovery_period(1)
    for _ in range(ROUNDS):
        consumers = []
        for _ in range(CONSUMERS):
            opened = time.monotonic()
            consumer = wait(partial(client.subscribe_async_pattern, f"{name}.*", "s", configuration))
            consumers.append((opened, consumer))
        while consumers:
            opened, consumer = consumers.pop(0)
            time.sleep(max(0.0, opened + 1.0005 - time.monotonic()))  # it looks every second
            wait(consumer.close_async)
    print("survived", flush=True)
    os._exit(0)


main(sys.argv[1])

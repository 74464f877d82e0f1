"""Unsubscribing a consumer of a pattern crashes if the broker answers before pulsar-client notes the callback.

pulsar-client sends a request for each topic, and copies the Python callback, for which it waits for the GIL. If another
thread holds the GIL for longer than the broker needs, the answer is processed in this thread: pulsar-client frees its
list of consumers while it iterates over it. A second thread that computes makes this likely.
"""

import os
import sys
import threading
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import _pulsar

ROUNDS = 30


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
    busy = threading.Event()

    def compute() -> None:
        while busy.wait():
            sum(range(200_000))

    sys.setswitchinterval(1e-6)
    threading.Thread(target=compute, daemon=True).start()
    configuration = _pulsar.ConsumerConfiguration()
    for number in range(ROUNDS):
        consumer = wait(partial(client.subscribe_async_pattern, f"{name}.*", f"s{number}", configuration))
        busy.set()
        wait(consumer.unsubscribe_async)
        busy.clear()
    print("survived", flush=True)
    os._exit(0)


main(sys.argv[1])

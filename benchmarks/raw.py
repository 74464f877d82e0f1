"""Raw pulsar-client as its documentation shows it: ``send_async`` with a Python callback, ``message_listener``.

The consumer's ``acknowledge`` blocks for each message; the asynchronous call below it is what a listener that cares for
speed uses, so that is what is measured.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import pulsar

from benchmarks.meter import Meter, Metrics, latency_metrics
from benchmarks.properties import raw_properties
from benchmarks.workload import AMOUNT, Task, Workload

#: Seconds after which a row gives up; only a guard against hanging.
GUARD = 100.0
_SUBSCRIPTION = "benchmark"


def open_client(task: Task) -> pulsar.Client:
    """Return a quiet client of the task's broker."""
    return pulsar.Client(task.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def producer_options(workload: Workload) -> dict[str, Any]:
    """Options of every raw producer."""
    return {
        "batching_enabled": True,
        "batching_max_publish_delay_ms": round(workload.batch_delay * 1e3),
        "batching_max_messages": workload.batch_messages,
        "max_pending_messages": workload.window,
        "block_if_queue_full": True,
    }


def consumer_options(workload: Workload) -> dict[str, Any]:
    """Options of every raw consumer."""
    return {
        "consumer_type": pulsar.ConsumerType.Shared,
        "receiver_queue_size": workload.window,
        "initial_position": pulsar.InitialPosition.Earliest,
    }


def send(task: Task) -> Metrics:
    """``send_async`` with a Python callback for each message; ends when the last is confirmed."""
    work = task.workload
    client = open_client(task)
    producer = client.create_producer(task.topic, **producer_options(work))
    text, count = work.text, work.messages
    confirmed, failed = 0, 0
    finished = threading.Event()

    def sent(result: Any, _place: Any) -> None:
        nonlocal confirmed, failed
        confirmed += 1
        failed += result != pulsar.Result.Ok
        if confirmed == count:
            finished.set()

    with Meter() as meter:
        for number in range(count):
            producer.send_async(text.encode(), sent, properties=raw_properties(number))
        done = finished.wait(GUARD)
    client.close()
    if not done or failed:
        raise RuntimeError(f"{confirmed} of {count} confirmed, {failed} failed")
    return meter.metrics(count)


def fill(task: Task) -> Metrics:
    """Fill the topic for ``receive``: subscribes first, so that the backlog is kept; callbacks only at the end."""
    work = task.workload
    client = open_client(task)
    client.subscribe(task.topic, _SUBSCRIPTION, **consumer_options(work)).close()
    producer = client.create_producer(task.topic, **producer_options(work))
    payload = work.text.encode()
    with Meter() as meter:
        for number in range(work.messages):
            producer.send_async(payload, None, properties=raw_properties(number))
        producer.flush()
    client.close()
    return meter.metrics(work.messages)


def receive(task: Task) -> Metrics:
    """``message_listener``, text and int read, each message acknowledged; first to last message of a backlog."""
    work = task.workload
    client = open_client(task)
    count = work.messages
    received, total, characters = 0, 0, 0
    meter = Meter()
    finished = threading.Event()

    def acknowledged(_result: Any) -> None:
        """Nothing to do: the documentation's callback prints."""

    def listener(consumer: Any, message: pulsar.Message) -> None:
        nonlocal received, total, characters
        if received == 0:
            meter.start()
        characters += len(message.data().decode())
        total += int(message.properties()[AMOUNT])
        consumer._consumer.acknowledge_async(message._message, acknowledged)
        received += 1
        if received == count:
            meter.stop()
            finished.set()

    client.subscribe(task.topic, _SUBSCRIPTION, message_listener=listener, **consumer_options(work))
    done = finished.wait(GUARD)
    client.close()
    if not done or total != work.check_sum() or characters != count * work.characters:
        raise RuntimeError(f"{received} of {count} received, {characters} characters, sum {total}")
    return meter.metrics(count)


def latency(task: Task) -> Metrics:
    """One thread sends at a fixed rate, the listener receives, in one process."""
    work = task.workload
    client = open_client(task)
    count = work.warm_messages + int(work.rate * work.seconds)
    clock = time.perf_counter
    sent, late, latencies = [0.0] * count, [0.0] * count, [0.0] * count
    received = 0
    finished = threading.Event()

    def listener(consumer: Any, message: pulsar.Message) -> None:
        nonlocal received
        message.data().decode()
        number = int(message.properties()[AMOUNT])
        latencies[number] = clock() - sent[number]
        consumer._consumer.acknowledge_async(message._message, None)
        received += 1
        if received == count:
            finished.set()

    client.subscribe(task.topic, _SUBSCRIPTION, message_listener=listener, **consumer_options(work))
    producer = client.create_producer(task.topic, **producer_options(work))

    def confirmed(_result: Any, _place: Any) -> None:
        """Return a lost message shows in the number received."""

    meter, begin = Meter(), clock()
    for number in range(count):
        if number == work.warm_messages:
            meter.start()
        due = begin + number / work.rate
        if (wait := due - clock()) > 0:
            time.sleep(wait)
        sent[number] = now = clock()
        late[number] = now - due
        producer.send_async(work.text.encode(), confirmed, properties=raw_properties(number))
    done = finished.wait(GUARD)
    meter.stop()
    client.close()
    if not done:
        raise RuntimeError(f"{received} of {count} received")
    return latency_metrics(latencies[work.warm_messages :], late[work.warm_messages :], meter)

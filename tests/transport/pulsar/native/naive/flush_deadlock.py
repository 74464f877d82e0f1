"""Flush_async holds the GIL while it waits for a lock whose owner waits for the GIL: nothing moves any more."""

import sys
import threading
import time
import uuid

import _pulsar
import pulsar

client = pulsar.Client(sys.argv[1], logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))
producer = client.create_producer(
    f"naive-{uuid.uuid4()}", batching_enabled=True, batching_max_publish_delay_ms=1, max_pending_messages=50000
)._producer
beat = [0]


def heart() -> None:
    while True:
        beat[0] += 1
        print(beat[0], flush=True)
        time.sleep(0.1)


threading.Thread(target=heart, daemon=True).start()
end = time.time() + float(sys.argv[2])
while time.time() < end:
    for _ in range(7):
        producer.send_async(_pulsar.MessageBuilder().content(b"x" * 100).build(), lambda result, place: None)
    wait = time.perf_counter() + 0.0009  # land near the timer of the batch
    while time.perf_counter() < wait:
        pass  # a busy application
    producer.flush_async(lambda result: None)
print("no deadlock", flush=True)
client.shutdown()

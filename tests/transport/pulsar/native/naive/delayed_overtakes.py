"""A message with a delivery time leaves outside the batch: it is stored before those that were sent before it."""

import json
import sys
import threading
import time
import uuid

import _pulsar
import pulsar

client = pulsar.Client(sys.argv[1])
producer = client.create_producer(
    f"naive-{uuid.uuid4()}", batching_enabled=True, batching_max_publish_delay_ms=200
)._producer
places: dict[str, int] = {}
done = threading.Semaphore(0)


def send(text: str, deliver_at: int | None) -> None:
    builder = _pulsar.MessageBuilder().content(text)
    if deliver_at is not None:
        builder.deliver_at(deliver_at)

    def answered(result: object, place: _pulsar.MessageId) -> None:
        places[text] = place.entry_id()
        done.release()

    producer.send_async(builder.build(), answered)


send("first", None)
send("second, delayed", int(time.time() * 1000) + 500)
done.acquire(timeout=10)
done.acquire(timeout=10)
print(json.dumps({"order": sorted(places, key=places.__getitem__)}), flush=True)
client.close()

"""A receive callback that raises in a native thread ends the process."""

import sys
import time
import uuid

import pulsar

client = pulsar.Client(sys.argv[1])
topic = f"naive-{uuid.uuid4()}"
consumer = client.subscribe(topic, "s")


def received(result: object, message: object) -> None:
    raise RuntimeError("a mistake in the application")


consumer._consumer.receive_async(received)
client.create_producer(topic).send(b"x")
time.sleep(2)
print("survived", flush=True)

"""Without a callback of its own a message that is too large disappears, and its group's answer is Ok."""

import json
import sys
import threading
import uuid

import _pulsar
import pulsar

client = pulsar.Client(sys.argv[1])
topic = f"naive-{uuid.uuid4()}"
consumer = client.subscribe(topic, "s")
producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=1)._producer
answers: list[str] = []
done = threading.Event()


def build(text: bytes) -> object:
    return _pulsar.MessageBuilder().content(text).build()


def last(result: object, place: object) -> None:
    answers.append(str(result).rpartition(".")[2])
    done.set()


producer.send_async(build(b"a"), None)
producer.send_async(build(b"x" * 6_000_000), None)
producer.send_async(build(b"b"), last)
done.wait(20)
got = [consumer.receive(5000).data().decode() for _ in range(2)]
built = build(b"once")
repeated: list[str] = []
again = threading.Event()
producer.send_async(built, None)


def answered(result: object, place: object) -> None:
    repeated.append(str(result).rpartition(".")[2])
    again.set()


producer.send_async(built, answered)
again.wait(20)
print(json.dumps({"answers": answers, "got": got, "same message again": repeated}), flush=True)
client.close()

"""pulsar-client's dead letter policy moves a whole batch, with neighbours that were acknowledged."""

import json
import sys
import uuid

import pulsar

client = pulsar.Client(sys.argv[1])
topic = f"naive-{uuid.uuid4()}"
dead = client.subscribe(f"{topic}-dead", "d")
consumer = client.subscribe(
    topic,
    "s",
    consumer_type=pulsar.ConsumerType.Shared,
    negative_ack_redelivery_delay_ms=100,
    dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(1, f"{topic}-dead"),
)
producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=100)
for text in (b"good", b"poison", b"fine"):
    producer.send_async(text, lambda result, place: None)
producer.flush()
try:
    while True:
        message = consumer.receive(1500)
        if message.data() == b"poison":
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)
except pulsar.Timeout:
    pass  # everything is acknowledged or dead
got = []
try:
    while True:
        got.append(dead.receive(1500).data().decode())
except pulsar.Timeout:
    pass  # nothing more is dead
print(json.dumps({"dead": got}), flush=True)
client.close()

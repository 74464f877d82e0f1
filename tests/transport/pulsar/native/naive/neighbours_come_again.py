"""A negative acknowledgement gives back a whole batch entry: its neighbours come twice."""

import json
import sys
import uuid

import pulsar

client = pulsar.Client(sys.argv[1])
topic = f"naive-{uuid.uuid4()}"
consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=100)
producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=100)
for number in range(5):
    producer.send_async(b"%d" % number, lambda result, place: None)
producer.flush()
messages = [consumer.receive(5000) for _ in range(5)]
consumer.negative_acknowledge(messages[2])
got = []
try:
    while True:
        got.append(consumer.receive(1500).data().decode())
except pulsar.Timeout:
    pass  # nothing more comes
print(json.dumps({"came again": got}), flush=True)
client.close()

"""A batch that the broker finds damaged, while an earlier one is on its way: pulsar-client ends the process."""

import json
import sys
import uuid

import pulsar

client = pulsar.Client(sys.argv[1])
producer = client.create_producer(
    f"naive-{uuid.uuid4()}", batching_enabled=True, batching_max_messages=10, max_pending_messages=0
)
for _ in range(20):
    for _ in range(2000):
        producer.send_async(b"x" * 100, None)
    producer.send(b"last of this round")
print(json.dumps({"survived": True}), flush=True)
client.close()

"""A queue limit of pulsar-client refuses messages at once; a group's None callbacks hide it."""

import json
import sys
import uuid

import _pulsar
import pulsar

client = pulsar.Client(sys.argv[1])
topic = f"naive-{uuid.uuid4()}"
consumer = client.subscribe(topic, "s")
producer = client.create_producer(
    topic, max_pending_messages=10, block_if_queue_full=False, batching_enabled=True, batching_max_publish_delay_ms=100
)._producer
for number in range(50):
    producer.send_async(_pulsar.MessageBuilder().content(b"%d" % number).build(), None)
got = 0
try:
    while True:
        consumer.receive(2000)
        got += 1
except pulsar.Timeout:
    pass  # nothing more is stored
print(json.dumps({"sent": 50, "stored": got}), flush=True)
client.close()

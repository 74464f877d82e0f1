"""redeliver_unacknowledged_messages leaves the prefetched messages where they are: they come twice."""

import json
import sys
import time
import uuid

import pulsar

client = pulsar.Client(sys.argv[1])
topic = f"naive-{uuid.uuid4()}"
consumer = client.subscribe(topic, "s")
producer = client.create_producer(topic, batching_enabled=False)
for number in range(10):
    producer.send(b"%d" % number)
time.sleep(1)
got = [consumer.receive(5000).data().decode()]
consumer.redeliver_unacknowledged_messages()
time.sleep(1)
try:
    while True:
        got.append(consumer.receive(1000).data().decode())
except pulsar.Timeout:
    pass  # nothing more comes
print(json.dumps({"got": got}), flush=True)
client.close()

"""One producer over several partitions: the answer of the last message says nothing of the others' partitions."""

import json
import sys
import threading
import urllib.request
import uuid

import _pulsar
import pulsar

url, web = sys.argv[1:3]
name = f"naive-{uuid.uuid4()}"
request = urllib.request.Request(
    f"{web}/admin/v2/persistent/public/default/{name}/partitions",
    data=b"3",
    method="PUT",
    headers={"Content-Type": "application/json"},
)
urllib.request.urlopen(request).close()
client = pulsar.Client(url)
round_robin = pulsar.PartitionsRoutingMode.RoundRobinDistribution
producer = client.create_producer(name, message_routing_mode=round_robin)._producer
places: list[int] = []
done = threading.Semaphore(0)


def answered(result: object, place: _pulsar.MessageId) -> None:
    places.append(place.partition())
    done.release()


for number in range(6):
    producer.send_async(_pulsar.MessageBuilder().content(b"%d" % number).partition_key(str(number)).build(), answered)
for _ in range(6):
    done.acquire(timeout=10)
print(json.dumps({"partitions": sorted(set(places))}), flush=True)
client.close()

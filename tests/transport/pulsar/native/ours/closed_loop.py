"""The loop ends with a receive outstanding and nothing closed; then a message arrives, then the process ends."""

import asyncio
import sys
import time
import uuid

import pulsar

from jmsaio.config import ConsumerConfig, load
from jmsaio.transport.base import StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar import open_transport

topic = f"persistent://public/default/ours-{uuid.uuid4()}"
kept: list[object] = []


async def main(url: str) -> None:
    transport = await open_transport(load(url))
    subscription = Subscription((topic,), "s", SubscriptionType.SHARED, ConsumerConfig(), StartPosition.EARLIEST)
    receiver = await transport.open_receiver(subscription, lambda: None)
    assert receiver.receive(1) == []
    kept.extend([transport, receiver])


asyncio.run(main(sys.argv[1]))
sender = pulsar.Client(sys.argv[1], logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))
sender.create_producer(topic).send(b"x")
time.sleep(1)
sender.close()
print("survived", flush=True)

"""A program that deletes subscriptions to a pattern while another of its threads computes."""

import asyncio
import sys
import threading
import uuid

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.transport.base import SenderOptions, Subscription, SubscriptionType
from jmsaio.transport.pulsar import open_transport

ROUNDS = 30


def compute() -> None:
    while True:
        sum(range(200_000))


async def main(url: str) -> None:
    transport = await open_transport(load(url))
    topic = f"persistent://public/default/ours-{uuid.uuid4()}"
    await transport.open_sender(topic, SenderOptions(ProducerConfig(), lambda tokens, place, error: None))
    config = ConsumerConfig()
    sys.setswitchinterval(1e-6)
    threading.Thread(target=compute, daemon=True).start()
    for number in range(ROUNDS):
        name = f"s{number}"
        subscription = Subscription((), name, SubscriptionType.SHARED, config, pattern=f"{topic}.*", durable=False)
        receiver = await transport.open_receiver(subscription, lambda: None)
        receiver.receive(1)
        await receiver.aclose(10)
    await transport.aclose(10)


asyncio.run(main(sys.argv[1]))
print("ended", flush=True)

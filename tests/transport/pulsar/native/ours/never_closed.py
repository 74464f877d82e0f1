"""A program that closes nothing, with records and acknowledgements on their way, ends in order."""

import asyncio
import sys
import uuid

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import SenderOptions, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar import open_transport


async def main(url: str) -> None:
    transport = await open_transport(load(url))
    topic = f"persistent://public/default/ours-{uuid.uuid4()}"
    subscription = Subscription((topic,), "s", SubscriptionType.SHARED, ConsumerConfig(), StartPosition.EARLIEST)
    event = asyncio.Event()
    receiver = await transport.open_receiver(subscription, event.set)
    sender = await transport.open_sender(topic, SenderOptions(ProducerConfig(), lambda tokens, place, error: None))
    sender.send(OutgoingRecord(b"first", {}), lambda place, error: None)
    while not (records := receiver.receive(1)):
        event.clear()
        await event.wait()
    receiver.acknowledge(records)
    for _ in range(500):
        sender.send(OutgoingRecord(b"x", {}), lambda place, error: None)


asyncio.run(main(sys.argv[1]))
print("ended", flush=True)

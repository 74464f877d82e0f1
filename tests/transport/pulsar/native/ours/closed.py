"""A program that uses everything and closes it, many times over in the test: the interpreter's end is quiet."""

import asyncio
import sys
import uuid

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import ReaderOptions, SenderOptions, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar import open_transport


async def main(url: str) -> None:
    transport = await open_transport(load(url))
    topic = f"persistent://public/default/ours-{uuid.uuid4()}"
    subscription = Subscription((topic,), "s", SubscriptionType.SHARED, ConsumerConfig(), StartPosition.EARLIEST)
    receiver = await transport.open_receiver(subscription, lambda: None)
    receiver.receive(1)
    sender = await transport.open_sender(topic, SenderOptions(ProducerConfig(), lambda tokens, place, error: None))
    for _ in range(300):
        sender.send(OutgoingRecord(b"x", {}), lambda place, error: None)
    reader = await transport.open_reader(ReaderOptions(topic, ConsumerConfig()))
    await reader.read(10, 1)
    await transport.aclose(10)


if len(sys.argv) > 2:
    import uvloop

    uvloop.run(main(sys.argv[1]))
else:
    asyncio.run(main(sys.argv[1]))
print("ended", flush=True)

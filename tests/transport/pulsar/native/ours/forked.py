"""A child process uses its parent's transport: a clear error at once; both processes end in order."""

import asyncio
import os
import sys
import time
import uuid

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.errors import ForkError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import ReaderOptions, SenderOptions, Subscription, SubscriptionType
from jmsaio.transport.pulsar import open_transport


async def main(url: str) -> None:
    transport = await open_transport(load(url))
    topic = f"persistent://public/default/ours-{uuid.uuid4()}"
    sender = await transport.open_sender(topic, SenderOptions(ProducerConfig(), lambda tokens, place, error: None))
    subscription = Subscription((topic,), "s", SubscriptionType.SHARED, ConsumerConfig())
    receiver = await transport.open_receiver(subscription, lambda: None)
    child = os.fork()
    if child == 0:
        refused = []
        for call in (
            lambda: sender.send(OutgoingRecord(b"x", {}), lambda place, error: None),
            lambda: receiver.receive(1),
            lambda: receiver.acknowledge(()),
        ):
            try:
                call()
            except ForkError:
                refused.append(True)
        for opening in (
            transport.open_sender(topic, SenderOptions(ProducerConfig(), lambda tokens, place, error: None)),
            transport.open_receiver(subscription, lambda: None),
            transport.open_reader(ReaderOptions(topic, ConsumerConfig())),
        ):
            try:
                opening.send(None)  # no loop in the child: the error comes before the first await
            except ForkError:
                refused.append(True)
            opening.close()
        print(f"child refused {len(refused)}", flush=True)
        os._exit(0)  # the loop is the parent's: ending it here would take the parent's sockets out of its selector
    print(f"child ended with {wait(child)}", flush=True)
    kept.extend([sender, receiver])
    await transport.aclose(10)
    kept.append(await open_transport(load(url)))


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


kept: list[object] = []
asyncio.run(main(sys.argv[1]))
second = os.fork()
if second == 0:
    sys.exit(0)  # the whole end of an interpreter, with an open transport of the parent
start = time.monotonic()
print(f"second child ended with {wait(second)} {'in time' if time.monotonic() - start < 5 else 'late'}", flush=True)

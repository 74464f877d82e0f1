"""``last_message_id``: the last record of a topic, which pulsar-client tells consumers only."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from jmsaio.config import ConsumerConfig
from jmsaio.model.temporary_names import SUBSCRIPTION_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.transport.base import Subscription, SubscriptionType, Wake
from jmsaio.transport.pulsar.native.binding.attempts import ask_again
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, ignore
from jmsaio.transport.pulsar.native.binding.handles import MessageIdHandle
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver

#: Opens the consumer, with whose end its subscription ends.
Open = Callable[[Subscription, Wake], Awaitable[PulsarReceiver]]


async def last_message_id(
    bridge: Bridge, open_receiver: Open, topic: str, timeout: float, closing: float
) -> WireId | None:
    """Return the id of the last record that a reader can receive now, requested through a temporary consumer.

    pulsar-client offers this for consumers only. A reader would need no subscription, but one that starts at the latest
    record, inclusive, finds nothing if the topic ends with the marker of a transaction.

    Args:
        bridge: bridge to the native threads.
        open_receiver: opens the consumer.
        topic: full name of a topic without partitions, or of one partition.
        timeout: seconds for the request, which is repeated while the broker can't answer.
        closing: seconds for deleting the subscription and closing the consumer.

    Returns:
        The id; None for an empty topic.

    Raises:
        JMSError: as by ``open_receiver``, or the broker's last answer.

    Cancellation: the subscription is still deleted. ``jmsaio sweep`` finds leftovers of a crash.
    """
    name = f"{SUBSCRIPTION_PREFIX}{uuid.uuid4()}"
    config = ConsumerConfig(receiver_queue_size=1)  # no message is to be received
    wanted = Subscription((topic,), name, SubscriptionType.EXCLUSIVE, config, durable=False)
    receiver = await open_receiver(wanted, ignore)
    try:
        [native] = receiver.natives
        ask = partial(bridge.ask, native.get_last_message_id_async, f"last place of {topic}", timeout)
        last: MessageIdHandle = await ask_again(bridge, ask, timeout)
    finally:
        with anyio.CancelScope(shield=True):
            await receiver.aclose(closing)
    if last.entry_id() < 0:
        return None
    return WireId(last.ledger_id(), last.entry_id(), last.partition(), last.batch_index())

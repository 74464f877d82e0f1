"""``ReceiverOpener``: opens receivers, including on kinds of subscriptions that pulsar-client lacks."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.errors import AdminError, ConsumerBusyError, JMSSecurityError, NotFoundError
from jmsaio.model.temporary_names import SUBSCRIPTION_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.transport.base import Admin, Subscription, SubscriptionType, Wake
from jmsaio.transport.pulsar.native.binding.attempts import ask_again
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, ignore
from jmsaio.transport.pulsar.native.binding.handles import MessageIdHandle
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.subscriptions.ephemeral import delete_leftover, delete_unused
from jmsaio.transport.pulsar.subscriptions.replacement import delete_other, warn_unknown, write_properties

_log = logging.getLogger(__name__)

#: Unused subscriptions deleted concurrently.
TOGETHER = 16


@attrs.define(eq=False)
class ReceiverOpener:
    """Opens the receivers of one transport.

    Args:
        subscribe: opens a receiver on a subscription that outlives it, without properties.
        admin: the admin interface, or None.
        timeout: seconds for a deletion, and for closing a receiver whose opening was cancelled.
    """

    subscribe: Callable[[Subscription, Wake], Awaitable[PulsarReceiver]]
    admin: Admin | None
    timeout: float
    _warned: set[str] = attrs.field(factory=set, init=False)
    _deleting: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(TOGETHER), init=False)

    async def open(self, wanted: Subscription, wake: Wake) -> PulsarReceiver:
        """Open a receiver; see ``Transport.open_receiver``."""
        if not wanted.durable:
            return await self._open_ephemeral(wanted, wake)
        if wanted.properties:
            return await self._open_with_properties(wanted, wake)
        return await self.subscribe(wanted, wake)

    async def _open_with_properties(self, wanted: Subscription, wake: Wake) -> PulsarReceiver:
        topics = await delete_other(self.admin, wanted, self._warn)
        receiver = await self.subscribe(wanted, wake)
        try:
            await write_properties(self.admin, wanted, topics)
        except (AdminError, JMSSecurityError) as error:
            warn_unknown(self._warn, str(error))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await receiver.aclose(self.timeout)
            raise
        return receiver

    async def _open_ephemeral(self, wanted: Subscription, wake: Wake) -> PulsarReceiver:
        """Open a receiver on a subscription that ends with its last consumer."""
        if wanted.type is not SubscriptionType.EXCLUSIVE:
            await delete_leftover(self.admin, wanted, self.timeout)
        try:
            receiver = await self._subscribe_or_create(wanted, wake)
        except ConsumerBusyError:
            raise  # the subscription is in use, so it is kept
        except BaseException:
            await delete_unused(self.admin, wanted, self.timeout, patient=True)
            raise
        receiver.after_close = partial(self._delete_unused, wanted)
        return receiver

    async def _delete_unused(self, wanted: Subscription, timeout: float) -> None:
        """Delete a subscription as ``delete_unused`` does, whose time limit begins when it is this one's turn."""
        deadline = anyio.current_time() + timeout
        with anyio.move_on_after(timeout, shield=True):
            async with self._deleting:
                await delete_unused(self.admin, wanted, deadline - anyio.current_time())

    async def _subscribe_or_create(self, wanted: Subscription, wake: Wake) -> PulsarReceiver:
        """Subscribe, even in a namespace with ``allowAutoSubscriptionCreation=false``.

        There the broker creates only non-durable subscriptions; this one is durable for the broker, so it is created
        here.
        """
        try:
            return await self.subscribe(wanted, wake)
        except NotFoundError as error:
            if error.error_code != "SubscriptionNotFound" or self.admin is None or wanted.pattern is not None:
                raise
        for topic in wanted.topics:
            await self.admin.create_subscription(topic, wanted.name, wanted.position)
        return await self.subscribe(wanted, wake)

    def _warn(self, text: str) -> None:
        """Log a warning, once per text."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)


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

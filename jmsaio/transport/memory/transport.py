"""``Transport`` of the embedded broker: one client of one broker in this process."""

from __future__ import annotations

import asyncio

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import BrokerUnavailableError, ObjectClosedError
from jmsaio.model.arguments import shown
from jmsaio.model.wire import WireId
from jmsaio.transport.base import (
    Capabilities,
    LinkChange,
    LinkListener,
    ReaderOptions,
    SenderOptions,
    Subscription,
    SubscriptionType,
    Wake,
)
from jmsaio.transport.clock import Clock
from jmsaio.transport.memory.admin import MemoryAdmin
from jmsaio.transport.memory.broker.broker import Broker, broker_named
from jmsaio.transport.memory.link import Link
from jmsaio.transport.memory.reader import READ_EACH, MemoryReader
from jmsaio.transport.memory.receiver import MemoryReceiver
from jmsaio.transport.memory.sender import MemorySender
from jmsaio.transport.memory.transaction import MemoryTransaction

_CAPABILITIES = Capabilities(
    transactions=True,
    sequence_ids=True,
    exact_redelivery_count=True,
    acknowledges_at_once=True,
    non_durable=frozenset(SubscriptionType),
    stores_properties=True,
    replaces_properties=True,
    message_ids=True,
)


class MemoryTransport:
    """One client of one embedded broker."""

    def __init__(self, broker: Broker, config: Configuration) -> None:
        self._broker = broker
        self._config = config
        self._link = Link(broker, asyncio.get_running_loop())
        self._admin = MemoryAdmin(broker) if config.use_pulsar_admin else None
        self._senders: set[MemorySender] = set()
        self._receivers: set[MemoryReceiver] = set()
        self._readers: set[MemoryReader] = set()
        self._transactions: list[MemoryTransaction] = []
        self._closed = False
        with broker.lock:
            broker.connect(self)
            broker.filters = broker.filters or config.filters

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    @property
    def admin(self) -> MemoryAdmin | None:
        return self._admin

    browsable = admin

    @property
    def clock(self) -> Clock:
        return self._broker.clock

    @property
    def link_listeners(self) -> set[LinkListener]:
        return self._link.listeners

    def _check(self) -> None:
        if self._closed:
            raise ObjectClosedError(f"the client of the embedded broker {shown(self._broker.name)} is closed")
        self._broker.check_up()

    async def open_sender(self, topic: str, options: SenderOptions) -> MemorySender:
        with self._broker.lock:
            self._check()
            self._senders = {sender for sender in self._senders if not sender.closed}
            logs = self._broker.open_to_send(topic)
            sender = MemorySender(self._link, logs, topic, options, self._config.memory_limit)
            self._senders.add(sender)
            return sender

    async def open_receiver(self, subscription: Subscription, wake: Wake) -> MemoryReceiver:
        with self._broker.lock:
            self._check()
            self._receivers = {receiver for receiver in self._receivers if not receiver.closed}
            subscription = self._with_letters_kept(subscription)
            receiver = MemoryReceiver(self._link, subscription, wake, self._config.enable_jms_priority)
            self._receivers.add(receiver)
            return receiver

    def _with_letters_kept(self, subscription: Subscription) -> Subscription:
        """Return the subscription with a queue subscription for its dead letters, unless its policy names another."""
        config, policy = self._config, subscription.config.dead_letter
        if policy is None or policy.initial_subscription_name or not config.precreate_queue_subscription:
            return subscription
        policy = attrs.evolve(policy, initial_subscription_name=config.queue_subscription_name)
        return attrs.evolve(subscription, config=attrs.evolve(subscription.config, dead_letter=policy))

    async def open_reader(self, options: ReaderOptions) -> MemoryReader:
        with self._broker.lock:
            self._check()
            self._readers = {reader for reader in self._readers if not reader.closed}
            reader = MemoryReader(self._link, options)
            self._readers.add(reader)
            return reader

    async def end(self, topic: str) -> WireId | None:
        with self._broker.lock:
            self._check()
            self._broker.check_unpartitioned(topic, READ_EACH)
            return self._broker.open(topic)[0].last

    async def ping(self, timeout: float) -> None:
        with self._broker.lock:
            self._check()

    async def ready_for_transactions(self, timeout: float) -> None:
        """Return at once: the embedded broker is always ready. See ``Transport.ready_for_transactions``."""

    async def begin(self, timeout: float) -> MemoryTransaction:
        with self._broker.lock:
            self._check()
            transaction = MemoryTransaction(self._broker, timeout)
            self._transactions = [other for other in self._transactions if other in self._broker.transactions]
            self._transactions.append(transaction)
            return transaction

    async def aclose(self, timeout: float) -> None:
        self._closed = True
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        try:
            for sender in list(self._senders):
                await sender.aclose(max(0.0, end - loop.time()))
        finally:
            with self._broker.lock:
                self.abandon()
            self._link.cut()

    @property
    def gone(self) -> bool:
        return self._link.loop.is_closed()

    def timer_changed(self) -> None:
        self._link.wake()

    def abandon(self) -> None:
        self._closed = True
        for transaction in self._transactions:
            transaction.abort_now()
        parts: list[MemorySender | MemoryReceiver | MemoryReader] = [*self._senders, *self._receivers, *self._readers]
        for part in parts:
            part.abandon()
        if self in self._broker.clients:
            self._broker.clients.remove(self)

    def broker_down(self) -> None:
        for receiver in self._receivers:
            receiver.broker_down()
        text = f"the connection to the embedded broker {shown(self._broker.name)} is lost: it was taken down"
        self._link.notify(LinkChange(text, BrokerUnavailableError(text), whole=True))

    def broker_up(self) -> None:
        parts: list[MemoryReceiver | MemoryReader] = [*self._receivers, *self._readers]
        text = f"the connection to the embedded broker {shown(self._broker.name)} is back"
        self._link.notify(LinkChange(text, whole=True))
        for part in parts:
            part.reconnect()


async def open_transport(config: Configuration) -> MemoryTransport:
    return MemoryTransport(broker_named(config.broker_name), config)

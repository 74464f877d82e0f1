"""``DeadLetters``: records given back too often go to another topic.

pulsar-client's own policy moves a whole batch entry, with neighbours that no one gave back or that are acknowledged
already, and drops null values and event times. So it is done here, record by record, as Java's client does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from jmsaio.config import ConsumerConfig, DeadLetterPolicy, ProducerConfig
from jmsaio.errors import JMSError
from jmsaio.model.wire import ORIGIN_MESSAGE_ID, REAL_TOPIC, OutgoingRecord, WireId
from jmsaio.transport.base import Position, Receiver, Sender, SenderOptions, Subscription, SubscriptionType, Wake
from jmsaio.transport.pulsar.native.bridge import end
from jmsaio.transport.pulsar.native.record import PulsarRecord

OpenSender = Callable[[str, SenderOptions], Awaitable[Sender]]
OpenReceiver = Callable[[Subscription, Wake], Awaitable[Receiver]]


class DeadLetters:
    """Moves records of one receiver.

    Args:
        policy: when, and where to.
        subscription: name of the receiver's subscription.
        open_sender: makes senders.
        open_receiver: makes the dead letter topic's first subscription.
        moved: told that a record is stored there, so that it can be acknowledged here.
        failed: told that a record could not be moved.
        count: how often a record came again, as far as that counts; default: its redelivery count.
    """

    def __init__(
        self,
        policy: DeadLetterPolicy,
        subscription: str,
        open_sender: OpenSender,
        open_receiver: OpenReceiver,
        moved: Callable[[PulsarRecord], None],
        failed: Callable[[PulsarRecord], None],
        count: Callable[[PulsarRecord], int] = lambda record: record.redelivery_count,
    ) -> None:
        self._policy = policy
        self._subscription = subscription
        self._open_sender = open_sender
        self._open_receiver = open_receiver
        self._moved = moved
        self._failed = failed
        self._count = count
        self._senders: dict[str, Sender] = {}
        self._waiting: list[tuple[PulsarRecord, Mapping[str, str] | None]] = []
        self._task: asyncio.Task[None] | None = None

    def given_back_too_often(self, record: PulsarRecord) -> bool:
        """True when the next redelivery would be one too many."""
        return self._count(record) >= self._policy.max_redeliver_count

    def came_too_often(self, record: PulsarRecord) -> bool:
        """True when this delivery is one too many: its consumers died with it."""
        return self._count(record) > self._policy.max_redeliver_count

    def put(self, records: list[PulsarRecord], properties: Mapping[str, str] | None = None) -> None:
        """Move records, with ``properties`` instead of their own; ``moved`` or ``failed`` is called for each, later."""
        self._waiting += [(record, properties) for record in records]
        if self._task is None and records:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                records, self._waiting = self._waiting, []
                for record, properties in records:
                    await self._move(record, properties)
        finally:
            self._task = None

    async def _move(self, record: PulsarRecord, properties: Mapping[str, str] | None) -> None:
        def done(place: WireId | None, error: JMSError | None) -> None:
            (self._moved if error is None else self._failed)(record)

        try:
            sender = await self._sender(record.topic)
            await sender.ready()
            origin = str(record.message_id).removeprefix("ID:")
            kept = record.properties if properties is None else properties
            letter = OutgoingRecord(
                record.payload,
                {**kept, REAL_TOPIC: record.topic, ORIGIN_MESSAGE_ID: origin},
                record.key,
                record.event_time,
            )
            sender.send(letter, done)
        except JMSError:
            # It is redelivered from the broker, and is tried again then.
            self._failed(record)

    async def _sender(self, origin: str) -> Sender:
        topic = self._policy.dead_letter_topic or f"{origin}-{self._subscription}-DLQ"
        sender = self._senders.get(topic)
        if sender is None:
            name = self._policy.initial_subscription_name
            if name:
                first = Subscription(
                    (topic,), name, SubscriptionType.SHARED, ConsumerConfig(receiver_queue_size=1), Position.EARLIEST
                )
                await (await self._open_receiver(first, lambda: None)).aclose(5.0)
            sender = self._senders[topic] = await self._open_sender(topic, SenderOptions(ProducerConfig()))
        return sender

    async def aclose(self, timeout: float) -> None:
        """Let records on their way be stored, within ``timeout`` seconds; the broker redelivers the rest."""
        task, loop = self._task, asyncio.get_running_loop()
        deadline = loop.time() + timeout
        if task is not None:
            await asyncio.wait([task], timeout=timeout / 2)
            await end([task], timeout / 4)
        left = deadline - loop.time()
        await asyncio.gather(*(sender.aclose(left) for sender in self._senders.values()), return_exceptions=True)

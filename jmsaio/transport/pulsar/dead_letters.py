"""``DeadLetters``: moves records returned too often to another topic.

pulsar-client's own policy moves a whole batch entry, including records that were not returned or are already
acknowledged, and drops null values and event times. So records are moved one by one here, as by Java's client, with
their schemas and whatever their sizes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs

from jmsaio.config import Configuration, ConsumerConfig, DeadLetterPolicy, ProducerConfig
from jmsaio.errors import ConsumerBusyError, JMSError, JMSSecurityError, NotFoundError, TransportError
from jmsaio.model.log_fields import log_fields
from jmsaio.model.topic_names import dead_letter_topic
from jmsaio.model.wire import OutgoingRecord, ReceivedRecord, WireId, letter_properties
from jmsaio.transport.base import (
    Admin,
    Receiver,
    Sender,
    SenderOptions,
    StartPosition,
    Subscription,
    SubscriptionType,
    Wake,
)
from jmsaio.transport.copy_senders import INCOMPATIBLE, CopySenders
from jmsaio.transport.waiting import end

OpenSender = Callable[[str, SenderOptions], Awaitable[Sender]]
OpenReceiver = Callable[[Subscription, Wake], Awaitable[Receiver]]
_log = logging.getLogger(__name__)
#: Receives a record, of the class that the client put, and whether it is stored in its dead-letter topic.
Ended = Callable[[Any, bool], None]


@attrs.define(eq=False)
class LetterSubscriptions:
    """Creates the first subscription of a topic with dead letters: Pulsar stores messages for subscriptions only.

    It is the one that a queue would use, or the one with the name of a policy. If the admin interface is None or fails,
    a consumer is opened and closed instead.
    """

    config: Configuration
    admin: Admin | None
    open_receiver: OpenReceiver
    _warned: set[str] = attrs.field(factory=set, init=False)

    async def create(self, topic: str, name: str | None = None) -> None:
        """Create a topic's subscription; without a name, log one warning if the permission is missing."""
        if name:
            await self._subscribe_once(topic, name)
            return
        if not self.config.precreate_queue_subscription or topic.startswith("non-persistent://"):
            return
        name = self.config.queue_subscription_name
        try:
            if self.admin is not None:
                try:
                    await self.admin.create_subscription(topic, name, StartPosition.EARLIEST)
                    return
                except JMSError as error:
                    text = "the dead letters' subscription is created by a consumer instead: %s"
                    _log.info(text, error, extra=log_fields(destination=topic, subscription=name))
            await self._subscribe_once(topic, name)
        except JMSSecurityError as error:
            if topic not in self._warned:
                self._warned.add(topic)
                _log.warning(
                    "no right to create the subscription %r of %s (%s): the broker deletes the dead letters there "
                    "unless another subscription keeps them; create one", name, topic, error,
                    extra=log_fields(destination=topic, subscription=name),
                )  # fmt: skip

    async def _subscribe_once(self, topic: str, name: str) -> None:
        """Create a subscription at a topic's beginning by opening and closing a consumer."""
        config = ConsumerConfig(receiver_queue_size=1)
        first = Subscription((topic,), name, SubscriptionType.SHARED, config, StartPosition.EARLIEST)
        with suppress(ConsumerBusyError):  # it exists, with a consumer that does not share it
            await (await self.open_receiver(first, lambda: None)).aclose(5.0)


@attrs.define(eq=False)
class DeadLetters:
    """Moves records of one receiver, on the subscription with this name."""

    _policy: DeadLetterPolicy
    _subscription: str
    _open_sender: OpenSender
    _subscriptions: LetterSubscriptions
    _subscribed: set[str] = attrs.field(factory=set, init=False)  # topics with a subscription
    _untyped: set[str] = attrs.field(factory=set, init=False)  # topics with a letter without its schema
    _senders: CopySenders = attrs.field(init=False)
    _waiting: list[tuple[ReceivedRecord, int, Ended, Mapping[str, str] | None]] = attrs.field(factory=list, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _failing: bool = attrs.field(default=False, init=False)  # the last letter could not be stored

    def __attrs_post_init__(self) -> None:
        options = SenderOptions(ProducerConfig(batcher_builder="KEY_BASED"), self._settled)
        self._senders = CopySenders(self._open_sender, self._subscriptions.admin, self._create_first, options)

    @property
    def limit(self) -> int:
        return self._policy.max_redeliver_count

    def put(
        self, records: Sequence[tuple[ReceivedRecord, int]], ended: Ended, properties: Mapping[str, str] | None = None
    ) -> None:  # fmt: skip
        """Queue records, each with its failed deliveries, to be moved; ``properties`` replace the records' own."""
        self._waiting += [(record, failures, ended, properties) for record, failures in records]
        if self._task is None and records:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                records, self._waiting = self._waiting, []
                for record, failures, ended, properties in records:
                    await self._move(record, failures, ended, properties)
        finally:
            self._task = None

    async def _move(
        self, record: ReceivedRecord, failures: int, ended: Ended, properties: Mapping[str, str] | None
    ) -> None:  # fmt: skip
        try:
            origin = str(record.message_id).removeprefix("ID:")
            properties = record.properties if properties is None else properties
            letter = OutgoingRecord(
                record.payload,
                letter_properties(properties, record.topic, self._subscription, origin, failures),
                record.key,
                record.event_time,
            )
            sender = await self._sender(record, letter)
            await sender.ready()
            sender.send(letter, (record, ended))
        except JMSError as error:
            self._settled([(record, ended)], None, error)

    async def _sender(self, record: ReceivedRecord, letter: OutgoingRecord) -> Sender:
        topic = self._policy.dead_letter_topic or dead_letter_topic(record.topic, self._subscription)
        if topic not in self._subscribed:
            await self._create_first(topic)
            self._subscribed.add(topic)
        try:
            schema = await self._senders.schema_of(record)
            return await self._senders.sender(topic, letter, schema, record.topic)
        except (NotFoundError, JMSSecurityError, TransportError) as error:
            known = isinstance(error, NotFoundError | JMSSecurityError) or error.error_code == INCOMPATIBLE
            if not record.schema_version or not known:
                raise
            self._warn_untyped(record, topic, error)
            return await self._senders.sender(topic, letter, None, record.topic)

    async def _create_first(self, topic: str) -> None:
        await self._subscriptions.create(topic, self._policy.initial_subscription_name)

    def _warn_untyped(self, record: ReceivedRecord, topic: str, error: JMSError) -> None:
        """Log once per topic that letters lose their schema: as bytes, they are at least not redelivered forever."""
        if topic not in self._untyped:
            self._untyped.add(topic)
            _log.warning(
                "dead letters of %s are stored in %s without their schema, as bytes: %s", record.topic, topic, error,
                extra=log_fields(destination=record.topic, subscription=self._subscription),
            )  # fmt: skip

    async def aclose(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds for pending records to be stored; the broker redelivers the rest."""
        task, loop = self._task, asyncio.get_running_loop()
        deadline = loop.time() + timeout
        if task is not None:
            await asyncio.wait([task], timeout=timeout / 2)
            await end([task], timeout / 4)
        left = deadline - loop.time()
        await self._senders.aclose(max(0.0, left))

    def _settled(
        self, letters: Sequence[tuple[ReceivedRecord, Ended]], message_id: WireId | None, error: JMSError | None
    ) -> None:  # fmt: skip
        """Report each letter's outcome; a record whose letter could not be stored is redelivered, and moved then."""
        if error is not None and not self._failing:
            record, _ = letters[0]
            _log.warning(
                "the dead letter of message %s of %s can't be stored: %s; it is redelivered, and moved then",
                record.message_id, record.topic, error,
                extra=log_fields(destination=record.topic, subscription=self._subscription),
            )  # fmt: skip
        self._failing = error is not None
        for record, ended in letters:
            ended(record, error is None)

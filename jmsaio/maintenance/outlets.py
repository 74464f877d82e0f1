"""``Outlets``: senders to the targets of redriven, moved and copied messages, which keep their schemas."""

from __future__ import annotations

from collections.abc import Iterable
from random import random

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import (
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import OutgoingRecord, ReceivedRecord
from jmsaio.rules.routing import make_route
from jmsaio.transport.base import Sender, Settled, Transport
from jmsaio.transport.copy_senders import INCOMPATIBLE, CopySenders
from jmsaio.transport.sending import has_room, longest_wait, sender_options


@attrs.define(eq=False)
class Outlets:
    """One sender for each topic and schema, opened on demand, with ``jms.maxNumOfProducers`` as the maximum number.

    Args:
        transport: opens the senders.
        configuration: its ``producer`` configures the senders.
        settled: see ``SenderOptions.settled``; used for all senders.
    """

    _transport: Transport
    _configuration: Configuration
    _settled: Settled
    _senders: CopySenders = attrs.field(init=False)
    _checked: dict[str, JMSError | None] = attrs.field(init=False, factory=dict)
    _failed: dict[tuple[str, Schema | None], JMSError] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        config = self._configuration
        route = make_route(config.used_priority_mapping, False, random)
        # A target is known by its topic only, whose consumers might be those of a queue.
        by_group = "Key_Shared" in (config.queue_subscription_type, config.topic_shared_subscription_type)
        options = sender_options(config, route, self._settled, by_group)
        self._senders = CopySenders(
            self._transport.open_sender, self._transport.admin, self._check_again, options,
            config.max_num_of_producers, config.close_timeout,
        )  # fmt: skip

    async def check(self, topic: str) -> None:
        """Reject a topic that would not keep messages.

        Checked once per topic, again before an outdated sender is replaced, and never without administration.

        Raises:
            NotFoundError: the topic does not exist.
            InvalidDestinationError: the topic has no subscription.
            TransportError: the broker does not answer.
        """
        if topic not in self._checked:
            self._checked[topic] = await self._find_fault(topic)
        fault = self._checked[topic]
        if fault is not None:
            raise fault

    async def _check_again(self, topic: str) -> None:
        self._checked.pop(topic, None)
        await self.check(topic)

    async def _find_fault(self, topic: str) -> JMSError | None:
        admin = self._transport.admin
        if admin is None:
            return None
        try:
            if (await admin.stats(topic)).subscriptions:
                return None
        except NotFoundError:
            return NotFoundError(f"{topic} no longer exists: name another destination (--to)")
        except JMSError as error:
            return error
        return InvalidDestinationError(f"{topic} has no subscription that would keep a message: name another (--to)")

    async def register(self, topic: str, sources: Iterable[str]) -> None:
        """Register the schemas of some topics with the one that their messages are sent to.

        Raises:
            InvalidDestinationError: the topic refuses a schema.
            JMSError: as ``check``; the broker failed.

        Cancelling leaves the schemas registered so far.
        """
        for source in dict.fromkeys(split_partition(each)[0] for each in sources):
            try:
                missing = await self._senders.missing(topic, source)
            except JMSSecurityError:
                continue  # each message that has a schema reports it
            try:
                if missing:
                    await self.check(topic)
                    await self._senders.register(topic, missing)
            except TransportError as error:
                if error.error_code != INCOMPATIBLE:
                    raise
                text = f"{topic} can't take the messages of {source} with their schemas, so nothing was sent: {error}"
                raise InvalidDestinationError(text) from error

    async def sender(self, topic: str, copy: OutgoingRecord, record: ReceivedRecord) -> Sender:
        """Return the sender to a topic, with room for ``copy``, which is made from ``record``.

        Raises:
            OperationTimeoutError: the broker confirms none of the records in flight.
            JMSError: as ``check`` and ``Transport.open_sender``; raised again for the next record.

        Cancelling changes nothing.
        """
        await self.check(topic)
        schema = await self._senders.schema_of(record)
        fault = self._failed.get((topic, schema))
        if fault is not None:
            raise fault
        try:
            sender = await self._senders.sender(topic, copy, schema, record.topic)
        except JMSError as error:
            self._failed[topic, schema] = error
            raise
        if sender.full and not await has_room(sender, self._configuration):
            waited = longest_wait(self._configuration)
            raise OperationTimeoutError(f"{topic}: the broker has confirmed nothing for {waited:g} s")
        return sender

    async def drain(self) -> None:
        """Wait until every record is confirmed or rejected. Raises OperationTimeoutError if one was not in time."""
        await self._senders.drain()

    async def aclose(self) -> None:
        """Close every sender; records not stored within ``close_timeout`` seconds are in doubt. Idempotent."""
        await self._senders.aclose()

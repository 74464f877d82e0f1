"""``Outlets``: senders to the targets of redriven, moved and copied messages."""

from __future__ import annotations

from random import random

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import InvalidDestinationError, JMSError, NotFoundError, OperationTimeoutError
from jmsaio.rules.routing import make_route
from jmsaio.transport.base import Sender, Settled, Transport
from jmsaio.transport.sending import drain, has_room, longest_wait, sender_options


@attrs.define(eq=False)
class Outlets:
    """One sender for each topic, opened on demand, with ``jms.maxNumOfProducers`` as the maximum number.

    Args:
        transport: opens the senders.
        configuration: its ``producer`` configures the senders.
        settled: see ``SenderOptions.settled``; used for all senders.
    """

    _transport: Transport
    _configuration: Configuration
    _settled: Settled
    _senders: dict[str, Sender] = attrs.field(init=False, factory=dict)
    _checked: dict[str, JMSError | None] = attrs.field(init=False, factory=dict)

    async def check(self, topic: str) -> None:
        """Reject a topic that would not keep messages. Checked once per topic, and never without administration.

        Args:
            topic: full name of a topic or of a partition.

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

    async def sender(self, topic: str) -> Sender:
        """Return the sender to a topic, with room for a record.

        Raises:
            OperationTimeoutError: the broker confirms none of the records in flight.
            JMSError: as ``check`` and ``Transport.open_sender``; raised again for the next record.

        Cancelling changes nothing.
        """
        await self.check(topic)
        sender = self._senders.get(topic)
        if sender is None:
            try:
                sender = await self._open(topic)
            except JMSError as error:
                self._checked[topic] = error
                raise
        if sender.full and not await has_room(sender, self._configuration):
            waited = longest_wait(self._configuration)
            raise OperationTimeoutError(f"{topic}: the broker has confirmed nothing for {waited:g} s")
        return sender

    async def _open(self, topic: str) -> Sender:
        config = self._configuration
        while len(self._senders) >= config.max_num_of_producers:
            oldest, sender = next(iter(self._senders.items()))
            await drain(sender, config)
            del self._senders[oldest]
            await sender.aclose(config.close_timeout)
        route = make_route(config.used_priority_mapping, False, random)
        # A target is known by its topic only, whose consumers might be those of a queue.
        by_group = "Key_Shared" in (config.queue_subscription_type, config.topic_shared_subscription_type)
        options = sender_options(config, route, self._settled, by_group)
        sender = self._senders[topic] = await self._transport.open_sender(topic, options)
        return sender

    async def drain(self) -> None:
        """Wait until every record is confirmed or rejected.

        Raises:
            OperationTimeoutError: a record was not settled in time.
        """
        for sender in self._senders.values():
            await drain(sender, self._configuration)

    async def aclose(self) -> None:
        """Close every sender; records not stored within ``close_timeout`` seconds are in doubt. Idempotent."""
        while self._senders:
            _, sender = self._senders.popitem()
            await sender.aclose(self._configuration.close_timeout)

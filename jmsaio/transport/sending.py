"""Code shared by all senders: options from the configuration, waits with a time limit, and sequence ids."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import IllegalArgumentError, IllegalStateError
from jmsaio.model.destinations import Destination, Queue, resolve
from jmsaio.transport.base import Route, Sender, SenderOptions, Settled

#: Seconds to wait for outcomes if ``producerConfig.sendTimeoutMs`` sets no limit.
LONGEST_WAIT: Final = 300.0


def sends_by_group(configuration: Configuration, destination: Destination) -> bool:
    """Return whether a batch must hold messages of one group id only, because consumers share them by group id.

    A broker delivers a batch whole, to the consumer of its first message's group. Raises ConfigurationError: the
    destination's own ``jms.queueSubscriptionType`` is invalid.
    """
    if isinstance(destination, Queue):
        written = resolve(destination, configuration.system_namespace).queue_type
        return configuration.type_of_queue(written) == "Key_Shared"
    return configuration.topic_shared_subscription_type == "Key_Shared"


def sender_options(
    configuration: Configuration, route: Route | None, settled: Settled, by_group: bool = False
) -> SenderOptions:
    """Create the options of a sender from the configuration.

    With ``by_group`` each batch holds messages of one group id, whatever ``producerConfig.batcherBuilder`` is.
    """
    config = configuration.producer
    return SenderOptions(
        config=attrs.evolve(config, batcher_builder="KEY_BASED") if by_group else config,
        settled=settled,
        route=route,
        window_records=configuration.send_window_messages,
        window_bytes=configuration.send_window_bytes or sys.maxsize,
    )


def longest_wait(configuration: Configuration) -> float:
    """Return the seconds to wait for room: the send time-out, and at least ``LONGEST_WAIT``."""
    return max(configuration.producer.send_timeout, LONGEST_WAIT)


async def has_room(sender: Sender, configuration: Configuration) -> bool:
    """Wait for room, as ``Sender.ready``, which has no time limit of its own if ``sendTimeoutMs`` sets none.

    Returns False if the broker has confirmed nothing for ``longest_wait`` seconds.
    """
    try:
        async with asyncio.timeout(longest_wait(configuration)):
            await sender.ready()
    except TimeoutError:
        return False
    return True


async def drain(sender: Sender, configuration: Configuration) -> None:
    """Wait until every record has an outcome: for the send time-out, or ``LONGEST_WAIT`` seconds without one.

    Raises OperationTimeoutError if one has none by then.
    """
    await sender.drain(configuration.producer.send_timeout or LONGEST_WAIT)


#: The largest sequence id.
HIGHEST = 2**63 - 1


@attrs.define(eq=False)
class SequenceIds:
    """Sequence ids of one sender to ``topic``; ``last`` is as ``Sender.last_sequence_ids``."""

    topic: str
    batching: bool
    last: dict[str, int] = attrs.field(factory=dict)

    def checked(self, number: int) -> int:
        """Return ``number`` if a record can be sent with it. Raises IllegalStateError, IllegalArgumentError."""
        if self.batching:
            raise IllegalStateError(
                f"a record with sequence id {number} to {self.topic}: the sender sends batches, and the broker keeps"
                " the first sequence id of each only; set producerConfig.batchingEnabled=false"
            )
        if not 0 <= number <= HIGHEST:
            raise IllegalArgumentError(f"a record to {self.topic}: sequence_id is {number}, and must be 0 to 2**63 - 1")
        return number

    def confirm(self, partition: str, number: int) -> None:
        if number > self.last[partition]:
            self.last[partition] = number

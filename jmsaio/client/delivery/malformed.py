"""Handles a message that can't be read according to the option ``malformed``."""

from __future__ import annotations

import logging

import attrs

from jmsaio.client.delivery.deliveries import Deliveries
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.codec import decode_raw
from jmsaio.config import Configuration
from jmsaio.errors import IllegalStateError, MalformedMessageError
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.wire import ReceivedRecord

_log = logging.getLogger("jmsaio")


@attrs.define(eq=False)
class Settle:
    """Implements ``MalformedMessageError.acknowledge``."""

    deliveries: Deliveries
    inbox: Inbox
    record: ReceivedRecord
    done: bool = False

    async def __call__(self) -> None:
        """Acknowledge the record; see ``MalformedMessageError.acknowledge``."""
        if self.done:
            return
        deliveries, inbox = self.deliveries, self.inbox
        deliveries.check_call()
        record = inbox.unread.take(self.record)
        if record is None:
            raise IllegalStateError("the message was given back meanwhile; it will be redelivered, with a new error")
        self.done = True
        if deliveries.mode is AcknowledgeMode.TRANSACTED:
            deliveries.ledger.delivered(inbox, record)
            return
        inbox.redelivery.forget(record)
        await deliveries.carry_out([(inbox, [record])])


def treat(
    deliveries: Deliveries,
    inbox: Inbox,
    config: Configuration,
    record: ReceivedRecord,
    error: MalformedMessageError,
) -> BytesMessage | None:
    """Handle a record that can't be read according to the option ``malformed``.

    Args:
        deliveries: the session's deliveries.
        inbox: the record's inbox.
        config: options.
        record: the record.
        error: why it can't be read.

    Returns:
        The message for the application, or None for a dead letter.

    Raises:
        MalformedMessageError: ``error``, which can acknowledge the message.
    """
    if config.malformed == "deliver":
        return decode_raw(record, inbox.destination, config.system_namespace)
    if config.malformed == "dead-letter" and _dead_letter(inbox, record):
        _log.warning("%s; it is moved to the dead letters of %r", error, inbox.destination)
        return None
    inbox.unread.keep(record)
    error._settle = Settle(deliveries, inbox, record)
    raise error


def _dead_letter(inbox: Inbox, record: ReceivedRecord) -> bool:
    """Make a record a dead letter if the consumer has a dead-letter policy and the record is not already one."""
    policy = inbox.subscription.config.dead_letter
    if policy is None:
        return False
    topic, _, _ = record.topic.partition("-partition-")
    letters = policy.dead_letter_topic
    if topic == letters:
        return False
    try:
        inbox.dead_letter(record)
    except MalformedMessageError:  # properties that can't be read can't be kept either
        return False
    return True

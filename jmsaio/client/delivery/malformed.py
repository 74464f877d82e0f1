"""What a consumer does with a message that can't be read, as the option ``malformed`` says."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import attrs

from jmsaio.codec import decode_raw
from jmsaio.errors import IllegalStateError, JMSError, MalformedMessageError
from jmsaio.model.messages.bytes_message import BytesMessage
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.wire import ReceivedRecord, WireId

if TYPE_CHECKING:
    from jmsaio.client.delivery.inbox import Inbox
    from jmsaio.client.runtime.session import SessionRuntime

_log = logging.getLogger("jmsaio")

#: Unreadable records kept at most, of one consumer, and their bytes.
MOST_RECORDS = 100
MOST_BYTES = 16 * 1024 * 1024


@attrs.define(eq=False)
class Unread:
    """Records of one inbox that the application was told can't be read.

    Each is kept for the delay of a message that is given back, so that its error can acknowledge it, and then comes
    again. Beyond a bound the one kept for longest is given back at once.
    """

    inbox: Inbox
    _kept: dict[WireId, tuple[ReceivedRecord, asyncio.TimerHandle]] = attrs.field(factory=dict, init=False)

    def keep(self, record: ReceivedRecord) -> None:
        """Keep a record until it is taken or its time is over."""
        place = record.message_id
        self.take(record)  # the transport may give it once more, after a reconnect
        delay = self.inbox._returns.next(place)
        self._kept[place] = record, asyncio.get_running_loop().call_later(delay, self._give_back, record)
        size = sum(kept.size for kept, _ in self._kept.values())
        for oldest, _ in list(self._kept.values())[:-1]:
            if len(self._kept) <= MOST_RECORDS and size <= MOST_BYTES:
                break
            size -= oldest.size
            self._give_back(oldest)

    def take(self, record: ReceivedRecord) -> ReceivedRecord | None:
        """The record as it came last, to be settled; None where it is not kept any more."""
        record, timer = self._kept.pop(record.message_id, (record, None))
        if timer is None:
            return None
        timer.cancel()
        return record

    def release(self) -> None:
        """The consumer ends: give all of them back."""
        records = [record for record, _ in self._kept.values()]
        for record in records:
            self.take(record)
        if records:
            self.inbox.receiver.negative_acknowledge(records, 0.0)

    def _give_back(self, record: ReceivedRecord) -> None:
        """To the broker, or to the consumer itself where nobody else can get it (see ``Inbox.give_back``)."""
        kept, inbox = self.take(record), self.inbox
        if kept is None:
            return
        if not inbox.filter.shared:
            inbox.put_back(kept)
            inbox.wake()
            return
        try:
            inbox.receiver.negative_acknowledge((kept,), 0.0)
        except JMSError as error:
            inbox.fail(error)


@attrs.define(eq=False)
class Settle:
    """What ``MalformedMessageError.acknowledge`` does."""

    runtime: SessionRuntime
    inbox: Inbox
    record: ReceivedRecord
    done: bool = False

    async def __call__(self) -> None:
        """Acknowledge the record; see ``MalformedMessageError.acknowledge``."""
        if self.done:
            return
        runtime, inbox = self.runtime, self.inbox
        runtime.check_call()
        record = inbox.unread.take(self.record)
        if record is None:
            raise IllegalStateError("the message was given back meanwhile; it comes again, with an error of its own")
        self.done = True
        if runtime.mode is AcknowledgeMode.TRANSACTED:
            runtime.ledger.delivered(inbox, record)
            return
        inbox.settled(record)
        await runtime.carry_out([(inbox, [record])])


def treat(
    runtime: SessionRuntime, inbox: Inbox, record: ReceivedRecord, error: MalformedMessageError
) -> BytesMessage | None:
    """Do with a record that can't be read what the option ``malformed`` says.

    Returns:
        What the application gets instead, or None for a dead letter.

    Raises:
        MalformedMessageError: ``error``, which can acknowledge the message.
    """
    config = runtime.connection.configuration
    if config.malformed == "deliver":
        return decode_raw(record, inbox.destination, config.system_namespace)
    if config.malformed == "dead-letter" and _dead_letter(inbox, record):
        _log.warning("%s; it goes to the dead letters of %r", error, inbox.destination)
        return None
    inbox.unread.keep(record)
    error._settle = Settle(runtime, inbox, record)
    raise error


def _dead_letter(inbox: Inbox, record: ReceivedRecord) -> bool:
    """Make a record a dead letter where the consumer has a policy for that, and the record is none already."""
    policy = inbox.subscription.config.dead_letter
    if policy is None:
        return False
    topic, _, _ = record.topic.partition("-partition-")
    letters = policy.dead_letter_topic
    if topic == letters:
        return False
    try:
        inbox.dead_letter(record)
    except MalformedMessageError:  # its properties can't be read, so they can't be kept either
        return False
    return True

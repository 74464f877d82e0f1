"""``Deliveries``: a session's deliveries to the application, until they are acknowledged or redelivered.

The ledger selects and removes the deliveries that a call settles; then their inboxes settle the records. A receiver's
error is raised to the caller. In AUTO and DUPS_OK mode, which have no caller, and for acknowledgements that waited for
the end of a turn (see ``Settlement``), the consumer's next receive raises it. The transport decides what happens to a
record whose acknowledgement was lost with the connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

import attrs

from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.delivery.settlement import Settlement
from jmsaio.client.lifetime.scope import Deadline, FirstError
from jmsaio.codec import decode_raw
from jmsaio.codec.properties import as_dead_letter
from jmsaio.config import Configuration
from jmsaio.errors import IllegalStateError, JMSError, MalformedMessageError, ObjectClosedError
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.sequential import BytesMessage
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.ledger import DeliveryLedger

_log = logging.getLogger(__name__)

#: Records to settle, by inbox.
Commands = list[tuple[Inbox, list[ReceivedRecord]]]
#: As ``Receiving.reply``.
Reply = Callable[[Message, Any, Mapping[str, Any]], Coroutine[Any, Any, Any]]


@attrs.define(eq=False)
class Deliveries:
    """The deliveries of one session, which is a ``Receiving`` to its messages."""

    mode: AcknowledgeMode
    ledger: DeliveryLedger[Inbox, ReceivedRecord]
    inboxes: SessionInboxes
    check_call: Callable[[], None]
    answer: Reply
    delivered: Callable[[Inbox, ReceivedRecord], object] | None  # called with each delivery not settled at once
    configuration: Configuration
    receipt_timeout: float | None = attrs.field(init=False)  # seconds to wait for the broker's confirmation, or None
    self_acknowledging: bool = attrs.field(init=False)  # AUTO and DUPS_OK

    def __attrs_post_init__(self) -> None:
        confirmed = self.configuration.consumer.ack_receipt_enabled
        self.receipt_timeout = self.configuration.operation_timeout if confirmed else None
        self.self_acknowledging = self.mode in (AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK)

    def deliver(self, inbox: Inbox, record: ReceivedRecord, message: Message, deferred: bool) -> int:
        """Record a delivery, return its number; AUTO and DUPS_OK acknowledge and return 0 unless ``deferred``."""
        message._session = self
        if self.self_acknowledging and not deferred:
            inbox.settlement.acknowledge_soon(record)
            return 0
        message._delivery = number = self.ledger.delivered(inbox, record)
        if self.delivered is not None:
            self.delivered(inbox, record)
        return number

    async def reply(self, request: Message, body: Any, options: Mapping[str, Any]) -> Any:
        self.check_call()
        return await self.answer(request, body, options)

    async def acknowledge(self, number: int) -> None:
        """Acknowledge the deliveries that the ledger's scope covers; the mode can leave nothing to do."""
        self.check_call()
        if self.self_acknowledging or self.mode is AcknowledgeMode.TRANSACTED:
            return
        commands = self.ledger.acknowledge(number)
        if self.receipt_timeout is None and not self.inboxes.lingering:
            refused = _settle_each(Settlement.acknowledge_for_caller, commands)
            if refused is not None:
                raise refused
        else:
            await self.carry_out(commands)

    async def acknowledge_all(self) -> None:
        await self.carry_out(self.ledger.remove_all())

    async def acknowledge_one(self, number: int) -> None:
        """Acknowledge one delivery, whatever the scope; in a transacted session commit does that."""
        if self.mode is AcknowledgeMode.TRANSACTED:
            return
        entry = self.ledger.remove(number)
        if entry is not None:
            await self.carry_out([(entry[0], [entry[1]])])
        elif self.ledger.was_left(number):
            raise ObjectClosedError(
                "the session was closed before the message was acknowledged, so it is redelivered; close the session "
                "after the block"
            )

    async def carry_out(self, commands: Commands) -> None:
        """Acknowledge at each inbox, whatever others raise; wait for the broker only with ``ackReceiptEnabled``."""
        errors = FirstError(_settle_each(Settlement.acknowledge, commands))
        if self.receipt_timeout is not None:
            await errors.guard(partial(confirm_each, commands, self.receipt_timeout))
        await errors.guard(self.close_settled)
        errors.raise_once()

    def acknowledge_deferred(self, number: int) -> None:
        entry = self.ledger.remove(number)
        if entry is not None:
            entry[0].settlement.acknowledge_for_caller((entry[1],))

    def undo_deferred(self, number: int) -> None:
        """Undo a deferred delivery, in AUTO and DUPS_OK mode; its message is the next one again, uncounted."""
        entry = self.ledger.remove(number)
        if entry is not None:
            entry[0].put_back(entry[1])

    async def redeliver_one(self, number: int) -> None:
        entry = self.ledger.remove(number)
        if entry is not None:
            await self.redeliver([(entry[0], [entry[1]])])

    async def redeliver_all(self) -> None:
        await self.redeliver(self.ledger.remove_all())

    async def redeliver(self, commands: Commands) -> None:
        """Redeliver records that were removed from the ledger, counted, in order, before later messages."""
        errors = FirstError()
        for inbox, records in commands:
            try:
                if inbox.attached:
                    inbox.redeliver(records)
                else:  # the selector of the inbox's next consumer is unknown
                    inbox.settlement.return_unsettled(records)
            except JMSError as error:
                errors.add(error)
        await errors.guard(self.close_settled)
        errors.raise_once()

    def unreadable(self, inbox: Inbox, record: ReceivedRecord, error: MalformedMessageError) -> BytesMessage | None:
        """Handle a record that can't be read as ``malformed`` says; return None for a dead letter.

        Raises ``error``, which can acknowledge the message, unless another option applies.
        """
        config = self.configuration
        if config.malformed == "deliver":
            return decode_raw(record, inbox.destination, config.system_namespace)
        if config.malformed == "dead-letter" and _dead_letter(inbox, record):
            text = "%s; it is moved to the dead letters of %r"
            _log.warning(text, error, inbox.destination, extra=inbox.where(record))
            return None
        inbox.settlement.retain(record)
        acknowledged = False

        async def acknowledge() -> None:
            nonlocal acknowledged
            if acknowledged:
                return
            self.check_call()
            retained = inbox.settlement.claim(record)
            if retained is None:
                raise IllegalStateError(
                    "the message was given back meanwhile; it will be redelivered, with a new error"
                )
            acknowledged = True
            if self.mode is AcknowledgeMode.TRANSACTED:
                self.ledger.delivered(inbox, retained)
                return
            inbox.settlement.forget(retained)
            await self.carry_out([(inbox, [retained])])

        error._settle = acknowledge
        raise error

    async def close_settled(self) -> None:
        if self.inboxes.lingering:
            await self.inboxes.close_settled(Deadline.after(self.configuration.close_timeout))


def _settle_each(settle: Callable[[Settlement, list[ReceivedRecord]], None], commands: Commands) -> JMSError | None:
    """Settle the records of every inbox, whatever others raise; return the first error."""
    first: JMSError | None = None
    for inbox, records in commands:
        try:
            settle(inbox.settlement, records)
        except JMSError as error:
            first = first or error
    return first


async def confirm_each(commands: Commands, timeout: float, *, if_open: bool = False) -> None:
    """Wait until the broker has confirmed the acknowledgements of each inbox, each for ``timeout`` seconds.

    A closed inbox raises; with ``if_open`` it is skipped, because its close waited for its last acknowledgements.
    """
    for inbox, _ in commands:
        if not (if_open and inbox.closed):
            await inbox.settlement.settle(timeout)


def _dead_letter(inbox: Inbox, record: ReceivedRecord) -> bool:
    policy = inbox.subscription.config.dead_letter
    if policy is None:
        return False
    topic, _, _ = record.topic.partition("-partition-")
    letters = policy.dead_letter_topic
    if topic == letters:
        return False
    try:
        inbox.settlement.dead_letter(record, as_dead_letter(record.properties))
    except MalformedMessageError:  # properties that can't be read can't be retained either
        return False
    return True

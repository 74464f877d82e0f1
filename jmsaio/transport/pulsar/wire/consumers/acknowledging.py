"""The acknowledgements of one consumer: in groups with receipts, and in transactions."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.errors import JMSError, OperationTimeoutError, TransactionRolledBackError, TransportError
from jmsaio.protocol import messages
from jmsaio.protocol.commands import Command
from jmsaio.protocol.metadata import TxnId
from jmsaio.rules import record_life as life
from jmsaio.rules.record_life import Action, RecordEvent
from jmsaio.transport.pulsar.wire.connections.answers import error_of
from jmsaio.transport.pulsar.wire.connections.connection import Connection
from jmsaio.transport.pulsar.wire.connections.registration import MOST_IDS, Registration
from jmsaio.transport.pulsar.wire.records.record import Entry, Owner, UnsettledEntries, WireRecord
from jmsaio.transport.pulsar.wire.transactions.transaction import WireTransaction, Work

_Places = list[tuple[Entry, int | None]]
_Answer = asyncio.Future[dict[str, Any]]


@attrs.frozen(eq=False)
class _Share:
    """What one ACK acknowledges in a transaction."""

    transaction: WireTransaction
    places: _Places
    number: int | None  # the registration on which they arrived; None: they are sent on the next one
    outcome: asyncio.Future[None]


class Acknowledging:
    """Sends the acknowledgements of a consumer, for the records that arrived at it, and for those that it has."""

    def __init__(self, consumer: Owner, at: Registration, unsettled: UnsettledEntries, config: ConsumerConfig) -> None:
        self._consumer = consumer
        self._at = at
        self._unsettled = unsettled
        self._config = config
        self._acked: dict[Entry, None] = {}
        self._grouping: asyncio.TimerHandle | None = None
        self._elsewhere: set[Owner] = set()  # that send acknowledgements for this one
        self._late: asyncio.Task[None] | None = None
        self._receipts: set[_Answer] = set()
        self._unconfirmed = weakref.WeakSet[Entry]()  # sent by another one, or again when they arrive again
        self._refused: JMSError | None = None
        self._late_shares: list[_Share] = []  # in transactions, while it is closed at the broker
        self._unacknowledged: set[Entry] = set()  # by transactions that are still to end
        self._dropped = weakref.WeakSet[Entry]()  # that the broker no longer counts as this consumer's
        self._transacted: set[asyncio.Future[None]] = set()  # acknowledgements in transactions without an outcome

    @property
    def subscription_name(self) -> str:
        return self._at.subscription

    def acknowledge(self, records: Iterable[WireRecord]) -> None:
        last: Entry | None = None
        for record in records:
            entry, index = record.entry, record.index
            states = entry.states
            if states[index] == life.HELD:
                states[index] = life.ACKED
            elif life.step(states, index, RecordEvent.ACKNOWLEDGED).action is not Action.ACKNOWLEDGE:
                continue
            if entry is not last:
                last = entry
                self.acknowledged(entry)

    def acknowledged(self, entry: Entry) -> None:
        if self._at.has(entry):
            self.later(entry)
            return
        owner = entry.owner
        assert owner is not None  # only a reader's has none
        self._unconfirmed.add(entry)
        if owner is not self._consumer:
            self._elsewhere.add(owner)
        owner.acks.settle_later(entry)

    def settle_later(self, entry: Entry) -> None:
        """Acknowledge an entry in the next group; otherwise it is acknowledged when it arrives again."""
        if self._at.parked or self._at.has(entry):
            self.later(entry)

    def later(self, entry: Entry) -> None:
        self._acked[entry] = None
        if self._grouping is None:
            wait = self._config.acknowledgements_group_time
            self._grouping = self._at.client.loop.call_later(wait, self.flush)

    def flush(self) -> None:
        if self._grouping is not None:
            self._grouping.cancel()
            self._grouping = None
        connection, acked = self._at.connection, self._acked
        if connection is None and self._at.parked:
            if (acked or self._late_shares) and self._late is None and not self._at.opening:  # else that sends them
                self._late = self._at.client.tasks.start(self._acknowledge_late())
            return
        self._acked = {}
        if connection is None or not acked:
            return
        if self._config.batch_index_ack_enabled:
            places = [(entry, life.ack_set(entry.states)) for entry in acked]
        else:
            places = [(entry, None) for entry in acked if not life.unacknowledged(entry.states)]
        for first in range(0, len(places), MOST_IDS):
            some = places[first : first + MOST_IDS]
            self._send(connection, some, partial(self._confirmed, some))

    def _send(
        self, connection: Connection, places: _Places, answered: Callable[[_Answer], None], txn: TxnId | None = None
    ) -> None:
        number = self._at.number
        ids = [messages.message_id(entry.ledger, entry.number, left, len(entry.states)) for entry, left in places]
        chunks = [place for entry, _ in places for place in entry.chunks]
        if txn is None:
            self._at.acknowledge(chunks[MOST_IDS:])
            chunks = chunks[:MOST_IDS]
        ids += [messages.message_id(*place) for place in chunks]
        sent = connection.start_framed(
            Command.ACK, lambda request: messages.ack(number, ids, txn=txn, request_id=request)
        )
        self._receipts.add(sent)
        sent.add_done_callback(self._receipts.discard)
        sent.add_done_callback(answered)

    def _confirmed(self, places: _Places, receipt: _Answer) -> None:
        self._unsettled.confirmed.wake()
        if receipt.cancelled() or receipt.exception() is not None:
            self._unconfirmed.update(entry for entry, _ in places)  # repeated when they are redelivered
        elif "error" in receipt.result():
            self._refuse("acknowledge", receipt.result())
        else:
            for entry, left in places:
                if life.confirm(entry.states, left):
                    self._unsettled.remove(entry)

    def _refuse(self, what: str, answer: Mapping[str, Any]) -> JMSError:
        """Return the error of an answer, which the next ``settle`` raises."""
        what = f"{what} on {self._at.subscription} of {self._at.topic}"
        self._refused = error_of(what, answer["error"], answer.get("message") or "")
        return self._refused

    def acknowledge_in(self, transaction: WireTransaction, records: Iterable[WireRecord]) -> None:
        """Acknowledge records in a transaction, which can't be committed if one of them can't be."""
        entries: dict[Entry, list[int]] = {}
        elsewhere: dict[Owner, list[WireRecord]] = {}
        for record in records:
            entry, index, owner = record.entry, record.index, record.entry.owner
            if owner is not None and owner is not self._consumer:
                elsewhere.setdefault(owner, []).append(record)
            elif not transaction.contains(self, entry, index) and self._joins(transaction, record):
                transaction.acknowledged(self, entry, index)
                entries.setdefault(entry, []).append(index)
        for owner, others in elsewhere.items():
            owner.acks.acknowledge_in(transaction, others)
        if not self._at.persistent:
            return  # nothing is stored, so nothing is acknowledged
        places = [(entry, _ack_set_in(entry, indexes)) for entry, indexes in entries.items()]
        for some in _apart(places):
            number = None if self._at.parked else self._at.number
            share = _Share(transaction, some, number, self._at.client.loop.create_future())
            self._transacted.add(share.outcome)
            share.outcome.add_done_callback(self._transacted.discard)
            work = Work(partial(self._send_in, share), partial(self._end, share))
            transaction.add(self._at.topic, self._at.subscription, work)

    def _joins(self, transaction: WireTransaction, record: WireRecord) -> bool:
        """Pass that a record is acknowledged in a transaction; if it can't be, neither can the transaction commit."""
        entry, index = record.entry, record.index
        state = entry.states[index]
        if not (self._at.parked or self._at.has(entry)):
            why = "the connection was lost since it arrived"
        elif entry.step(index, RecordEvent.ACKNOWLEDGED_IN).action is Action.ACKNOWLEDGE_IN:
            return True
        elif state == life.IN_TRANSACTION:
            why = "another transaction acknowledged it"
        else:
            why = "it was acknowledged or given back"
        self._refused = TransactionRolledBackError(f"conflict on {record.message_id} of {self._at.topic}: {why}")
        transaction.fail(self._refused)
        return False

    def _send_in(self, share: _Share) -> None:
        connection = self._at.connection
        if connection is None and share.number is None and self._at.parked:
            self._late_shares.append(share)
            self.flush()
        elif connection is None or share.number not in (None, self._at.number):
            error = TransportError("the connection was lost since the messages arrived", "Disconnected")
            self._answer(share, error)
        else:
            self._send(connection, share.places, partial(self._answered, share), share.transaction.txn)

    def _answered(self, share: _Share, sent: _Answer) -> None:
        what = "acknowledge in a transaction"
        if sent.cancelled() or sent.exception() is not None:
            place = f"{self._at.subscription} of {self._at.topic}"
            text = f"{what} on {place}: the answer is lost with the connection"
            self._answer(share, TransportError(text, "Disconnected"))
        elif "error" in sent.result():
            self._dropped.update(entry for entry, left in share.places if left is None)
            self._answer(share, self._refuse(what, sent.result()))
        else:
            self._answer(share, None)

    def _answer(self, share: _Share, error: JMSError | None) -> None:
        share.transaction.answered(error)
        self._end(share, error)

    def _end(self, share: _Share, error: JMSError | None) -> None:
        if error is not None:
            self._unacknowledged.update(entry for entry, _ in share.places)
        share.outcome.set_result(None)

    def records_ended(self, entries: Mapping[Entry, list[int]], committed: bool) -> None:
        event = RecordEvent.COMMITTED if committed else RecordEvent.ABORTED
        for entry, indexes in entries.items():
            for index in indexes:
                entry.step(index, event)
            if not committed:
                owner = entry.owner
                assert owner is not None  # only a reader's has none
                owner.redelivered(entry)
            elif life.settled(entry.states):
                self._unsettled.remove(entry)

    def transaction_ended(self, entries: Iterable[Entry], redelivered: bool) -> None:
        """Continue after the end of a transaction that had records of these entries.

        Those that arrived meanwhile were not handed out. Unless it is ``redelivered`` by the end, ask for them again,
        and always for those that were not acknowledged in it because that failed.
        """
        recognised = self._unsettled.recognised.intersection(entries)
        self._unsettled.recognised.difference_update(recognised)
        missed = self._unacknowledged.intersection(entries)
        self._unacknowledged -= missed
        if not redelivered:
            missed |= recognised
        again = sorted(
            (entry for entry in missed if life.BACK in entry.states), key=lambda one: (one.ledger, one.number)
        )
        for entry in again:
            entry.allow_return()
        if any(entry in self._dropped and entry.registration == self._at.number for entry in again):
            self._at.renew("the broker refused an acknowledgement and lost the message from its list")
        else:
            self._consumer.redeliver(again)

    async def _acknowledge_late(self) -> None:
        """Register for what was acknowledged since the consumer was closed at the broker, and receive nothing."""
        config = self._at.client.config
        try:
            try:
                await self._at.open(config.operation_timeout)
                self.send_late()
                if self._receipts:
                    await asyncio.wait(list(self._receipts), timeout=config.operation_timeout)
                if self._at.connection is None:
                    self._drop_late(TransportError("the connection was lost at once", "Disconnected"))
            finally:
                await self._at.close(config.close_timeout)
        except JMSError as caught:
            self._refused = caught  # the next settle raises it
            self._drop_late(caught)
        finally:
            self._late = None
        self.flush()  # what was acknowledged meanwhile

    def _drop_late(self, error: JMSError) -> None:
        """Send nothing before its entry arrives again; fail the transactions, which can't wait for that."""
        self._acked = {}
        shares, self._late_shares = self._late_shares, []
        for share in shares:
            self._answer(share, error)

    def send_late(self) -> None:
        """Send what was acknowledged while it was closed at the broker."""
        self.flush()
        shares, self._late_shares = self._late_shares, []
        for share in shares:
            self._send_in(share)

    async def late_sent(self, timeout: float) -> bool:
        """Wait for up to ``timeout`` seconds until what is acknowledged late is sent; return whether it is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._late is not None:
                    await asyncio.wait({self._late})
        return self._late is None

    def link_lost(self) -> None:
        """Send nothing before its entry arrives again: the registration has ended."""
        if not self._at.parked:
            self._unconfirmed.update(self._acked)
            self._acked.clear()
        for receipt in list(self._receipts):
            receipt.cancel()  # a broker does not answer a consumer that it has closed

    async def settle(self, timeout: float, receipt: bool) -> None:
        """Send the acknowledgements that wait, and wait for their receipts. Raises as ``Receiver.settle``."""
        self.flush()
        elsewhere, self._elsewhere = self._elsewhere, set()
        for owner in elsewhere:
            owner.acks.flush()
        waiting: set[asyncio.Future[Any]] = {*self._transacted, *(self._receipts if receipt else ())}
        if self._late is not None:
            waiting.add(self._late)
        try:
            async with asyncio.timeout(timeout):
                if waiting:
                    await asyncio.wait(waiting)
                if receipt and self._unconfirmed:
                    await self._repeated()
        except TimeoutError:
            raise OperationTimeoutError(
                f"acknowledge on {self._at.subscription} of {self._at.topic}: no receipt within {timeout:g} s"
            ) from None
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused

    async def _repeated(self) -> None:
        """Wait for receipts that this consumer can't receive; what the broker does not redeliver has none, and ends it.

        A consumer that closes does not wait: the link might be lost for long.
        """
        entries, self._unconfirmed = self._unconfirmed, weakref.WeakSet()
        whole = not self._config.batch_index_ack_enabled
        while not self._at.closed:
            left = [
                one for one in entries if life.ACKED in one.states and not (whole and life.unacknowledged(one.states))
            ]
            if not left:
                return
            if self._at.failure is not None:
                raise self._at.failure
            for owner in {one.owner for one in left if one.owner is not None}:
                owner.acks.flush()
            await self._unsettled.confirmed.wait()


def _apart(places: _Places) -> Iterator[_Places]:
    """Yield what each ACK in a transaction acknowledges: many whole entries, or a part of one.

    A broker that recovers a subscription ignores an ACK from the first entry on that is acknowledged meanwhile. A part
    of a batch behind it would arrive again although the transaction was committed.
    """
    whole = [place for place in places if not place[1]]
    for first in range(0, len(whole), MOST_IDS):
        yield whole[first : first + MOST_IDS]
    for place in places:
        if place[1]:
            yield [place]


def _ack_set_in(entry: Entry, indexes: list[int]) -> int | None:
    """Return the ack set for records acknowledged in a transaction; None without a batch.

    After a conflict about an entry without an ack set, the broker no longer redelivers the rest of a batch.
    """
    if entry.metadata.num_messages_in_batch is None:
        return None
    return life.ack_set_of(len(entry.states), indexes) or 0

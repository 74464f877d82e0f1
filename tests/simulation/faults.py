"""Deliberate faults in the client, each of which some seed must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from typing import Any
from unittest.mock import patch

from jmsaio.protocol import messages
from jmsaio.protocol.messages import SendReceipt
from jmsaio.protocol.producing import Producing
from jmsaio.protocol.transacting import Move, Transacting
from jmsaio.rules import record_life as life
from jmsaio.transport.pulsar.wire.connections.connection import Connection
from jmsaio.transport.pulsar.wire.consumers.acknowledging import Acknowledging
from jmsaio.transport.pulsar.wire.consumers.permits import Permits
from jmsaio.transport.pulsar.wire.producers.producer import Producer
from jmsaio.transport.pulsar.wire.records.record import WireRecord
from jmsaio.transport.pulsar.wire.transactions.transaction import WireTransaction, Work


def drop_unconfirmed() -> AbstractContextManager[Any]:
    """At reconnect, batches that were written are not written again."""
    usual = Producing.connect

    def connect(self: Producing[Any]) -> list[bytes]:
        for batch in [batch for batch in self._batches if batch.in_doubt]:
            self._batches.remove(batch)
        return usual(self)

    return patch.object(Producing, "connect", connect)


def acknowledge_another_ledger() -> AbstractContextManager[Any]:
    """An acknowledgement names the next ledger."""
    usual = messages.message_id
    return patch.object(messages, "message_id", lambda ledger, *rest: usual(ledger + 1, *rest))


def give_permits_twice() -> AbstractContextManager[Any]:
    """Permits are given twice."""
    usual = Permits.fill

    def fill(self: Permits, queued: int, waiting: bool | None = None, held: bool = False) -> None:
        granted = self._granted
        usual(self, queued, waiting, held)
        self._granted = granted
        usual(self, queued, waiting, held)

    return patch.object(Permits, "fill", fill)


def keep_ghosts() -> AbstractContextManager[Any]:
    """A consumer or producer whose opening was given up stays at the broker."""
    return patch.object(Connection, "send_request", lambda self, command, **fields: None)


def swallow_receipts() -> AbstractContextManager[Any]:
    """Every tenth receipt is ignored."""
    usual, number = Producer.stored, count(1)

    def stored(self: Producer, receipt: SendReceipt) -> None:
        if next(number) % 10:
            usual(self, receipt)

    return patch.object(Producer, "stored", stored)


def forget_flags() -> AbstractContextManager[Any]:
    """What is redelivered is not flagged."""
    usual = WireRecord.__init__

    def made(self: WireRecord, entry: Any, index: int, span: Any, redelivery_count: int, may_expire: bool) -> None:
        usual(self, entry, index, span, 0, may_expire)

    return patch.object(WireRecord, "__init__", made)


def hand_out_twice() -> AbstractContextManager[Any]:
    """What the application holds is not recognised after a reconnect."""

    def arrived_again(states: bytearray, left: int | None) -> tuple[Iterable[int], bool]:
        states[:] = life.arrived(len(states), left)
        return [index for index, state in enumerate(states) if state == life.QUEUED], False

    return patch.object(life, "arrived_again", arrived_again)


def confirm_too_early() -> AbstractContextManager[Any]:
    """A send is confirmed when its connection is lost."""
    usual = Producer.ended

    def ended(self: Producer, error: Any, assigned: str) -> None:
        while (batch := next(iter(self._producing._batches), None)) is not None:
            if not batch.written or batch.in_doubt:
                break
            self._producing.receipt(batch.sequence)
            self._report(batch, None, None)
        usual(self, error, assigned)

    return patch.object(Producer, "ended", ended)


def wait_for_ever() -> AbstractContextManager[Any]:
    """A request without an answer is awaited for ever."""
    usual = Connection.request

    async def request(self: Connection, what: str, timeout: float, *rest: Any, **fields: Any) -> dict[str, Any]:
        return await usual(self, what, 3000.0, *rest, **fields)

    return patch.object(Connection, "request", request)


def send_before_registered() -> AbstractContextManager[Any]:
    """What is sent and acknowledged in a transaction does not wait until its coordinator knows the topic."""

    def add(self: WireTransaction, topic: str, subscription: str | None, work: Work) -> None:
        if self._state.add((topic, subscription), work) is Move.REGISTER:
            self._client.tasks.start(self._register((topic, subscription)))
        self._state._parts[topic, subscription] = []
        work.write()

    return patch.object(WireTransaction, "add", add)


def end_too_early() -> AbstractContextManager[Any]:
    """END does not wait until everything in the transaction has an answer."""

    async def answered(self: WireTransaction, timeout: float, *, unless_failed: bool) -> None:
        pass

    return patch.object(WireTransaction, "_all_answered", answered)


def acknowledge_outside() -> AbstractContextManager[Any]:
    """What is acknowledged in a transaction is acknowledged outside of it, too."""
    usual = Acknowledging._send

    def send(self: Acknowledging, connection: Connection, places: Any, answered: Any, txn: Any = None) -> None:
        usual(self, connection, places, answered, txn)
        if txn is not None:
            usual(self, connection, places, partial(self._confirmed, places))

    return patch.object(Acknowledging, "_send", send)


def commit_what_failed() -> AbstractContextManager[Any]:
    """A transaction of which an answer is lost is committed."""
    return patch.object(Transacting, "fail", lambda self, error: None)


FAULTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    each.__name__: each
    for each in (
        drop_unconfirmed, acknowledge_another_ledger, give_permits_twice, keep_ghosts, swallow_receipts, forget_flags,
        hand_out_twice, confirm_too_early, wait_for_ever,
    )
}  # fmt: skip
#: Those that need a seed with transactions.
IN_TRANSACTIONS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    each.__name__: each for each in (send_before_registered, end_too_early, acknowledge_outside, commit_what_failed)
}

"""How a transaction has ended that its coordinator has forgotten: what tells, and what only seems to."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import time
from typing import Any

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import AdminError, JMSSecurityError, NotFoundError
from jmsaio.maintenance.overview import explain, read_states
from jmsaio.model.destinations import Topic
from jmsaio.model.wire import WireId
from jmsaio.transport.administration import OpenTransaction, StoredEntry
from jmsaio.transport.base import Cursor, Ledger, TopicLog
from jmsaio.transport.pulsar.admin import RestAdmin
from jmsaio.transport.pulsar.admin.paths import topic_path
from jmsaio.transport.pulsar.admin.transactions import (
    TransactionOutcome,
    decide,
    find_outcome,
    first_held,
    read_subscription,
    read_topic,
)
from jmsaio.transport.pulsar.wire.transactions.transaction import WireTransaction
from tests.support.broker import TestBroker
from tests.transport.contract.harness import GUARD, Harness

COMMITTED, ABORTED, OPEN, UNKNOWN = TransactionOutcome
TOPIC = "persistent://public/default/orders"
READY = {"state": "Ready", "recoverStartTime": 5}
AGAIN = READY | {"recoverStartTime": 6}
NEVER_USED = READY | {"state": "NoSnapshot"}
RECOVERING = READY | {"state": "Initializing"}
SILENT = {"aborted": False}


@pytest.mark.parametrize(
    ("coordinator", "topics", "subscriptions", "expired", "outcome"),
    [
        (OPEN, [], [], False, OPEN),
        (COMMITTED, [OPEN], [ABORTED], False, COMMITTED),
        (ABORTED, [OPEN], [], False, ABORTED),
        (UNKNOWN, [COMMITTED], [], True, COMMITTED),
        (UNKNOWN, [UNKNOWN, ABORTED], [], False, ABORTED),
        (None, [COMMITTED, OPEN], [], True, COMMITTED),  # its marker is in one topic, on its way to the other
        (UNKNOWN, [COMMITTED], [ABORTED], False, COMMITTED),  # someone has moved the subscription back
        (UNKNOWN, [ABORTED], [COMMITTED], False, ABORTED),  # someone else has acknowledged the record
        (UNKNOWN, [COMMITTED, ABORTED], [], False, UNKNOWN),
        (UNKNOWN, [], [COMMITTED, UNKNOWN], False, COMMITTED),
        (UNKNOWN, [], [COMMITTED], True, UNKNOWN),
        (UNKNOWN, [UNKNOWN], [ABORTED], True, ABORTED),
        (UNKNOWN, [], [COMMITTED, ABORTED], False, UNKNOWN),
        (None, [], [ABORTED], True, UNKNOWN),  # perhaps it is open
        (None, [], [COMMITTED], False, UNKNOWN),
        (UNKNOWN, [OPEN], [], True, UNKNOWN),  # the topic waits for a transaction that nobody ends
        (UNKNOWN, [], [], False, UNKNOWN),
    ],
)  # fmt: skip
def test_a_topic_decides_before_subscriptions_and_those_before_time_is_over(
    coordinator: TransactionOutcome | None, topics: list[TransactionOutcome], subscriptions: list[TransactionOutcome],
    expired: bool, outcome: TransactionOutcome,
) -> None:  # fmt: skip
    assert decide(coordinator, topics, subscriptions, expired=expired) is outcome


@pytest.mark.parametrize(
    ("before", "found", "is_stored", "after", "outcome"),
    [
        (READY, SILENT, True, READY, COMMITTED),
        (READY, SILENT, False, READY, UNKNOWN),
        (READY, {"aborted": True}, False, READY, ABORTED),
        (READY, {"startPosition": "7:1", "aborted": False}, True, READY, OPEN),
        (NEVER_USED, SILENT, True, NEVER_USED, UNKNOWN),  # another topic, of the same name
        (RECOVERING, SILENT, True, RECOVERING, None),
        (READY, SILENT, True, RECOVERING, None),
        (READY, SILENT, True, AGAIN, None),
    ],
)
def test_what_a_topic_tells(
    before: Any, found: Any, is_stored: bool, after: Any, outcome: TransactionOutcome | None
) -> None:
    assert read_topic(before, found, is_stored, after) is outcome


@pytest.mark.parametrize(
    ("before", "record", "after", "outcome"),
    [
        (READY, WireId(7, 2), READY, COMMITTED),
        (READY, WireId(7, 5), READY, COMMITTED),  # one before it is not acknowledged
        (READY, WireId(7, 4), READY, ABORTED),
        (READY, WireId(7, 4, -1, 0), READY, UNKNOWN),
        (READY, WireId(7, 2, -1, 0), READY, COMMITTED),
        (NEVER_USED, WireId(7, 2), NEVER_USED, UNKNOWN),
        (RECOVERING, WireId(7, 4), READY, None),
        (READY, WireId(7, 4), AGAIN, None),
    ],
)
def test_what_a_subscription_tells(before: Any, record: WireId, after: Any, outcome: TransactionOutcome | None) -> None:
    cursor = Cursor(WireId(7, 3), (((7, 5), (7, 5)),))
    assert read_subscription(before, cursor, record, after) is outcome


@attrs.define
class Answers:
    """A REST interface that gives these answers about the topic's buffer in turn, the last one for ever."""

    buffer: list[Any]
    coordinator: Exception = attrs.field(factory=lambda: NotFoundError("The transaction with this txdID not found"))
    loaded: float = 0.0  # loop time before which the coordinator is not there

    async def ask(self, method: str, path: str, what: str) -> str:
        if "transactionMetadata" in path:
            loaded = asyncio.get_running_loop().time() >= self.loaded
            raise self.coordinator if loaded else NotFoundError("Transaction coordinator with id 3 not found!")
        if "transactionInBufferStats" in path:
            assert path.endswith("/public/default/orders/3/4")
            return json.dumps(SILENT)
        found = self.buffer.pop(0) if len(self.buffer) > 1 else self.buffer[0]
        if isinstance(found, Exception):
            raise found
        return json.dumps(found)

    async def ledgers(self, topic: str) -> tuple[Ledger, ...]:
        return (Ledger(7, 1, 1),)

    async def cursor(self, topic: str, subscription: str) -> Cursor:
        return Cursor(WireId(7, 3))

    async def log(self, topic: str) -> TopicLog:
        raise AssertionError

    async def entry(self, topic: str, message_id: WireId) -> StoredEntry:
        raise AssertionError


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        (Answers([RECOVERING, RECOVERING, NotFoundError("unloaded"), AdminError("busy", 503), READY]), COMMITTED),
        (Answers([RECOVERING]), UNKNOWN),
        (Answers([AdminError("can't be reached")]), UNKNOWN),
        (Answers([JMSSecurityError("no")]), UNKNOWN),
        (Answers([NEVER_USED], JMSSecurityError("it is another role's")), UNKNOWN),
        (Answers([READY], NotFoundError("Transaction coordinator with id 3 not found!")), COMMITTED),
    ],
)
async def test_a_broker_that_recovers_is_asked_again_until_it_tells_or_time_is_over(
    monkeypatch: pytest.MonkeyPatch, answers: Answers, outcome: TransactionOutcome
) -> None:
    monkeypatch.setattr("jmsaio.transport.pulsar.admin.transactions._PAUSE", 0.001)
    sent = {TOPIC: WireId(7, 0)}
    assert await find_outcome(answers, (3, 4), sent=sent, acknowledged={}, expires=math.inf, timeout=0.2) is outcome


@pytest.mark.parametrize(
    ("last", "last_readable", "first"),
    [
        (None, None, None),
        (WireId(7, 1), WireId(7, 1), None),
        (WireId(7, 1), WireId(7, 0), WireId(7, 1)),
        (WireId(7, 1, 2), None, WireId(5, 0, 2)),
        (WireId(9, 0), WireId(5, 1), WireId(7, 0)),
        (WireId(9, 0), WireId(7, 1), WireId(9, 0)),
    ],
)
def test_the_first_entry_that_waits_follows_the_last_one_that_readers_receive(
    last: WireId | None, last_readable: WireId | None, first: WireId | None
) -> None:
    """Ledgers without entries are passed over."""
    ledgers = (Ledger(5, 2, 1), Ledger(6, 0, 0), Ledger(7, 2, 1), Ledger(8, 0, 0), Ledger(9, 1, 1))
    assert first_held(TopicLog(ledgers, last, last_readable, True, False)) == first


async def test_a_topic_tells_which_transaction_holds_it_back(pulsar_broker: TestBroker) -> None:
    """Nothing does before its first message, nor after its end.

    The coordinator reports an error about a transaction in a subscription whose name has a slash.
    """
    client = await Harness.start(load(pulsar_broker.url, transport="wire"))
    try:
        topic = client.topic()
        inbox, sender = await client.inbox(topic), await client.sender(topic, transacted=True)
        await client.fill(topic, "plain")
        assert await inbox.consume(1) == ["plain"]
        await client.transport.ready_for_transactions(GUARD)
        transaction = await client.transport.begin(30)
        assert isinstance(transaction, WireTransaction)
        assert await client.admin.held_back(topic) is None
        before = time.time() * 1000
        await client.send(sender, "sent", transaction=transaction)
        await client.fill(topic, "behind")
        held = await client.admin.held_back(topic)
        assert held is not None
        assert (held.id, held.is_known, held.owner) == (transaction.txn, True, None)
        assert held.ends is not None
        assert before - 1000 < held.since < held.ends < time.time() * 1000 + 60_000
        [state] = await read_states(client.admin, client.configuration, Topic(topic))
        assert state.subscription is not None
        assert (
            f"wait for transaction {held.id}, which is open"
            in explain(state.subscription, held.since, state.open_transaction)[-1]
        )
        other = await client.inbox(topic, name="a/b")
        other.receiver.acknowledge(await other.take(1), transaction)
        await other.receiver.settle(GUARD)
        assert await client.admin.held_back(topic) == OpenTransaction(id=held.id, since=held.since)
        await transaction.abort()
        assert await client.admin.held_back(topic) is None
    finally:
        await client.stop()


@pytest.mark.parametrize(("expires", "outcome"), [(math.inf, COMMITTED), (0.04, UNKNOWN)])
async def test_an_acknowledged_record_tells_only_what_was_found_before_the_time_was_over(
    monkeypatch: pytest.MonkeyPatch, expires: float, outcome: TransactionOutcome
) -> None:
    """The coordinator might have rolled back between the question and its answer; then others have the record."""
    monkeypatch.setattr("jmsaio.transport.pulsar.admin.transactions._PAUSE", 0.001)
    now, records = asyncio.get_running_loop().time(), {(TOPIC, "s"): WireId(7, 2)}
    answers = Answers([READY], loaded=now + 0.05)
    found = await find_outcome(answers, (3, 4), sent={}, acknowledged=records, expires=now + expires, timeout=5)
    assert found is outcome


#: Sends in a transaction, says so, and waits to be killed.
KILLED = """
import asyncio, sys
import jmsaio

async def main(url, queue):
    options = dict(enable_transaction=True, transaction_timeout=5)
    async with jmsaio.connect(url, **options) as connection:
        async with connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session:
            async with session.create_producer(jmsaio.Queue(queue)) as producer:
                await producer.send("lost")
                print("sent", flush=True)
                await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
async def test_a_killed_client_holds_its_topics_back_until_its_time_is_over(pulsar_broker: TestBroker) -> None:
    """Its transaction is named meanwhile; then the broker rolls it back, and what was sent behind it arrives."""
    client = await Harness.start(load(pulsar_broker.url, transport="wire"))
    try:
        topic = client.topic()
        inbox = await client.inbox(topic)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, pulsar_broker.url, topic, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), GUARD) == b"sent\n"
        process.kill()
        await process.communicate()
        await client.fill(topic, "behind")
        held = await client.admin.held_back(topic)
        assert held is not None and held.ends is not None
        assert inbox.receiver.receive(1) == []
        assert await inbox.consume(1) == ["behind"]
        assert await client.admin.held_back(topic) is None
    finally:
        await client.stop()


async def test_the_outcome_on_a_broker(pulsar_broker: TestBroker) -> None:
    """It is the same by what was sent and by what was acknowledged, and right after the topic was unloaded."""
    client = await Harness.start(load(pulsar_broker.url, transport="wire"))
    admin = client.admin
    assert isinstance(admin, RestAdmin)
    await client.transport.ready_for_transactions(GUARD)
    try:
        for outcome in (OPEN, COMMITTED, ABORTED):
            topic, name = client.topic(), "s" if outcome is OPEN else "a/b+c d%2Fé~*"
            inbox, sender = await client.inbox(topic, name=name), await client.sender(topic, transacted=True)
            await client.fill(topic, "received")
            transaction = await client.transport.begin(60)
            assert isinstance(transaction, WireTransaction)
            taken = await inbox.take(1)
            inbox.receiver.acknowledge(taken, transaction)
            await client.send(sender, "sent", transaction=transaction)
            if outcome is not OPEN:
                await (transaction.commit() if outcome is COMMITTED else transaction.abort())
            await inbox.close()
            sent, acknowledged = {topic: taken[0].message_id}, {(topic, name): taken[0].message_id}
            for _ in range(2):
                for parts in ({"sent": sent, "acknowledged": {}}, {"sent": {}, "acknowledged": acknowledged}):
                    found = await find_outcome(admin, transaction.txn, **parts, expires=math.inf, timeout=GUARD)
                    assert found is outcome
                await admin.ask("PUT", f"{topic_path(topic)}/unload", "unload")
    finally:
        await client.stop()

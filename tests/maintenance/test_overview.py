"""The state of queues and topics, and why messages are not received."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio.config import load
from jmsaio.maintenance.dead_letters import require_admin
from jmsaio.maintenance.overview import explain, list_states, read_states
from jmsaio.model.destinations import Topic
from jmsaio.transport.administration import OpenTransaction
from jmsaio.transport.base import ConnectedConsumer, StartPosition, SubscriptionStats
from jmsaio.transport.registry import connected

NOW = 1_000_000
IDLE = ConnectedConsumer(name="idler", address="10.0.0.1:5", unacknowledged=8, last_acknowledged=NOW - 60_000)
BUSY = ConnectedConsumer(name="worker", unacknowledged=3, last_acknowledged=NOW - 2_000)
BLOCKED = ConnectedConsumer(name="worker", unacknowledged=3, last_acknowledged=NOW - 2_000, blocked=True)
SELECTS = ConnectedConsumer(name="worker", selector="region = 'EU'")


@pytest.mark.parametrize(
    ("backlog", "consumers", "delayed", "reasons"),
    [
        (0, (), 0, []),
        (5, (), 0, ["no consumer is connected; 5 messages wait"]),
        (8, (BUSY,), 0, []),
        (
            8, (BUSY, IDLE), 0,
            ["consumer idler (10.0.0.1:5) holds 8 unacknowledged messages and has acknowledged nothing for 60 s"],
        ),
        (
            8, (BLOCKED,), 0,
            [
                "consumer worker holds 3 unacknowledged messages and has acknowledged nothing for 2 s; the broker "
                "sends it nothing more until it acknowledges"
            ],
        ),
        (8, (BUSY,), 5, ["5 messages wait for their delivery time"]),
        (8, (SELECTS,), 0, ["consumer worker receives only messages that match region = 'EU'"]),
        (
            8, (attrs.evolve(SELECTS, unacknowledged=8),), 0,
            [
                "consumer worker holds 8 unacknowledged messages; it receives only messages that match region = 'EU'"
            ],
        ),
    ],
)  # fmt: skip
def test_each_reason_is_a_sentence(
    backlog: int, consumers: tuple[ConnectedConsumer, ...], delayed: int, reasons: list[str]
) -> None:
    stats = SubscriptionStats("s", "Shared", backlog, len(consumers), connected=consumers, delayed=delayed)
    assert list(explain(stats, NOW)) == reasons


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        ({}, "messages of the last 45 s wait for transaction (0, 7), which is open"),
        (
            {"ends": NOW + 15_000, "owner": "app"},
            "messages of the last 45 s wait for transaction (0, 7) of app, which is open; the broker rolls it back in "
            "15 s",
        ),
        (
            {"is_known": False},
            "messages of the last 45 s wait for transaction (0, 7), which its coordinator does not know: commit "
            "another transaction that sends to the topic",
        ),
    ],
)  # fmt: skip
def test_a_transaction_that_holds_messages_back_is_the_last_reason(held: dict[str, Any], reason: str) -> None:
    transaction = OpenTransaction(id=(0, 7), since=NOW - 45_000, **held)
    assert list(explain(SubscriptionStats("s", "Shared", 5, 0), NOW, transaction))[1:] == [reason]
    assert list(explain(SubscriptionStats("s", "Shared", 0, 1), NOW, transaction)) == []


@pytest.mark.small_namespace  # the list has all topics
async def test_partitions_are_one_row_in_the_list_and_one_each_in_detail(url: str, name: Callable[[str], str]) -> None:
    config, own = load(url), name("state")
    async with connected(config) as transport:
        admin = require_admin(transport)
        topic = f"persistent://{config.system_namespace}/{own}"
        await admin.create_topic(topic, 3)
        [bare] = [one for one in await list_states(admin, config, queues=False) if one.name == own]
        assert bare.subscription is None
        await admin.create_subscription(topic, "readers", StartPosition.EARLIEST)
        [row] = [one for one in await list_states(admin, config, queues=False) if one.name == own]
        assert row.subscription is not None
        assert row.subscription.name == "readers"
        assert len(await read_states(admin, config, Topic(own))) == 3
        await admin.create_subscription(topic, config.queue_subscription_name, StartPosition.EARLIEST)
        assert own in {one.name for one in await list_states(admin, config, queues=True)}


async def test_messages_of_a_batch_are_counted_in_detail(url: str, name: Callable[[str], str]) -> None:
    config, own = load(url), name("state")
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue(own))
        for number in range(4):
            await producer.send(str(number))
    async with connected(config) as transport:
        [state] = await read_states(require_admin(transport), config, jmsaio.Queue(own))
    assert state.subscription is not None
    assert state.subscription.backlog == 4

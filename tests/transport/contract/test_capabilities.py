"""Contract: a transport does what it declares, and nothing beyond.

Transactions, sequence ids, redelivery counts and the number of unacknowledged records have files of their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import ModuleType

import anyio
import attrs
import pytest

from jmsaio.errors import IllegalStateError, JMSError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import StartPosition, SubscriptionType
from tests.kit.records import record, texts
from tests.transport.contract.harness import GUARD, Harness

KEEPER = "keeper"


async def kept(harness: Harness, topic: str) -> dict[str, str]:
    """The properties of the subscription."""
    return await harness.admin.subscription_properties(topic, "s")


async def consumed(harness: Harness, topic: str) -> set[str]:
    """The subscriptions that have consumers."""
    return {name for name, one in (await harness.admin.stats(topic)).subscriptions.items() if one.consumers}


async def test_a_crash_leaves_subscriptions_of_the_declared_types_only_where_they_are_durable(
    harness: Harness, contract: ModuleType
) -> None:
    topic = harness.topic()
    keeper = await harness.inbox(topic, name=KEEPER)
    crashing = await harness.other()
    for type_ in SubscriptionType:
        await crashing.inbox(topic, name=type_.value, type=type_, durable=False)
        await crashing.inbox(topic, name=f"durable {type_.value}", type=type_)
    await contract.crash(crashing.transport)
    stay = {type_.value for type_ in set(SubscriptionType) - harness.capabilities.non_durable}
    stay |= {KEEPER, *(f"durable {type_.value}" for type_ in SubscriptionType)}
    with anyio.fail_after(3 * GUARD):  # the broker has to notice, at the latest by two missing answers, after 60 s
        while await consumed(harness, topic) != {KEEPER}:
            await anyio.sleep(0.05)
    assert set((await harness.admin.stats(topic)).subscriptions) == stay
    await crashing.transport.aclose(0.5)  # nothing answers it any more
    await keeper.close()


async def test_a_transport_without_transactions_refuses_them_at_once(harness: Harness, contract: ModuleType) -> None:
    assert harness.capabilities.transactions is contract.TRANSACTIONS
    if not harness.capabilities.transactions:
        with pytest.raises(IllegalStateError):
            await harness.transport.ready_for_transactions(GUARD)
        with pytest.raises(JMSError):
            await harness.transport.begin(60)


@asynccontextmanager
async def opened(harness: Harness, admin: bool) -> AsyncIterator[Harness]:
    """Another harness, with the admin interface or without."""
    other = await Harness.start(attrs.evolve(harness.configuration, use_pulsar_admin=admin))
    try:
        yield other
    finally:
        await other.stop()


@pytest.mark.parametrize("admin", [True, False])
async def test_properties_are_with_a_new_subscription_at_once_where_that_is_declared(
    harness: Harness, admin: bool
) -> None:
    topic = harness.topic()
    async with opened(harness, admin) as opening:
        await opening.inbox(topic, properties={"a": "b"})
        assert await kept(harness, topic) == ({"a": "b"} if opening.capabilities.stores_properties else {})


@pytest.mark.parametrize("admin", [True, False])
async def test_a_subscription_is_replaced_where_that_is_declared_and_else_resumed(
    harness: Harness, admin: bool
) -> None:
    topic = harness.topic()
    await (await harness.inbox(topic, properties={"a": "old"}, replace=True)).close()
    await harness.fill(topic, "kept for the old one")
    async with opened(harness, admin) as opening:
        inbox = await opening.inbox(topic, properties={"a": "new"}, replace=True, position=StartPosition.LATEST)
        await harness.fill(topic, "later")
        replaces = opening.capabilities.replaces_properties
        assert await inbox.consume(1 if replaces else 2) == [*([] if replaces else ["kept for the old one"]), "later"]
        assert await kept(harness, topic) == {"a": "new" if replaces else "old"}


@pytest.mark.parametrize("partitions", [0, 3])
async def test_the_places_of_sent_records_are_told_as_declared(harness: Harness, partitions: int) -> None:
    """Of a record that is sent alone always; of each one where ``places`` says so; and never a wrong one."""
    topic, told = harness.topic(), dict[str, WireId | None]()

    def settled(tokens: Sequence[str], place: WireId | None, error: JMSError | None) -> None:
        assert error is None
        for behind, text in enumerate(tokens):
            index = None if place is None or behind == 0 else place.batch_index + behind
            told[text] = place if index is None or place is None else place._replace(batch_index=index)

    await harness.admin.create_topic(topic, partitions)
    inbox, sender = await harness.inbox(topic), await harness.sender(topic, settled=settled)
    soon = int((harness.transport.clock.now() + 0.2) * 1000)
    for number in range(2500):
        due = soon if number % 500 == 7 else None
        sender.send(record(str(number), key=str(number) if number % 3 == 0 else None, deliver_at=due), str(number))
    await sender.drain(GUARD)
    sender.send(record("alone"), "alone")
    await sender.drain(GUARD)
    stored = {text: each.message_id for each in await inbox.take(2501) for text in texts([each])}
    assert told.keys() == stored.keys()
    unknown = {text for text, place in told.items() if place is None}
    assert "alone" not in unknown and not (unknown and harness.capabilities.message_ids)
    assert {text: place for text, place in told.items() if place is not None}.items() <= stored.items()


async def test_partitions_lists_and_patterns_need_no_admin_interface(harness: Harness) -> None:
    """The client's protocol tells the partitions of a topic, and the topics of a namespace."""
    stem = harness.topic()
    parted, plain = f"{stem}-parted", f"{stem}-plain"
    await harness.admin.create_topic(parted, 2)
    async with opened(harness, admin=False) as other:
        listed = await other.inbox(parted, plain)
        matched = await other.inbox(pattern=f"{stem}-.*", name="matched")
        sender = await other.sender(parted, route=lambda record, count: int(record.payload or b"") % count)
        await other.send(sender, "0", "1")
        await sender.aclose(GUARD)
        await other.fill(plain, "2")
        for inbox in (listed, matched):
            assert sorted(await inbox.consume(3)) == ["0", "1", "2"]
    with pytest.raises(AssertionError, match="0 of 1"):
        await (await harness.inbox(parted, plain)).take(1, 0.3)

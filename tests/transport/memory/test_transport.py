from __future__ import annotations

import asyncio

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, ObjectClosedError
from jmsaio.testing import EmbeddedBroker, embedded_broker
from jmsaio.transport.memory import open_transport
from jmsaio.transport.memory.broker.broker import broker_named
from tests.kit.records import Outcomes, record
from tests.transport.contract.harness import Harness
from tests.transport.memory.connecting import connect


async def test_it_can_do_everything(harness: Harness) -> None:
    assert all(attrs.asdict(harness.capabilities).values())


async def test_a_broker_outlives_its_clients_and_names_are_apart() -> None:
    with embedded_broker() as one, embedded_broker() as other:
        first = await connect(one)
        topic = first.topic()
        await first.inbox(topic)
        await first.fill(topic, "kept")
        await first.stop()
        stranger = await connect(other)
        assert await stranger.admin.topics("public/default") == []
        await stranger.stop()
        again = await connect(one)
        assert await (await again.inbox(topic)).consume(1) == ["kept"]
        await again.stop()


async def test_memory_without_a_name_is_one_broker() -> None:
    transport = await open_transport(load("memory:"))
    assert transport in broker_named("").clients
    await transport.aclose(1)
    assert transport not in broker_named("").clients


async def test_closing_gives_back_and_aborts(embedded: EmbeddedBroker, harness: Harness) -> None:
    other = await connect(embedded)
    topic = harness.topic()
    keeper = await harness.inbox(topic)
    inbox = await other.inbox(topic, receiver_queue_size=1)
    await harness.fill(topic, "1")
    transaction = await other.transport.begin(60)
    outcomes = Outcomes()
    (await other.sender(topic)).send(record("undone"), outcomes, transaction)
    inbox.receiver.acknowledge(inbox.receiver.receive(5), transaction)
    await other.stop()
    assert outcomes.errors == [None]
    assert await keeper.consume(1) == ["1"]
    assert await keeper.rest(0.05) == []


async def test_closing_ends_what_was_opened_first_and_is_in_use_still(harness: Harness) -> None:
    topic = harness.topic()
    opened = [(await harness.sender(topic), await harness.inbox(topic), await harness.reader(topic)) for _ in range(2)]
    await harness.transport.aclose(1)
    for sender, inbox, reader in opened:
        outcomes = Outcomes()
        with pytest.raises(ObjectClosedError):
            sender.send(record("x"), outcomes)
        with pytest.raises(ObjectClosedError):
            inbox.receiver.receive(1)
        with pytest.raises(ObjectClosedError):
            await reader.read(1, 1)


async def test_nothing_opens_while_the_broker_is_down(embedded: EmbeddedBroker, harness: Harness) -> None:
    with embedded.faults.outage():
        for opening in (connect(embedded), harness.sender("x"), harness.inbox("x"), harness.transport.begin(1)):
            with pytest.raises(BrokerUnavailableError):
                await opening


def test_a_client_whose_loop_ended_without_close_gives_everything_back() -> None:
    with embedded_broker() as broker:
        topic = "persistent://public/default/t"

        async def careless() -> None:
            harness = await connect(broker)
            inbox = await harness.inbox(topic)
            await harness.fill(topic, "1", "2")
            await inbox.take(1)

        async def careful() -> list[str]:
            harness = await connect(broker)
            got = await (await harness.inbox(topic)).consume(2)
            await harness.stop()
            return got

        asyncio.run(careless())
        assert asyncio.run(careful()) == ["1", "2"]


async def test_what_is_closed_is_let_go_of(harness: Harness) -> None:
    for _ in range(20):
        topic = harness.topic()
        inbox, sender, reader = await harness.inbox(topic), await harness.sender(topic), await harness.reader(topic)
        for part in (inbox.receiver, sender, reader):
            await part.aclose(1)
    transport = harness.transport
    kept = [len(getattr(transport, name)) for name in ("_senders", "_receivers", "_readers")]
    assert max(kept) <= 1

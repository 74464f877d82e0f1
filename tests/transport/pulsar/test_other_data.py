"""A broker that came back without its data, and another cluster at the same address: ids mean other records there.

Nothing that was acknowledged, or is out, of the old ones may keep a new one from its consumer.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import httpx

from jmsaio.errors import JMSError
from jmsaio.model.wire import WireId
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import SubscriptionType
from tests.kit.records import Outcomes, record, texts
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import Box, Kit, new_topic, send

#: Seconds for what takes a second or two on a quiet machine: pulsar-client waits longer and longer to connect again.
LONG = 90.0
KINDS = (SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE)
#: Ledgers that the topic has in the first cluster.
LEDGERS = 4


async def lose_data(broker: TestBroker) -> None:
    for step in (broker.kill, broker.wipe, broker.start):
        await anyio.to_thread.run_sync(step)


async def boxes(kit: Kit) -> list[Box]:
    return [await kit.box(kind, name=kind.name) for kind in KINDS]


async def collect(box: Box, wanted: set[str]) -> None:
    """Receive and acknowledge until all of them came."""
    missing = set(wanted)
    with anyio.fail_after(LONG):
        while missing:
            event = box.event
            records = box.receiver.receive(100)
            missing.difference_update(texts(records))
            box.receiver.acknowledge(records)
            if not records:
                await event.wait()


async def confirm(kit: Kit, sender: Any, payloads: set[str]) -> None:
    """Send until everything is confirmed."""
    missing = set(payloads)

    def done(payload: str, place: object, error: JMSError | None) -> None:
        if error is None:
            missing.discard(payload)

    with anyio.fail_after(LONG):
        while missing:
            for payload in missing:
                sender.send(record(payload), partial(done, payload))
            await sender.drain(LONG)


async def test_a_broker_that_came_back_without_its_data(own_broker: TestBroker, connect: Any) -> None:
    """Sender and receivers live on; what is confirmed afterwards is received."""
    kit: Kit = await connect(own_broker)
    receiving, sender = await boxes(kit), await kit.sender()
    before, after = ({f"{when} {number}" for number in range(200)} for when in ("before", "after"))
    await confirm(kit, sender, before)
    for box in receiving:
        await collect(box, before)
        await box.receiver.settle(LONG)
    await lose_data(own_broker)
    await confirm(kit, sender, after)
    for box in receiving:
        await collect(box, after)


async def unload(http: httpx.AsyncClient, topic: str) -> None:
    (await http.put(f"/admin/v2/{topic.replace('://', '/')}/unload")).raise_for_status()


async def fill(kit: Kit, ledger: int, group: int = 4) -> None:
    """Use up ids of ledgers until few are left below one."""
    while True:
        topics = [new_topic("filler") for _ in range(group)]
        last: list[WireId | None] = []

        async def use(topic: str, last: list[WireId | None] = last) -> None:
            sender = await kit.sender(topic)
            last += (await send(sender, "x")).stored
            await sender.aclose(LONG)

        async with anyio.create_task_group() as tasks:
            for topic in topics:
                tasks.start_soon(use, topic)
        if max(place.ledger for place in last if place is not None) + 2 * group > ledger:
            return


async def test_another_cluster_at_the_same_address(own_broker: TestBroker, connect: Any) -> None:
    """Its records have the ids of those that were acknowledged, and of those that are out."""
    web = httpx.AsyncClient(base_url=own_broker.web_service_url, timeout=LONG)
    async with FaultProxy.of(own_broker.service_url) as proxy, web as http:
        kit: Kit = await connect(TestBroker(proxy.url, own_broker.web_service_url))
        await fill(await connect(own_broker), 0, group=12)  # so that the other cluster begins below
        receiving = await boxes(kit)
        used: set[int] = set()
        for number in range(LEDGERS):
            sender, outcomes = await kit.sender(), Outcomes()
            for index in range(50):
                sender.send(record(f"first {number} {index}"), outcomes)
            await sender.drain(LONG)
            used |= {place.ledger for place in outcomes.stored if place is not None}
            await sender.aclose(LONG)
            for box in receiving:
                records = await box.take(50)
                box.receiver.acknowledge(records[:25])
            await unload(http, kit.topic)
        assert len(used) == LEDGERS
        with proxy.outage():
            await lose_data(own_broker)
            other: Kit = await connect(own_broker)
            await fill(other, min(used))
            sent: set[str] = set()
            places: list[int] = []
            sender = await other.sender(kit.topic)
            while not used.intersection(places):
                payloads = [f"{uuid.uuid4()}" for _ in range(50)]
                places += [place.ledger for place in (await send(sender, *payloads)).stored if place is not None]
                sent.update(payloads)
                assert max(places) <= max(used), (places, used)
                await unload(http, kit.topic)
        for box in receiving:
            await collect(box, sent)

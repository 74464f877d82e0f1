"""What was confirmed is stored, whatever happens to the connection while records travel in groups.

Dead letters are sent, too: no record is acknowledged on its queue unless its copy is stored.
"""

from __future__ import annotations

import math
import os
import random
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import attrs
import httpx
import pytest

from jmsaio.config import ConsumerConfig, DeadLetterPolicy, ProducerConfig
from jmsaio.errors import JMSError, OperationTimeoutError, SendError, SendInDoubtError
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.testing import Command, Direction, FaultProxy
from jmsaio.transport.base import Reader, ReaderOptions, Sender, SubscriptionType
from jmsaio.transport.pulsar import dead_letters
from tests.kit.records import record
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import Box, Kit, new_topic, send
from tests.transport.pulsar.test_faults import under_load

#: Seconds that each kind of fault goes on for; ``JMSAIO_TEST_FAULT_SECONDS`` sets it for longer runs.
SECONDS = float(os.environ.get("JMSAIO_TEST_FAULT_SECONDS", "3"))
#: Seconds after which a test hangs.
LONG = 120.0
#: The window is much larger than what the broker takes in one stall.
WINDOW = 200_000

Fault = Callable[[FaultProxy], Awaitable[object]]


@attrs.define
class Ledger:
    """What was sent and what was said of it."""

    sent: int = 0
    confirmed: set[int] = attrs.field(factory=set)
    failed: dict[int, JMSError] = attrs.field(factory=dict)

    def send(self, sender: Sender, words: str) -> None:
        number = self.sent
        self.sent += 1

        def done(place: WireId | None, error: JMSError | None) -> None:
            if error is None:
                self.confirmed.add(number)
            else:
                self.failed[number] = error

        sender.send(record(f"{number} {words}"), done)


async def send_for(sender: Sender, ledger: Ledger, seconds: float) -> None:
    """Send in bursts of different length, as fast as the window lets us."""
    chance = random.Random(7)
    with anyio.move_on_after(seconds):
        while True:
            for _ in range(chance.choice((1, 30, 700, 1500))):
                if sender.full:
                    try:
                        await sender.ready()
                    except OperationTimeoutError:
                        continue
                ledger.send(sender, "x" * chance.randrange(100))
            await anyio.sleep(chance.choice((0, 0, 0.001, 0.01)))


def number_of(one: ReceivedRecord) -> int:
    return int((one.payload or b"").split()[0])


async def stored(kit: Kit, topic: str) -> set[int]:
    reader: Reader = await kit.transport.open_reader(ReaderOptions(topic, ConsumerConfig()))
    numbers: set[int] = set()
    while records := await reader.read(1000, 20):
        numbers.update(map(number_of, records))
    await reader.aclose(10)
    return numbers


async def stall(proxy: FaultProxy) -> None:
    seconds = random.uniform(0.95, 1.35)
    proxy.stall(random.choice((None, Direction.TO_CLIENT)), seconds=seconds)
    await anyio.sleep(seconds + 0.3)


async def cut(proxy: FaultProxy) -> None:
    proxy.cut(random.choice((Command.SEND, Command.SEND_RECEIPT)), skip=random.randrange(5))
    await anyio.sleep(0.5)


async def swallow(proxy: FaultProxy) -> None:
    proxy.swallow(Command.SEND_RECEIPT)
    await anyio.sleep(1.5)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", [stall, cut, swallow])
async def test_every_confirmed_record_is_stored(
    kit: Kit, connect: Any, pulsar_broker: TestBroker, fault: Fault
) -> None:
    """And each record has its outcome: those that failed are in doubt or not stored."""
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        behind = await connect(TestBroker(proxy.url, pulsar_broker.web_service_url))
        sender = await behind.sender(
            kit.topic, config=ProducerConfig(send_timeout=1.0), window_records=WINDOW, window_bytes=1 << 30
        )
        ledger = Ledger()
        async with anyio.create_task_group() as group:
            group.start_soon(send_for, sender, ledger, SECONDS)
            with anyio.move_on_after(SECONDS):
                while True:
                    await fault(proxy)
        proxy.clear()
        await sender.drain(LONG)
        await sender.aclose(LONG)
        assert len(ledger.confirmed) + len(ledger.failed) == ledger.sent
        assert ledger.confirmed - await stored(kit, kit.topic) == set()
        assert {type(error) for error in ledger.failed.values()} <= {SendError, SendInDoubtError}
        assert ledger.confirmed


@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", [100, 1500])
async def test_a_batch_that_the_broker_found_damaged_is_not_confirmed(
    kit: Kit, connect: Any, pulsar_broker: TestBroker, size: int
) -> None:
    """pulsar-client drops it and tells it in its log alone, unless the last of a group is in it."""
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        behind = await connect(TestBroker(proxy.url, pulsar_broker.web_service_url))
        sender, ledger = await behind.sender(kit.topic, window_records=WINDOW), Ledger()
        for _ in range(10):
            # Only the oldest batch under way: pulsar-client ends the process when it is another one (test_hazards.py).
            fault = proxy.flip(Command.SEND)
            for _ in range(size):
                ledger.send(sender, "x" * 50)
            await sender.drain(LONG)
            assert fault.hits == 1
        assert ledger.confirmed - await stored(kit, kit.topic) == set()
        assert len(ledger.confirmed) + len(ledger.failed) == ledger.sent
        assert ledger.failed


async def terminate(http: httpx.AsyncClient, topic: str, kit: Kit) -> None:
    (await http.post(f"/persistent/{topic}/terminate")).raise_for_status()


async def unload(http: httpx.AsyncClient, topic: str, kit: Kit) -> None:
    for _ in range(3):
        (await http.put(f"/persistent/{topic}/unload")).raise_for_status()
        await anyio.sleep(0.5)


async def fence(http: httpx.AsyncClient, topic: str, kit: Kit) -> None:
    """Another producer takes the topic for itself."""
    config = ProducerConfig(access_mode="ExclusiveWithFencing")
    other = await kit.sender(f"persistent://{topic}", config=config)
    await anyio.sleep(1)
    await other.aclose(10)


async def refuse_for_quota(http: httpx.AsyncClient, topic: str, kit: Kit) -> None:
    """The backlog is over its quota when the producer comes back; the quota is raised later."""
    quota = f"/namespaces/{topic.rpartition('/')[0]}/backlogQuota"
    limit = {"limitSize": 1, "limitTime": -1, "policy": "producer_exception"}
    (await http.post(quota, json=limit)).raise_for_status()
    (await http.put(f"/persistent/{topic}/unload")).raise_for_status()
    await anyio.sleep(2)
    (await http.delete(quota)).raise_for_status()


Event = Callable[[httpx.AsyncClient, str, Kit], Awaitable[None]]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("event", [terminate, unload, fence, refuse_for_quota])
async def test_every_confirmed_record_is_stored_whatever_the_broker_does(
    kit: Kit, pulsar_broker: TestBroker, event: Event
) -> None:
    """What the broker refuses from some time on fails, and what it refuses for a while only is told as well."""
    async with httpx.AsyncClient(base_url=f"{pulsar_broker.web_service_url}/admin/v2", timeout=LONG) as http:
        namespace = f"public/confirmed-{uuid.uuid4()}"
        (await http.put(f"/namespaces/{namespace}")).raise_for_status()
        topic = f"{namespace}/t"
        await kit.box(SubscriptionType.SHARED, f"persistent://{topic}")  # whose backlog counts for the quota
        config = ProducerConfig(send_timeout=5.0, access_mode="Exclusive" if event is fence else "Shared")
        sender, ledger = await kit.sender(f"persistent://{topic}", config=config, window_records=WINDOW), Ledger()
        async with anyio.create_task_group() as group:
            group.start_soon(send_for, sender, ledger, 3.0)
            await anyio.sleep(0.5)
            await event(http, topic, kit)
        await sender.drain(LONG)
        await sender.aclose(LONG)
        assert len(ledger.confirmed) + len(ledger.failed) == ledger.sent
        missing = set(ledger.confirmed)
        # What is read comes from the storage; and the broker now and then leaves a terminated topic fenced for long.
        await http.put(f"/persistent/{topic}/unload")
        box = await kit.box(SubscriptionType.SHARED, f"persistent://{topic}", name="after")
        with anyio.move_on_after(LONG / 4):
            while missing:
                found = await box.take(min(500, len(missing)), limit=500)
                missing.difference_update(map(number_of, found))
                box.receiver.acknowledge(found)
        assert ledger.confirmed
        assert missing == set()


#: Records that become dead letters; the larger number keeps some on the queue until the fault has come.
LETTERS, MANY_LETTERS = 4_000, 10_000


async def move_to_dead_letters(box: Box) -> None:
    """Move what comes, or give it back until it is moved at its second delivery; goes on until it is cancelled."""
    while True:
        records = await box.take(1, math.inf)
        records += box.receiver.receive(500)
        for one in records:
            if number_of(one) % 2:
                box.receiver.dead_letter(one, one.properties)
        box.receiver.negative_acknowledge([one for one in records if number_of(one) % 2 == 0], 0.1)
        await anyio.sleep(0.02)


async def acknowledged(kit: Kit, topic: str, letters: int) -> set[int]:
    """What the broker counts as acknowledged by a subscription, with what it deleted for that reason."""
    assert kit.transport.admin is not None
    cursor = await kit.transport.admin.cursor(topic, "sub")
    reader = await kit.transport.open_reader(ReaderOptions(topic, ConsumerConfig()))
    left: set[int] = set()
    while records := await reader.read(1000, 20):
        left.update(number_of(one) for one in records if not cursor.is_acknowledged(one.message_id))
    await reader.aclose(10)
    return set(range(letters)) - left


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead letters have a short time to be sent, so that a stall outlasts it."""
    monkeypatch.setattr(dead_letters, "ProducerConfig", partial(ProducerConfig, send_timeout=1.0))


async def check_dead_letters(
    direct: Kit, kit: Kit, fault: Callable[[], Awaitable[object]], letters: int = LETTERS
) -> int:
    """Move records to the dead letters while the fault happens; check that none is acknowledged only.

    Returns:
        How many dead letters are stored.
    """
    topic, dead = direct.topic, f"{direct.topic}-dead"
    policy = DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=dead, initial_subscription_name="keep")
    box = await kit.box(SubscriptionType.SHARED, topic, dead_letter=policy)
    sender = await direct.sender(config=ProducerConfig(batching_enabled=False))  # each is acknowledged by itself
    await send(sender, *(f"{number} dead" for number in range(letters)))
    async with anyio.create_task_group() as group:
        group.start_soon(move_to_dead_letters, box)
        await fault()
        with anyio.fail_after(LONG):
            while not await acknowledged(direct, topic, letters):
                await anyio.sleep(0.5)
        group.cancel_scope.cancel()
    await box.receiver.aclose(LONG)
    moved, settled = await stored(direct, dead), await acknowledged(direct, topic, letters)
    assert settled
    assert settled - moved == set()
    return len(moved)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [stall, cut, swallow])
async def test_every_dead_letter_is_stored_or_comes_again(
    kit: Kit, connect: Any, pulsar_broker: TestBroker, fault: Fault
) -> None:
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        behind = await connect(TestBroker(proxy.url, pulsar_broker.web_service_url))

        async def repeat() -> None:
            with anyio.move_on_after(SECONDS):
                while True:
                    await fault(proxy)
            proxy.clear()

        await check_dead_letters(kit, behind, repeat)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("impatient")
async def test_although_the_broker_dies_what_was_confirmed_is_stored_and_arrives_and_no_dead_letter_is_lost(
    own_broker: TestBroker, connect: Any
) -> None:
    """One death of the broker for sends, for dead letters, and for a load of both directions: a start is expensive."""
    kit: Kit = await connect(own_broker)
    topic, ledger = new_topic(), Ledger()
    sender = await kit.sender(topic, config=ProducerConfig(send_timeout=1.0), window_records=WINDOW)

    async def die() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(send_for, sender, ledger, 3.0)
            await anyio.sleep(1.5)
            await anyio.to_thread.run_sync(own_broker.kill)
            await anyio.to_thread.run_sync(own_broker.start)

    loaded: Kit = await connect(own_broker)
    await check_dead_letters(kit, await connect(own_broker), partial(under_load, loaded, die), MANY_LETTERS)
    after = ledger.sent
    with anyio.fail_after(LONG):
        while not any(number >= after for number in ledger.confirmed):
            if not sender.full:
                ledger.send(sender, "after")
            await anyio.sleep(0.5)
    await sender.drain(LONG)
    await sender.aclose(LONG)
    assert len(ledger.confirmed) + len(ledger.failed) == ledger.sent
    assert ledger.confirmed - await stored(kit, topic) == set()


@pytest.mark.timeout(300)
async def test_a_record_whose_dead_letter_is_refused_is_not_acknowledged(kit: Kit, pulsar_broker: TestBroker) -> None:
    """The dead letter topic takes nothing more from some time on."""
    admin, dead = kit.transport.admin, f"{kit.topic}-dead"
    assert admin is not None

    async def refuse() -> None:
        while not await stored(kit, dead):
            await anyio.sleep(0.1)
        await admin.terminate_topic(dead)
        await anyio.sleep(3)
        # The broker now and then leaves a terminated topic fenced for long.
        path = f"{pulsar_broker.web_service_url}/admin/v2/{dead.replace('://', '/')}/unload"
        async with httpx.AsyncClient(timeout=LONG) as http:
            (await http.put(path)).raise_for_status()
        sender = await kit.sender(config=ProducerConfig(batching_enabled=False))
        await send(sender, *(f"{number} dead" for number in range(MANY_LETTERS, MANY_LETTERS + 100)))

    assert await check_dead_letters(kit, kit, refuse, MANY_LETTERS) <= MANY_LETTERS

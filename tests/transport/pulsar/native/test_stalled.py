"""``StalledReceivers``: a consumer that the broker names active, but sends nothing of its backlog, subscribes again."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import attrs
import pytest

from jmsaio.errors import JMSSecurityError
from jmsaio.transport.base import SubscriptionStats, SubscriptionType, TopicStats
from jmsaio.transport.pulsar.native.stalled import LATER, LOOK, StalledReceivers
from tests.kit.records import Outcomes, record
from tests.kit.watching import EXCLUSIVE, Native, Part, Scene
from tests.transport.pulsar.conftest import HANG, Kit

STALLED = SubscriptionStats("s", "Failover", backlog=19, consumers=2, active_consumer="me")
FAILOVER = attrs.evolve(EXCLUSIVE, type=SubscriptionType.FAILOVER)


@attrs.define(eq=False)
class Broker:
    """Its statistics of a subscription; None: it does not tell them."""

    told: SubscriptionStats | None = STALLED
    asked: int = 0

    async def stats(self, topic: str) -> TopicStats:
        self.asked += 1
        if self.told is None:
            raise JMSSecurityError("no right to see them")
        return TopicStats(0, {self.told.name: self.told})


async def looks(stalled: StalledReceivers, part: Any, *times: float) -> None:
    for time in times:
        await stalled.look(time, [part])


def watched(broker: Any) -> tuple[StalledReceivers, Part]:
    return StalledReceivers(broker), Part([Native()], subscription=FAILOVER)


async def test_two_looks_that_show_it_have_the_receiver_subscribe_again(caplog: pytest.LogCaptureFixture) -> None:
    stalled, part = watched(broker := Broker())
    await looks(stalled, part, 0, 1, LOOK - 1)
    assert broker.asked == 0
    await looks(stalled, part, LOOK, LOOK + 1, 2 * LOOK - 1)
    assert (broker.asked, part.renewed) == (1, 0)
    await looks(stalled, part, 2 * LOOK)
    assert (broker.asked, part.renewed) == (2, 1)
    assert "subscription s of persistent://a/b/c is subscribed again" in caplog.text


async def test_it_subscribes_again_less_and_less_often_if_that_does_not_help() -> None:
    """What can't be delivered yet counts as backlog, too: records of an open transaction."""
    stalled, part = watched(Broker())
    renewed = []
    for look in range(16):
        await looks(stalled, part, look * LOOK)
        renewed.append(part.renewed)
    assert [renewed.index(count) for count in (1, 2, 3)] == [2, 6, 14]


async def test_a_record_that_came_begins_it_anew() -> None:
    stalled, part = watched(broker := Broker())
    await looks(stalled, part, 0, LOOK)
    part.received_count += 1
    await looks(stalled, part, 2 * LOOK, 3 * LOOK)
    assert (broker.asked, part.renewed) == (2, 0)


@pytest.mark.parametrize("change", [{"backlog": 0}, {"active_consumer": "other"}, {"active_consumer": None}])
async def test_one_look_that_shows_it_served_begins_it_anew(change: dict[str, Any]) -> None:
    stalled, part = watched(broker := Broker())
    await looks(stalled, part, 0, LOOK)
    broker.told = attrs.evolve(STALLED, **change)
    await looks(stalled, part, 2 * LOOK)
    broker.told = STALLED
    await looks(stalled, part, 3 * LOOK)
    assert (broker.asked, part.renewed) == (3, 0)


async def test_without_the_right_to_see_statistics_nothing_changes() -> None:
    stalled, part = watched(broker := Broker(None))
    await looks(stalled, part, 0, LOOK, 2 * LOOK, LOOK + LATER)
    assert (broker.asked, part.renewed) == (2, 0)


@pytest.mark.parametrize("kind", [kind for kind in SubscriptionType if kind is not SubscriptionType.FAILOVER])
async def test_other_subscriptions_are_left_alone(kind: SubscriptionType) -> None:
    stalled, part = watched(broker := Broker())
    part.subscription = attrs.evolve(EXCLUSIVE, type=kind)
    await looks(stalled, part, 0, LOOK, 2 * LOOK, 3 * LOOK)
    assert (broker.asked, part.renewed) == (0, 0)


async def test_the_watch_looks_after_them() -> None:
    admin: Any = Broker()
    scene = Scene(admin=admin)
    scene.receivers[0].subscription = FAILOVER
    for now in (0, LOOK, 2 * LOOK):
        await scene.watch.look_for_reasons(now)
    assert scene.receivers[0].renewed == 1


async def test_of_two_consumers_with_one_name_neither_is_known_to_be_active(kit: Kit) -> None:
    for _ in range(2):
        await kit.box(SubscriptionType.FAILOVER, consumer_name="twin")
    admin = kit.transport.admin
    assert admin is not None
    found = (await admin.stats(kit.topic)).subscriptions["sub"]
    assert (found.consumers, found.active_consumer) == (2, None)


async def test_a_receiver_that_subscribed_again_loses_nothing(kit: Kit) -> None:
    """Statistics of the broker, except for a backlog that it has not."""
    box, sender = await kit.box(SubscriptionType.FAILOVER, name="s"), await kit.sender()
    admin = kit.transport.admin
    assert admin is not None
    await box.nothing(0.1)
    real = (await admin.stats(kit.topic)).subscriptions["s"]
    [(native, _)] = box.receiver.waiting
    assert real.active_consumer == native.consumer_name()
    stalled = StalledReceivers(Broker(attrs.evolve(real, backlog=1)))  # type: ignore[arg-type]  # asked for nothing else
    await looks(stalled, box.receiver, 0, LOOK, 2 * LOOK)
    with anyio.fail_after(HANG):
        while box.receiver.natives in ([], [native]):
            assert box.receiver.receive(10) == []
            await asyncio.sleep(0.05)
    for number in range(3):
        sender.send(record(str(number)), Outcomes())
    taken = await box.take(3, HANG)
    assert box.receiver.waiting == [], "the application has records"
    box.receiver.acknowledge(taken)
    await box.nothing(0.3)
    [(_, received_count)] = box.receiver.waiting
    assert received_count == 3

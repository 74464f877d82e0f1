"""``MissingReceivers``: a consumer that is not connected though the broker answers is reported, with the reason."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import anyio
import attrs
import httpx
import pytest

from jmsaio.config import load
from jmsaio.errors import ConsumerBusyError, JMSSecurityError, NotFoundError, TransportError
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import LinkChange, SubscriptionStats, SubscriptionType, TopicStats
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native.watching import missing, watch
from jmsaio.transport.pulsar.native.watching.missing import LATER, LOOK, StalledReceivers
from tests.kit.records import Outcomes, record
from tests.kit.watching import EXCLUSIVE, NOT_CONNECTED, Native, Part, Scene, changes, until
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, new_topic
from tests.transport.pulsar.native.binding.test_native_log import own_log, write


async def test_the_broker_answers_but_the_subscription_is_anothers(scene: Scene) -> None:
    """That is no lost link: the loss of the subscription is reported, once, and so is its return."""
    scene.native.connected = False
    assert scene.look(1) == []
    await scene.answer(scene.asked)
    assert scene.look(2, 3, 4) == []
    await scene.answer(scene.asked)  # it asks the broker while no consumer is connected
    scene.admin.consumers = 1
    await scene.watch.look_for_reasons(4.5)
    assert scene.told == []
    for now in (6, 12):
        await scene.watch.look_for_reasons(now)
    assert [type(change.error) for change in scene.told] == [ConsumerBusyError]
    assert "another consumer" in scene.told[0].text
    scene.native.connected = True
    assert scene.look(13) == ["back"]


async def test_after_an_outage_the_subscription_is_anothers(scene: Scene) -> None:
    """The link is back when the broker answers, whether the consumer is or not; then the subscription is missed."""
    scene.native.connected = False
    assert scene.look(1, 2) == ["lost"]
    await scene.answer(scene.asked, NOT_CONNECTED)
    assert scene.look(3) == []
    await scene.answer(scene.asked)
    assert scene.look(30) == ["back"]
    assert scene.look(31, 32, 33) == []
    scene.admin.consumers = 1
    await scene.watch.look_for_reasons(40)
    assert [type(change.error) for change in scene.told[2:]] == [ConsumerBusyError]


async def test_after_an_outage_a_consumer_has_the_usual_time_to_come_back(scene: Scene) -> None:
    scene.admin.consumers = 1
    scene.native.connected = False
    assert scene.look(1, 2) == ["lost"]
    await scene.answer(scene.asked, NOT_CONNECTED)
    assert scene.look(3) == []
    await scene.answer(scene.asked)
    assert scene.look(30) == ["back"]
    told = len(scene.told)
    await scene.watch.look_for_reasons(30 + missing.MISSING - 1)
    assert len(scene.told) == told
    await scene.watch.look_for_reasons(30 + missing.MISSING + 1)
    assert [type(change.error) for change in scene.told[told:]] == [ConsumerBusyError]


@pytest.mark.parametrize("consumers", [0, None])
async def test_a_subscription_that_is_missing_without_a_known_reason(scene: Scene, consumers: int | None) -> None:
    """pulsar-client may take a minute for its next attempt; after that it is reported all the same."""
    scene.admin.consumers = consumers
    await scene.miss()
    await scene.watch.look_for_reasons(60)
    assert scene.told == []
    await scene.watch.look_for_reasons(90)
    assert [type(change.error) for change in scene.told] == [TransportError]


def refuse(scene: Scene, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What pulsar-client logs of a consumer that the broker does not let connect again."""
    log = own_log()
    for module in (missing, watch):
        monkeypatch.setattr(module, "NATIVE_LOG", log)
    scene.watch._log = log.read()
    head = "2026-11-22 02:10:48.791 WARN  [11]"
    answer = f"Received error response from server: {name} (its words) -- req_id: 7"
    write(log, f"{head} ClientConnection:1 | [x -> y] {answer}\n")
    write(log, f"{head} ConsumerImpl:374 | [persistent://a/b/c, s, 0] Failed to reconnect consumer: {name}\n")


async def test_a_refusal_that_stays_is_reported_soon(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the kind of subscription: its topic is gone, and the broker's words say so."""
    scene.receivers[0].subscription = attrs.evolve(EXCLUSIVE, type=SubscriptionType.SHARED)
    refuse(scene, monkeypatch, "TopicNotFound")
    await scene.miss()
    await scene.watch.look_for_reasons(2)
    assert scene.told == []
    await scene.watch.look_for_reasons(1 + missing.MISSING)
    assert [type(change.error) for change in scene.told] == [NotFoundError]
    assert "subscription s of persistent://a/b/c" in scene.told[0].text and "its words" in scene.told[0].text


async def test_a_refusal_that_passes_is_the_reason_after_long(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(scene, monkeypatch, "ServiceUnitNotReady")
    await scene.miss()
    await scene.watch.look_for_reasons(60)
    assert scene.told == []
    await scene.watch.look_for_reasons(90)
    assert "its words [ServiceUnitNotReady]" in scene.told[0].text


async def test_a_subscription_that_is_missing_is_not_found_by_stopping(scene: Scene) -> None:
    """What was reported as missing is back when it is connected, not when there is no consumer to look at."""
    await scene.miss()
    scene.admin.consumers = 1
    await scene.watch.look_for_reasons(10)
    assert len(scene.told) == 1
    scene.receivers[0].natives = []
    assert scene.look(11, 12) == []
    scene.receivers[0].natives = [Native()]
    assert scene.look(13) == ["back"]


async def test_an_exclusive_subscription_that_another_client_took(
    proxy: FaultProxy, pulsar_broker: TestBroker, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who lost it gets the reason, and a report when it has it back."""
    monkeypatch.setattr(missing, "MISSING", 1.0)
    async for mine, told in changes(proxy, pulsar_broker):
        topic = new_topic()
        await mine.box(SubscriptionType.EXCLUSIVE, topic)
        with proxy.outage(), anyio.fail_after(HANG):
            other = None
            while other is None:
                try:
                    other = await kit.box(SubscriptionType.EXCLUSIVE, topic)
                except ConsumerBusyError:  # the broker has not noticed yet
                    await asyncio.sleep(0.05)
        with anyio.fail_after(HANG):
            while not any(isinstance(change.error, ConsumerBusyError) for change in told):
                await asyncio.sleep(0.05)
        count = len(told)
        await other.receiver.aclose(5)
        await until(told, count + 1)
        assert told[-1].error is None


@pytest.mark.parametrize("what", ["topic", "subscription"])
async def test_what_a_shared_consumer_receives_from_is_deleted(pulsar_broker: TestBroker, what: str) -> None:
    """The broker recreates neither: the loss is reported with its words, long before pulsar-client tries again."""
    namespace = f"public/{uuid.uuid4().hex}"
    async with httpx.AsyncClient(base_url=f"{pulsar_broker.web_service_url}/admin/v2", trust_env=False) as rest:
        assert (await rest.put(f"/namespaces/{namespace}")).is_success
        topic = f"persistent://{namespace}/t"
        transport = await open_transport(load(pulsar_broker.service_url, web_service_url=pulsar_broker.web_service_url))
        told: list[LinkChange] = []
        transport.link_listeners.add(told.append)
        box = await Kit(transport, topic).box()
        for policy in ("Topic", "Subscription"):
            body = {f"allowAuto{policy}Creation": False}
            assert (await rest.post(f"/namespaces/{namespace}/auto{policy}Creation", json=body)).is_success
        place = f"/persistent/{namespace}/t"
        if what == "subscription":
            place += f"/subscription/{box.receiver.subscription.name}"
        assert (await rest.delete(place, params={"force": "true"})).is_success
        await until(told, 1)
        assert isinstance(told[0].error, NotFoundError)
        assert f"{what} " in told[0].text.lower() and "does not exist" in told[0].text
        await transport.aclose(10)


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

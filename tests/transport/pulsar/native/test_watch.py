"""``Watch``: a lost link is noticed and reported while nothing is asked of the broker, as is a lost subscription."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import _pulsar
import anyio
import attrs
import httpx
import pytest

from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, ConsumerBusyError, JMSSecurityError, NotFoundError, TransportError
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import LinkChange, SubscriptionStats, SubscriptionType, TopicStats
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native import watch
from jmsaio.transport.pulsar.native.watch import STATS_INTERVAL, STATS_PAUSE, StalledReceivers, Watch
from tests.kit.records import Outcomes, record
from tests.kit.watching import EXCLUSIVE, NOT_CONNECTED, Native, Part, Scene, changes, until
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, new_topic
from tests.transport.pulsar.native.binding.test_native_log import own_log, write


@pytest.fixture
async def scene() -> Scene:
    return Scene()


@pytest.fixture
async def proxy(pulsar_broker: TestBroker) -> AsyncIterator[FaultProxy]:
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        yield proxy


async def test_a_loss_and_its_return_are_told_once(scene: Scene) -> None:
    """Not connected in two looks is a loss, connected again is its end."""
    scene.native.connected = False
    assert scene.look(1) == []
    assert scene.look(2) == ["lost"]
    assert isinstance(scene.told[0].error, BrokerUnavailableError)
    assert scene.look(3, 4, 5) == []
    scene.native.connected = True
    assert scene.look(6) == ["back"]
    assert scene.look(7, 8) == []


async def test_a_refusal_of_the_credentials_is_told_as_one(scene: Scene) -> None:
    """Also by a broker that answers otherwise; senders fail until it is over, or another reason keeps it away."""
    refusals: list[JMSSecurityError | None] = [JMSSecurityError("expired"), None, JMSSecurityError("again")]

    async def refusal() -> JMSSecurityError | None:
        return refusals.pop(0)

    scene.watch.refusal = refusal
    sender = Part([])
    scene.senders.append(sender)

    async def look(*times: float) -> list[str]:
        told = []
        for now in times:
            before = len(scene.told)
            await scene.watch.check_refusal(now)
            scene.look(now)
            told += [type(change.error).__name__ for change in scene.told[before:]]
        return told

    assert await look(0) == []
    scene.native.connected = False
    assert await look(1) == []
    await scene.answer(scene.asked)
    assert await look(2) == ["JMSSecurityError"]
    assert str(scene.told[-1].error) == "the connection to pulsar://there is lost: expired"
    await scene.answer(scene.asked, _pulsar.Result.AuthenticationError)
    assert await look(3, 4) == []
    assert await look(2 + watch.REFUSAL) == ["BrokerUnavailableError"]
    assert await look(2 + 2 * watch.REFUSAL) == ["JMSSecurityError"]
    scene.native.connected = True
    assert await look(3 + 2 * watch.REFUSAL) == ["NoneType"]
    assert [None if one is None else str(one) for one in sender.refusals] == ["expired", None, "again", None]


async def test_a_blink_is_not_told(scene: Scene) -> None:
    """A consumer that changes to another broker is away for a moment."""
    scene.native.connected = False
    assert scene.look(1) == []
    scene.native.connected = True
    assert scene.look(2) == []
    scene.native.connected = False
    assert scene.look(3) == []


async def test_a_silent_broker(scene: Scene) -> None:
    """It is asked while nothing arrives; no answer is a loss although the connection is open, the answer its end."""
    assert scene.look(watch.QUIET + 0.1) == []
    assert len(scene.native.asked) == 1
    assert scene.look(watch.QUIET + watch.SILENT) == []
    assert scene.look(watch.QUIET + watch.SILENT + 0.2) == ["lost"]
    assert len(scene.native.asked) == 2
    await scene.answer(scene.native.asked, _pulsar.Result.Timeout)
    assert scene.look(40) == []
    assert len(scene.native.asked) == 2
    await scene.answer(scene.native.asked)
    assert scene.look(41) == ["back"]


async def test_while_it_is_lost_another_request_follows_and_any_answer_is_its_end(scene: Scene) -> None:
    """pulsar-client repeats each request at growing intervals."""
    scene.native.connected = False
    assert scene.look(1, 2) == ["lost"]
    assert len(scene.asked) == 1
    assert scene.look(0.9 + watch.AGAIN) == []
    assert len(scene.asked) == 1
    assert scene.look(1.1 + watch.AGAIN, 2 + watch.AGAIN) == []
    assert len(scene.asked) == 2
    await scene.answer([scene.asked[0]])
    assert scene.look(3 + watch.AGAIN) == ["back"]


async def test_a_connection_without_consumers_and_producers(scene: Scene) -> None:
    """The broker itself is asked."""
    scene.receivers.clear()
    assert scene.look(watch.QUIET + 0.1) == []
    assert len(scene.asked) == 1
    assert scene.look(watch.QUIET + watch.SILENT + 0.2) == ["lost"]
    await scene.answer(scene.asked)
    assert scene.look(20) == ["back"]
    scene.watch.listeners.clear()
    assert scene.look(40, 60) == []


async def test_a_busy_consumer_asks_nothing(scene: Scene) -> None:
    """Records that arrive are the proof; any answer is, also a refusal."""
    for now in range(1, 30):
        scene.receivers[0].received_count += 1
        assert scene.look(now) == []
    assert scene.native.asked == []
    assert scene.look(40) == []
    await scene.answer(scene.native.asked, _pulsar.Result.AuthorizationError)
    assert scene.look(50) == []


async def test_the_broker_goes_away_again_before_the_consumer_is_back(scene: Scene) -> None:
    """A broker that answered and then answers no more is lost again."""
    scene.native.connected = False
    assert scene.look(1, 2) == ["lost"]
    await scene.answer(scene.asked)
    assert scene.look(3) == ["back"]
    assert scene.look(3 + watch.QUIET) == []
    assert scene.look(4 + watch.QUIET + watch.SILENT) == ["lost"]


async def test_senders_are_looked_at_too(scene: Scene) -> None:
    """A loss is seen where there are only senders; while they are connected, the broker itself is asked."""
    native = Native()
    scene.receivers.clear()
    scene.senders.append(Part([native]))
    assert scene.look(1, 2) == []
    await scene.answer(scene.asked)
    assert scene.look(3) == []
    native.connected = False
    assert scene.look(4, 5) == ["lost"]


async def test_a_pattern_asks_the_broker_itself(scene: Scene) -> None:
    """pulsar-client can't ask for the last message of several topics."""
    scene.receivers[0].subscription = attrs.evolve(scene.receivers[0].subscription, pattern="a/b/.*", topics=())
    scene.look(10)
    assert scene.native.asked == []
    assert len(scene.asked) == 1


async def test_a_receiver_that_has_no_consumer_for_a_while(scene: Scene) -> None:
    """While it is stopped or opened anew, the broker's silence is a loss all the same, and its answer the end of it."""
    scene.receivers[0].natives = []
    assert scene.look(1, 2, 3, 4) == []
    assert len(scene.asked) == 1
    assert scene.look(4 + watch.SILENT) == ["lost"]
    await scene.answer(scene.asked, NOT_CONNECTED)
    assert scene.look(20) == []
    await scene.answer(scene.asked)
    assert scene.look(21) == ["back"]
    assert scene.look(22, 23) == []


async def test_a_listener_that_raises_does_not_end_the_watch(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged, the other listeners are told, and so is what comes later."""
    monkeypatch.setattr(watch, "INTERVAL", 0.01)
    monkeypatch.setattr(watch, "QUIET", 1000)  # on a busy machine nothing is asked meanwhile: nobody would answer

    def raising(change: LinkChange) -> None:
        raise ValueError("no listener")

    scene.watch.listeners.clear()
    scene.watch.listeners.update([raising, scene.told.append])
    scene.native.connected = False
    scene.watch.start()
    await until(scene.told, 1)
    scene.native.connected = True
    await until(scene.told, 2)
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["no listener"] * 2
    await scene.watch.aclose()


async def test_a_look_that_fails_does_not_end_the_watch(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "INTERVAL", 0.01)
    look, failures = Watch.check, iter([RuntimeError("a fault in a look")])

    def failing_once(self: Watch, now: float) -> None:
        for failure in failures:
            raise failure
        look(self, now)

    monkeypatch.setattr(Watch, "check", failing_once)
    scene.native.connected = False
    scene.watch.start()
    await until(scene.told, 1)
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["a fault in a look"]
    await scene.watch.aclose()


async def test_an_outage_of_the_real_broker(proxy: FaultProxy, pulsar_broker: TestBroker) -> None:
    """A consumer that is sent nothing learns that the connection broke, and that it is back."""
    async for kit, told in changes(proxy, pulsar_broker):
        await kit.box()
        with proxy.outage():
            await until(told, 1)
        await until(told, 2)
        assert [change.error is None for change in told] == [False, True]


async def test_an_outage_while_the_receiver_is_stopped(
    proxy: FaultProxy, pulsar_broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no consumer then that could lose its connection."""
    monkeypatch.setattr(watch, "QUIET", 0.5)
    monkeypatch.setattr(watch, "SILENT", 2.0)
    async for kit, told in changes(proxy, pulsar_broker):
        box = await kit.box()
        await box.receiver.stop(HANG)
        with proxy.outage():
            await until(told, 1)
        await until(told, 2)
        assert [change.error is None for change in told] == [False, True]


async def test_a_stall_of_the_real_broker(
    proxy: FaultProxy, pulsar_broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer that is sent nothing learns that an open connection is silent, and that it is back."""
    monkeypatch.setattr(watch, "QUIET", 0.5)
    monkeypatch.setattr(watch, "SILENT", 3.0)
    async for kit, told in changes(proxy, pulsar_broker):
        await kit.box()
        proxy.stall()
        await until(told, 1)
        proxy.resume()
        await until(told, 2)
        assert [change.error is None for change in told] == [False, True]


async def test_the_broker_answers_but_the_subscription_is_anothers(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is no lost link: the loss of the subscription is reported, once, and so is its return."""
    refuse(scene, monkeypatch, "ConsumerBusy")
    scene.native.connected = False
    assert scene.look(1) == []
    await scene.answer(scene.asked)
    assert scene.look(2, 3, 4) == []
    await scene.answer(scene.asked)  # it asks the broker while no consumer is connected
    await scene.watch.report_reasons(4.5)
    assert scene.told == []
    for now in (6, 12):
        await scene.watch.report_reasons(now)
    assert [type(change.error) for change in scene.told] == [ConsumerBusyError]
    assert "already has its consumer" in scene.told[0].text
    scene.native.connected = True
    assert scene.look(13) == ["back"]


async def test_after_an_outage_the_subscription_is_anothers(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link is back when the broker answers, whether the consumer is or not; then the subscription is missed."""
    refuse(scene, monkeypatch, "ConsumerBusy")
    scene.native.connected = False
    assert scene.look(1, 2) == ["lost"]
    await scene.answer(scene.asked, NOT_CONNECTED)
    assert scene.look(3) == []
    await scene.answer(scene.asked)
    assert scene.look(30) == ["back"]
    assert scene.look(31, 32, 33) == []
    await scene.watch.report_reasons(40)
    assert [type(change.error) for change in scene.told[2:]] == [ConsumerBusyError]


async def test_after_an_outage_a_consumer_has_the_usual_time_to_come_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(scene, monkeypatch, "ConsumerBusy")
    scene.native.connected = False
    assert scene.look(1, 2) == ["lost"]
    await scene.answer(scene.asked, NOT_CONNECTED)
    assert scene.look(3) == []
    await scene.answer(scene.asked)
    assert scene.look(30) == ["back"]
    told = len(scene.told)
    await scene.watch.report_reasons(30 + watch.MISSING - 1)
    assert len(scene.told) == told
    await scene.watch.report_reasons(30 + watch.MISSING + 1)
    assert [type(change.error) for change in scene.told[told:]] == [ConsumerBusyError]


async def test_a_subscription_that_is_missing_without_a_known_reason(scene: Scene) -> None:
    """pulsar-client may take a minute for its next attempt; after that it is reported all the same."""
    await scene.miss()
    await scene.watch.report_reasons(60)
    assert scene.told == []
    await scene.watch.report_reasons(90)
    assert [type(change.error) for change in scene.told] == [TransportError]


def refuse(scene: Scene, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What pulsar-client logs of a consumer that the broker does not let connect again."""
    log = own_log()
    monkeypatch.setattr(watch, "NATIVE_LOG", log)
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
    await scene.watch.report_reasons(2)
    assert scene.told == []
    await scene.watch.report_reasons(1 + watch.MISSING)
    assert [type(change.error) for change in scene.told] == [NotFoundError]
    assert "subscription s of persistent://a/b/c" in scene.told[0].text and "its words" in scene.told[0].text


async def test_a_refusal_that_passes_is_the_reason_after_long(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(scene, monkeypatch, "ServiceUnitNotReady")
    await scene.miss()
    await scene.watch.report_reasons(60)
    assert scene.told == []
    await scene.watch.report_reasons(90)
    assert "its words [ServiceUnitNotReady]" in scene.told[0].text


async def test_a_subscription_that_is_missing_is_not_found_by_stopping(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was reported as missing is back when it is connected, not when there is no consumer to look at."""
    refuse(scene, monkeypatch, "ConsumerBusy")
    await scene.miss()
    await scene.watch.report_reasons(10)
    assert len(scene.told) == 1
    scene.receivers[0].natives = []
    assert scene.look(11, 12) == []
    scene.receivers[0].natives = [Native()]
    assert scene.look(13) == ["back"]


async def test_an_exclusive_subscription_that_another_client_took(
    proxy: FaultProxy, pulsar_broker: TestBroker, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who lost it gets the reason, and a report when it has it back."""
    monkeypatch.setattr(watch, "MISSING", 1.0)
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
        await stalled.check(time, [part])


def watched(broker: Any) -> tuple[StalledReceivers, Part]:
    return StalledReceivers(broker), Part([Native()], subscription=FAILOVER)


async def test_two_looks_that_show_it_have_the_receiver_subscribe_again(caplog: pytest.LogCaptureFixture) -> None:
    stalled, part = watched(broker := Broker())
    await looks(stalled, part, 0, 1, STATS_INTERVAL - 1)
    assert broker.asked == 0
    await looks(stalled, part, STATS_INTERVAL, STATS_INTERVAL + 1, 2 * STATS_INTERVAL - 1)
    assert (broker.asked, part.renewed) == (1, 0)
    await looks(stalled, part, 2 * STATS_INTERVAL)
    assert (broker.asked, part.renewed) == (2, 1)
    assert "subscription s of persistent://a/b/c is subscribed again" in caplog.text


async def test_it_subscribes_again_less_and_less_often_if_that_does_not_help() -> None:
    """What can't be delivered yet counts as backlog, too: records of an open transaction."""
    stalled, part = watched(Broker())
    renewed = []
    for look in range(16):
        await looks(stalled, part, look * STATS_INTERVAL)
        renewed.append(part.renewed)
    assert [renewed.index(count) for count in (1, 2, 3)] == [2, 6, 14]


async def test_a_record_that_came_begins_it_anew() -> None:
    stalled, part = watched(broker := Broker())
    await looks(stalled, part, 0, STATS_INTERVAL)
    part.received_count += 1
    await looks(stalled, part, 2 * STATS_INTERVAL, 3 * STATS_INTERVAL)
    assert (broker.asked, part.renewed) == (2, 0)


@pytest.mark.parametrize("change", [{"backlog": 0}, {"active_consumer": "other"}, {"active_consumer": None}])
async def test_one_look_that_shows_it_served_begins_it_anew(change: dict[str, Any]) -> None:
    stalled, part = watched(broker := Broker())
    await looks(stalled, part, 0, STATS_INTERVAL)
    broker.told = attrs.evolve(STALLED, **change)
    await looks(stalled, part, 2 * STATS_INTERVAL)
    broker.told = STALLED
    await looks(stalled, part, 3 * STATS_INTERVAL)
    assert (broker.asked, part.renewed) == (3, 0)


async def test_without_the_right_to_see_statistics_nothing_changes() -> None:
    stalled, part = watched(broker := Broker(None))
    await looks(stalled, part, 0, STATS_INTERVAL, 2 * STATS_INTERVAL, STATS_INTERVAL + STATS_PAUSE)
    assert (broker.asked, part.renewed) == (2, 0)


@pytest.mark.parametrize("kind", [kind for kind in SubscriptionType if kind is not SubscriptionType.FAILOVER])
async def test_other_subscriptions_are_left_alone(kind: SubscriptionType) -> None:
    stalled, part = watched(broker := Broker())
    part.subscription = attrs.evolve(EXCLUSIVE, type=kind)
    await looks(stalled, part, 0, STATS_INTERVAL, 2 * STATS_INTERVAL, 3 * STATS_INTERVAL)
    assert (broker.asked, part.renewed) == (0, 0)


async def test_the_watch_looks_after_them() -> None:
    admin: Any = Broker()
    scene = Scene(admin=admin)
    scene.receivers[0].subscription = FAILOVER
    for now in (0, STATS_INTERVAL, 2 * STATS_INTERVAL):
        await scene.watch.report_reasons(now)
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
    await looks(stalled, box.receiver, 0, STATS_INTERVAL, 2 * STATS_INTERVAL)
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

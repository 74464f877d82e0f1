from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import _pulsar
import anyio
import attrs
import httpx
import pytest

from jmsaio.config import ConsumerConfig, load
from jmsaio.errors import AdminError, BrokerUnavailableError, ConsumerBusyError, NotFoundError, TransportError
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import LinkChange, Subscription, SubscriptionStats, SubscriptionType, TopicStats
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native import watch
from jmsaio.transport.pulsar.native.bridge import Bridge
from jmsaio.transport.pulsar.native.watch import Watch
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, new_topic
from tests.transport.pulsar.native.test_native_log import own_log, write

EXCLUSIVE = Subscription(("persistent://a/b/c",), "s", SubscriptionType.EXCLUSIVE, ConsumerConfig())
OK, NOT_CONNECTED = _pulsar.Result.Ok, _pulsar.Result.NotConnected


@attrs.define(eq=False)
class Native:
    """``_pulsar.Consumer`` or ``_pulsar.Producer``: connected or not, and what it was asked."""

    connected: bool = True
    asked: list[Callable[..., None]] = attrs.field(factory=list)

    def is_connected(self) -> bool:
        return self.connected

    def topic(self) -> str:
        return "persistent://a/b/c"

    def get_last_message_id_async(self, callback: Callable[..., None]) -> None:
        self.asked.append(callback)


@attrs.define(eq=False)
class Part:
    """A sender or receiver with its natives."""

    natives: list[Native]
    heard: int = 0
    subscription: Subscription = EXCLUSIVE


@attrs.define(eq=False)
class Admin:
    """The broker's statistics: how many consumers the subscription has; None: it can't tell."""

    consumers: int | None = 0

    async def stats(self, topic: str) -> TopicStats:
        if self.consumers is None:
            raise AdminError("not now")
        return TopicStats(0, {"s": SubscriptionStats("s", "Exclusive", 0, self.consumers)})


@attrs.define(eq=False)
class Scene:
    """A watch over one receiver with one consumer, looked at by hand."""

    native: Native = attrs.field(factory=Native)
    receivers: list[Part] = attrs.field(factory=list)
    senders: list[Part] = attrs.field(factory=list)
    admin: Admin = attrs.field(factory=Admin)
    asked: list[Callable[..., None]] = attrs.field(factory=list)
    told: list[LinkChange] = attrs.field(factory=list)
    watch: Any = None

    def __attrs_post_init__(self) -> None:
        self.receivers.append(Part([self.native]))
        admin: Any = self.admin  # a watch asks for nothing but statistics
        self.watch = Watch(
            Bridge(), "pulsar://there", lambda: self.senders, lambda: self.receivers, self.asked.append, admin
        )
        self.watch.listeners.add(self.told.append)

    def look(self, *times: float) -> list[str]:
        """Look at these times; what was told since: ``lost`` or ``back``."""
        before = len(self.told)
        for now in times:
            self.watch.look(now)
        return ["back" if change.error is None else "lost" for change in self.told[before:]]

    async def answer(self, asked: list[Callable[..., None]], result: Any = OK) -> None:
        asked.pop()(result, None)
        await asyncio.sleep(0)

    async def miss(self) -> None:
        """Its consumer is not connected, though the broker answers, as is known after second 2."""
        self.native.connected = False
        self.look(1)
        await self.answer(self.asked)
        self.look(2)


@pytest.fixture
async def scene() -> Scene:
    return Scene()


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
    await scene.answer(scene.native.asked, _pulsar.Result.Timeout)
    assert scene.look(40) == []
    assert len(scene.native.asked) == 1
    await scene.answer(scene.native.asked)
    assert scene.look(41) == ["back"]


async def test_a_busy_consumer_asks_nothing(scene: Scene) -> None:
    """Records that arrive are the proof; any answer is, also a refusal."""
    for now in range(1, 30):
        scene.receivers[0].heard += 1
        assert scene.look(now) == []
    assert scene.native.asked == []
    assert scene.look(40) == []
    await scene.answer(scene.native.asked, _pulsar.Result.AuthorizationError)
    assert scene.look(50) == []


async def test_the_broker_answers_but_the_subscription_is_anothers(scene: Scene) -> None:
    """That is no lost link: the loss of the subscription is told, once, and so is its return."""
    scene.native.connected = False
    assert scene.look(1) == []
    await scene.answer(scene.asked)
    assert scene.look(2, 3, 4) == []
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


async def test_the_broker_goes_away_again_before_the_consumer_is_back(scene: Scene) -> None:
    """A broker that answered and then answers no more is lost again."""
    scene.native.connected = False
    assert scene.look(1, 2) == ["lost"]
    await scene.answer(scene.asked)
    assert scene.look(3) == ["back"]
    assert scene.look(3 + watch.QUIET) == []
    assert scene.look(4 + watch.QUIET + watch.SILENT) == ["lost"]


@pytest.mark.parametrize("consumers", [0, None])
async def test_a_subscription_that_is_missing_without_a_known_reason(scene: Scene, consumers: int | None) -> None:
    """pulsar-client may take a minute for its next attempt; after that it is told all the same."""
    scene.admin.consumers = consumers
    await scene.miss()
    await scene.watch.look_for_reasons(60)
    assert scene.told == []
    await scene.watch.look_for_reasons(90)
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


async def test_a_refusal_that_stays_is_told_soon(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the kind of subscription: its topic is gone, and the broker's words say so."""
    scene.receivers[0].subscription = attrs.evolve(EXCLUSIVE, type=SubscriptionType.SHARED)
    refuse(scene, monkeypatch, "TopicNotFound")
    await scene.miss()
    await scene.watch.look_for_reasons(2)
    assert scene.told == []
    await scene.watch.look_for_reasons(1 + watch.MISSING)
    assert [type(change.error) for change in scene.told] == [NotFoundError]
    assert "subscription s of persistent://a/b/c" in scene.told[0].text and "its words" in scene.told[0].text


async def test_a_refusal_that_passes_is_the_reason_after_long(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(scene, monkeypatch, "ServiceUnitNotReady")
    await scene.miss()
    await scene.watch.look_for_reasons(60)
    assert scene.told == []
    await scene.watch.look_for_reasons(90)
    assert "its words [ServiceUnitNotReady]" in scene.told[0].text


async def test_senders_are_looked_at_too(scene: Scene) -> None:
    """A loss is seen where there are only senders; while they are connected nothing is asked."""
    native = Native()
    scene.receivers.clear()
    scene.senders.append(Part([native]))
    assert scene.look(1, 10, 20) == []
    assert scene.asked == []
    native.connected = False
    assert scene.look(21, 22) == ["lost"]
    scene.senders.clear()
    assert scene.look(23) == []


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


async def test_a_subscription_that_is_missing_is_not_found_by_stopping(scene: Scene) -> None:
    """What was told as missing is told as back when it is connected, not when there is no consumer to look at."""
    await scene.miss()
    scene.admin.consumers = 1
    await scene.watch.look_for_reasons(10)
    assert len(scene.told) == 1
    scene.receivers[0].natives = []
    assert scene.look(11, 12) == []
    scene.receivers[0].natives = [Native()]
    assert scene.look(13) == ["back"]


async def test_a_listener_that_raises_does_not_end_the_watch(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged, the other listeners are told, and so is what comes later."""
    monkeypatch.setattr(watch, "LOOK", 0.01)

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
    monkeypatch.setattr(watch, "LOOK", 0.01)
    look, failures = Watch.look, iter([RuntimeError("a fault in a look")])

    def failing_once(self: Watch, now: float) -> None:
        for failure in failures:
            raise failure
        look(self, now)

    monkeypatch.setattr(Watch, "look", failing_once)
    scene.native.connected = False
    scene.watch.start()
    await until(scene.told, 1)
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["a fault in a look"]
    await scene.watch.aclose()


@pytest.fixture
async def proxy(pulsar_broker: TestBroker) -> AsyncIterator[FaultProxy]:
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        yield proxy


async def changes(proxy: FaultProxy, broker: TestBroker) -> AsyncIterator[tuple[Kit, list[LinkChange]]]:
    """A kit whose transport goes through the proxy, and what is told of its link."""
    transport = await open_transport(load(proxy.url, web_service_url=broker.web_service_url))
    told: list[LinkChange] = []
    transport.link_listeners.add(told.append)
    yield Kit(transport, new_topic()), told
    await transport.aclose(10)


async def until(told: list[LinkChange], count: int) -> None:
    with anyio.fail_after(HANG):
        while len(told) < count:
            await asyncio.sleep(0.05)


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


async def test_an_exclusive_subscription_that_another_client_took(
    proxy: FaultProxy, pulsar_broker: TestBroker, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that lost it is told by whose fault, and told again when it has it back."""
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
    """The broker makes neither anew: the consumer is told with its words, long before pulsar-client's next minute."""
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

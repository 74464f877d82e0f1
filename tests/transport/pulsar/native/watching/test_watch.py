"""``Watch``: a lost link is noticed and reported while nothing is asked of the broker."""

from __future__ import annotations

import _pulsar
import attrs
import pytest

from jmsaio.errors import BrokerUnavailableError, JMSSecurityError
from jmsaio.testing import FaultProxy
from jmsaio.transport.base import LinkChange
from jmsaio.transport.pulsar.native.watching import watch
from jmsaio.transport.pulsar.native.watching.watch import Watch
from tests.kit.watching import NOT_CONNECTED, Native, Part, Scene, changes, until
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG


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
            await scene.watch.look_for_refusal(now)
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
    monkeypatch.setattr(watch, "LOOK", 0.01)
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

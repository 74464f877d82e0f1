"""A redrive whose connection, answers or broker get lost in the middle: nothing is lost, and what happened is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, ConsumerBusyError
from jmsaio.maintenance import transfer as module
from jmsaio.maintenance.transfer import FAILED, TransferResult
from jmsaio.testing import EmbeddedBroker, embedded_broker
from jmsaio.transport.base import Receiver, Subscription, SubscriptionType, Transport
from tests.kit.records import texts
from tests.maintenance.letters import QUEUE, Letters, message
from tests.transport.contract.harness import GUARD

#: Seconds that the broker takes to answer, and a moment before it does.
ANSWER, BEFORE = 0.5, 0.1


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with embedded_broker() as broker:
        yield broker


@pytest.fixture
async def letters(broker: EmbeddedBroker) -> AsyncIterator[Letters]:
    letters = await Letters.start(load(broker.url))
    yield letters
    await letters.stop()


async def redrive_to_the_last(letters: Letters, fault: Callable[[], object], **changes: Any) -> TransferResult:
    """Redrive with one more letter to wait for, which does not exist, and let something happen meanwhile."""
    end = (await letters.range()).end
    longer = await letters.range(end=end._replace(entry=end.entry + 1))
    work = asyncio.create_task(letters.redrive(longer, **changes))
    await asyncio.sleep(BEFORE)
    fault()
    return await work


async def test_letters_that_come_again_while_they_are_on_their_way_are_sent_once(
    letters: Letters, broker: EmbeddedBroker
) -> None:
    await letters.put("a", "b")
    broker.faults.delay_answers(ANSWER, 2, topic=letters.topic)
    done = await redrive_to_the_last(letters, lambda: broker.faults.drop_consumers(letters.dead))
    assert (done.sent, done.errors) == ({letters.topic: 2}, ())
    assert texts(await letters.waiting()) == ["a", "b"]
    assert await letters.waiting(letters.dead) == []


async def test_a_letter_whose_acknowledgement_got_lost_is_acknowledged_again(
    letters: Letters, broker: EmbeddedBroker
) -> None:
    await letters.put("a", "b")
    broker.faults.lose_acknowledgements(2)
    done = await redrive_to_the_last(letters, lambda: broker.faults.drop_consumers(letters.dead))
    assert done.sent == {letters.topic: 2}
    assert texts(await letters.waiting()) == ["a", "b"]
    assert await letters.waiting(letters.dead) == []


async def test_a_letter_that_is_left_and_comes_again_is_counted_once(letters: Letters, broker: EmbeddedBroker) -> None:
    await letters.put(message("tea", region="EU"), message("coffee", region="US"))
    done = await redrive_to_the_last(
        letters, lambda: broker.faults.drop_consumers(letters.dead), selector="region = 'EU'"
    )
    assert (done.sent, done.not_selected) == ({letters.topic: 1}, 1)
    assert texts(await (await letters.inbox(letters.dead)).rest()) == ["coffee"]


async def test_what_is_on_its_way_counts_when_the_consumer_is_ended(letters: Letters, broker: EmbeddedBroker) -> None:
    """Its letters can't be acknowledged any more: the next redrive sends them again."""
    await letters.put(message("tea", region="EU"), message("coffee", region="US"))
    broker.faults.delay_answers(ANSWER, topic=letters.topic)
    lost = BrokerUnavailableError("the broker is gone")
    done = await redrive_to_the_last(
        letters, lambda: broker.faults.drop_consumers(letters.dead, error=lost), selector="region = 'EU'"
    )
    assert (done.sent, done.errors[0], done.complete) == ({letters.topic: 1}, "the broker is gone", False)
    assert texts(await letters.waiting()) == ["tea"]
    assert sorted(texts(await (await letters.inbox(letters.dead)).rest())) == ["coffee", "tea"]


@attrs.define
class Observed:
    """A transport whose receivers are known."""

    inner: Transport
    receivers: list[Receiver] = attrs.field(factory=list)

    async def open_receiver(self, subscription: Subscription, wake: Callable[[], None]) -> Receiver:
        self.receivers.append(await self.inner.open_receiver(subscription, wake))
        return self.receivers[-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def test_a_consumer_that_is_closed_meanwhile_gives_everything_back(
    letters: Letters, broker: EmbeddedBroker
) -> None:
    await letters.put(message("tea", region="EU"), message("coffee", region="US"))
    broker.faults.delay_answers(ANSWER, topic=letters.topic)
    observed, closing = Observed(letters.harness.transport), list[asyncio.Task[None]]()
    harness = attrs.evolve(letters.harness, transport=cast("Transport", observed))

    def close() -> None:
        closing.append(asyncio.create_task(observed.receivers[0].aclose(GUARD)))

    done = await redrive_to_the_last(attrs.evolve(letters, harness=harness), close, selector="region = 'EU'")
    await closing[0]
    assert (done.sent, done.complete) == ({letters.topic: 1}, False)
    assert sorted(texts(await (await letters.inbox(letters.dead)).rest())) == ["coffee", "tea"]


async def test_a_letter_that_could_not_be_sent_stays(letters: Letters, broker: EmbeddedBroker) -> None:
    await letters.put("a", "b")
    broker.faults.fail_sends(topic=letters.topic)
    done = await letters.redrive()
    assert (done.sent, done.left, done.complete) == ({letters.topic: 1}, {FAILED: 1}, True)
    assert done.errors[0].startswith(f"{letters.topic}: the message was not stored")
    assert texts(await letters.waiting()) == ["b"]
    assert texts(await (await letters.inbox(letters.dead)).rest()) == ["a"]


async def test_a_broker_that_confirms_nothing_ends_the_redrive(
    letters: Letters, broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IN_FLIGHT", 1)
    await letters.put("a", "b", "c")
    broker.faults.delay_answers(9_999, 3, topic=letters.topic)
    done = await letters.redrive()
    assert done.errors[0] == "the broker has confirmed nothing for 300 s"
    assert (done.sent, done.complete) == ({}, False)
    assert sorted(texts(await (await letters.inbox(letters.dead)).rest())) == ["a", "b", "c"]


async def test_letters_on_their_way_wait_for_room(
    letters: Letters, broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IN_FLIGHT", 1)
    await letters.put("a", "b", "c")
    broker.faults.delay_answers(ANSWER, 3, topic=letters.topic)
    assert (await letters.redrive()).sent == {letters.topic: 3}
    assert await letters.waiting(letters.dead) == []


async def test_a_broker_that_goes_away_before_the_end_is_told(letters: Letters, broker: EmbeddedBroker) -> None:
    await letters.put("a", "b")
    broker.faults.delay_answers(ANSWER, 2, topic=letters.topic)
    work = asyncio.create_task(letters.redrive())
    await asyncio.sleep(BEFORE)
    broker.faults.take_down()
    done = await work
    assert not done.complete
    assert done.errors
    broker.faults.bring_up()
    left = texts(await (await letters.inbox(letters.dead)).rest())
    assert {*texts(await letters.waiting()), *left} == {"a", "b"}


async def test_a_subscription_that_another_has_for_itself_is_not_taken_from(letters: Letters) -> None:
    await letters.put("a")
    other = await letters.harness.inbox(letters.dead, name=QUEUE, type=SubscriptionType.EXCLUSIVE)
    with pytest.raises(ConsumerBusyError):
        await letters.redrive()
    assert texts(await other.take(1)) == ["a"]
    assert await letters.waiting() == []

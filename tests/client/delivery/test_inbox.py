"""An inbox by itself: filtering, redelivery, records that rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import attrs
import pytest

from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.redelivery import Redelivery
from jmsaio.client.delivery.sharing import SharingReceiver
from jmsaio.client.delivery.siblings import Siblings
from jmsaio.config import Backoff, ConsumerConfig
from jmsaio.errors import TransportError
from jmsaio.model.destinations import Queue
from jmsaio.model.wire import WireId
from jmsaio.selector import Selector
from jmsaio.transport.base import Subscription, SubscriptionType
from tests.kit.records import Record, UnreadableRecord
from tests.kit.virtual_time import steady, wall


def numbered(number: int, properties: dict[str, str] | None = None, redelivery_count: int = 0) -> Record:
    place = WireId(1, number)
    return Record(properties=properties or {}, redelivery_count=redelivery_count, message_id=place, size=10, topic="t")


@attrs.define(eq=False)
class Receiver:
    """Notes what an inbox asks of it."""

    records: list[Any] = attrs.field(factory=list)
    calls: list[tuple[Any, ...]] = attrs.field(factory=list)
    error: TransportError | None = None
    refusal: TransportError | None = None

    def receive(self, limit: int) -> list[Any]:
        if self.error is not None:
            raise self.error
        taken, self.records = self.records[:limit], self.records[limit:]
        return taken

    def acknowledge(self, records: Sequence[Any], transaction: object = None) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append(("ack", *[record.message_id.entry for record in records]))

    def negative_acknowledge(self, records: Sequence[Any], delay: float, *, counted: bool = True) -> None:
        self.calls.append(("nack", delay, counted, *[record.message_id.entry for record in records]))

    def set_aside(self, records: Sequence[Any]) -> Sequence[Any]:
        self.calls.append(("aside", *[record.message_id.entry for record in records]))
        return records

    def dead_letter(self, record: Any, properties: dict[str, str]) -> None:
        self.calls.append(("dead letter", record.message_id.entry, properties))

    def count_delivery(self, records: Sequence[Any]) -> None:
        self.calls.append(("count", *[record.message_id.entry for record in records]))

    async def aclose(self, timeout: float) -> None:
        self.calls.append(("close",))


def inbox(receiver: Receiver, filter: Filter, free_name: Callable[[], None] = lambda: None, **options: Any) -> Inbox:
    config = options.pop("config", ConsumerConfig())
    redelivery = Redelivery(config, options.pop("most_at_once", 2), options.pop("broker_dead_letters", False))
    made = Inbox(Queue("q"), Subscription(("t",), "s", SubscriptionType.SHARED, config), redelivery, **options)
    sharing: SharingReceiver[Inbox] = SharingReceiver(receiver)  # type: ignore[arg-type]  # what an inbox uses of one
    made.attach(sharing, filter, Siblings(), lambda _: None, free_name)
    made.want(True)
    return made


def numbers(made: Inbox) -> list[int]:
    return [record.message_id.entry for record in made.records]


async def test_nothing_is_taken_that_no_one_wants() -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, Filter())
    made.want(False)
    assert made.fill() is False and len(receiver.records) == 1
    made.want(True)
    assert made.fill() is False and numbers(made) == [1]


async def test_records_that_others_may_want_are_filtered_while_no_one_receives() -> None:
    receiver = Receiver([numbered(1), numbered(2, {"x": "1", "x_jsmtype": "int"})])
    made = inbox(receiver, Filter(selector=Selector("x = 1"), shared=True))
    made.want(False)
    made.fill()
    assert numbers(made) == [2] and receiver.calls == [("aside", 1)]


@pytest.mark.parametrize("filter", [Filter(), Filter(selector=Selector("x = 1")), Filter(shared=False)])
async def test_what_can_not_be_read_reaches_the_consumer(filter: Filter) -> None:
    record = UnreadableRecord()
    made = inbox(Receiver([record]), filter)
    made.fill()
    assert made.take() is record


async def test_a_full_batch_asks_again() -> None:
    receiver = Receiver([numbered(number) for number in range(5)])
    made = inbox(receiver, Filter(selector=Selector("x = 1"), shared=False), batch=5)
    assert made.fill() is True
    assert numbers(made) == [] and made.fill() is False


async def test_unselected_shared_records_go_back_with_growing_delay() -> None:
    """They rest first, and later and later each time."""
    receiver = Receiver()
    made = inbox(receiver, Filter(selector=Selector("x = 1"), shared=True))
    times = [steady()]
    for turn in range(1, 4):
        receiver.records = [numbered(1), numbered(2, {"x": "1", "x_jsmtype": "int"})]
        made.fill()
        assert receiver.calls.pop() == ("aside", 1) and numbers(made) == [2] * turn
        while not receiver.calls:
            await asyncio.sleep(0.001)
        assert receiver.calls.pop() == ("nack", 0.0, False, 1)
        times.append(steady())
    waits = [after - before for before, after in pairwise(times)]
    assert all(wait >= least for wait, least in zip(waits, (0.1, 0.13, 0.169), strict=True))


async def test_unselected_exclusive_and_expired_records_are_acknowledged() -> None:
    receiver = Receiver([numbered(1), numbered(2, {"JMSExpiration": "5"})])
    inbox(receiver, Filter(selector=Selector("x = 1"), shared=False)).fill()
    assert receiver.calls == [("ack", 1), ("ack", 2)]


async def test_expired_records_go_to_the_dead_letters_by_choice() -> None:
    soon = str(int(wall() * 1000) + 50)
    receiver = Receiver([numbered(1, {"JMSExpiration": "5", "a": "b"}), numbered(2, {"x": "1"}), numbered(3)])
    made = inbox(receiver, Filter(dead_letter_expired=True))
    receiver.records.append(numbered(4, {"JMSExpiration": soon}))
    made.fill()
    assert numbers(made) == [2, 3, 4]
    moved = {"a": "b", "JMS_jmsaio_expired_at": "5", "JMS_jmsaio_expired_at_jsmtype": "long"}
    assert receiver.calls == [("dead letter", 1, moved)]
    await asyncio.sleep(0.1)
    assert [made.take() is not None for _ in range(3)] == [True, True, False]
    assert [call[:2] for call in receiver.calls] == [("dead letter", 1), ("dead letter", 4)]


async def test_records_that_expire_in_the_inbox_are_not_delivered() -> None:
    soon = str(int(wall() * 1000) + 50)
    receiver = Receiver([numbered(1, {"JMSExpiration": soon}), numbered(2)])
    made = inbox(receiver, Filter())
    made.fill()
    assert numbers(made) == [1, 2]
    await asyncio.sleep(0.1)
    taken = made.take()
    assert taken is not None and taken.message_id == WireId(1, 2)
    assert receiver.calls == [("ack", 1)]


async def test_redelivery_keeps_the_order_and_ends_at_the_broker() -> None:
    receiver = Receiver([numbered(number) for number in range(4)])
    made = inbox(receiver, Filter())
    made.fill()
    first = [made.records.popleft() for _ in range(2)]
    for times in (1, 2):
        made.redeliver(first)
        assert numbers(made) == [0, 1, 2, 3]
        first = [made.records.popleft() for _ in range(2)]
        assert [made.redelivery.delivery_count(record) for record in first] == [times + 1] * 2
    made.redeliver(first)
    assert numbers(made) == [2, 3]
    assert [(call[0], *call[2:]) for call in receiver.calls[-2:]] == [("nack", True, 0), ("nack", True, 1)]
    made.acknowledge(first)
    assert not made.redelivery.counting


async def test_dead_letters_are_counted_by_the_broker() -> None:
    receiver = Receiver()
    made = inbox(receiver, Filter(), broker_dead_letters=True)
    made.redeliver([numbered(1)])
    assert [(call[0], *call[2:]) for call in receiver.calls] == [("nack", True, 1)]
    assert 1 <= receiver.calls[0][1] <= 1.5


async def test_on_an_exclusive_subscription_it_is_given_back_likewise() -> None:
    receiver = Receiver()
    made = inbox(receiver, Filter(shared=False), most_at_once=0)
    made.redeliver([numbered(1)])
    assert [(call[0], *call[2:]) for call in receiver.calls] == [("nack", True, 1)]
    assert receiver.calls[0][1] > 0


async def test_a_failed_receiver_is_reported_once_the_inbox_is_empty() -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, Filter())
    made.fill()
    receiver.error = TransportError("gone")
    made.fill()
    assert made.failure is receiver.error
    assert numbers(made) == [1]


@pytest.mark.parametrize("end", ["detach", "fail", "aclose"])
async def test_an_inbox_that_ended_takes_nothing_of_its_siblings(end: str) -> None:
    made = inbox(Receiver(), Filter())
    assert made.accepts(numbered(1), 0)
    if end == "detach":
        made.detach()
    elif end == "fail":
        made.fail(TransportError("gone"))
    else:
        await made.aclose(1.0)
    assert not made.accepts(numbered(1), 0)


async def test_close_gives_back_and_frees_the_name() -> None:
    freed = []
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, Filter(), lambda: freed.append(True))
    made.fill()
    await made.aclose(1.0)
    await made.aclose(1.0)
    assert receiver.calls == [("nack", 0.0, False, 1), ("close",)]
    assert freed == [True]


async def test_records_that_need_no_acknowledgement_of_their_own_are_acknowledged_together() -> None:
    receiver = Receiver([numbered(1), numbered(2), numbered(3)])
    open = inbox(receiver, Filter())
    open.fill()
    for _ in range(2):
        record = open.take()
        assert record is not None
        open.acknowledge_soon(record)
    assert receiver.calls == []
    await asyncio.sleep(0)
    assert receiver.calls == [("ack", 1, 2)]
    record = open.take()
    assert record is not None
    open.acknowledge_soon(record)
    await open.aclose(1)
    await asyncio.sleep(0)
    assert receiver.calls == [("ack", 1, 2), ("ack", 3), ("close",)]


async def test_a_transport_that_refuses_them_says_so_to_the_next_receive() -> None:
    receiver = Receiver([numbered(1)])
    open = inbox(receiver, Filter())
    open.fill()
    record = open.take()
    assert record is not None
    receiver.refusal = TransportError("the connection is lost")
    open.acknowledge_soon(record)
    await asyncio.sleep(0)
    assert open.failure is receiver.refusal


async def test_a_record_put_back_may_expire_in_the_inbox() -> None:
    receiver = Receiver([numbered(1)])
    open = inbox(receiver, Filter())
    open.fill()
    record = open.take()
    assert isinstance(record, Record)
    record.properties["JMSExpiration"] = "1"
    open.put_back(record)
    assert open.take() is None
    assert receiver.calls == [("ack", 1)]


async def test_each_record_that_a_closed_consumer_left_waits_for_its_own_delay() -> None:
    """One that has come back before waits longer than one that comes back for the first time."""
    receiver = Receiver()
    config = ConsumerConfig(negative_ack_backoff=Backoff(min_delay=1.0, max_delay=60.0, multiplier=2.0))
    made = inbox(receiver, Filter(), config=config, most_at_once=0)
    made.redeliver([numbered(1)])
    made.give_back_left([numbered(1), numbered(2)])
    assert receiver.calls == [("nack", 1.0, True, 1), ("nack", 2.0, True, 1), ("nack", 1.0, True, 2)]

"""An inbox by itself: filtering, redelivery, records that rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import attrs
import pytest

from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.inbox import FIRST, Inbox, Siblings
from jmsaio.client.delivery.settlement import Settlement
from jmsaio.config import Backoff, ConsumerConfig, DeadLetterPolicy
from jmsaio.errors import TransportError
from jmsaio.model.destinations import Queue
from jmsaio.model.wire import WireId
from jmsaio.rules.share import Share
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
    limits: list[int] = attrs.field(factory=list)

    def receive(self, limit: int) -> list[Any]:
        self.limits.append(limit)
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

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        self.calls.append(("settle", timeout, receipt))

    async def stop(self, timeout: float) -> None:
        self.calls.append(("stop",))

    async def aclose(self, timeout: float) -> None:
        self.calls.append(("close",))


@attrs.define(eq=False)
class Session:
    """Notes the inboxes that are to be filled, and decides which ones it keeps."""

    changed: Callable[[Inbox], None] = lambda _: None
    kept: Callable[[Inbox, Any], bool] = lambda _, __: False

    def mark(self, inbox: Inbox) -> None:
        self.changed(inbox)

    announce = mark

    def retain(self, inbox: Inbox, transport: Any) -> bool:
        return self.kept(inbox, transport)


def settlement(
    receiver: Any,
    config: ConsumerConfig | None = None,
    type: SubscriptionType = SubscriptionType.SHARED,
    max_at_once: int = 2,
    **options: Any,
) -> Settlement:
    """Settle at ``receiver``, with two immediate redeliveries."""
    subscription = Subscription(("t",), "s", type, config or ConsumerConfig())
    made = Settlement(receiver, subscription, max_at_once, **options)
    made.report_to(lambda error: None)
    return made


def inbox(
    receiver: Receiver,
    filter: Filter,
    free_name: Callable[[], None] = lambda: None,
    changed: Callable[[Inbox], None] = lambda _: None,
    **options: Any,
) -> Inbox:
    of_settlement = {
        name: options.pop(name) for name in {"config", "type", "max_at_once", "acks_at_once"} & options.keys()
    }
    settling = settlement(receiver, **of_settlement)
    made = Inbox(Queue("q"), settling.subscription, settling, **options)
    made.attach(Session(changed), filter, Siblings(), free_name)
    made.wanted = True
    return made


def numbers(made: Inbox) -> list[int]:
    return [record.message_id.entry for record in made.records]


async def test_nothing_is_taken_that_no_one_wants() -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, Filter())
    made.wanted = False
    assert made.fill() is False and len(receiver.records) == 1 and made.pop() is None
    made.wanted = True
    assert made.fill() is False and numbers(made) == [1]


async def test_records_that_others_may_want_are_filtered_while_no_one_receives() -> None:
    receiver = Receiver([numbered(1), numbered(2, {"x": "1", "x_jsmtype": "int"})])
    made = inbox(receiver, Filter(selector=Selector("x = 1"), shared=True))
    made.wanted = False
    made.fill()
    assert numbers(made) == [2] and receiver.calls == [("aside", 1)]


@pytest.mark.parametrize("filter", [Filter(), Filter(selector=Selector("x = 1")), Filter(shared=False)])
async def test_what_can_not_be_read_reaches_the_consumer(filter: Filter) -> None:
    record = UnreadableRecord()
    made = inbox(Receiver([record]), filter)
    made.fill()
    assert made.pop() is record


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
    assert [made.pop() is not None for _ in range(3)] == [True, True, False]
    assert [call[:2] for call in receiver.calls] == [("dead letter", 1), ("dead letter", 4)]


async def test_records_that_expire_in_the_inbox_are_not_delivered() -> None:
    soon = str(int(wall() * 1000) + 50)
    receiver = Receiver([numbered(1, {"JMSExpiration": soon}), numbered(2)])
    made = inbox(receiver, Filter())
    made.fill()
    assert numbers(made) == [1, 2]
    await asyncio.sleep(0.1)
    taken = made.pop()
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
        assert receiver.calls.pop() == ("count", 0, 1)
        first = [made.records.popleft() for _ in range(2)]
        assert [made.settlement.delivery_count(record) for record in first] == [times + 1] * 2
    made.redeliver(first)
    assert numbers(made) == [2, 3]
    assert [(call[0], *call[2:]) for call in receiver.calls[-2:]] == [("nack", True, 0), ("nack", True, 1)]
    made.settlement.acknowledge(first)
    assert not made.settlement.counting


#: A message becomes a dead letter after one redelivery.
DEAD_LETTERS = ConsumerConfig(dead_letter=DeadLetterPolicy(max_redeliver_count=1))


async def test_dead_letters_are_counted_by_the_broker() -> None:
    receiver = Receiver()
    made = inbox(receiver, Filter(), config=DEAD_LETTERS)
    made.redeliver([numbered(1)])
    assert [(call[0], *call[2:]) for call in receiver.calls] == [("nack", True, 1)]
    assert 1 <= receiver.calls[0][1] <= 1.5


async def test_on_an_exclusive_subscription_it_is_given_back_likewise() -> None:
    receiver = Receiver()
    made = inbox(receiver, Filter(shared=False), max_at_once=0)
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


async def test_what_waits_to_be_acknowledged_is_acknowledged_before_the_receiver_closes() -> None:
    receiver = Receiver()
    open = inbox(receiver, Filter())
    open.settlement.acknowledge_soon(numbered(1))
    assert receiver.calls == []
    await open.aclose(1)
    await asyncio.sleep(0)
    assert receiver.calls == [("ack", 1), ("close",)]


async def test_where_acknowledgements_are_cheap_none_of_a_caller_waits() -> None:
    receiver = Receiver()
    cheap = inbox(receiver, Filter(), acks_at_once=True)
    for entry in range(2):
        cheap.settlement.acknowledge_for_caller([numbered(entry)])
    assert receiver.calls == [("ack", 0), ("ack", 1)]


async def test_a_transport_that_refuses_them_says_so_to_the_next_receive() -> None:
    receiver = Receiver([numbered(1)])
    open = inbox(receiver, Filter())
    open.fill()
    record = open.pop()
    assert record is not None
    receiver.refusal = TransportError("the connection is lost")
    open.settlement.acknowledge_soon(record)
    await asyncio.sleep(0)
    assert open.failure is receiver.refusal


async def test_a_record_put_back_may_expire_in_the_inbox() -> None:
    receiver = Receiver([numbered(1)])
    open = inbox(receiver, Filter())
    open.fill()
    record = open.pop()
    assert isinstance(record, Record)
    record.properties["JMSExpiration"] = "1"
    open.put_back(record)
    assert open.pop() is None
    assert receiver.calls == [("ack", 1)]


async def test_each_record_that_a_closed_consumer_left_waits_for_its_own_delay() -> None:
    """One that has come back before waits longer than one that comes back for the first time."""
    receiver = Receiver()
    config = ConsumerConfig(negative_ack_backoff=Backoff(min_delay=1.0, max_delay=60.0, multiplier=2.0))
    made = inbox(receiver, Filter(), config=config, max_at_once=0)
    made.redeliver([numbered(1)])
    made.settlement.return_unsettled([numbered(1), numbered(2)])
    assert receiver.calls == [("nack", 1.0, True, 1), ("nack", 2.0, True, 1), ("nack", 1.0, True, 2)]


SELECTING = Filter(selector=Selector("x = 1"))
WANTED = {"x": "1", "x_jsmtype": "int"}


async def test_only_records_that_others_may_want_are_asked_for_before_someone_receives() -> None:
    asked: list[Inbox] = []
    made = inbox(Receiver(), SELECTING, changed=asked.append)
    assert asked == [made]
    inbox(Receiver(), Filter(), changed=asked.append)
    assert asked == [made]


async def test_a_closed_inbox_receives_nothing() -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, Filter())
    await made.aclose(1.0)
    assert made.fill() is False and receiver.limits == []


async def test_a_detached_inbox_is_not_waited_for() -> None:
    made = inbox(Receiver(), Filter())
    made.detach()
    assert not made.wanted


async def test_what_is_costly_to_filter_is_taken_in_steps_of_64() -> None:
    receiver = Receiver([numbered(number) for number in range(100)])
    made = inbox(receiver, SELECTING, share=Share(100 * FIRST))
    assert made.fill() is True and made.fill() is False
    assert receiver.limits == [64, 64] and not made.records


async def test_nothing_is_taken_where_no_more_may_rest() -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, SELECTING)
    made.settlement.max_resting = 0
    assert made.fill() is False and made.more is False and receiver.limits == []


async def test_a_full_inbox_is_filled_again_when_half_of_it_was_taken() -> None:
    """Only where its records may be for others: else each receive asks."""
    for filter, expected in ((SELECTING, [0, 1, 1, 1]), (Filter(), [0, 0, 0, 0])):
        asked: list[Inbox] = []
        receiver = Receiver([numbered(number, WANTED) for number in range(5)])
        made = inbox(receiver, filter, changed=asked.append, batch=4)
        assert made.fill() is True and made.fill() is False and receiver.limits == [4]
        asked.clear()
        found = []
        for _ in range(4):
            made.pop()
            found.append(len(asked))
        assert found == expected


async def test_room_doubles_while_records_are_small_and_shrinks_with_the_first_large_one() -> None:
    receiver = Receiver()
    made = inbox(receiver, Filter(), share=Share(4 * FIRST), batch=1000)
    small, large = numbered(1), attrs.evolve(numbered(0), size=FIRST)
    for records in ([], [small, small], [small, small], [large, small], [small, large], [small]):
        receiver.records = records
        made.fill()
        made.records.clear()
    assert receiver.limits == [4, 4, 8, 16, 4, 4]


async def test_there_is_room_for_one_record_however_small_the_share_is() -> None:
    receiver = Receiver([numbered(1), numbered(2)])
    made = inbox(receiver, Filter(), share=Share(1))
    assert made.fill() is True and made.fill() is False
    assert receiver.limits == [1]


async def test_siblings_hand_over_no_more_than_eight_batches() -> None:
    made = inbox(Receiver(), Filter(), batch=1)
    for number in range(8):
        assert made.accepts(numbered(number), 0)
        made.add(numbered(number), made.settlement)
    assert not made.accepts(numbered(8), 0)


async def test_siblings_hand_over_no_more_bytes_than_its_share() -> None:
    made = inbox(Receiver(), Filter(), share=Share(50))
    large = attrs.evolve(numbered(0), size=20)
    for number in range(2):
        made.add(numbered(number), made.settlement)
    assert not made.accepts(large, 0)
    assert made.accepts(numbered(2), 0)
    made.pop()
    assert made.accepts(large, 0)
    made.add(large, made.settlement)
    assert not made.accepts(numbered(3), 0)


@pytest.mark.parametrize("how", ["hand", "put_back", "redeliver", "fail", "aclose"])
async def test_whoever_waits_for_an_arrival_is_woken(how: str) -> None:
    asked: list[Inbox] = []
    made = inbox(Receiver(), Filter(), changed=asked.append)
    arrival = made.arrival()
    assert asked == [made] and not arrival.done()
    match how:
        case "hand":
            made.add(numbered(1), made.settlement)
        case "put_back":
            made.put_back(numbered(1))
        case "redeliver":
            made.redeliver([numbered(1)])
        case "fail":
            made.fail(TransportError("gone"))
        case _:
            await made.aclose(1.0)
    assert arrival.done()
    assert len(asked) == (2 if how in ("hand", "redeliver") else 1)


async def test_what_is_withdrawn_is_no_longer_lent_and_makes_room() -> None:
    asked: list[Inbox] = []
    receiver, giving = Receiver([numbered(1, WANTED)]), inbox(Receiver(), SELECTING)
    made = inbox(receiver, SELECTING, changed=asked.append, batch=2)
    made.fill()
    handed = numbered(2, WANTED)
    made.add(handed, giving.settlement)
    assert made.fill() is False and len(giving.settlement.transferred) == 1
    asked.clear()
    assert made.withdraw(giving.settlement) == [handed]
    assert (numbers(made), giving.settlement.transferred, asked) == ([1], {}, [made])
    assert made.withdraw(giving.settlement) == []


async def test_what_expired_in_the_inbox_makes_room_too() -> None:
    asked: list[Inbox] = []
    soon = str(int(wall() * 1000) + 50)
    receiver = Receiver([numbered(number, {**WANTED, "JMSExpiration": soon}) for number in range(4)])
    made = inbox(receiver, SELECTING, changed=asked.append, batch=4)
    made.fill()
    made.fill()
    made.records.append(numbered(4))
    asked.clear()
    await asyncio.sleep(0.1)
    assert made.pop() is not None and made.pop() is None
    assert receiver.calls == [("ack", number) for number in range(4)] and asked == [made]


@pytest.mark.parametrize("never", ["0", "-5", "soon"])
async def test_a_record_without_an_expiration_does_not_expire_in_the_inbox(never: str) -> None:
    made = inbox(Receiver([numbered(1, {"JMSExpiration": never})]), Filter())
    made.fill()
    assert made.pop() is not None


async def test_deliveries_of_a_settled_message_are_not_counted_any_longer() -> None:
    """It expired, was rejected, or became a dead letter."""
    receiver = Receiver()
    rejecting = Filter(dead_letter_expired=True, shared=False, selector=Selector("x = 1"))
    made = inbox(receiver, rejecting, config=DEAD_LETTERS, type=SubscriptionType.EXCLUSIVE)
    receiver.records = [numbered(1), numbered(2, {"JMSExpiration": "5"})]
    made.settlement.redeliver([*receiver.records, numbered(3)])
    receiver.calls.clear()
    made.fill()
    made.redeliver([numbered(3)])
    assert [call[:2] for call in receiver.calls] == [
        ("ack", 1), ("dead letter", 2), ("count", 3), ("dead letter", 3),
    ]  # fmt: skip
    assert not made.settlement.counting


async def test_an_inbox_that_is_detached_before_it_closes_gives_everything_back_once() -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, Filter())
    made.fill()
    made.settlement.retain(numbered(2))
    made.detach()
    assert receiver.calls == [("nack", 0.0, True, 2), ("nack", 0.0, False, 1)]
    await made.aclose(1.0)
    assert receiver.calls[2:] == [("close",)]


@pytest.mark.parametrize(("filter", "stops"), [(Filter(), True), (Filter(shared=False), False)])
async def test_only_where_others_share_the_subscription_the_receiver_stops(filter: Filter, stops: bool) -> None:
    receiver = Receiver()
    await inbox(receiver, filter).stop(1.0)
    assert receiver.calls == ([("stop",)] if stops else [])


async def test_a_closed_inbox_leaves_its_bytes_to_the_others() -> None:
    share = Share(100)
    made, other = (inbox(Receiver(), Filter(), share=share) for _ in range(2))
    assert share.each == 50
    await made.aclose(1.0)
    assert share.each == 100 and made.closed and not other.closed
    assert not made.wanted


async def test_a_close_that_fails_closes_the_receiver_and_frees_the_name() -> None:
    class Failing(Receiver):
        def negative_acknowledge(self, records: Sequence[Any], delay: float, *, counted: bool = True) -> None:
            raise TransportError("no link")

        async def aclose(self, timeout: float) -> None:
            await super().aclose(timeout)
            raise TransportError("no answer")

    freed: list[bool] = []
    receiver = Failing([numbered(1)])
    made = inbox(receiver, Filter(), lambda: freed.append(True))
    made.fill()
    with pytest.raises(TransportError, match="no answer"):
        await made.aclose(1.0)
    assert receiver.calls == [("close",)] and freed == [True]


@pytest.mark.parametrize(("by_priority", "order"), [(False, [1, 2]), (True, [2, 1])])
async def test_a_higher_priority_comes_first_only_where_that_is_asked_for(by_priority: bool, order: list[int]) -> None:
    records = [numbered(1, {"JMSPriority": "1"}), numbered(2, {"JMSPriority": "9"})]
    made = inbox(Receiver(records), Filter(), by_priority=by_priority)
    made.fill()
    taken = [made.pop() for _ in records]
    assert [record.message_id.entry for record in taken if record is not None] == order


async def test_by_priority_what_arrives_behind_undelivered_records_is_taken_at_once() -> None:
    """Also when no one waits, and in the take that finds room again; else the receiver keeps it."""
    receiver = Receiver([numbered(number, {"JMSPriority": "1"}) for number in range(4)])
    made = inbox(receiver, Filter(), by_priority=True, batch=4)
    made.fill()
    made.wanted = False
    receiver.records = [numbered(number, {"JMSPriority": "9"}) for number in range(4, 7)]
    assert made.fill() is False and len(receiver.records) == 3  # the inbox is full
    taken = [made.pop() for _ in range(7)]
    assert [record.message_id.entry for record in taken if record is not None] == [0, 1, 4, 5, 6, 2, 3]
    receiver.records = [numbered(8)]
    assert made.fill() is False and made.pop() is None and len(receiver.records) == 1


async def test_a_wake_before_there_is_a_consumer_and_a_cancelled_wait_do_no_harm() -> None:
    settling = settlement(Receiver())
    unattached = Inbox(Queue("q"), settling.subscription, settling)
    unattached.wake()
    made = inbox(Receiver(), Filter())
    made.arrival().cancel()
    made.notify()
    made.notify()


async def test_records_that_no_one_here_wants_end_no_wait() -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, SELECTING)
    arrival = made.arrival()
    made.fill()
    assert not arrival.done()
    receiver.records = [numbered(2, WANTED)]
    made.fill()
    assert arrival.done()


async def test_what_a_fill_leaves_at_the_receiver_is_known() -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, Filter())
    made.fill()
    assert made.more is False
    receiver.records = [numbered(2)]
    made.wanted = False
    assert made.fill() is False and made.more is True


async def test_a_record_that_a_sibling_returns_is_lent_to_no_one() -> None:
    made = inbox(Receiver(), Filter())
    made.add(numbered(1), made.settlement)
    assert made.settlement.transferred == {}


async def test_what_is_handed_over_may_expire_in_the_inbox() -> None:
    made = inbox(Receiver(), Filter())
    made.add(numbered(1, {"JMSExpiration": str(made.settlement.timers.milliseconds() + 50)}), made.settlement)
    made.add(numbered(2), made.settlement)
    await asyncio.sleep(0.1)
    taken = made.pop()
    assert taken is not None and taken.message_id.entry == 2


async def test_the_largest_record_that_was_handed_over_says_how_many_more_are_taken() -> None:
    made = inbox(Receiver(), Filter(), share=Share(50))
    made.add(attrs.evolve(numbered(0), size=20), made.settlement)
    made.add(numbered(1), made.settlement)
    assert not made.accepts(numbered(2), 0)


async def test_a_record_expires_in_the_millisecond_that_it_names() -> None:
    made = inbox(Receiver(), Filter())
    now = made.settlement.timers.milliseconds()
    for left in (1, 0):
        made.put_back(numbered(left, {"JMSExpiration": str(now + left)}))
    taken = made.pop()
    assert taken is not None and taken.message_id.entry == 1


@pytest.mark.parametrize("refused", [True, False])
async def test_what_can_not_be_read_goes_back_after_its_delay_and_a_refusal_ends_the_inbox(refused: bool) -> None:
    class Refusing(Receiver):
        def negative_acknowledge(self, records: Sequence[Any], delay: float, *, counted: bool = True) -> None:
            if self.refusal is not None:
                raise self.refusal
            super().negative_acknowledge(records, delay, counted=counted)

    receiver = Refusing(refusal=TransportError("no link") if refused else None)
    made = inbox(receiver, Filter())
    made.settlement.retain(numbered(1))
    await asyncio.sleep(0.5)
    assert receiver.calls == [] and made.failure is None
    await asyncio.sleep(2.0)
    assert receiver.calls == ([] if refused else [("nack", 0.0, True, 1)])
    assert made.failure is receiver.refusal


@pytest.mark.parametrize("end", ["detach", "aclose"])
async def test_an_inbox_that_ended_asks_for_nothing_even_for_others(end: str) -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, SELECTING)
    if end == "detach":
        made.detach()
    else:
        await made.aclose(1.0)
    assert made.fill() is False and receiver.limits == []


async def test_what_rests_goes_back_before_the_receiver_closes() -> None:
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, SELECTING)
    made.fill()
    await made.aclose(1.0)
    assert receiver.calls == [("aside", 1), ("nack", 0.0, False, 1), ("close",)]


async def test_a_wait_asks_the_receiver_only_for_what_it_does_not_tell_by_itself() -> None:
    asked: list[Inbox] = []
    receiver = Receiver([numbered(1)])
    made = inbox(receiver, Filter(), changed=asked.append)
    made.arrival().cancel()
    assert asked == [made]  # never asked before
    made.fill()
    assert made.pop() is not None
    made.arrival().cancel()
    assert asked == [made]  # it has had nothing more, and wakes the inbox
    receiver.error = TransportError("the connection is lost")
    made.wake()
    made.fill()
    made.arrival().cancel()
    assert asked == [made] * 3  # by the receiver, and for the failure


async def test_what_came_while_no_consumer_was_attached_is_asked_for() -> None:
    asked: list[Inbox] = []
    receiver = Receiver()
    made = inbox(receiver, Filter(), changed=asked.append)
    made.fill()
    made.detach()
    receiver.records.append(numbered(1))
    made.wake()
    assert made.fill() is False and numbers(made) == []
    made.attach(Session(asked.append), Filter(), Siblings(), lambda: None)
    asked.clear()
    made.arrival().cancel()
    assert asked == [made]

"""Records are settled where they were received; what was given back comes at once for a few times, then later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest

from jmsaio.client.delivery import settlement as settlement_module
from jmsaio.client.delivery.settlement import Settlement
from jmsaio.config import ConsumerConfig, DeadLetterPolicy
from jmsaio.errors import JMSError, ObjectClosedError, TransportError
from jmsaio.transport.base import SubscriptionType
from tests.client.delivery.test_inbox import Receiver, numbered, settlement


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test takes longer than a turn may, however busy the machine is."""
    monkeypatch.setattr(settlement_module, "_LONGEST_TURN", 3600.0)


def grouped(receiver: Receiver) -> list[list[int]]:
    """The acknowledgements that reached a receiver, by call."""
    return [list(call[1:]) for call in receiver.calls]


async def test_records_that_no_caller_waits_for_are_acknowledged_at_the_end_of_the_turn() -> None:
    receiver = Receiver()
    turn = settlement(receiver)
    for _ in range(2):
        for entry in range(3):
            turn.acknowledge_soon(numbered(entry))
        assert receiver.calls == []
        await asyncio.sleep(0)
        assert grouped(receiver) == [[0, 1, 2]]
        receiver.calls.clear()


async def test_the_first_call_of_a_turn_acknowledges_at_once_and_the_others_at_its_end() -> None:
    receiver = Receiver()
    turn = settlement(receiver)
    for _ in range(2):
        for entry in range(3):
            turn.acknowledge_for_caller([numbered(entry)])
        assert grouped(receiver) == [[0]]
        await asyncio.sleep(0)
        assert grouped(receiver) == [[0], [1, 2]]
        receiver.calls.clear()


async def test_what_is_refused_at_once_raises_and_what_is_refused_later_is_told() -> None:
    failures: list[JMSError] = []
    receiver = Receiver(refusal=TransportError("the connection is lost"))
    turn = settlement(receiver)
    turn.report_to(failures.append)
    for _ in range(2):
        with pytest.raises(TransportError, match="lost"):
            turn.acknowledge_for_caller([numbered(1)])
    refusal, receiver.refusal = receiver.refusal, None
    turn.acknowledge_for_caller([numbered(1)])
    receiver.refusal = refusal
    turn.acknowledge_for_caller([numbered(2)])
    assert failures == []
    await asyncio.sleep(0)
    assert failures == [refusal]


async def test_what_waits_is_acknowledged_once_by_whoever_comes_first() -> None:
    receiver = Receiver()
    turn = settlement(receiver)
    turn.acknowledge_soon(numbered(1))
    turn.flush()
    turn.flush()
    await asyncio.sleep(0)
    assert grouped(receiver) == [[1]]


async def test_nothing_waits_once_it_is_closed() -> None:
    receiver = Receiver()
    turn = settlement(receiver)
    turn.acknowledge_for_caller([numbered(1)])
    turn.acknowledge_for_caller([numbered(2)])
    await turn.aclose(1.0)  # in the same turn of the loop
    turn.acknowledge_for_caller([numbered(3)])
    assert receiver.calls == [("ack", 1), ("ack", 2), ("close",), ("ack", 3)]


async def test_a_task_that_gives_the_loop_no_turn_keeps_few_records_back() -> None:
    receiver = Receiver()
    turn = settlement(receiver)
    turn.acknowledge_for_caller([numbered(0)])
    for entry in range(1, 100):
        (turn.acknowledge_soon(numbered(entry)) if entry % 2 else turn.acknowledge_for_caller([numbered(entry)]))
    assert [len(call) for call in grouped(receiver)] == [1, 32, 32, 32]
    await asyncio.sleep(0)
    assert list(chain(*grouped(receiver))) == list(range(100))


@pytest.mark.parametrize("awaited", [True, False])
async def test_a_task_that_works_on_each_message_keeps_none_back(
    awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settlement_module, "_LONGEST_TURN", -1.0)  # as if each took longer than that
    receiver = Receiver()
    turn = settlement(receiver)
    for entry in range(4):
        (turn.acknowledge_for_caller([numbered(entry)]) if awaited else turn.acknowledge_soon(numbered(entry)))
    assert list(chain(*grouped(receiver))) == list(range(4))


EXCLUSIVE = SubscriptionType.EXCLUSIVE


def dead_letters(redeliveries: int) -> ConsumerConfig:
    """Make a message a dead letter after so many redeliveries."""
    return ConsumerConfig(dead_letter=DeadLetterPolicy(max_redeliver_count=redeliveries))


def steps(settling: Settlement, records: Sequence[Any]) -> list[str]:
    """What becomes of records that the application returns one after the other."""
    receiver: Any = settling.own
    found = []
    for record in records:
        receiver.calls.clear()
        found.append("at once" if settling.redeliver([record]) == [record] else receiver.calls[-1][0])
    return found


@pytest.mark.parametrize(("options", "expected"), [
    ({}, ["at once", "at once", "nack", "nack"]),
    ({"config": dead_letters(2)}, ["nack"]),  # where the broker counts, it redelivers
    ({"config": dead_letters(2), "type": EXCLUSIVE}, ["at once", "at once", "dead letter"]),
])  # fmt: skip
async def test_it_comes_at_once_so_many_times_and_then_later_or_as_a_dead_letter(
    options: dict[str, Any], expected: list[str]
) -> None:
    assert steps(settlement(Receiver(), **options), [numbered(1)] * len(expected)) == expected


@pytest.mark.parametrize(("before", "expected"), [(0, "at once"), (5, "at once"), (6, "nack")])
async def test_the_brokers_redeliveries_count_for_the_limit(before: int, expected: str) -> None:
    settling = settlement(Receiver(), max_at_once=6)
    assert steps(settling, [numbered(1, redelivery_count=before)]) == [expected]


async def test_the_count_is_the_larger_of_the_brokers_and_the_clients() -> None:
    settling, record = settlement(Receiver(), max_at_once=9), numbered(1, redelivery_count=4)
    assert (settling.counting, settling.delivery_count(record)) == (False, 5)
    settling.redeliver([record])
    assert (settling.counting, settling.delivery_count(record)) == (True, 6)
    settling.forget(record)
    assert (settling.counting, settling.delivery_count(record)) == (False, 5)


async def test_the_larger_count_wins() -> None:
    settling = settlement(Receiver(), config=dead_letters(6), type=EXCLUSIVE, max_at_once=9)
    seen, unseen = numbered(1, redelivery_count=5), numbered(1)
    assert settling.delivery_count(unseen) == 1
    assert steps(settling, [unseen]) == ["at once"]
    assert settling.delivery_count(unseen) == 2
    assert settling.delivery_count(seen) == 6
    assert steps(settling, [seen]) == ["at once"]
    assert settling.delivery_count(unseen) == 7
    assert steps(settling, [unseen]) == ["dead letter"]
    assert settling.delivery_count(unseen) == 1  # it is forgotten


async def test_delays_grow_until_the_message_is_settled() -> None:
    receiver = Receiver()
    settling, record = settlement(receiver, max_at_once=0), numbered(1)
    for _ in range(2):
        settling.redeliver([record])
    settling.forget(record)
    settling.redeliver([record])
    first, second, again = (call[1] for call in receiver.calls)
    assert 1 <= first <= 1.5 < second and again == first


@pytest.mark.parametrize(("config", "delay"), [
    (ConsumerConfig(), 0.0), (ConsumerConfig(negative_ack_redelivery_delay=7.0), 7.0),
])  # fmt: skip
async def test_what_a_closed_consumer_left_comes_at_once_unless_a_delay_is_configured(
    config: ConsumerConfig, delay: float
) -> None:
    receiver = Receiver()
    settlement(receiver, config).return_unsettled([numbered(1), numbered(2)])
    assert receiver.calls == [("nack", delay, True, 1, 2)]


async def test_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlement_module, "MOST_COUNTS", 2)
    settling = settlement(Receiver(), max_at_once=9)
    settling.redeliver([numbered(entry) for entry in range(3)])
    assert [settling.delivery_count(numbered(entry)) for entry in range(3)] == [1, 2, 2]


def delayed(receiver: Receiver, seconds: float) -> Settlement:
    return settlement(receiver, ConsumerConfig(negative_ack_redelivery_delay=seconds))


async def test_an_unreadable_record_that_was_retained_is_claimed_once() -> None:
    receiver = Receiver()
    settling, record = delayed(receiver, 60), numbered(1)
    settling.retain(record)
    assert settling.claim(record) is record
    assert settling.claim(record) is None
    assert receiver.calls == []


async def test_an_unreadable_record_is_given_back_after_its_delay() -> None:
    receiver = Receiver()
    settling, record = delayed(receiver, 0.01), numbered(1)
    settling.retain(record)
    async with asyncio.timeout(10):
        while not receiver.calls:
            await asyncio.sleep(0.01)
    assert receiver.calls == [("nack", 0.0, True, 1)] and settling.claim(record) is None


@pytest.mark.parametrize(("bound", "value"), [("MOST_RECORDS", 2), ("MOST_BYTES", 20)])
async def test_beyond_the_bound_the_oldest_is_given_back_at_once(
    bound: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settlement_module, bound, value)
    receiver = Receiver()
    settling = delayed(receiver, 60)
    for number in range(3):
        settling.retain(numbered(number))
    settling.detach()
    settling.detach()
    assert receiver.calls == [("nack", 0.0, True, 0), ("nack", 0.0, True, 1, 2)]


async def test_an_unreadable_record_that_comes_again_is_retained_for_its_whole_delay_and_given_back_once() -> None:
    """It takes the place of the first."""
    receiver = Receiver()
    settling = delayed(receiver, 1.0)
    first, again = numbered(1), numbered(1)
    settling.retain(first)
    await asyncio.sleep(0.6)
    settling.retain(again)
    await asyncio.sleep(0.6)
    assert receiver.calls == [] and settling.claim(first) is again
    settling.retain(again)
    await asyncio.sleep(1.2)
    assert receiver.calls == [("nack", 0.0, True, 1)]


async def test_the_latest_one_is_retained_however_narrow_the_bounds_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlement_module, "MOST_RECORDS", 1)
    monkeypatch.setattr(settlement_module, "MOST_BYTES", 5)
    receiver = Receiver()
    settling = delayed(receiver, 60)
    records = [numbered(number) for number in range(3)]
    for record in records:
        settling.retain(record)
    assert [call[3:] for call in receiver.calls] == [(0,), (1,)] and settling.claim(records[2]) is records[2]


#: Stands for the inbox that has the records.
INBOX: Any = object()


class Closed(Receiver):
    """Refuses everything."""

    def acknowledge(self, records: Any, transaction: object = None) -> None:
        raise ObjectClosedError("closed")

    def negative_acknowledge(self, records: Any, delay: float, *, counted: bool = True) -> None:
        raise ObjectClosedError("closed")


def pair(owner: Receiver) -> tuple[Settlement, Settlement, Receiver]:
    mine = Receiver()
    return settlement(owner), settlement(mine), mine


async def test_each_record_is_settled_where_it_came_from() -> None:
    theirs = Receiver()
    owner, adopter, mine = pair(theirs)
    records: list[Any] = [numbered(number) for number in range(6)]
    for record in records[3:]:
        adopter.adopt(record, owner, INBOX)
    assert len(owner.transferred) == 3 and adopter.owner(records[3]) is owner and adopter.owner(records[0]) is adopter
    adopter.count_delivery([records[0], records[3]])
    adopter.acknowledge([records[0], records[3]])
    adopter.negative_acknowledge([records[1], records[4]], 2.0, counted=False)
    adopter.dead_letter(records[2], {})
    adopter.dead_letter(records[5], {})
    for receiver, first in ((mine, 0), (theirs, 3)):
        assert receiver.calls == [
            ("count", first), ("ack", first), ("nack", 2.0, False, first + 1), ("dead letter", first + 2, {}),
        ]  # fmt: skip
    assert not owner.transferred and adopter.owner(records[3]) is adopter


async def test_what_is_left_goes_back_at_close() -> None:
    theirs = Receiver()
    owner, adopter, mine = pair(theirs)
    adopter.adopt(numbered(1), owner, INBOX)
    await adopter.aclose(1.0)
    assert theirs.calls == [("nack", 0.0, True, 1)] and mine.calls == [("close",)]


async def test_a_receiver_that_is_closed_has_given_everything_back(caplog: Any) -> None:
    owner, adopter, _ = pair(Closed())
    records: list[Any] = [numbered(1), numbered(2), numbered(3)]
    for record in records:
        adopter.adopt(record, owner, INBOX)
    adopter.acknowledge(records[:1])
    adopter.negative_acknowledge(records[1:2], 0.0)
    adopter.drop(records[2])  # it expired
    assert "are redelivered" in caplog.text and not owner.transferred


async def test_a_transaction_is_not_committed_without_a_record_of_a_closed_receiver() -> None:
    owner, adopter, mine = pair(Closed())
    records: list[Any] = [numbered(1), numbered(2)]
    adopter.adopt(records[0], owner, INBOX)
    transaction: Any = object()  # is only passed on
    with pytest.raises(ObjectClosedError):
        adopter.acknowledge(records, transaction)
    assert mine.calls == [("ack", 2)]


async def test_acknowledgements_are_settled_wherever_they_went_each_once() -> None:
    theirs = Receiver()
    owner, adopter, mine = pair(theirs)
    record: Any = numbered(1)
    adopter.adopt(record, owner, INBOX)
    adopter.acknowledge([record])
    for receipt in (True, False):
        await adopter.settle(2.0, receipt=receipt)
    assert theirs.calls == [("ack", 1), ("settle", 2.0, True)]
    assert mine.calls == [("settle", 2.0, True), ("settle", 2.0, False)]


async def test_a_borrowed_record_is_let_go_once() -> None:
    owner, adopter, _ = pair(Receiver())
    record: Any = numbered(1)
    adopter.adopt(record, owner, INBOX)
    assert adopter.release(record) is owner and not owner.transferred
    assert adopter.release(record) is adopter


async def test_a_refusal_of_the_inboxes_own_receiver_is_raised_and_costs_the_others_nothing() -> None:
    """Only the other receivers have closed by themselves."""
    theirs = Receiver()
    owner, adopter = settlement(theirs), settlement(Closed())
    records: list[Any] = [numbered(number) for number in range(4)]
    for transferred in records[1::2]:
        adopter.adopt(transferred, owner, INBOX)
    with pytest.raises(ObjectClosedError):
        adopter.acknowledge(records[:2])
    with pytest.raises(ObjectClosedError):
        adopter.negative_acknowledge(records[2:], 0.0)
    assert theirs.calls == [("ack", 1), ("nack", 0.0, True, 3)]

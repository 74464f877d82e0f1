"""Records of a subscription that wait outside of its backlog are ready in their time and in their order."""

from __future__ import annotations

import pytest

from jmsaio.transport.clock import ManualClock, Timers
from jmsaio.transport.memory.broker.partition import StoredRecord
from jmsaio.transport.memory.broker.returned import ReturnedRecords
from tests.transport.memory.bench import Bench


@pytest.fixture
def records(bench: Bench) -> list[StoredRecord]:
    """Records with the numbers 0 to 3."""
    bench.subscribe()
    bench.send(*"0123")
    return list(bench.log.records.values())


def drained(returned: ReturnedRecords) -> list[int]:
    """The numbers of the records that are ready, which are taken."""
    numbers = []
    while (record := returned.first()) is not None:
        numbers.append(record.number)
        returned.pop_first()
    return numbers


def test_delayed_records_are_ready_in_their_time_unless_they_were_acknowledged(
    bench: Bench, records: list[StoredRecord]
) -> None:
    clock, timers, heard = ManualClock(100.0), Timers(lambda: None), list[str]()
    returned = ReturnedRecords(timers, lambda: heard.append("due"))
    consumer = bench.join(bench.subscribe("other"))
    for number, due in ((1, 103.0), (2, 101.0), (3, 102.0)):
        returned.delay(records[number], due, consumer if number > 1 else None)
    assert consumer.waiting == {2, 3}
    assert returned.remove(3) is records[3]
    assert (returned.remove(3), returned.first(), consumer.waiting) == (None, None, {2})
    clock.advance(3)
    timers.run(clock.steady())
    assert (heard, consumer.waiting) == (["due", "due"], set())
    assert drained(returned) == [1, 2]
    assert returned.records == {}


def test_ready_records_come_by_their_numbers_without_those_acknowledged(records: list[StoredRecord]) -> None:
    returned = ReturnedRecords(Timers(lambda: None), lambda: None)
    for number in (3, 1, 0, 2):
        returned.put_back(records[number])
    returned.remove(1)
    assert drained(returned) == [0, 2, 3]


def test_what_a_consumer_gave_back_with_a_delay_can_be_hurried(bench: Bench, records: list[StoredRecord]) -> None:
    timers, heard = Timers(lambda: None), list[str]()
    returned = ReturnedRecords(timers, lambda: heard.append("due"))
    one, other = (bench.join(bench.subscribe(name)) for name in ("one", "other"))
    returned.delay(records[0], 5.0, one)
    returned.delay(records[1], 5.0, other)
    returned.end_delays(one)
    assert (drained(returned), one.waiting, other.waiting) == ([0], set(), {1})
    timers.run(5.0)
    assert (drained(returned), heard) == ([1], ["due"])


def test_clearing_ends_every_delay(records: list[StoredRecord]) -> None:
    timers, heard = Timers(lambda: None), list[str]()
    returned = ReturnedRecords(timers, lambda: heard.append("due"))
    returned.delay(records[0], 1.0, None)
    returned.put_back(records[1])
    returned.clear()
    timers.run(2.0)
    assert (heard, returned.first(), returned.records) == ([], None, {})
    returned.delay(records[1], 5.0, None)  # it was ready before
    assert returned.first() is None

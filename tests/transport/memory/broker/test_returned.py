"""Records of a subscription that wait for their time."""

from __future__ import annotations

from jmsaio.transport.clock import ManualClock, Timers
from jmsaio.transport.memory.broker.delays import Delays
from tests.transport.memory.bench import Bench


def test_records_are_due_in_the_order_of_their_times_unless_they_were_ended(bench: Bench) -> None:
    clock, due = ManualClock(100.0), list[int]()
    timers = Timers(lambda: None)
    delays = Delays(timers, due.append)
    consumer = bench.join(bench.subscribe())
    for number, time in ((1, 103.0), (2, 101.0), (3, 102.0)):
        delays.add(number, time, consumer if number > 1 else None)
    assert consumer.waiting == {2, 3}
    delays.end(3)
    assert (3 in delays, 1 in delays, consumer.waiting) == (False, True, {2})
    clock.advance(3)
    timers.run(clock.steady())
    assert (due, consumer.waiting, 1 in delays) == ([2, 1], set(), False)


def test_clearing_ends_all_of_them() -> None:
    due = list[int]()
    timers = Timers(lambda: None)
    delays = Delays(timers, due.append)
    delays.add(1, 1.0, None)
    delays.clear()
    timers.run(2.0)
    assert due == [] and 1 not in delays

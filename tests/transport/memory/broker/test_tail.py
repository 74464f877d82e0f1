from __future__ import annotations

from jmsaio.transport.base import StartPosition
from jmsaio.transport.memory.broker.partition import weigh
from jmsaio.transport.memory.broker.tail import Tail, tails_of
from tests.kit.records import record, texts
from tests.transport.memory.bench import Bench, FakePort


def test_a_tail_reads_what_is_there_and_what_comes(bench: Bench) -> None:
    bench.subscribe()
    bench.send("1")
    port = FakePort()
    tail = Tail(bench.log, port, StartPosition.EARLIEST, True)
    bench.send("2", deliver_at=int(bench.clock.now() * 1000) + 60_000)
    assert port.notified == 1
    assert texts(tail.take(1)) == ["1"]
    assert texts(tail.take(5)) == ["2"]
    assert tails_of(bench.log) == [tail]
    bench.send("3")
    assert port.notified == 1
    tail.leave()
    assert tails_of(bench.log) == []
    assert [record.references for record in bench.log.records.values()] == [1, 1, 1]


def send_at(bench: Bench, text: str, moment: float) -> None:
    """Store a record when the clock shows ``moment``, in seconds: it may have been set back."""
    outgoing = record(text)
    bench.log.append(outgoing, weigh(outgoing), 0, moment)


def test_a_tail_from_a_time_to_come_begins_with_the_first_record_at_that_time(bench: Bench) -> None:
    port = FakePort()
    tail = Tail(bench.log, port, 2_000_000, True)
    send_at(bench, "too early", 1999)
    assert port.notified == 0
    assert bench.broker.used == 0
    send_at(bench, "1", 2000)
    send_at(bench, "2", 1990)
    assert texts(tail.take(5)) == ["1", "2"]


def test_a_tail_from_a_time_takes_all_behind_the_first_record(bench: Bench) -> None:
    bench.subscribe()
    for text, moment in (("too early", 1999), ("1", 2000), ("2", 1990)):
        send_at(bench, text, moment)
    tail = Tail(bench.log, FakePort(), 2_000_000, True)
    send_at(bench, "3", 1990)
    assert texts(tail.take(5)) == ["1", "2", "3"]

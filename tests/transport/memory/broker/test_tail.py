from __future__ import annotations

from jmsaio.transport.base import Position
from jmsaio.transport.memory.broker.tail import Tail, tails_of
from tests.kit.records import texts
from tests.transport.memory.bench import Bench, FakePort


def test_a_tail_reads_what_is_there_and_what_comes(bench: Bench) -> None:
    bench.subscribe()
    bench.send("1")
    port = FakePort()
    tail = Tail(bench.log, port, Position.EARLIEST, True)
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

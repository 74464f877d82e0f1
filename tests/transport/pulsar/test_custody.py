"""``Custody``: what comes again is compared with what is out and what was acknowledged."""

from __future__ import annotations

import pytest

from jmsaio.transport.pulsar.bridge import Bridge
from jmsaio.transport.pulsar.custody import Custody
from jmsaio.transport.pulsar.feed import Feed
from jmsaio.transport.pulsar.record import PulsarRecord
from tests.transport.pulsar.standins import FakeConsumer, FakeMessage


class Desk:
    def __init__(self, shared: bool) -> None:
        self.consumer = consumer = FakeConsumer()
        self.feed = Feed(Bridge(), consumer, consumer.receive_async, consumer.receive, "t", "r", lambda: None)
        self.custody = Custody(shared)

    def admit(self, *messages: FakeMessage) -> list[PulsarRecord]:
        taken: list[PulsarRecord] = []
        self.custody.admit(self.feed, list(messages), taken)
        return taken


def batch(count: int = 0, entry: int = 0) -> list[FakeMessage]:
    return [FakeMessage(entry, index, count) for index in range(4)]


@pytest.mark.parametrize(("shared", "count"), [(True, 1), (True, 0), (False, 0)])
async def test_an_entry_that_comes_again(shared: bool, count: int) -> None:
    """Counted by the broker, or after a reconnection, when the count is 0 and the order steps back."""
    desk = Desk(shared)
    acknowledged, held, given_back, gone = desk.admit(*batch())
    desk.custody.acknowledge([acknowledged])
    desk.custody.turn_back([given_back, gone])
    assert desk.custody.dismiss([gone]) == [gone]
    copies = batch(count)
    again = desk.admit(*copies)
    assert [one.place for one in again] == [gone.place]
    assert desk.consumer.acknowledged == [acknowledged.native, copies[0]]
    desk.custody.acknowledge([held])
    assert desk.consumer.acknowledged[2:] == [held.native, copies[1]]
    assert desk.custody.out == {given_back: True, again[0]: False}


async def test_only_what_is_out_is_acknowledged() -> None:
    desk = Desk(True)
    records = desk.admit(*batch())
    desk.custody.acknowledge([records[0], records[0], "foreign"])
    desk.custody.turn_back(records[1:2])
    desk.custody.acknowledge(records[:2])
    assert desk.consumer.acknowledged == [records[0].native]
    desk.custody.acknowledge(records[1:2], waiting=True)
    assert desk.consumer.acknowledged == [records[0].native, records[1].native]
    assert desk.custody.turn_back([records[0], records[2], "foreign"]) == [records[2]]
    assert desk.custody.dismiss([records[3], records[2]]) == [records[2]]


async def test_new_records_after_the_repeated_ones() -> None:
    desk = Desk(True)
    desk.admit(*batch(entry=0), *batch(entry=1))
    assert desk.admit(*batch(entry=0), *batch(entry=1), FakeMessage(2, 0)) != []
    assert [one.place for one in desk.admit(FakeMessage(2, 1), FakeMessage(3, 0))] == [(1, 2, 1), (1, 3, 0)]


async def test_clear_forgets() -> None:
    desk = Desk(False)
    records = desk.admit(*batch())
    desk.custody.acknowledge(records[:2])
    desk.custody.clear()
    desk.feed.discard()
    assert len(desk.admit(*batch())) == 4

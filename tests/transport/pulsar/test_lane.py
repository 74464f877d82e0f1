"""``Lane`` over a stand-in for the native producer: groups, ids, failures."""

from __future__ import annotations

from typing import Any

import _pulsar
import anyio
import anyio.lowlevel
import pytest

from jmsaio.errors import JMSError, MessageTooLargeError, ObjectClosedError, SendInDoubtError
from jmsaio.model.wire import WireId
from jmsaio.transport.pulsar.bridge import Bridge
from jmsaio.transport.pulsar.lane import GROUP, Lane
from tests.transport.pulsar.standins import OK, FakeProducer, from_thread


class Desk:
    """A lane, its producer, and everything it says."""

    def __init__(self, topic: str = "t") -> None:
        self.producer = FakeProducer()
        self.ended: list[tuple[int, int]] = []
        self.said: list[tuple[WireId | None, JMSError | None]] = []
        self.lane = Lane(Bridge(), self.producer, topic, lambda records, size: self.ended.append((records, size)))

    def done(self, place: WireId | None, error: JMSError | None) -> None:
        self.said.append((place, error))

    def add(self, count: int) -> None:
        for number in range(count):
            self.lane.add(f"m{number}", self.done, 10)

    @property
    def callbacks(self) -> list[Any]:
        return [callback for _, callback in self.producer.sent if callback is not None]

    async def answer(self, result: Any, entry: int = 4, index: int = -1) -> None:
        from_thread(self.callbacks[-1], result, _pulsar.MessageId(-1, 3, entry, index))
        await anyio.lowlevel.checkpoint()


async def test_a_group_leaves_in_the_next_turn_with_one_callback() -> None:
    desk = Desk()
    desk.add(5)
    assert desk.producer.sent == []
    await anyio.lowlevel.checkpoint()
    assert [message for message, _ in desk.producer.sent] == ["m0", "m1", "m2", "m3", "m4"]
    assert len(desk.callbacks) == 1
    assert desk.producer.sent[-1][1] is desk.callbacks[0]


async def test_a_long_group_leaves_at_once() -> None:
    desk = Desk()
    desk.add(GROUP + 1)
    assert len(desk.producer.sent) == GROUP
    await anyio.lowlevel.checkpoint()
    assert (len(desk.producer.sent), len(desk.callbacks)) == (GROUP + 1, 2)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (-1, [None, None, None, WireId(3, 4, 2)]),
        (0, [None, None, None, WireId(3, 4, 2, 0)]),
        (1, [None, None, WireId(3, 4, 2, 0), WireId(3, 4, 2, 1)]),
        (3, [WireId(3, 4, 2, number) for number in range(4)]),
        (9, [WireId(3, 4, 2, number) for number in range(6, 10)]),
    ],
)
async def test_ids_from_the_last_one(index: int, expected: list[WireId | None]) -> None:
    desk = Desk("t-partition-2")
    desk.add(4)
    await anyio.lowlevel.checkpoint()
    await desk.answer(OK, index=index)
    assert desk.said == [(place, None) for place in expected]
    assert desk.ended == [(4, 40)]


async def test_a_lone_record_has_its_own_answer() -> None:
    desk = Desk()
    desk.add(2)
    desk.lane.alone("big", desk.done, 500)
    assert [callback is not None for _, callback in desk.producer.sent] == [False, True, True]
    await desk.answer(OK, index=5)
    assert desk.said == [(WireId(3, 4, -1, 5), None)]
    assert desk.ended == [(1, 500)]


async def test_failures() -> None:
    desk = Desk()
    desk.lane.alone("big", desk.done, 500)
    await desk.answer(_pulsar.Result.MessageTooBig)
    desk.add(2)
    await anyio.lowlevel.checkpoint()
    await desk.answer(_pulsar.Result.Timeout)
    assert [type(error) for _, error in desk.said] == [MessageTooLargeError, SendInDoubtError, SendInDoubtError]
    assert desk.said[1][1] is not desk.said[2][1]


async def test_abandon_tells_everybody_once() -> None:
    desk = Desk()
    desk.add(2)
    await anyio.lowlevel.checkpoint()
    desk.add(3)
    desk.lane.abandon("closed")
    assert [type(error) for _, error in desk.said] == [SendInDoubtError] * 2 + [ObjectClosedError] * 3
    assert sum(records for records, _ in desk.ended) == 5
    await desk.answer(OK)
    desk.lane.flush()
    assert (len(desk.said), len(desk.producer.sent)) == (5, 2)

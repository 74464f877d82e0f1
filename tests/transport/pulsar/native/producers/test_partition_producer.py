"""``PartitionProducer`` over a stand-in for the native producer: groups, ids, failures."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import _pulsar
import anyio
import anyio.lowlevel
import pytest

from jmsaio.errors import JMSError, MessageTooLargeError, ObjectClosedError, SendInDoubtError
from jmsaio.model.wire import WireId
from jmsaio.transport.base import Token
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG
from jmsaio.transport.pulsar.native.producers import partition_producer
from jmsaio.transport.pulsar.native.producers.partition_producer import GROUP, PartitionProducer
from jmsaio.transport.pulsar.window import Window
from jmsaio.transport.waiting import SLICE
from tests.kit.native_fakes import OK, FakeProducer, from_thread
from tests.kit.records import tell_each


class Desk:
    """A partition producer, its producer, and everything it says."""

    def __init__(self, topic: str = "t", timeout: float = 0) -> None:
        self.producer = FakeProducer()
        self.ended: list[tuple[int, int]] = []
        self.said: list[tuple[WireId | None, JMSError | None]] = []
        self.told: list[int] = []
        self.window = Window(1000, 10_000, self.left)
        self.seen = (0, 0)
        self.changed: list[str] = []
        self.partition_producer = PartitionProducer(
            Bridge(), self.producer, topic, self.window, self.settled, timeout, self.changed.append
        )

    def left(self) -> None:
        records, size = self.seen[0] - self.window.records, self.seen[1] - self.window.bytes
        self.seen = self.window.records, self.window.bytes
        self.ended.append((records, size))

    def settled(self, tokens: Sequence[Token], place: WireId | None, error: JMSError | None) -> None:
        self.told.append(len(tokens))
        tell_each(tokens, place, error)

    def done(self, place: WireId | None, error: JMSError | None) -> None:
        self.said.append((place, error))

    def add(self, count: int) -> None:
        for number in range(count):
            self.take(10)
            self.partition_producer.add(f"m{number}", self.done, 10)

    def alone(self, size: int) -> None:
        self.take(size)
        self.partition_producer.alone("big", self.done, size)

    def take(self, size: int) -> None:
        self.window.add(size)
        self.seen = self.window.records, self.window.bytes

    async def heard(self) -> None:
        """Wait until it says something, without an answer of the producer."""
        with anyio.fail_after(10):
            while not self.said:
                await anyio.sleep(0.01)

    @property
    def callbacks(self) -> list[Any]:
        return [callback for _, callback in self.producer.sent if callback is not None]

    async def answer(self, result: Any, entry: int = 4, index: int = -1, ledger: int = 3, which: int = -1) -> None:
        from_thread(self.callbacks[which], result, _pulsar.MessageId(-1, ledger, entry, index))
        await anyio.lowlevel.checkpoint()


class Loop:
    """A loop whose turn does not end, by a clock of its own."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.time = now
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, function: Callable[[], None]) -> None:
        self.soon.append(function)


async def test_a_group_leaves_in_the_next_turn_with_one_callback() -> None:
    desk = Desk()
    desk.add(5)
    assert desk.producer.sent == []
    await anyio.lowlevel.checkpoint()
    assert [message for message, _ in desk.producer.sent] == ["m0", "m1", "m2", "m3", "m4"]
    assert len(desk.callbacks) == 1
    assert desk.producer.sent[-1][1] is desk.callbacks[0]


async def test_a_group_that_grows_each_turn_waits_for_a_turn_that_adds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 100.0)  # the machine may be slow
    for _ in range(3):  # as a loop of sends does that lets others run each millisecond
        desk.add(20)
        await anyio.lowlevel.checkpoint()
        assert desk.producer.sent == []
    await anyio.lowlevel.checkpoint()
    assert (len(desk.producer.sent), len(desk.callbacks)) == (60, 1)


async def test_a_group_that_grows_each_turn_waits_five_milliseconds_at_most() -> None:
    desk = Desk()
    desk.add(20)
    await anyio.lowlevel.checkpoint()
    time.sleep(0.006)  # noqa: ASYNC251  # a loop that is busy with other things
    desk.add(20)
    await anyio.lowlevel.checkpoint()
    assert (len(desk.producer.sent), len(desk.callbacks)) == (40, 1)


async def test_a_turn_that_adds_for_long_does_not_hold_its_first_records_back(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, now = Desk(), 100.0
    monkeypatch.setattr(desk.partition_producer._bridge, "loop", stand_in := Loop(lambda: now))
    desk.add(100)
    now += 0.006
    desk.add(27)
    assert desk.producer.sent == []
    desk.add(1)  # the time is looked at after each 64
    assert (len(desk.producer.sent), len(desk.callbacks)) == (128, 1)
    desk.add(64)
    assert len(desk.producer.sent) == 128
    now += 0.006
    desk.add(64)
    assert (len(desk.producer.sent), len(desk.callbacks)) == (256, 2)
    assert len(stand_in.soon) == 1


async def test_a_long_group_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    monkeypatch.setattr(partition_producer, "_LONGEST_WAIT", 60.0)
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
    unknown = expected.count(None)
    assert desk.told == ([unknown] if unknown else []) + [4 - unknown]
    assert desk.ended == [(4, 40)]


async def test_a_lone_record_has_its_own_answer() -> None:
    desk = Desk()
    desk.add(2)
    desk.alone(500)
    assert [callback is not None for _, callback in desk.producer.sent] == [False, True, True]
    await desk.answer(OK, index=1, which=0)
    await desk.answer(OK, index=5)
    assert desk.said[2:] == [(WireId(3, 4, -1, 5), None)]
    assert desk.ended == [(2, 20), (1, 500)]


async def test_an_outcome_waits_for_those_before_it() -> None:
    """A record with a delivery time leaves outside the batch, so that its answer may come first."""
    desk = Desk()
    desk.add(2)
    desk.alone(500)
    await desk.answer(OK, entry=8)
    assert (desk.said, desk.ended) == ([], [])
    await desk.answer(OK, entry=9, index=1, which=0)
    assert [place for place, _ in desk.said] == [WireId(3, 9, -1, 0), WireId(3, 9, -1, 1), WireId(3, 8, -1, -1)]
    assert desk.ended == [(2, 20), (1, 500)]
    assert desk.changed == []  # the broker stored them in the order of their answers


async def test_an_outcome_does_not_wait_for_what_was_told_to_be_in_doubt() -> None:
    desk = Desk(timeout=0.05)
    desk.alone(500)
    await desk.heard()
    desk.alone(7)
    await desk.answer(OK, entry=8)
    assert isinstance(desk.said[0][1], SendInDoubtError)
    assert desk.said[1:] == [(WireId(3, 8, -1, -1), None)]


async def test_an_answer_that_waits_counts_when_the_one_before_it_is_in_doubt() -> None:
    """Whether its time is over or the producer is abandoned."""
    for timeout in (0.05, 0):
        desk = Desk(timeout=timeout)
        desk.alone(500)
        desk.alone(7)
        await desk.answer(OK, entry=8)
        if timeout:
            await desk.heard()
        else:
            [*desk.partition_producer.abandon("closed")]
        assert isinstance(desk.said[0][1], SendInDoubtError)
        assert desk.said[1:] == [(WireId(3, 8, -1, -1), None)]


async def test_the_records_of_a_group_are_told_its_error_together() -> None:
    desk = Desk()
    desk.alone(500)
    await desk.answer(_pulsar.Result.MessageTooBig)
    desk.add(2)
    await anyio.lowlevel.checkpoint()
    await desk.answer(_pulsar.Result.Timeout)
    assert [type(error) for _, error in desk.said] == [MessageTooLargeError, SendInDoubtError, SendInDoubtError]
    assert desk.said[1][1] is desk.said[2][1]
    assert desk.told == [1, 2]


async def test_abandon_tells_a_slice_in_each_step_and_takes_no_answer_meanwhile() -> None:
    desk = Desk()
    for _ in range(SLICE):
        desk.alone(7)
    for _ in range(3):
        desk.add(SLICE // 2)
        desk.partition_producer.flush()
    desk.add(1)
    steps = desk.partition_producer.abandon("closed")
    await desk.answer(OK)
    told = [len(desk.said) for _ in steps]
    assert (told, len(desk.said)) == ([SLICE, 2 * SLICE], 5 * SLICE // 2 + 1)
    assert [type(error) for _, error in desk.said] == [SendInDoubtError] * (5 * SLICE // 2) + [ObjectClosedError]
    assert (desk.window.records, desk.window.bytes, desk.window.unreported) == (0, 0, 0)


async def test_abandon_tells_everybody_once() -> None:
    desk = Desk()
    desk.add(2)
    await anyio.lowlevel.checkpoint()
    desk.add(3)
    [*desk.partition_producer.abandon("closed")]
    assert [type(error) for _, error in desk.said] == [SendInDoubtError] * 2 + [ObjectClosedError] * 3
    assert sum(records for records, _ in desk.ended) == 5
    await desk.answer(OK)
    desk.partition_producer.flush()
    assert (len(desk.said), len(desk.producer.sent)) == (5, 2)


async def test_without_an_answer_in_time_records_are_in_doubt_and_stay_in_the_window() -> None:
    """pulsar-client still holds them and may send them; what its late answer says is told to nobody."""
    desk = Desk(timeout=0.05)
    desk.add(2)
    await desk.heard()
    assert [type(error) for _, error in desk.said] == [SendInDoubtError] * 2
    assert (desk.window.records, desk.window.bytes, desk.window.unreported) == (2, 20, 0)
    desk.add(1)
    await anyio.lowlevel.checkpoint()
    first, second = desk.callbacks
    from_thread(first, OK, _pulsar.MessageId(-1, 3, 4, 1))
    from_thread(second, OK, _pulsar.MessageId(-1, 3, 5, 0))
    await anyio.lowlevel.checkpoint()
    assert desk.said[2:] == [(WireId(3, 5, -1, 0), None)]
    assert (desk.window.records, desk.window.bytes, desk.window.unreported) == (0, 0, 0)


async def test_each_group_has_its_own_time() -> None:
    desk = Desk(timeout=0.2)
    desk.add(1)
    await anyio.sleep(0.1)
    desk.add(1)
    with anyio.fail_after(10):
        while len(desk.said) < 2:
            await anyio.sleep(0.01)
            assert desk.window.unreported == 2 - len(desk.said)


async def test_of_many_groups_that_expire_at_once_each_has_a_turn_of_the_loop() -> None:
    """So that other tasks run in between, however many records there are."""
    desk = Desk(timeout=0.02)
    for _ in range(10):
        desk.add(GROUP)
    turns = list[int]()

    def look() -> None:
        turns.append(len(desk.said))
        if len(desk.said) < 10 * GROUP:
            asyncio.get_running_loop().call_soon(look)

    time.sleep(0.03)  # noqa: ASYNC251 - all are due then, before the loop goes on
    look()
    with anyio.fail_after(10):
        while len(desk.said) < 10 * GROUP:
            await anyio.sleep(0.01)
    assert max(later - earlier for earlier, later in itertools.pairwise(turns)) <= GROUP
    assert desk.window.records == 10 * GROUP


async def test_a_failure_that_only_the_log_tells_puts_other_batches_of_a_group_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    desk.add(5)
    await anyio.lowlevel.checkpoint()
    monkeypatch.setattr(NATIVE_LOG, "doubts", NATIVE_LOG.doubts + 1)
    await desk.answer(OK, index=1)
    assert [type(error) for _, error in desk.said] == [SendInDoubtError] * 3 + [type(None)] * 2
    assert [place for place, _ in desk.said] == [None] * 3 + [WireId(3, 4, -1, 0), WireId(3, 4, -1, 1)]
    desk.add(5)
    await anyio.lowlevel.checkpoint()
    await desk.answer(OK, index=1)
    assert [error for _, error in desk.said[5:]] == [None] * 5


async def test_the_batch_of_the_last_record_is_beyond_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    desk.add(3)
    await anyio.lowlevel.checkpoint()
    monkeypatch.setattr(NATIVE_LOG, "doubts", NATIVE_LOG.doubts + 1)
    await desk.answer(OK, index=2)
    assert [error for _, error in desk.said] == [None] * 3


@pytest.mark.parametrize(
    ("places", "changes"),
    [
        ([(3, 4, -1), (3, 5, 0), (3, 5, 1), (3, 6, -1)], 0),
        ([(3, 4, -1), (4, 0, -1), (4, 1, -1)], 1),
        ([(3, 4, -1), (3, 0, -1), (3, 1, -1)], 1),
        ([(3, 0, -1), (3, 0, -1)], 1),
        ([(3, 4, -1), (-1, -1, -1), (3, 5, -1)], 0),
    ],
)
async def test_a_topic_that_may_be_another_one(places: list[tuple[int, int, int]], changes: int) -> None:
    """Records lie in another ledger, or not behind each other in the same; the broker left out a duplicate."""
    desk = Desk("persistent://a/b/c")
    for ledger, entry, index in places:
        desk.alone(10)
        await desk.answer(OK, entry, index, ledger)
    assert desk.changed == ["persistent://a/b/c"] * changes


@pytest.mark.parametrize(("topic", "changes"), [("persistent://a/b/c", 1), ("non-persistent://a/b/c", 0)])
async def test_a_topic_that_waited_for_its_first_record(
    topic: str, changes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been deleted meanwhile; ids of one that is not persistent tell nothing."""
    monkeypatch.setattr(partition_producer, "UNTOUCHED", 0.0)
    desk = Desk(topic)
    await anyio.sleep(0.01)
    for _ in range(1 + (not changes)):
        desk.alone(10)
        await desk.answer(OK)
    assert len(desk.changed) == changes


async def test_a_refusal_of_a_group_leaves_each_of_its_records_in_doubt() -> None:
    """It may be meant for one batch of several; a record by itself is told what it was refused for."""
    desk = Desk()
    desk.add(2)
    await anyio.lowlevel.checkpoint()
    await desk.answer(_pulsar.Result.MessageTooBig)
    desk.add(1)
    await anyio.lowlevel.checkpoint()
    await desk.answer(_pulsar.Result.MessageTooBig)
    assert [type(error) for _, error in desk.said] == [SendInDoubtError, SendInDoubtError, MessageTooLargeError]

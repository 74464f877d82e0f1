"""``NativeConsumer`` over a stand-in for the native consumer."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _pulsar
import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import BrokerUnavailableError, JMSError
from jmsaio.transport.pulsar.native import SUPPORTED
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.handles import OnMessage
from jmsaio.transport.pulsar.native.binding.native_consumer import (
    DELAY,
    HOLD,
    BatchAcker,
    NativeConsumer,
    batch_size,
    begin_batch,
    directly_follows,
    first_chunk,
)
from tests.kit.native_fakes import FakeConsumer, FakeMessage, from_thread
from tests.kit.virtual_time import VirtualLoop


def make(consumer: FakeConsumer, topic: str | None = "t") -> tuple[NativeConsumer, list[int]]:
    wakes: list[int] = []
    native_consumer = NativeConsumer(
        Bridge(), consumer, consumer.receive_async, consumer.receive, topic, "receive", lambda: wakes.append(1)
    )
    return native_consumer, wakes


async def test_at_most_one_receive_is_outstanding() -> None:
    consumer = FakeConsumer()
    native_consumer, wakes = make(consumer)
    assert native_consumer.receive(5) == []
    assert native_consumer.receive(5) == []
    assert (len(consumer.armed), wakes) == (1, [])


async def test_what_is_here_is_taken_inline_and_in_order() -> None:
    consumer = FakeConsumer()
    messages = [FakeMessage(entry) for entry in range(6)]
    consumer.queue.extend(messages)
    native_consumer, wakes = make(consumer)
    assert native_consumer.receive(4) == messages[:4]
    assert consumer.armed == []
    assert native_consumer.receive(4) == messages[4:]
    assert (len(consumer.armed), wakes) == (1, [])


async def test_a_backlog_is_taken_without_callbacks() -> None:
    consumer, asked = FakeConsumer(), []

    def receive(callback: OnMessage) -> None:
        asked.append(callback)
        consumer.receive_async(callback)

    backlog = [FakeMessage(entry) for entry in range(100)]
    consumer.queue.extend(backlog)
    native_consumer = NativeConsumer(Bridge(), consumer, receive, consumer.receive, "t", "receive", lambda: None)
    assert native_consumer.receive(60) == backlog[:60]
    assert (len(asked), consumer.armed) == (1, [])
    assert native_consumer.receive(60) == backlog[60:]
    assert (len(asked), len(consumer.armed)) == (3, 1)


async def test_a_late_answer_wakes_and_comes_first() -> None:
    consumer = FakeConsumer()
    native_consumer, wakes = make(consumer)
    assert native_consumer.receive(3) == []
    late, after = FakeMessage(1), FakeMessage(2)
    consumer.deliver(late)
    consumer.deliver(after)
    assert wakes == []  # the callback came from another thread: nothing happens until the loop's turn
    await anyio.lowlevel.checkpoint()
    assert (wakes, native_consumer.has_messages) == ([1], True)
    assert native_consumer.receive(0) == []
    assert native_consumer.receive(3) == [late, after]


@pytest.mark.parametrize("limit", [1, 2, 10])
async def test_a_message_that_a_late_one_has_overtaken_comes_first(limit: int) -> None:
    consumer = FakeConsumer()
    native_consumer, _ = make(consumer)
    assert native_consumer.receive(5) == []
    messages = [FakeMessage(entry) for entry in range(4)]
    consumer.queue.append(messages[0])  # pulsar-client saw no receive when it got this one
    from_thread(consumer.armed.pop(), _pulsar.Result.Ok, messages[1])
    consumer.queue += messages[2:]
    await anyio.lowlevel.checkpoint()
    found: list[object] = []
    while len(found) < len(messages):
        taken = native_consumer.receive(limit)
        assert 0 < len(taken) <= limit
        found += taken
    assert found == messages


async def test_a_failure_ends_it_after_what_came_before() -> None:
    consumer = FakeConsumer()
    native_consumer, wakes = make(consumer)
    assert native_consumer.receive(1) == []
    from_thread(consumer.armed.pop(), _pulsar.Result.ConnectError, object())
    await anyio.lowlevel.checkpoint()
    assert isinstance(native_consumer.failure, BrokerUnavailableError)
    assert (native_consumer.receive(5), wakes) == ([], [1])


async def test_a_failure_inside_a_drain() -> None:
    """A failed consumer answers every receive at once; what was taken before is kept."""
    consumer = FakeConsumer()

    def receive(callback: OnMessage) -> None:
        if not consumer.queue:
            consumer.failure = _pulsar.Result.AlreadyClosed
        consumer.receive_async(callback)

    first, second = FakeMessage(1), FakeMessage(2)
    consumer.queue.extend((first, second))
    native_consumer = NativeConsumer(Bridge(), consumer, receive, consumer.receive, "t", "receive", lambda: None)
    assert native_consumer.receive(10) == [first, second]
    assert isinstance(native_consumer.failure, JMSError)
    assert native_consumer.receive(10) == []


async def test_disarmed_waits_until_no_receive_is_armed() -> None:
    consumer = FakeConsumer()
    native_consumer, _ = make(consumer)
    with anyio.fail_after(5):
        await native_consumer.disarmed()
        native_consumer.receive(1)
        async with anyio.create_task_group() as tasks:
            for _ in range(2):  # resuming and closing may both wait
                tasks.start_soon(native_consumer.disarmed)
            await anyio.lowlevel.checkpoint()
            from_thread(consumer.armed.pop(), _pulsar.Result.AlreadyClosed, object())


def behind(native_consumer: NativeConsumer, *entries: int) -> list[bool]:
    return [again for _, _, again in native_consumer.entries([FakeMessage(entry) for entry in entries])]


async def test_entries_that_come_again() -> None:
    """Each entry that is not behind the last one is seen, wherever in a turn it comes."""
    native_consumer, _ = make(FakeConsumer())
    assert behind(native_consumer, 5, 7, 8) == [False, False, False]
    assert behind(native_consumer, 9, 5, 6, 9, 10) == [False, True, True, True, False]
    native_consumer.forget()
    assert behind(native_consumer, 1, 2) == [False, False]
    native_consumer.discard()
    assert behind(native_consumer, 1, 2) == [False, False]


@pytest.mark.parametrize("topic", [None, "non-persistent://public/default/t"])
async def test_ids_without_order_tell_nothing(topic: str | None) -> None:
    """A pattern's topics have no common order, and each id of a topic that is not persistent is the same."""
    native_consumer, _ = make(FakeConsumer(), topic)
    assert set(behind(native_consumer, 7, 7, 5)) == {False}


async def test_a_large_message_is_not_kept() -> None:
    """What was taken belongs to who took it."""
    consumer = FakeConsumer()
    message = FakeMessage(1)
    consumer.queue.append(message)
    native_consumer, _ = make(consumer)
    assert native_consumer.receive(1) == [message]
    assert all(kept is not message for kept in native_consumer._inline)


#: Until a message that was left is found, and until it may be taken.
FOUND = DELAY + HOLD / 2
SETTLED = DELAY + 2 * HOLD


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Nothing here is outside of the loop: it runs on virtual time."""
    return "asyncio", {"loop_factory": VirtualLoop}


class Scene:
    """A consumer whose receive is armed; ``looks`` counts how often its queue was looked into."""

    def __init__(self, topic: str | None = "t") -> None:
        self.bridge = Bridge()
        self.consumer = FakeConsumer()
        self.looks = self.wakes = 0
        self.native_consumer = NativeConsumer(
            self.bridge, self.consumer, self.consumer.receive_async, self.look, topic, "receive", self.wake
        )
        assert self.native_consumer.receive(10) == []

    def look(self, timeout: int) -> Any:
        self.looks += 1
        return self.consumer.receive(timeout)

    def wake(self) -> None:
        self.wakes += 1

    def leave(self, *entries: int) -> None:
        """pulsar-client saw no receive when it got these."""
        self.consumer.queue.extend(FakeMessage(entry) for entry in entries)

    async def answer(self, entry: int) -> None:
        self.consumer.deliver(FakeMessage(entry))
        await asyncio.sleep(0)

    def take(self, limit: int = 10) -> list[int]:
        return [message.entry for message in self.native_consumer.receive(limit)]  # type: ignore[attr-defined]  # ours

    def take_singly(self, limit: int) -> list[int]:
        """All that is here, ``limit`` at a time."""
        found: list[int] = []
        while taken := self.take(limit):
            assert len(taken) <= limit
            found += taken
        return found


async def test_the_only_message_of_a_queue_comes_though_it_was_not_announced() -> None:
    scene = Scene()
    scene.leave(1)
    await asyncio.sleep(SETTLED)
    assert (scene.wakes, scene.native_consumer.ready) == (1, True)
    assert (scene.take(), scene.take()) == ([1], [])
    assert (scene.native_consumer.has_messages, len(scene.consumer.armed)) == (False, 1)


async def test_a_message_that_was_found_may_not_overtake_an_answer_on_its_way() -> None:
    scene = Scene()
    scene.leave(1)
    await asyncio.sleep(FOUND)
    assert (scene.native_consumer.has_messages, scene.native_consumer.ready) == (True, False)
    assert (scene.take(), scene.native_consumer.peek(), scene.wakes) == ([], None, 0)


@pytest.mark.parametrize("wait", [FOUND, SETTLED], ids=["while held", "before it is taken"])
@pytest.mark.parametrize("limit", [1, 2, 10])
@pytest.mark.parametrize(("left", "late"), [(1, 2), (2, 1)], ids=["older", "newer"])
async def test_a_late_answer_and_what_was_found_come_in_order(wait: float, limit: int, left: int, late: int) -> None:
    scene = Scene()
    scene.leave(left)
    await asyncio.sleep(wait)
    await scene.answer(late)
    scene.leave(3, 4)
    assert scene.take_singly(limit) == [1, 2, 3, 4]


@pytest.mark.parametrize("found", [2, 4])
async def test_what_directly_follows_the_last_message_comes_at_once(found: int) -> None:
    """Nothing can be missing before it; before any other an answer can be on its way for long."""
    scene = Scene()
    await scene.answer(1)
    [*_] = scene.native_consumer.entries(scene.native_consumer.receive(1))
    assert scene.take() == []
    scene.leave(found)
    await asyncio.sleep(DELAY * 1.5)
    assert scene.take() == [2] * (found == 2)
    await asyncio.sleep(0.8 * HOLD)
    await scene.answer(3)
    assert scene.take() == [3] + [4] * (found == 4)


async def test_of_several_topics_the_answer_comes_first() -> None:
    """The consumer of a pattern leaves nothing unannounced: what was found lies behind the answer."""
    scene = Scene(topic=None)
    scene.leave(1)
    await asyncio.sleep(FOUND)
    await scene.answer(2)
    assert scene.take() == [2, 1]


async def test_all_that_was_left_is_found() -> None:
    scene = Scene()
    scene.leave(1, 2, 3)
    await asyncio.sleep(DELAY + 4 * HOLD)
    assert scene.take() == [1, 2, 3]


async def test_an_idle_consumer_is_looked_at_once() -> None:
    scene = Scene()
    await asyncio.sleep(100 * DELAY)
    assert (scene.looks, scene.take(), scene.wakes) == (1, [], 0)
    await asyncio.sleep(100 * DELAY)
    assert scene.looks == 1


async def test_a_consumer_that_gets_messages_is_looked_at_when_they_end() -> None:
    scene = Scene()
    for entry in range(20):
        await asyncio.sleep(DELAY / 2)
        await scene.answer(entry)
        assert scene.take() == [entry]
    assert scene.looks == 0
    scene.leave(20)
    await asyncio.sleep(SETTLED)
    assert (scene.take(), scene.looks) == ([20], 2)


async def test_a_receive_that_was_answered_needs_no_look() -> None:
    scene = Scene()
    await scene.answer(1)
    await asyncio.sleep(SETTLED)
    assert (scene.looks, scene.take()) == (0, [1])


async def test_what_was_found_comes_before_the_failure_of_the_receive() -> None:
    scene = Scene()
    scene.leave(1)
    await asyncio.sleep(FOUND)
    from_thread(scene.consumer.armed.pop(), _pulsar.Result.ConnectError, object())
    await asyncio.sleep(0)
    assert scene.take() == [1]
    assert isinstance(scene.native_consumer.failure, BrokerUnavailableError)


async def test_a_consumer_that_refuses_the_look_has_not_failed() -> None:
    scene = Scene()

    def refuse(timeout: int) -> Any:
        raise _pulsar.AlreadyClosed

    scene.native_consumer._receive_now = refuse
    await asyncio.sleep(SETTLED)
    assert (scene.native_consumer.failure, scene.native_consumer.has_messages) == (None, False)


ENDS: dict[str, Callable[[Scene], None]] = {
    "stop": lambda scene: scene.native_consumer.stop(FakeConsumer()),
    "discard": lambda scene: scene.native_consumer.discard(),
    "release": lambda scene: scene.native_consumer.release(),
    "close": lambda scene: scene.bridge.close(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("wait", [0, FOUND], ids=["before the look", "while held"])
async def test_nothing_comes_after_the_end(wait: float, end: Callable[[Scene], None]) -> None:
    """The broker gives it again to whom it belongs then."""
    scene = Scene()
    scene.leave(1)
    await asyncio.sleep(wait)
    end(scene)
    looks = scene.looks
    await asyncio.sleep(10 * SETTLED)
    assert (scene.take(), scene.wakes, scene.looks) == ([], 0, looks)


@pytest.mark.parametrize("wait", [0, FOUND, SETTLED], ids=["before the look", "while held", "before it is taken"])
async def test_a_consumer_that_was_stopped_looks_into_its_new_queue_only(wait: float) -> None:
    scene, new = Scene(), FakeConsumer()
    scene.leave(1)
    await asyncio.sleep(wait)
    scene.native_consumer.stop(FakeConsumer())
    from_thread(scene.consumer.armed.pop(), _pulsar.Result.AlreadyClosed, None)
    with anyio.fail_after(5):
        await scene.native_consumer.disarmed()
    scene.native_consumer.resume(new)
    assert scene.take() == []
    new.queue.append(FakeMessage(7))
    await asyncio.sleep(SETTLED)
    assert scene.take() == [7]


async def test_a_receive_that_is_armed_after_a_seek_is_looked_at_again() -> None:
    scene = Scene()
    scene.native_consumer.discard()
    await scene.answer(1)
    assert scene.take() == [1]
    scene.leave(2)
    await asyncio.sleep(SETTLED)
    assert scene.take() == [2]


def batch_of(size: int, entry: int = 0) -> list[FakeMessage]:
    return [FakeMessage(entry, index, batch_size=size) for index in range(size)]


def begun(messages: list[FakeMessage]) -> BatchAcker:
    batch = begin_batch(messages[0])
    assert batch is not None
    return batch


@pytest.mark.parametrize(
    "message", [FakeMessage(3), FakeMessage(3, 1, batch_size=4), FakeMessage(3, 0, batch_size=1), FakeMessage(3, 0)]
)
def test_what_begins_no_batch(message: FakeMessage) -> None:
    """No batch, not its first record, a batch of one, and one whose size is not told."""
    assert begin_batch(message) is None


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(-1, 2**31 - 1), st.integers(2, 127))
def test_the_id_of_the_whole(ledger: int, entry: int, partition: int, size: int) -> None:
    first = _pulsar.MessageId(partition, ledger, entry, 0).serialize() + b"\x30" + bytes([size])

    class Message(FakeMessage):
        def message_id(self) -> Any:
            return _pulsar.MessageId.deserialize(first)

        def publish_timestamp(self) -> int:
            return 5

    batch = begin_batch(Message())
    assert batch is not None and batch.left == size
    assert batch.whole() == _pulsar.MessageId(partition, ledger, entry, -1)


def test_a_batch_that_comes_in_pieces_is_extended_until_complete() -> None:
    messages = [*batch_of(5, 1), *batch_of(2, 2)]
    batch = begun(messages)
    assert batch.extend(messages[:3], 0) == 3
    assert batch.extend(messages[3:], 0) == 2
    assert batch.extend(messages[3:], 2) == 2  # it is complete
    assert begun(messages[5:]).extend(messages, 5) == 7


@pytest.mark.parametrize(
    "places",
    [
        [(1, 0), (1, 2), (1, 3), (2, 0)],  # the broker left one out
        [(1, 0), (1, 1), (2, 0), (2, 1)],  # it broke off
        [(1, 0), (1, 1), (1, 0), (1, 1)],  # it broke off and comes again
    ],
)
def test_others_are_not_taken(places: list[tuple[int, int]]) -> None:
    messages = [FakeMessage(*place, batch_size=4) for place in places]
    assert begun(messages).extend(messages, 0) == 0


@given(st.data())
def test_whatever_comes_each_record_is_taken_once(data: st.DataObject) -> None:
    """Any pieces of any entries: what a batch takes are its records in order, each once."""
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    messages = [
        message
        for entry, size in enumerate(sizes)
        for message in batch_of(size, entry)
        if data.draw(st.integers(0, 9)) > 0
    ]
    open_batch: BatchAcker | None = None
    taken: dict[BatchAcker, list[tuple[int, int]]] = {}
    start = 0
    while start < len(messages):
        upto = start + data.draw(st.integers(1, len(messages) - start))
        end = start if open_batch is None else open_batch.extend(messages[:upto], start)
        if end == start:
            open_batch = begin_batch(messages[start])
            end = start if open_batch is None else open_batch.extend(messages[:upto], start)
        if open_batch is not None and end > start:
            taken.setdefault(open_batch, []).extend((one.entry, one.index) for one in messages[start:end])
        start = max(end, start + 1)
    for batch, places in taken.items():
        assert places == [(places[0][0], index) for index in range(len(places))]
        assert len(places) <= batch.left


def test_the_versions_that_may_be_installed_are_those_whose_ids_are_read() -> None:
    """A wider range in ``pyproject.toml`` needs a look at ``MessageIdData`` as the new versions serialize it."""
    project = tomllib.loads((Path(__file__).parents[5] / "pyproject.toml").read_text(encoding="utf-8"))
    assert any(each.startswith(f"pulsar-client{SUPPORTED};") for each in project["project"]["dependencies"])
    one, last = (
        _pulsar.MessageId.deserialize(bytes(data))
        for data in (
            (0x08, 7, 0x10, 0xAC, 0x02, 0x18, 2, 0x20, 5, 0x30, 9),
            (0x08, 7, 0x10, 9, 0x3A, 5, 0x08, 6, 0x10, 0xC8, 0x01),
        )
    )
    assert (one.ledger_id(), one.entry_id(), one.partition(), one.batch_index()) == (7, 300, 2, 5)
    assert (batch_size(one), first_chunk(one), batch_size(last), first_chunk(last)) == (9, None, 0, (6, 200))


@pytest.mark.parametrize(
    ("last", "place", "follows"),
    [
        ((7,), (8,), True),
        ((7,), (9,), False),
        ((7,), (7,), False),
        ((7,), (6,), False),
        ((7,), (8, 0, 3), True),
        ((7,), (8, 1, 3), False),
        ((7, 1, 3), (7, 2, 3), True),
        ((7, 0, 3), (7, 2, 3), False),
        ((7, 2, 3), (8,), True),
        ((7, 1, 3), (8,), False),
        ((7, 2, 3), (8, 0, 2), True),
        ((7, 1, 3), (8, 0, 2), False),
    ],
)
def test_ids_between_which_nothing_is_stored(last: tuple[int, ...], place: tuple[int, ...], follows: bool) -> None:
    def made(entry: int, index: int = -1, size: int = 0) -> _pulsar.MessageId:
        return FakeMessage(entry, index, batch_size=size).message_id()

    assert directly_follows(made(*place), made(*last)) is follows


def test_what_follows_the_last_entry_of_a_ledger_is_not_known() -> None:
    assert not directly_follows(_pulsar.MessageId(-1, 2, 0, -1), _pulsar.MessageId(-1, 1, 7, -1))

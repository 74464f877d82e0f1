"""What a reader does where the broker or pulsar-client are not as usual: pulsar-client is a fake."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import _pulsar
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import (
    BrokerUnavailableError,
    JMSSecurityError,
    MalformedMessageError,
    ObjectClosedError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.model.wire import WireId
from jmsaio.transport.base import ReaderOptions, StartPosition
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, ignore
from jmsaio.transport.pulsar.native.binding.native_consumer import HOLD
from jmsaio.transport.pulsar.native.binding.results import DISCONNECTED
from jmsaio.transport.pulsar.native.consumers import reader as module
from jmsaio.transport.pulsar.native.consumers.reader import PulsarReader, StoredRecords
from tests.kit.native_fakes import FakeMessage, FakeNativeConsumer, FakeReader
from tests.kit.records import texts
from tests.transport.pulsar.conftest import HANG

TOPIC = "persistent://public/default/t"
#: The broker's answer while its storage is away.
AWAY = _pulsar.Result.BrokerMetadataError


def reader_of(native: FakeReader, start: StartPosition | int = StartPosition.EARLIEST) -> PulsarReader:
    return PulsarReader(Bridge(), native, ReaderOptions(TOPIC, ConsumerConfig(), start), ignore)


def messages(**published: int) -> list[Any]:
    """Messages by their bodies, with the times at which they were published."""
    return [
        FakeMessage(number, body=body.encode(), published=time) for number, (body, time) in enumerate(published.items())
    ]


async def test_what_comes_before_the_first_record_at_its_time_is_left_out() -> None:
    """What is stored behind the first one is not looked at: the clocks of senders differ."""
    native = FakeReader()
    native.queue.extend(messages(a=8, b=9, c=10, d=9))
    reader = reader_of(native, 10)
    assert not await reader.at_end()
    assert texts(await reader.read(10, HANG)) == ["c", "d"]
    assert await reader.at_end()


async def test_a_read_waits_on_when_only_earlier_records_come() -> None:
    native = FakeReader()
    native.looks.extend([(_pulsar.Result.Ok, True)] * 2)
    reading = asyncio.ensure_future(reader_of(native, 10).read(10, HANG))
    for message in messages(a=9, b=10):
        while not native.armed:
            await asyncio.sleep(0.001)
        native.deliver(message)
    assert texts(await reading) == ["b"]


async def test_earlier_records_alone_are_the_end_of_the_topic() -> None:
    native = FakeReader()
    native.queue.extend(messages(a=8, b=9))
    reader = reader_of(native, 10)
    assert await reader.at_end()
    assert await reader.read(10, HANG) == []


@pytest.mark.parametrize(("time", "sought"), [(5, 5), (-1, 0), (2**64, 2**63 - 1)])
async def test_a_time_is_brought_within_what_the_broker_takes(time: int, sought: int) -> None:
    native = FakeReader()
    await reader_of(native, time).seek(time, HANG)
    assert set(native.sought) == {sought}


async def test_a_reader_is_moved_to_its_time_until_it_finds_the_same_place_twice() -> None:
    """pulsar-client forgets the time where the connection breaks, and goes on with the latest record."""
    right = messages(too_early=9, a=10, b=11)
    native = FakeReader(landings=deque([[], right[2:], right, right]))
    reader = reader_of(native, 10)
    await reader.seek(10, HANG)
    assert native.sought == [10] * 4
    assert texts(await reader.read(10, HANG)) == ["a", "b"]
    assert await reader.at_end()


async def test_a_reader_is_moved_again_when_its_consumer_is_not_connected_yet() -> None:
    """The broker drops the consumer at each move, and pulsar-client connects it again."""
    refusals = deque([_pulsar.Result.NotConnected, _pulsar.Result(DISCONNECTED)])
    [a] = messages(a=10)
    native = FakeReader(refusals=refusals, landings=deque([[a], [a]]))
    reader = reader_of(native, 10)
    await reader.seek(10, HANG)
    assert native.sought == [10] * 4
    assert texts(await reader.read(10, HANG)) == ["a"]


async def test_a_reader_whose_consumer_stays_without_a_connection_says_so() -> None:
    native = FakeReader(seeking=_pulsar.Result.NotConnected)
    with pytest.raises(BrokerUnavailableError, match=f"read {TOPIC} from publish time 5 ms: not connected"):
        await reader_of(native).seek(5, 0.25)
    assert len(native.sought) == 2  # after 0 and 0.1 seconds


async def test_a_reader_that_found_the_end_at_its_time_twice_is_there() -> None:
    native = FakeReader()
    reader = reader_of(native, 10)
    await reader.seek(10, HANG)
    assert native.sought == [10, 10]
    assert await reader.at_end()


async def test_the_first_record_at_a_time_is_waited_for() -> None:
    native = FakeReader()
    native.looks.append((_pulsar.Result.Ok, True))
    reader = reader_of(native, 10)
    seeking = asyncio.ensure_future(reader.seek(10, HANG))
    while not native.armed:
        await asyncio.sleep(0.001)
    [message] = messages(a=10)
    native.landings.append([message])
    native.deliver(message)
    await seeking
    assert native.sought == [10, 10]
    assert texts(await reader.read(10, HANG)) == ["a"]


async def test_a_reader_that_cannot_be_moved_to_its_time_says_why() -> None:
    refused, silent = FakeReader(seeking=_pulsar.Result.UnknownError), FakeReader(seeking=None)
    with pytest.raises(TransportError, match=f"read {TOPIC} from publish time 5 ms"):
        await reader_of(refused).seek(5, HANG)
    with pytest.raises(OperationTimeoutError, match=f"read {TOPIC} from publish time 5 ms"):
        await reader_of(silent).seek(5, 0.01)


async def test_a_time_that_is_not_found_in_time_is_told() -> None:
    native = FakeReader()
    native.looks.extend([(_pulsar.Result.Ok, True)] * 5)
    with pytest.raises(OperationTimeoutError, match=r"publish time 5 ms: not found within 0\.05 s"):
        await reader_of(native).seek(5, 0.05)


@pytest.mark.parametrize("ending", [True, False])
async def test_the_end_is_asked_for_again_while_the_broker_cannot_tell(ending: bool) -> None:
    native = FakeReader()
    native.looks.extend([(AWAY, False), (AWAY, False), (_pulsar.Result.Ok, not ending)])
    assert await reader_of(native).at_end() is ending
    assert native.looked == 3


async def test_the_end_is_not_inside_a_batch_whose_rest_is_on_its_way() -> None:
    """pulsar-client counts a record as read before it hands it over."""
    native = FakeReader()
    native.queue.append(FakeMessage(7, 0, body=b"a", batch_size=2))
    reader = reader_of(native)
    assert texts(await reader.read(10, HANG)) == ["a"]
    looking = asyncio.ensure_future(reader.at_end())
    while not native.looked:
        await asyncio.sleep(0.001)
    native.deliver(FakeMessage(7, 1, body=b"b", batch_size=2))
    assert not await looking
    assert texts(await reader.read(10, HANG)) == ["b"]
    assert await reader.at_end()


async def test_a_record_that_comes_while_the_broker_cannot_tell_is_not_the_end() -> None:
    native = FakeReader()
    reader = reader_of(native)
    assert await reader.read(10, HANG) == []
    native.looks.append((AWAY, False))
    looking = asyncio.ensure_future(reader.at_end())
    await asyncio.sleep(0.01)
    native.deliver(FakeMessage(body=b"a"))
    assert not await looking
    assert native.looked == 2
    assert texts(await reader.read(10, HANG)) == ["a"]


async def test_a_read_asks_again_while_the_broker_cannot_tell() -> None:
    native = FakeReader()
    reader = reader_of(native)
    native.looks.append((AWAY, False))
    reading = asyncio.ensure_future(reader.read(10, HANG))
    await asyncio.sleep(0.01)
    native.deliver(FakeMessage(body=b"a"))
    assert texts(await reading) == ["a"]


async def test_the_last_answer_is_raised_when_the_time_for_asking_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ASK", 1.0)
    native = FakeReader()
    native.looks.extend([(AWAY, False)] * 10)
    with pytest.raises(TransportError, match="metadata store") as raised:
        await reader_of(native).at_end()
    assert raised.value.error_code == "BrokerMetadataError"
    assert 2 <= native.looked <= 4  # after 0, 0.1, 0.3 and 0.7 seconds
    native.looked = 0
    with pytest.raises(TransportError, match="metadata store"):
        await reader_of(native).read(10, 0.05)
    assert native.looked == 1


async def test_an_answer_that_stays_is_raised_at_once() -> None:
    native = FakeReader()
    native.looks.append((_pulsar.Result.AuthorizationError, False))
    with pytest.raises(JMSSecurityError):
        await reader_of(native).at_end()
    assert native.looked == 1


async def test_a_reader_that_is_closed_or_cancelled_asks_no_more() -> None:
    native = FakeReader()
    native.looks.extend([(AWAY, False)] * 2)
    reader = reader_of(native)
    cancelled, closed = asyncio.ensure_future(reader.at_end()), asyncio.ensure_future(reader.at_end())
    await asyncio.sleep(0.01)
    cancelled.cancel()
    await reader.aclose(HANG)
    with pytest.raises(ObjectClosedError):
        await closed
    assert cancelled.cancelled()
    assert native.looked == 2


async def test_a_message_that_was_not_announced_is_read() -> None:
    """pulsar-client put it in its queue, and did not tell the receive that was armed just then."""
    native = FakeReader()
    native.looks.extend([(_pulsar.Result.Ok, True)] * 2)
    reading = asyncio.ensure_future(reader_of(native).read(10, HANG))
    while not native.armed:
        await asyncio.sleep(0.001)
    native.queue.extend(messages(a=1))
    assert texts(await reading) == ["a"]


async def test_the_end_is_behind_a_message_that_may_not_be_read_yet() -> None:
    """It waits for an answer on its way, which it must not overtake; reading waits for it without looking again."""
    native, taken = FakeReader(), list[int]()
    reader = reader_of(native)
    consumer = reader._native_consumer
    receive = consumer.receive

    def counted(limit: int) -> list[Any]:
        taken.append(limit)
        return receive(limit)

    consumer.receive = counted  # type: ignore[method-assign]  # it counts
    assert reader._receive(10) == []
    native.queue.extend(messages(a=1))
    while not consumer.has_messages:
        await asyncio.sleep(0.001)
    assert not await reader.at_end()
    assert native.looked == 0  # pulsar-client counts it as read, and would say that there is no more
    assert texts(await reader.read(10, HANG)) == ["a"]
    assert len(taken) == 3
    assert await reader.at_end()


async def test_what_was_not_announced_does_not_overtake_an_answer_that_comes_very_late() -> None:
    """The thread that brings it waits for a processor: who reads in order would take it for read already."""
    native = FakeReader()
    reader = reader_of(native)
    assert reader._receive(10) == []
    native.queue.extend(FakeMessage(7, index, body=body, batch_size=3) for index, body in ((1, b"b"), (2, b"c")))
    while not reader._native_consumer.has_messages:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.8 * HOLD)
    assert reader._receive(10) == []
    native.deliver(FakeMessage(7, 0, body=b"a", batch_size=3))
    assert texts(await reader.read(10, HANG)) == ["a", "b", "c"]


ENTRY_PARTS = ("producer_name", "schema_version")


def records_of(*natives: Any, maker: StoredRecords | None = None) -> list[Any]:
    source: Any = FakeNativeConsumer()
    return (StoredRecords(source) if maker is None else maker).make(natives)


def read_all(record: Any) -> tuple[Any, ...]:
    return record.message_id, record.publish_time, record.producer_name, record.schema_version


def test_records_know_their_places_at_once() -> None:
    natives = [FakeMessage(4, 0), FakeMessage(4, 1), FakeMessage(5), FakeMessage(6), FakeMessage(7, 0)]
    records = records_of(*natives)
    asked = [list(native.asked) for native in natives]
    assert [record.message_id for record in records] == [
        WireId(1, 4, -1, 0), WireId(1, 4, -1, 1), WireId(1, 5, -1, -1), WireId(1, 6, -1, -1), WireId(1, 7, -1, 0)
    ]  # fmt: skip
    assert asked == [native.asked for native in natives]


def test_of_a_batch_only_the_first_and_the_last_are_asked_for_their_places() -> None:
    natives = [FakeMessage(4, index, batch_size=5) for index in range(5)] + [FakeMessage(5, 0, batch_size=3)]
    records = records_of(*natives)
    assert [record.message_id for record in records] == [*(WireId(1, 4, -1, n) for n in range(5)), WireId(1, 5, -1, 0)]
    assert [record.batch_size for record in records] == [5] * 5 + [3]
    assert [native.asked.count("message_id") for native in natives] == [1, 0, 0, 0, 1, 1]


def test_the_rest_of_a_batch_has_its_places_whenever_it_comes() -> None:
    source: Any = FakeNativeConsumer()
    maker = StoredRecords(source)
    natives = [FakeMessage(4, index, batch_size=7) for index in range(7)]
    made = [records_of(*natives[:3], maker=maker), records_of(*natives[3:], FakeMessage(5), maker=maker)]
    places = [record.message_id for records in made for record in records]
    assert places == [*(WireId(1, 4, -1, number) for number in range(7)), WireId(1, 5)]
    assert [native.asked.count("message_id") for native in natives] == [1, 0, 1, 1, 0, 0, 1]


@pytest.mark.parametrize("indexes", [[0, 1, 3, 4], [0, 1, 1, 2, 3], [2, 3, 0, 1, 2]])
def test_a_batch_that_comes_in_another_order_is_asked_message_by_message(indexes: list[int]) -> None:
    natives = [FakeMessage(4, index, batch_size=5) for index in indexes]
    assert [record.message_id.batch_index for record in records_of(*natives)] == indexes


def test_what_the_entry_says_is_asked_once() -> None:
    natives = [FakeMessage(4, index, producer="one", schema=b"v") for index in range(3)]
    natives += [FakeMessage(5, index, producer="two", published=13) for index in range(2)]
    found = [read_all(record)[1:] for record in records_of(*natives)]
    assert found == [(12, "one", b"v")] * 3 + [(13, "two", None)] * 2
    assert [native.asked.count(part) for native in natives for part in ENTRY_PARTS] == [1, 1, 0, 0, 0, 0, 1, 1, 0, 0]


def test_an_entry_goes_on_with_the_next_messages() -> None:
    source: Any = FakeNativeConsumer()
    maker = StoredRecords(source)
    first = records_of(FakeMessage(4, 0, producer="one"), maker=maker)
    second = records_of(FakeMessage(4, 1, producer="?"), maker=maker)
    assert [record.producer_name for record in (*first, *second)] == ["one", "one"]


@pytest.mark.parametrize(("entry", "index"), [(4, 0), (4, 2), (5, 1), (4, -1), (3, 1)])
def test_what_does_not_follow_is_another_entry(entry: int, index: int) -> None:
    before, behind = records_of(FakeMessage(4, 0, producer="one"), FakeMessage(entry, index, producer="two"))
    assert (before.producer_name, behind.producer_name) == ("one", "two")


def test_after_a_seek_nothing_follows() -> None:
    source: Any = FakeNativeConsumer()
    maker = StoredRecords(source)
    records_of(FakeMessage(4, 0, producer="one"), maker=maker)
    maker.forget()
    behind = records_of(FakeMessage(4, 1, producer="two"), maker=maker)
    assert behind[0].producer_name == "two"


def test_a_size_needs_no_call_once_the_payload_is_here() -> None:
    class Measured(FakeMessage):
        def length(self) -> int:
            self.asked.append("length")
            return super().length()

    record = records_of(Measured(body=b"12345"))[0]
    assert (record.size, record.payload, record.size) == (405, b"12345", 405)
    assert record.native.asked == ["message_id", "length", "data"]


def test_a_name_that_is_not_utf8_is_refused_for_each_record() -> None:
    class Unreadable(FakeMessage):
        def producer_name(self) -> str:
            return b"\xff".decode()

    for record in records_of(Unreadable(4, 0), Unreadable(4, 1)):
        with pytest.raises(MalformedMessageError, match=f"the producer's name of {record.message_id} is not UTF-8"):
            _ = record.producer_name


def test_a_native_place_has_all_that_is_asked_of_it() -> None:
    place = _pulsar.MessageId(3, 2, 5, 7)
    assert (place.ledger_id(), place.entry_id(), place.partition(), place.batch_index()) == (2, 5, 3, 7)

"""Records of a reader: what their entry says is asked once for all of them."""

from __future__ import annotations

from typing import Any

import _pulsar
import pytest

from jmsaio.errors import MalformedMessageError
from jmsaio.model.wire import WireId
from jmsaio.transport.pulsar.consumers.stored_records import StoredRecords
from tests.kit.native_fakes import FakeMessage, FakeNativeConsumer

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

"""What crosses the seam between codec and transport."""

from __future__ import annotations

from jmsaio.model.wire import OutgoingRecord, PackedRecord, WireId


def test_places_look_like_starlight_s_message_ids() -> None:
    assert str(WireId(3, 4)) == "ID:3:4:-1"
    assert str(WireId(3, 4, 2)) == "ID:3:4:2"
    assert str(WireId(3, 4, 2, 0)) == "ID:3:4:2:0"


def test_places_are_in_order() -> None:
    assert WireId(1, 9) < WireId(2, 0) < WireId(2, 1) < WireId(2, 1, 0) < WireId(2, 1, 0, 3)
    assert len({WireId(1, 2), WireId(1, 2)}) == 1


def test_the_answer_to_a_duplicate_is_no_place() -> None:
    assert WireId(-1, -1, 2).duplicate
    assert not WireId(0, 0).duplicate


def test_size_counts_utf8() -> None:
    empty = OutgoingRecord(None, {}).size()
    assert empty == 0
    assert OutgoingRecord(b"abc", {}).size() == 3
    assert OutgoingRecord(b"abc", {}, key="é").size() == 5
    assert OutgoingRecord(b"", {"a": "é"}).size() == 3 + 8
    assert OutgoingRecord(b"", {"a": "\ud800"}).size() == 4 + 8


def test_a_record_has_the_face_that_it_was_not_made_with() -> None:
    record = OutgoingRecord(b"abc", {"region": "EU"}, "key", 5, 6, 7, 8, 9)
    packed = PackedRecord(b"abc", record.packed, "key", 5, 6, 7, 8, 9)
    assert packed.properties == record.properties == {"region": "EU"}
    assert packed.properties is packed.properties
    assert packed.packed == record.packed
    assert packed == PackedRecord(b"abc", record.packed, "key", 5, 6, 7, 8, 9)
    assert packed != PackedRecord(b"abc", record.packed, "key", 5, 6, 7, 8, 10)
    assert packed.size() == record.size()

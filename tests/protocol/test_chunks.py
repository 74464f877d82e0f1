"""A message in chunks ends as the same message, or as nothing; whatever arrives, only so much is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import ProtocolError
from jmsaio.protocol.chunks import Assembly, Partial, Whole, cut
from jmsaio.protocol.metadata import Metadata

pytestmark = pytest.mark.fast


def message(number: int = 0, producer: str = "p", **fields: Any) -> Metadata:
    return Metadata(producer, number, 1, b"packed", compression=2, uncompressed_size=99, **fields)


def chunk(number: int, count: int = 3, total: int = 6, uuid: str | None = "u", producer: str = "p") -> Metadata:
    return message(producer=producer, uuid=uuid, chunk_id=number, num_chunks_from_msg=count, total_chunk_msg_size=total)


def kept(assembly: Assembly) -> int:
    return sum(partial.stored for partial in assembly)


@given(payload=st.binary(min_size=1, max_size=200), most=st.integers(1, 50), number=st.integers(0, 2**63 - 1))
def test_what_is_cut_is_assembled(payload: bytes, most: int, number: int) -> None:
    whole, assembly, places = None, Assembly(1), []
    for place, (metadata, part) in enumerate(cut(message(number), payload, most)):
        assert whole is None and 0 < len(part) <= most
        assert metadata.sequence_id == number
        places.append((1, place))
        whole = assembly.add(places[-1], metadata, part, 0.0)[0]
    assert whole == Whole(message(number), payload, places, 0)
    assert len(assembly) == 0


@given(data=st.data())
def test_any_order_loss_or_repetition_ends_in_the_message_or_in_nothing(data: st.DataObject) -> None:
    """With several messages between each other, some of the same uuid; no more are kept than allowed."""
    bodies = [bytes([number]) * size for number, size in enumerate(data.draw(st.lists(st.integers(2, 9), max_size=4)))]
    chunks = [(number, *each) for number, body in enumerate(bodies) for each in cut(message(number), body, 2)]
    most = data.draw(st.integers(1, 3))
    assembly = Assembly(most)
    arrivals = data.draw(st.lists(st.sampled_from(range(len(chunks))), max_size=40)) if chunks else []
    settled: set[tuple[int, int]] = set()
    for index in [*arrivals, *range(len(chunks))]:
        number, metadata, part = chunks[index]
        whole, partial, _ = assembly.add((1, index), metadata, part, 0.0)
        assert (1, index) in partial.places
        if whole is not None:
            assert whole.payload == bodies[number] and whole.metadata == message(number)
            assert whole.places[-1] == (1, index)
            assert set(whole.places) >= {(1, at) for at, one in enumerate(chunks) if one[0] == number}
            settled.update(whole.places)
        assert kept(assembly) <= most
    assert settled == {(1, index) for index in range(len(chunks))}  # the last round was complete and in order
    for partial in assembly.expire(0.0):
        assert not partial.stored or partial.begun
    assert len(assembly) == 0


@given(fields=st.lists(st.tuples(*[st.none() | st.integers(-2, 4)] * 3, st.sampled_from(["u", None])), max_size=20))
def test_numbers_that_lie_end_in_a_value_or_an_error(
    fields: list[tuple[int | None, int | None, int | None, Any]],
) -> None:
    assembly = Assembly(2)
    for place, (number, count, total, uuid) in enumerate(fields):
        metadata = message(chunk_id=number, num_chunks_from_msg=count, total_chunk_msg_size=total, uuid=uuid)
        try:
            whole = assembly.add((1, place), metadata, b"x", 0.0)[0]
        except ProtocolError:
            continue
        assert whole is None or len(whole.payload) == total
        assert kept(assembly) <= 2


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (chunk(0, uuid=None), "uuid None"),
        (chunk(3), "chunk 3 of 3"),
        (chunk(-1), "chunk -1 of 3"),
        (chunk(0, count=0), "chunk 0 of 0"),
        (chunk(0, total=1), "2 bytes, of 1 announced"),
        (chunk(0, count=1, total=9), "1 of 1 chunks have 2 bytes, of 9"),
    ],
)
def test_a_lie_is_named(metadata: Metadata, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        Assembly(2).add((1, 0), metadata, b"xx", 0.0)


def test_chunks_stored_twice_belong_to_the_message() -> None:
    """The producer lost its connection, and sent the message again from its first chunk."""
    assembly = Assembly(1)
    for place, number in enumerate((0, 1, 0, 0, 1, 1)):
        assert assembly.add((1, place), chunk(number), b"xx", 0.0)[0] is None
    whole = assembly.add((1, 6), chunk(2), b"xx", 0.0)[0]
    assert whole is not None
    assert (whole.payload, whole.places) == (b"x" * 6, [(1, place) for place in range(7)])


def test_the_uuid_of_another_producer_is_another_message() -> None:
    assembly = Assembly(2)
    assembly.add((1, 0), chunk(0, 2, 4), b"xx", 0.0)
    assert assembly.add((1, 1), chunk(1, 2, 4, producer="q"), b"yy", 0.0)[0] is None
    whole = assembly.add((1, 2), chunk(1, 2, 4), b"xx", 0.0)[0]
    assert whole is not None and whole.places == [(1, 0), (1, 2)]


def test_too_many_drop_the_oldest_until_its_first_chunk_arrives_again() -> None:
    assembly = Assembly(1)
    first = assembly.add((1, 0), chunk(0, 2, 4, "a"), b"aa", 0.0)[1]
    assert assembly.add((1, 1), chunk(0, 2, 4, "b"), b"bb", 1.0)[2] is first
    assert assembly.add((1, 2), chunk(1, 2, 4, "a"), b"aa", 2.0) == (None, first, None)
    assert list(first.places) == [(1, 0), (1, 2)] and first.begun and not first.stored
    assembly.add((1, 0), chunk(0, 2, 4, "a"), b"aa", 3.0)
    whole = assembly.add((1, 2), chunk(1, 2, 4, "a"), b"aa", 4.0)[0]
    assert whole is not None and whole.payload == b"aaaa"


def test_what_comes_again_does_not_postpone_the_end() -> None:
    assembly = Assembly(0)
    partial: Partial = assembly.add((1, 0), chunk(0), b"xx", 1.0)[1]
    assembly.add((1, 0), chunk(0), b"xx", 5.0)
    assert assembly.expire(0.9) == []
    assert assembly.expire(1.0) == [partial]
    assert not partial.waits and len(assembly) == 0


def test_a_tail_has_not_begun() -> None:
    """Its first chunk lies before the start position."""
    assembly = Assembly(0)
    whole, partial, _ = assembly.add((1, 7), chunk(2), b"xx", 0.0)
    assert whole is None and not partial.begun and not partial.stored
    assembly.clear()
    assert len(assembly) == 0

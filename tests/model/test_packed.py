"""Numbers of variable length, and packed properties."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import MessageFormatError
from jmsaio.model.packed import pack, pack_name, pack_value, read_varint, shape_of, unpack, varint


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_a_number_is_read_as_it_was_written(number: int, behind: bytes) -> None:
    data = b"\xff" + varint(number) + behind
    assert read_varint(data, 1, len(data)) == (number, len(data) - len(behind))


def test_numbers_have_the_bytes_of_the_protocol() -> None:
    assert [varint(number).hex() for number in (0, 1, 127, 128, 300, 2**64 - 1)] == [
        "00", "01", "7f", "8001", "ac02", "ffffffffffffffffff01",
    ]  # fmt: skip


@pytest.mark.parametrize(("data", "end"), [(b"", 0), (b"\x80", 1), (b"\x80\x01", 1), (b"\xff" * 100_000, 100_000)])
def test_a_number_that_does_not_end_is_refused(data: bytes, end: int) -> None:
    with pytest.raises(ValueError, match="without an end at byte 0"):
        read_varint(data, 0, end)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(st.dictionaries(TEXTS, TEXTS, max_size=5))
def test_what_is_packed_is_unpacked_in_the_same_order(properties: dict[str, str]) -> None:
    assert list(unpack(pack(properties)).items()) == list(properties.items())


def test_the_bytes_are_those_of_the_protocol() -> None:
    assert pack({"region": "EU", "größe": ""}) == (
        b"\x0a\x0c\x0a\x06region\x12\x02EU" + b"\x0a\x0b\x0a\x07gr\xc3\xb6\xc3\x9fe\x12\x00"
    )


@pytest.mark.parametrize("length", [110, 114, 115, 116, 117, 118, 119, 120, 126, 127, 128, 16_383, 16_384])
def test_lengths_may_take_several_bytes(length: int) -> None:
    value = "v" * length
    written = varint(length)
    inside = b"\x0a\x01n\x12" + written + value.encode()
    assert pack_value(pack_name("n"), value.encode()) == b"\x0a" + varint(len(inside)) + inside
    assert unpack(pack({"n": value})) == {"n": value}


def test_of_a_name_given_twice_the_last_value_counts() -> None:
    assert unpack(pack({"a": "1"}) + pack({"b": "2"}) + pack({"a": "3"})) == {"a": "3", "b": "2"}


@given(st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=3), st.data())
def test_cut_bytes_are_refused_unless_cut_between_properties(texts: dict[str, str], data: st.DataObject) -> None:
    packed = pack(texts)
    cut = data.draw(st.integers(1, len(packed) - 1))
    try:
        found = unpack(packed[:cut])
    except MessageFormatError:
        return
    assert packed.startswith(pack(found)) and len(pack(found)) == cut


@given(st.binary(max_size=40))
def test_no_bytes_raise_anything_else(packed: bytes) -> None:
    try:
        assert all(isinstance(value, str) for value in unpack(packed).values())
    except MessageFormatError as error:
        assert "packed properties" in str(error)


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (b"\x12\x00", "no tag 0a at byte 0"),
        (b"\x0a\x05\x0a\x00\x12\x00", "5 bytes at byte 2, where only 4 are left"),
        (b"\x0a\x02\x0a\x00", "no tag 12 at byte 4"),
        (b"\x0a\x05\x0a\x00\x12\x00\x00", "1 bytes too many before byte 7"),
        (b"\x0a\x05\x0a\x01\xff\x12\x00", "no UTF-8 before byte 7"),
        (b"\x0a" + b"\xff" * 11, "a number without an end at byte 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(packed: bytes, message: str) -> None:
    with pytest.raises(MessageFormatError, match=message):
        unpack(packed)


def test_a_lone_surrogate_is_refused_with_its_name() -> None:
    with pytest.raises(MessageFormatError, match="'region' has a lone surrogate at 1"):
        pack({"region": "a\ud800"})


PAIRS = st.lists(st.tuples(st.sampled_from(["a", "ab", "n\u00fc", "x" * 200]), TEXTS), max_size=6)


@given(PAIRS, PAIRS, st.binary(max_size=3))
def test_a_list_of_a_known_shape_has_its_values_where_the_shape_says(
    one: list[tuple[str, str]], other: list[tuple[str, str]], beside: bytes
) -> None:
    first, second = (b"".join(pack({name: value}) for name, value in pairs) for pairs in (one, other))
    shape = shape_of(beside + first, len(beside), len(beside + first))
    assert shape.size == len(first)
    for packed in (first, second):
        data, start = beside + packed + beside + bytes(shape.size), len(beside)
        if shape.heads_at(data, start) == shape.heads:
            places = shape.places.items()
            found = {name: data[start + begin : start + stop].decode() for name, (begin, stop) in places}
            assert found == unpack(packed[: shape.size])
        else:
            assert packed is second
            assert lengths(one) != lengths(other)


def lengths(pairs: list[tuple[str, str]]) -> list[tuple[str, int]]:
    return [(name, len(value.encode())) for name, value in pairs]


@given(st.binary(max_size=40))
def test_only_lists_of_properties_have_a_shape(packed: bytes) -> None:
    try:
        shape = shape_of(packed, 0, len(packed))
    except MessageFormatError:
        with pytest.raises(MessageFormatError):
            unpack(packed)
        return
    assert shape.size == len(packed)

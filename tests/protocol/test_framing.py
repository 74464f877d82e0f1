"""However the bytes of a stream are cut, the frames are the same; a size that lies ends the stream at once."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import ProtocolError
from jmsaio.protocol.commands import Command, wrap
from jmsaio.protocol.framing import Frame, Framing, crc32c, entry_of
from tests.protocol.all_commands import encode_command

pytestmark = pytest.mark.fast
PING = encode_command(Command.PING)


def message(rest: bytes) -> bytes:
    command = wrap(Command.MESSAGE, b"\x08\x01\x12\x04\x08\x05\x10\x06")
    return (4 + len(command) + len(rest)).to_bytes(4) + len(command).to_bytes(4) + command + rest


FRAMES = st.one_of(
    st.just(PING),
    st.binary(max_size=300).map(message),
    st.integers(0, 1000).map(lambda number: encode_command(Command.FLOW, consumer_id=1, message_permits=number)),
)
LIES = st.sampled_from([b"", b"\x00\x00\x00\x02\x00\x00", b"\x00\x00\x00\x06\x00\x00\x00\x03\x08\x12", b"\xff" * 4])


def contents(framing: Framing, pieces: Iterable[bytes]) -> tuple[list[tuple[int, bytes, bytes]], str]:
    """The kind, command and rest of every frame, and the error at the end."""
    found = []
    try:
        for piece in pieces:
            for kind, data, command, rest, end in framing.feed(piece):
                found.append((kind, data[command:rest], data[rest:end]))
    except ProtocolError as error:
        return found, str(error)
    return found, ""


@pytest.mark.property
@given(st.lists(FRAMES, max_size=8), LIES, st.binary(max_size=5), st.data())
def test_any_cut_gives_the_same_frames(frames: list[bytes], lie: bytes, rest: bytes, data: st.DataObject) -> None:
    stream = b"".join(frames) + lie + rest * bool(lie)
    whole = contents(Framing(400), [stream])
    assert len(whole[0]) == len(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert contents(Framing(400), pieces) == whole
    assert contents(Framing(400), [stream[at : at + 1] for at in range(len(stream))]) == whole


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_frames_or_a_protocol_error(stream: bytes) -> None:
    contents(Framing(1 << 32), [stream])
    contents(Framing(1 << 32), [b"\x00\x00\x00" + bytes([len(stream)]) + stream])


def test_a_size_that_is_too_large_is_refused_before_its_bytes_arrive() -> None:
    framing = Framing(100)
    assert list(framing.feed(b"\x00\x00\x00")) == []
    with pytest.raises(ProtocolError, match="101 bytes; between 6 and 100"):
        list(framing.feed(b"\x65"))


def test_the_limit_changes_between_two_frames_of_one_piece() -> None:
    framing = Framing(20)
    frames = framing.feed(PING + message(bytes(50)))
    assert next(frames).kind == Command.PING
    framing.set_max(200)
    assert next(frames).kind == Command.MESSAGE


def test_a_whole_frame_is_not_copied_and_a_cut_one_once() -> None:
    stream = PING + message(bytes(100))
    first, second = Framing().feed(stream)
    assert first.data is stream and second.data is stream
    framing = Framing()
    assert [len(list(framing.feed(piece))) for piece in (stream[:20], stream[20:30])] == [1, 0]
    (frame,) = framing.feed(stream[30:])
    assert frame.data == stream[len(PING) :]


def test_a_type_that_is_not_the_first_field_is_refused() -> None:
    with pytest.raises(ProtocolError, match="does not begin with its type"):
        list(Framing().feed(b"\x00\x00\x00\x08\x00\x00\x00\x04\x92\x01\x00\x00"))


def test_the_type_of_a_later_protocol_takes_two_bytes() -> None:
    (frame,) = Framing().feed(b"\x00\x00\x00\x07\x00\x00\x00\x03\x08\x80\x01")
    assert frame.kind == 128


def entry(metadata: bytes, payload: bytes, *, checksum: bool = True, broker: bytes | None = None) -> Frame:
    body = len(metadata).to_bytes(4) + metadata + payload
    head = b"" if broker is None else b"\x0e\x02" + len(broker).to_bytes(4) + broker
    check = b"\x0e\x01" + crc32c(body).to_bytes(4) if checksum else b""
    (frame,) = Framing().feed(message(head + check + body))
    return frame


@given(st.binary(max_size=40), st.binary(max_size=40), st.booleans(), st.none() | st.binary(max_size=10))
def test_an_entry_has_its_parts(metadata: bytes, payload: bytes, checksum: bool, broker: bytes | None) -> None:
    parts = entry_of(entry(metadata, payload, checksum=checksum, broker=broker))
    assert parts.data[parts.metadata : parts.payload] == metadata
    assert parts.data[parts.payload :] == payload


@given(st.data())
def test_a_damaged_byte_is_found(data: st.DataObject) -> None:
    frame = entry(b"metadata", b"payload")
    at = data.draw(st.integers(frame.rest, frame.end - 1))
    changed = frame.data[:at] + bytes([frame.data[at] ^ data.draw(st.integers(1, 255))]) + frame.data[at + 1 :]
    with pytest.raises(ProtocolError):
        entry_of(frame._replace(data=changed))


@pytest.mark.parametrize(
    "rest", ["", "000001", "00000001", "0e01", "0e01000000", "0e0100000000", "0e02", "0e02000000ff00"]
)
def test_an_entry_that_is_cut_off_is_a_protocol_error(rest: str) -> None:
    (frame,) = Framing().feed(message(bytes.fromhex(rest)) + b"\x00\x00")
    with pytest.raises(ProtocolError, match="an entry"):
        entry_of(frame)


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_known_checksums_in_one_part_or_two(data: bytes, expected: int) -> None:
    """Those of RFC 3720."""
    assert crc32c(data) == expected
    assert {crc32c(data[:at], data[at:]) for at in range(len(data) + 1)} == {expected}

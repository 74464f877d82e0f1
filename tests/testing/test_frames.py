from __future__ import annotations

import pytest

from jmsaio.protocol.commands import Command
from jmsaio.testing.frames import Part, command_type, damaged, frame_end, kept_on_service_url, part_of

CHECKSUM = b"\x0e\x01" + b"CRC!"


def frame(command: bytes, rest: bytes = b"") -> bytes:
    body = len(command).to_bytes(4) + command + rest
    return len(body).to_bytes(4) + body


def message(entry: bytes = b"") -> bytes:
    return frame(b"\x08\x09\x4a\x00", entry + CHECKSUM + (3).to_bytes(4) + b"MET" + b"PAYLOAD")


def test_where_a_frame_ends_and_what_it_is() -> None:
    """A frame is known by its size and the type of its command, wherever it starts."""
    ping = frame(b"\x08\x12")
    assert frame_end(b"xx" + ping + b"y", 2) == 2 + len(ping)
    assert frame_end(ping[:3], 0) is None
    assert command_type(b"xx" + ping, 2) == Command.PING
    assert command_type(frame(b""), 0) == 0


@pytest.mark.parametrize("entry", [b"", b"\x0e\x02" + (5).to_bytes(4) + b"ENTRY"])
def test_parts_of_a_message(entry: bytes) -> None:
    """Checksum, metadata and payload are found, also behind the broker's own entry."""
    whole = message(entry)

    def text(part: Part) -> bytes:
        return bytes(whole[at] for at in part_of(whole, part))

    assert text(Part.CHECKSUM) == b"CRC!"
    assert text(Part.METADATA) == b"MET"
    assert text(Part.PAYLOAD) == b"PAYLOAD"
    assert text(Part.COMMAND) == b"\x08\x09\x4a\x00"
    assert text(Part.SIZE) == whole[:4]


@pytest.mark.parametrize("part", Part)
def test_damage_is_one_byte_of_the_part(part: Part) -> None:
    """Exactly one byte changes, and it lies in the part that was asked for."""
    whole = message()
    broken = damaged(whole, part)
    assert broken is not None
    different = [at for at, (before, after) in enumerate(zip(whole, broken, strict=True)) if before != after]
    assert len(different) == 1
    assert different[0] in part_of(whole, part)


def test_a_frame_without_that_part_is_left_alone() -> None:
    """A command has no payload to damage, and neither has a message without checksum a checksum."""
    assert damaged(frame(b"\x08\x12"), Part.PAYLOAD) is None
    assert damaged(frame(b"\x08\x06\x32\x00", (3).to_bytes(4) + b"MET"), Part.CHECKSUM) is None


@pytest.mark.parametrize("url", [b"pulsar://elsewhere:6650", b"u" * 200])
def test_an_answer_to_a_look_up_keeps_the_client_here(url: bytes) -> None:
    """The answer gets proxy_through_service_url; all else stays, however long it is."""
    answer = b"\x0a" + (bytes([len(url)]) if len(url) < 128 else b"\xc8\x01") + url
    length = bytes([len(answer)]) if len(answer) < 128 else bytes([len(answer) & 0x7F | 0x80, len(answer) >> 7])
    changed = kept_on_service_url(frame(b"\x08\x18\xc2\x01" + length + answer))
    longer = len(answer) + 2
    length = bytes([longer]) if longer < 128 else bytes([longer & 0x7F | 0x80, longer >> 7])
    assert changed == frame(b"\x08\x18\xc2\x01" + length + answer + b"\x40\x01")


def test_an_answer_without_a_look_up_stays() -> None:
    """What is not the expected command is passed as it is."""
    assert kept_on_service_url(frame(b"\x08\x12")) == frame(b"\x08\x12")

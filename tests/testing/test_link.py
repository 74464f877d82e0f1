"""The two sockets of a connection through the proxy live and end together."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.protocol.commands import Command
from jmsaio.testing import Direction, FaultProxy
from jmsaio.testing.link import (
    FrameFault,
    Part,
    Rules,
    command_type,
    damaged,
    frame_size,
    kept_on_service_url,
    part_of,
)
from tests.testing.echo import HANG, PING, PONG, echoing, until


async def test_a_stalled_sender_is_held_up() -> None:
    """The proxy does not take without end what it can't pass on."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        echo.proxy.stall(Direction.TO_BROKER)
        writer.write(b"\xff" * 64 * 1024 * 1024)
        with pytest.raises(TimeoutError), anyio.fail_after(0.3):
            await writer.drain()
        assert echo.proxy.traffic(Direction.TO_BROKER).bytes == 0
        echo.proxy.resume()
        assert await reader.readexactly(1024) == b"\xff" * 1024


async def test_reset_breaks_both_sides_and_takes_new_connections() -> None:
    """Both sides get RST, and the proxy takes new connections."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        await until(lambda: echo.proxy.connections == 1)
        assert echo.proxy.reset() == 1
        with pytest.raises(ConnectionResetError):
            await reader.read(1)
        await until(lambda: echo.ended == 1)
        reader, writer = await echo.connect()
        writer.write(PING)
        assert await reader.readexactly(len(PING)) == PING


async def test_after_a_half_close_the_other_direction_goes_on() -> None:
    """The receiver of one direction hears the end; what it still says arrives."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        writer.write(PING)
        await reader.readexactly(len(PING))
        assert echo.proxy.half_close(Direction.TO_CLIENT) == 1
        assert await reader.read(1) == b""
        writer.write(PONG)
        await until(lambda: echo.got == PING + PONG)


async def test_what_is_sent_into_a_half_closed_direction_is_dropped() -> None:
    """The sender is not held back, and when it is gone, so is the connection to the receiver."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        await until(lambda: echo.proxy.connections == 1)
        assert echo.proxy.half_close(Direction.TO_BROKER) == 1
        writer.write(b"\xff" * 16 * 1024 * 1024)
        await writer.drain()
        assert await reader.read(1) == b""
        writer.transport.abort()
        await until(lambda: echo.proxy.connections == 0)
        assert echo.got == b""


async def test_a_server_that_is_away() -> None:
    """A client sees a broken connection, no more and no less."""
    async with echoing() as echo, FaultProxy("127.0.0.1", 1) as echo.proxy:
        with pytest.raises(ConnectionResetError), anyio.fail_after(HANG):
            reader, _ = await echo.connect()  # broken already, where this process is slow
            await reader.read(1)


def answer(command: int) -> bytes:
    return (6).to_bytes(4) + (2).to_bytes(4) + bytes([8, command])


FRAME = answer(Command.SEND_RECEIPT)


def test_a_fault_hits_as_often_as_it_says() -> None:
    """It lets ``skip`` frames pass, hits ``left`` of them, counts them and is over."""
    fault = FrameFault("swallow", Command.SEND_RECEIPT, skip=1, left=2)
    rules = Rules(faults=[fault])
    assert [rules.hit(FRAME) for _ in range(4)] == [None, ("swallow", b""), ("swallow", b""), None]
    assert (fault.hits, fault.left) == (2, 0)


def test_a_fault_of_another_command_does_not_hit() -> None:
    """Frames of other commands neither suffer nor count."""
    fault = FrameFault("swallow", Command.SEND_RECEIPT, skip=1)
    rules = Rules(faults=[fault])
    assert rules.hit(answer(Command.PONG)) is None
    assert fault.skip == 1


def test_a_fault_without_an_end_and_one_for_every_command() -> None:
    """``left=None`` hits until it is taken away; without a command every frame is meant."""
    rules = Rules(faults=[FrameFault("cut", left=None)])
    assert [rules.hit(answer(command)) for command in (1, 2, 3)] == [("cut", FRAME[:5])] * 3


def test_a_part_that_is_not_there_is_not_flipped() -> None:
    """The fault waits for a frame that has the part."""
    fault = FrameFault("flip", part=Part.PAYLOAD)
    assert Rules(faults=[fault]).hit(FRAME) is None
    assert (fault.hits, fault.left) == (0, 1)


CHECKSUM = b"\x0e\x01" + b"CRC!"


def framed(command: bytes, rest: bytes = b"") -> bytes:
    body = len(command).to_bytes(4) + command + rest
    return len(body).to_bytes(4) + body


def message(entry: bytes = b"") -> bytes:
    return framed(b"\x08\x09\x4a\x00", entry + CHECKSUM + (3).to_bytes(4) + b"MET" + b"PAYLOAD")


def test_where_a_frame_ends_and_what_it_is() -> None:
    """A frame is known by its size and the type of its command."""
    ping = framed(b"\x08\x12")
    assert frame_size(ping + b"y") == len(ping)
    assert frame_size(ping[:3]) is None
    assert command_type(ping) == Command.PING
    assert command_type(framed(b"")) == 0


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
    assert damaged(framed(b"\x08\x12"), Part.PAYLOAD) is None
    assert damaged(framed(b"\x08\x06\x32\x00", (3).to_bytes(4) + b"MET"), Part.CHECKSUM) is None


@pytest.mark.parametrize("url", [b"pulsar://elsewhere:6650", b"u" * 200])
def test_an_answer_to_a_look_up_keeps_the_client_here(url: bytes) -> None:
    """The answer gets proxy_through_service_url; all else stays, however long it is."""
    answer = b"\x0a" + (bytes([len(url)]) if len(url) < 128 else b"\xc8\x01") + url
    length = bytes([len(answer)]) if len(answer) < 128 else bytes([len(answer) & 0x7F | 0x80, len(answer) >> 7])
    changed = kept_on_service_url(framed(b"\x08\x18\xc2\x01" + length + answer))
    longer = len(answer) + 2
    length = bytes([longer]) if longer < 128 else bytes([longer & 0x7F | 0x80, longer >> 7])
    assert changed == framed(b"\x08\x18\xc2\x01" + length + answer + b"\x40\x01")


def test_an_answer_without_a_look_up_stays() -> None:
    """What is not the expected command is passed as it is."""
    assert kept_on_service_url(framed(b"\x08\x12")) == framed(b"\x08\x12")

"""The two sockets of a connection through the proxy live and end together."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.protocol.commands import Command
from jmsaio.testing import Direction, FaultProxy
from jmsaio.testing.frames import Part
from jmsaio.testing.link import FrameFault, Rules
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


async def test_a_server_that_is_away() -> None:
    """A client sees a broken connection, no more and no less."""
    async with echoing() as echo, FaultProxy("127.0.0.1", 1) as echo.proxy:
        with pytest.raises(ConnectionResetError), anyio.fail_after(HANG):
            reader, _ = await echo.connect()  # broken already, where this process is slow
            await reader.read(1)


FRAME = (6).to_bytes(4) + (2).to_bytes(4) + b"\x08\x07"


def hit(rules: Rules, command: int = Command.SEND_RECEIPT) -> tuple[str, bytes] | None:
    return rules.hit(command, lambda: FRAME)


def test_a_fault_hits_as_often_as_it_says() -> None:
    """It lets ``skip`` frames pass, hits ``left`` of them, counts them and is over."""
    fault = FrameFault("swallow", Command.SEND_RECEIPT, skip=1, left=2)
    rules = Rules(faults=[fault])
    assert [hit(rules) for _ in range(4)] == [None, ("swallow", b""), ("swallow", b""), None]
    assert (fault.hits, fault.left) == (2, 0)


def test_a_fault_of_another_command_does_not_hit() -> None:
    """Frames of other commands neither suffer nor count."""
    fault = FrameFault("swallow", Command.SEND_RECEIPT, skip=1)
    rules = Rules(faults=[fault])
    assert hit(rules, Command.PONG) is None
    assert fault.skip == 1


def test_a_fault_without_an_end_and_one_for_every_command() -> None:
    """``left=None`` hits until it is taken away; without a command every frame is meant."""
    rules = Rules(faults=[FrameFault("cut", left=None)])
    assert [hit(rules, command) for command in (1, 2, 3)] == [("cut", FRAME[:5])] * 3


def test_a_part_that_is_not_there_is_not_flipped() -> None:
    """The fault waits for a frame that has the part."""
    fault = FrameFault("flip", part=Part.PAYLOAD)
    assert hit(Rules(faults=[fault])) is None
    assert (fault.hits, fault.left) == (0, 1)

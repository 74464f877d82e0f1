"""The two sockets of a connection through the proxy live and end together."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.testing import Direction, FaultProxy
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

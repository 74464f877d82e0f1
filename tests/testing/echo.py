"""A server that sends back what it gets, behind a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import attrs

from jmsaio.testing import Command, FaultProxy

#: Seconds after which a test hangs.
HANG = 30


@attrs.define
class Echo:
    """A tiny server that sends back what it gets, and the proxy before it."""

    proxy: FaultProxy
    got: bytearray = attrs.field(factory=bytearray)
    ended: int = 0
    writers: list[asyncio.StreamWriter] = attrs.field(factory=list)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection through the proxy, closed at the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy.port)
        self.writers.append(writer)
        return reader, writer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                self.got += data
                writer.write(data)
        except ConnectionResetError:
            return
        finally:
            self.ended += 1
            writer.close()


@asynccontextmanager
async def echoing() -> AsyncIterator[Echo]:
    """An echo server behind a proxy."""
    echo = Echo(FaultProxy("127.0.0.1", 1))
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    async with FaultProxy("127.0.0.1", server.sockets[0].getsockname()[1]) as echo.proxy:
        with anyio.fail_after(HANG):
            yield echo
        for writer in echo.writers:
            writer.transport.abort()
    server.close()


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(HANG):
        while not condition():
            await asyncio.sleep(0.01)


def frame(command: Command, body: bytes = b"") -> bytes:
    fields = bytes([8, command]) + body
    return (len(fields) + 4).to_bytes(4) + len(fields).to_bytes(4) + fields


PING, PONG = frame(Command.PING), frame(Command.PONG)

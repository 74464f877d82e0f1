"""A connection through the fault proxy: two sockets, and a pipe between them for each direction."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Mapping, MutableMapping

import anyio

from jmsaio.testing.direction import Direction, Forwarder, Rules

#: Maximum seconds to connect to the broker.
_CONNECT_TIMEOUT = 10.0
_LINGER = struct.pack("ii", 1, 0)


class ConnectionPair:
    """A client's connection, and the corresponding one to the broker.

    Args:
        rules: rules for the bytes, by direction.
        address: host and port of the broker.
        links: the proxy's links, which include this one while it is open.
    """

    def __init__(
        self, rules: Mapping[Direction, Rules], address: tuple[str, int], links: MutableMapping[ConnectionPair, None]
    ) -> None:
        self.pipes = {direction: Forwarder(rules[direction], self.reset, self.finished) for direction in Direction}
        self.client = Side(self, Direction.TO_BROKER)
        self.broker = Side(self, Direction.TO_CLIENT)
        self.task: asyncio.Task[None] | None = None
        self._address = address
        self._links = links

    def opened(self, side: Side) -> None:
        """Handle the connection of one side; once the client is connected, connect to the broker."""
        self.pipes[Direction.TO_BROKER].connect(self.client.transport, self.broker.transport)
        self.pipes[Direction.TO_CLIENT].connect(self.broker.transport, self.client.transport)
        if side is self.client:
            self._links[self] = None
            self.task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            with anyio.fail_after(_CONNECT_TIMEOUT):
                await loop.create_connection(lambda: self.broker, *self._address)
        except (OSError, TimeoutError):  # through the proxy, an unreachable broker appears as a broken connection
            self.reset()

    def reset(self) -> None:
        """Break both sides with RST."""
        if self.task is not None:
            self.task.cancel()
        for side in (self.client, self.broker):
            if side.transport is not None and not side.transport.is_closing():
                with contextlib.suppress(OSError):  # the other end closed it first
                    side.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
                side.transport.abort()
        self.closed()

    def closed(self) -> None:
        """Close the pipes and remove the link from the proxy's links."""
        for pipe in self.pipes.values():
            pipe.close()
        self._links.pop(self, None)

    def finished(self) -> None:
        """Handle the end of one direction; close the connection once both have ended."""
        if all(pipe.ended for pipe in self.pipes.values()):
            for side in (self.client, self.broker):
                if side.transport is not None:
                    side.transport.close()
            self.closed()

    def lost(self) -> None:
        """Handle the loss of one side: reset the other one, unless both have ended in order."""
        if self in self._links:
            self.reset()


class Side(asyncio.Protocol):
    """One socket of a link: feeds its bytes into one pipe, and holds the other one back while it can't write."""

    def __init__(self, link: ConnectionPair, direction: Direction) -> None:
        self.transport: asyncio.Transport | None = None
        self._link = link
        self._into = link.pipes[direction]
        self._out_of = next(pipe for each, pipe in link.pipes.items() if each is not direction)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._link.opened(self)

    def data_received(self, data: bytes) -> None:
        self._into.feed(data)

    def eof_received(self) -> bool:
        self._into.end()
        return True

    def pause_writing(self) -> None:
        self._out_of.hold(True)

    def resume_writing(self) -> None:
        self._out_of.hold(False)

    def connection_lost(self, error: Exception | None) -> None:
        self._link.lost()

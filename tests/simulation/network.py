"""A network inside one event loop. Bytes take time, arrive in pieces and in order; connections break or fall silent."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any


class End(asyncio.Transport):
    """One end of a connection.

    Attributes:
        host: name of the broker that it reaches, or belongs to.
        other: the other end.
        protocol: reads what arrives here.
        closed: whether this end is closed.
        silent: whether nothing that it sends arrives any more, although the connection seems to be open.
    """

    def __init__(self, network: Network, host: str) -> None:
        super().__init__()
        self.host = host
        self.other: End
        self.protocol: asyncio.Protocol
        self.closed = self.silent = False
        self._network = network
        self._arriving: deque[bytes | Exception | None] = deque()  # an exception, or None, is the end
        self._last = 0.0
        self._unsent = 0
        self._limit = network.random.choice((300, 1 << 22))
        self._paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        random, rest = self._network.random, bytes(data)
        if self.closed:
            return
        self._unsent += len(rest)
        while rest and not self.silent:
            size = random.randrange(1, len(rest) + 1) if random.random() < 0.1 else len(rest)
            self.other._expect(rest[:size])
            rest = rest[size:]
        if self._unsent > self._limit and not self._paused:
            self._paused = True
            self.protocol.pause_writing()

    def _expect(self, what: bytes | Exception | None) -> None:
        self._arriving.append(what)
        self._last = max(self._last, self._network.due(self.host))
        self._network.loop.call_at(self._last, self._arrive)

    def _arrive(self) -> None:
        if not self._arriving:
            return  # what was to arrive is lost
        what = self._arriving.popleft()
        if not isinstance(what, bytes):
            self._end(what)
            return
        self.other._sent(len(what))
        if not self.closed:
            self.protocol.data_received(what)

    def _sent(self, size: int) -> None:
        self._unsent -= size
        if self._paused and not self.closed and self._unsent <= self._limit // 4:
            self._paused = False
            self.protocol.resume_writing()

    def lose(self) -> None:
        """Lose the last of the bytes on their way to this end, and break it."""
        for _ in range(self._network.random.randrange(len(self._arriving) + 1)):
            self._arriving.pop()
        self._expect(ConnectionResetError(errno.ECONNRESET, "reset"))

    def abort(self) -> None:
        self._network.loop.call_soon(self._end, None)
        if not self.closed and not self.silent:
            self.other.lose()

    def close(self) -> None:
        self._network.loop.call_soon(self._end, None)
        if not self.closed and not self.silent:
            self.other._expect(None)

    def _end(self, error: Exception | None) -> None:
        if not self.closed:
            self.closed = True
            self._network.left(self)
            self.protocol.connection_lost(error)

    def is_closing(self) -> bool:
        return self.closed

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Keep the limit that chance chose."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class Network:
    """Connects clients with brokers by their names.

    Args:
        random: the chance of the seed.
        note: called with the text of each event, for the trace.

    Attributes:
        loop: the event loop, whose ``create_connection`` leads here.
        listeners: creates the broker's protocol of a connection, by the name of the broker.
        ends: the ends that are not closed, those of the clients first.
        held: time until which nothing reaches or leaves a broker, by its name.
        calm: whether nothing is wrong, so that no connection may end.
        unsettled: names of the brokers of those that did.
    """

    def __init__(self, random: Random, note: Callable[[str], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.create_connection = self._connect  # type: ignore[method-assign, assignment]  # all that clients use
        self.random = random
        self.listeners: dict[str, Callable[[], asyncio.Protocol]] = {}
        self.ends: dict[End, None] = {}
        self.held: dict[str, float] = {}
        self.calm = False
        self.unsettled: list[str] = []
        self._note = note

    def due(self, host: str) -> float:
        """Return when something that leaves now arrives."""
        late = self.random.random() < 0.02
        delay = self.random.uniform(0.0002, 0.5 if late else 0.003)
        return max(self.loop.time(), self.held.get(host, 0.0)) + delay

    async def _connect(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int, *, ssl: object = None,
        server_hostname: str | None = None,
    ) -> tuple[End, asyncio.Protocol]:  # fmt: skip
        await asyncio.sleep(self.due(host) - self.loop.time())
        listener = self.listeners.get(host)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{host} is down")
        client, server = End(self, host), End(self, host)
        client.other, server.other = server, client
        client.protocol, server.protocol = factory(), listener()
        self.ends |= {client: None, server: None}
        server.protocol.connection_made(server)
        client.protocol.connection_made(client)
        self._note(f"network: a connection to {host}")
        return client, client.protocol

    def left(self, end: End) -> None:
        """Forget an end that is closed."""
        if self.calm:
            self.unsettled.append(end.host)
        del self.ends[end]

    def cut(self) -> None:
        """Break a connection."""
        if self.ends:
            end = self.random.choice(list(self.ends))
            self._note(f"network: cut {end.host}")
            end.lose()
            end.other.lose()

    def silence(self) -> None:
        """Let a connection lose everything, in one direction or in both, without an end that anybody sees."""
        if self.ends:
            end = self.random.choice(list(self.ends))
            self._note(f"network: silence to or from {end.host}")
            end.silent = True
            if self.random.random() < 0.5:
                end.other.silent = True

    def hold(self, host: str, seconds: float) -> None:
        """Let everything to and from a broker wait."""
        self._note(f"network: {host} waits {seconds:g} s")
        self.held[host] = self.loop.time() + seconds

"""The fault proxy: a TCP proxy in front of a real broker that simulates a bad network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from jmsaio.model import durations
from jmsaio.testing.link import Direction, Forwarder, FrameFault, Link, Part, Rules, Traffic

#: Turns of the loop after which an accepted connection is known; before, breaking all would leave it out.
_ACCEPTING = 5


class FaultProxy:
    """A TCP proxy with faults on demand, in front of a broker or any other TCP server.

        async with FaultProxy("127.0.0.1", 6650) as proxy:
            async with jmsaio.connect(proxy.url) as connection:
                ...
                proxy.stall(seconds=2)  # nothing passes for two seconds, connections stay open
                proxy.swallow(Command.SEND_RECEIPT)  # the next confirmation of the broker is lost

    It runs in a thread with its own loop, so it keeps working while the test's loop is blocked. Its methods can be
    called from any thread, return at once, and have taken effect when they return, for open and for later connections.
    Without a ``direction`` they apply to both. It can be used once: ``async with`` or ``with``.

    Answers to look-ups are changed so that the client stays on the proxy, whatever address the broker advertises; the
    broker needs no special setting. This works for one broker; in a cluster, each broker needs a proxy and a listener
    name. REST requests don't pass through the proxy: configure ``web_service_url`` as without a proxy.

    Other protocols (such as TLS) pass as bytes: frame faults don't affect them, and look-ups are not changed.

    Args:
        host: host of the broker.
        port: port of the broker.
        listen_port: port of the proxy on 127.0.0.1; default: a free one.
        rewrite_lookups: change answers to look-ups, as described above.
    """

    def __init__(self, host: str, port: int, *, listen_port: int = 0, rewrite_lookups: bool = True) -> None:
        self._address = host, port
        self._port = listen_port
        self._rules = {direction: Rules() for direction in Direction}
        self._rules[Direction.TO_CLIENT].rewrite = rewrite_lookups
        self._links: set[Link] = set()
        self._server: asyncio.Server | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._portal: BlockingPortal | None = None
        self._stack = contextlib.ExitStack()

    @classmethod
    def of(cls, service_url: str) -> Self:
        """Create a proxy in front of the broker at ``pulsar://host:port``."""
        parts = urlsplit(service_url)
        if parts.hostname is None or parts.port is None:
            raise ValueError(f"{service_url}: a proxy needs one host and one port, as in pulsar://127.0.0.1:6650")
        return cls(parts.hostname, parts.port)

    def __repr__(self) -> str:
        return f"<FaultProxy {self.url} to {self._address[0]}:{self._address[1]}, {len(self._links)} connections>"

    @property
    def port(self) -> int:
        """Port of the proxy on 127.0.0.1; it stays the same after ``take_down``."""
        return self._port

    @property
    def url(self) -> str:
        """URL to connect to: ``pulsar://127.0.0.1:<port>``."""
        return f"pulsar://127.0.0.1:{self._port}"

    @property
    def connections(self) -> int:
        """Number of open client connections."""
        return len(self._links)

    def traffic(self, direction: Direction) -> Traffic:
        """Return the live traffic counters of a direction: bytes, and frames by command."""
        return self._rules[direction].traffic

    def start(self) -> None:
        """Start listening. Blocks until ready. Raises OSError if ``listen_port`` is taken."""
        if self._portal is not None:
            raise RuntimeError("a proxy can be used once: create another one")
        self._portal = self._stack.enter_context(start_blocking_portal(backend="asyncio"))
        try:
            self._portal.call(self._listen)
        except BaseException:
            self._stack.close()
            raise

    def stop(self) -> None:
        """Reset all connections and stop listening. Blocks until done. Idempotent."""
        if self._portal is not None and self._server is not None:
            self._portal.call(self._end)
        self._stack.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await anyio.to_thread.run_sync(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.stop)

    def latency(self, seconds: float, direction: Direction | None = None) -> None:
        """Delay everything that arrives from now on by ``seconds``; 0 ends the delay."""
        delay = durations.seconds(seconds, "seconds")
        self._change(direction, lambda rules: setattr(rules, "latency", delay))

    def slices(self, size: int | None, pause: float = 0.0, direction: Direction | None = None) -> None:
        """Pass bytes in slices.

        Args:
            size: bytes per slice; None ends slicing.
            pause: seconds between two slices.
            direction: direction; default: both.
        """
        if size is not None and size < 1:
            raise ValueError("slices must have at least 1 byte")
        pause = durations.seconds(pause, "pause")

        def change(rules: Rules) -> None:
            rules.slice_size, rules.slice_pause = size, pause

        self._change(direction, change)

    def stall(self, direction: Direction | None = None, *, seconds: float | None = None) -> None:
        """Stop all traffic; connections stay open and new ones are accepted. Data sent meanwhile arrives afterwards.

        Args:
            direction: direction; default: both.
            seconds: duration; default: until ``resume``.
        """
        limit = None if seconds is None else durations.seconds(seconds, "seconds")

        def change() -> None:
            self._set(direction, lambda rules: rules.passing.clear())
            if limit is not None:
                self._timers.append(asyncio.get_running_loop().call_later(limit, self._resume, direction))

        self._running.call(change)

    def resume(self, direction: Direction | None = None) -> None:
        """End a stall."""
        self._running.call(self._resume, direction)

    def reset(self) -> int:
        """Break all connections with RST, on both sides. Returns the number of connections."""
        return self._running.call(self._reset_all)

    def half_close(self, direction: Direction) -> int:
        """Send the receiver in this direction the end of the stream (FIN), after the queued bytes.

        Bytes sent in this direction later are dropped; the other direction continues. Returns the number of
        connections.
        """

        def change() -> int:
            for link in self._links:
                link.half_close(direction)
            return len(self._links)

        return self._running.call(change)

    def take_down(self) -> None:
        """Break all connections and refuse new ones."""
        self._running.call(self._break_all)

    def bring_up(self) -> None:
        """Accept connections again, at the same port."""
        self._running.call(self._listen)

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Make the broker unreachable inside the ``with`` block."""
        self.take_down()
        try:
            yield
        finally:
            self.bring_up()

    def flip(
        self,
        command: int,
        part: Part = Part.PAYLOAD,
        *,
        direction: Direction | None = None,
        skip: int = 0,
        times: int | None = 1,
    ) -> FrameFault:
        """Damage one byte in each of the next frames of a command, as a bad network card does.

        Args:
            command: type of the frames, a ``Command`` or another number of the protocol; messages are ``SEND`` to the
                broker and ``MESSAGE`` from it.
            part: part of the frame; frames that lack it are left alone.
            direction: direction; default: both.
            skip: matching frames that pass first.
            times: number of frames; None: all until ``clear``.

        Returns:
            The fault; its ``hits`` counts the frames it hit.
        """
        return self._add(FrameFault("flip", command, part, skip, times), direction)

    def swallow(
        self, command: int, *, direction: Direction | None = None, skip: int = 0, times: int | None = 1
    ) -> FrameFault:
        """Drop the next frames of a command, as if an answer was lost; arguments as for ``flip``."""
        return self._add(FrameFault("swallow", command, skip=skip, left=times), direction)

    def cut(
        self,
        command: int | None = None,
        *,
        direction: Direction | None = None,
        skip: int = 0,
        times: int | None = 1,
    ) -> FrameFault:
        """Pass only half of the next frame of a command (default: any), then break the connection with RST.

        The other arguments are as for ``flip``; each hit breaks one connection.
        """
        return self._add(FrameFault("cut", command, skip=skip, left=times), direction)

    def clear(self) -> None:
        """End all faults: latency, slices, stalls, and frame faults. A proxy that was taken down stays down."""

        def change(rules: Rules) -> None:
            rules.latency, rules.slice_size, rules.slice_pause = 0.0, None, 0.0
            rules.passing.set()
            rules.faults.clear()

        self._change(None, change)

    @property
    def _running(self) -> BlockingPortal:
        if self._portal is None:
            raise RuntimeError("the proxy is not running: use it in an 'async with' block")
        return self._portal

    def _change(self, direction: Direction | None, change: Callable[[Rules], None]) -> None:
        self._running.call(self._set, direction, change)

    def _add(self, fault: FrameFault, direction: Direction | None) -> FrameFault:
        self._change(direction, lambda rules: rules.faults.append(fault))
        return fault

    def _set(self, direction: Direction | None, change: Callable[[Rules], None]) -> None:
        for each in Direction:
            if direction in (None, each):
                change(self._rules[each])

    def _resume(self, direction: Direction | None) -> None:
        self._set(direction, lambda rules: rules.passing.set())

    def _reset_all(self) -> int:
        links = list(self._links)
        self._links.clear()
        for link in links:
            link.reset()
        return len(links)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        link = Link(task, {each: Forwarder(rules) for each, rules in self._rules.items()}, [writer])
        self._links.add(link)
        try:
            await link.run(reader, self._address)
        finally:
            self._links.discard(link)

    async def _break_all(self) -> list[asyncio.Task[None]]:
        """Stop listening, and break all connections; return the tasks that forwarded."""
        if self._server is not None:
            self._server.close()
        for _ in range(_ACCEPTING):
            await asyncio.sleep(0)
        tasks = [link.task for link in self._links]
        self._reset_all()
        return tasks

    async def _end(self) -> None:
        for timer in self._timers:
            timer.cancel()
        tasks = await self._break_all()
        self._server = None
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the sockets are closed in the next step of the loop

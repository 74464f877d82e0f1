"""Read pulsar-client's log, because pulsar-client reports some failures nowhere else; repeat what it says failed.

The log belongs to the process: its first client sets the destination forever. So it is written to a pipe, which a
daemon thread empties; a Python logger instead would abort processes at exit. A line is written before the failure has
any other effect, so that after an answer ``read`` knows it. On Windows, where a pipe has no path, it can't be read.

pulsar-client answers an opening that the broker refuses temporarily only at its creation time-out, and can't cancel it.
So another one is started (``Attempts``); whatever the first still opens is used, or closed. For a request, the broker's
refusal is the answer (``ask_again``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Generic, Self, TypeVar

import _pulsar
import anyio
import attrs

from jmsaio.errors import ConsumerBusyError, JMSError, OperationTimeoutError, TransportError
from jmsaio.model.log_fields import log_fields
from jmsaio.transport.base import METADATA_TOO_LARGE
from jmsaio.transport.pulsar.native.binding.bridge import LINGER, Bridge, close_late, drop, ignore
from jmsaio.transport.pulsar.native.binding.handles import ClientHandle, ClosableHandle
from jmsaio.transport.pulsar.native.binding.results import passes, translate

#: Requested capacity of a pipe in bytes, so that writers never wait for the reader.
SIZE = 1 << 20
_CHUNK = 1 << 16
#: Seconds between two checks whether the pipe is still this one.
_CHECK = 60.0
#: Number of refusals stored.
REFUSALS = 500
#: Maximum bytes kept of an incomplete line.
_LONGEST_LINE = 1 << 16
_LINE = re.compile(r"\S+ \S+ (?P<level>[A-Z]+) +\[(?P<thread>\d+)\] (?P<source>\w+):\d+ \| (?P<text>.*)")
#: ConsumerImpl's line about an entry that has a wrong checksum or can't be decompressed.
_DISCARDED = re.compile(r"\[(.+?), (.+), \d+\] Discarding corrupted message at (\d+):(\d+)")
#: ClientConnection's line with the broker's reason, before the line about what it refused in the same thread.
_REASON = re.compile(r".*Received error response from server: \w+ \((.*)\) -- req_id: \d+")
#: Lines about a refusal. pulsar-client logs that of a new consumer as a warning, ignores it "since we're already
#: connected", and answers only at its creation time-out; it reports the others nowhere else.
_REFUSED: Final = {
    "new consumer": re.compile(
        r"\[(?P<topic>.+), (?P<subscription>.+), \d+\] Temporary error in creating consumer: (?P<name>\w+)"
    ),
    "consumer": re.compile(r"\[(?P<topic>.+), (?P<subscription>.+), \d+\] Failed to reconnect consumer: (?P<name>\w+)"),
    "producer": re.compile(r"\[(?P<topic>.+), .*\] Failed to reconnect producer: (?P<name>\w+) ?(?P<reason>.*)"),
    "look-up": re.compile(r"Lookup failed for (?P<topic>.+), result (?P<name>\w+) ?(?P<reason>.*)"),
}
#: ProducerImpl's warnings that do not mean that a message has failed.
_HARMLESS = (
    "Failed to reconnect producer",
    "Temporary error in creating producer",
    "Failed to create producer",
    "Producer is blocked on creation",
    "Failed to close producer",
    "Destroyed producer",
    "Got ack for msg",  # it reconnects and sends them again
    "cannot exceed",  # a large message, which has its own answer
)
#: Seconds to wait for the answer to an attempt.
ATTEMPT = 5.0
#: Seconds between two checks of the log for a refusal.
_ANSWER = 0.1
#: Seconds between a refusal and the next attempt: initially, and maximum.
_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
#: Seconds to wait for an earlier attempt when a later one finds the subscription busy.
_GRACE = 1.0
#: Permanent refusals: only an administrator can change them.
_FINAL = {"SubscriptionNotFound": _pulsar.Result.SubscriptionNotFound}
#: The broker's message for a consumer with too large properties. pulsar-client treats it as a transient failure.
_TOO_LARGE = "metadata has a max size"
#: Device and inode number of a file.
Identity = tuple[int, int]
#: The native consumer or reader.
Opened = TypeVar("Opened", bound=ClosableHandle)
#: The answer to a request.
Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Pipe:
    """A pipe with both its ends; the reading one is non-blocking, the path of the other is ``/dev/fd/<writing>``."""

    reading: int
    writing: int
    identity: Identity  # a program that closes all its descriptors, as daemons do, might open other files under these

    @classmethod
    def make(cls, inherited: Identity | None = None) -> Self:
        """Create a pipe; writers of the ``inherited`` one of a parent process are redirected to it."""
        import fcntl  # not in Windows' Python

        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        size = getattr(fcntl, "F_SETPIPE_SZ", None)
        if size is not None:
            with contextlib.suppress(PermissionError):  # this user's limit is lower: the pipe must be read sooner
                fcntl.fcntl(writing, size, SIZE)
        if inherited is not None:
            for descriptor in map(int, os.listdir("/dev/fd")):
                if _identity(descriptor) == inherited:
                    os.dup2(writing, descriptor, inheritable=False)
        identity = _identity(reading)
        assert identity is not None
        return cls(reading, writing, identity)

    def read(self) -> bytes:
        if _identity(self.reading) != self.identity:
            return b""
        try:
            return os.read(self.reading, _CHUNK)
        except BlockingIOError:
            return b""

    def wait(self) -> bool:
        poll = select.poll()
        poll.register(self.reading, select.POLLIN)
        poll.poll(_CHECK * 1000)
        return _identity(self.reading) == self.identity

    def close(self) -> None:
        if _identity(self.reading) == self.identity:
            os.close(self.reading)


def _identity(descriptor: int) -> Identity | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISFIFO(found.st_mode) else None


def casts_doubt(level: str, source: str, text: str) -> bool:
    """Return whether a line means that sent messages might have failed: a producer's, unless known to be harmless."""
    if "send error" in text:
        return True
    return source == "ProducerImpl" and level != "INFO" and not any(words in text for words in _HARMLESS)


@attrs.frozen
class Damage:
    """An entry, dropped by the consumer of a subscription, of the topic or partition with this full name."""

    topic: str
    subscription: str
    ledger: int
    entry: int

    def where(self) -> dict[str, str | int]:
        message_id = f"{self.ledger}:{self.entry}"
        return log_fields(destination=self.topic, subscription=self.subscription, message_id=message_id)

    def __str__(self) -> str:
        return (
            f"message or batch {self.ledger}:{self.entry} of {self.topic} was damaged in transit from the broker to "
            f"subscription {self.subscription}, and pulsar-client has acknowledged it"
        )


@attrs.frozen
class Refusal:
    """A refusal of the broker: the name of pulsar-client's result, and the broker's reason, "" if it gave none."""

    name: str
    reason: str
    kind: str = attrs.field(default="", eq=False)  # as in ``_REFUSED``
    topic: str = attrs.field(default="", eq=False)
    subscription: str | None = attrs.field(default=None, eq=False)
    line: int = attrs.field(default=0, eq=False)  # number of its line in the log

    def __str__(self) -> str:
        return f"{self.reason} [{self.name}]" if self.reason else f"[{self.name}]"


@attrs.define(eq=False)
class NativeLog:
    """pulsar-client's log of this process. The only instance is ``NATIVE_LOG``."""

    doubts: int = 0  # number of lines so far after which pending messages might have failed
    count: int = 0  # number of lines so far
    #: Called with each damaged entry, in the thread that reads the log; must not read it. Returns False if no receiver
    #: of this process has that subscription.
    on_damage: Callable[[Damage], bool] = lambda damage: False
    _refusals: deque[Refusal] = attrs.field(factory=lambda: deque(maxlen=REFUSALS), init=False)
    _reasons: dict[str, str] = attrs.field(factory=dict, init=False)  # the last one of each thread, of a connection
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _pipe: Pipe | None = attrs.field(default=None, init=False)
    _inherited: Identity | None = attrs.field(default=None, init=False)
    _left: bytes = attrs.field(default=b"", init=False)

    def direct(self, configuration: _pulsar.ClientConfiguration) -> None:
        """Redirect the log of the process's first client, with more detail if this module's logger is at DEBUG."""
        level = _pulsar.LoggerLevel.Info if _log.isEnabledFor(logging.DEBUG) else _pulsar.LoggerLevel.Warn
        if sys.platform == "win32":
            configuration.set_file_logger(level, os.devnull)
            return
        with self._lock:
            if self._pipe is None:
                self._pipe = pipe = Pipe.make(self._inherited)
                name = "jmsaio-pulsar-log"
                threading.Thread(target=self._run, args=(pipe,), name=name, daemon=True).start()
            configuration.set_file_logger(level, f"/dev/fd/{self._pipe.writing}")

    def captures(self, client: ClientHandle) -> bool:
        """Return whether a client's log is read here: it logs the look-up of an invalid name without a broker."""
        before = self.read()
        client.get_topic_partitions_async("jmsaio://", ignore)
        return self.read() > before

    def read(self) -> int:
        """Read everything written until now. Returns the number of lines so far."""
        with self._lock:
            if self._pipe is not None:
                while data := self._pipe.read():
                    self._parse(data)
            return self.count

    def refusal(
        self, count: int, topic: str | None, subscription: str | None, kind: str = "new consumer"
    ) -> Refusal | None:
        """Return the last refusal of a consumer after ``count`` lines, for a topic and subscription (None: any)."""
        for one in reversed(self._since(count)):
            if one.kind == kind and topic in (None, one.topic) and subscription in (None, one.subscription):
                return one
        return None

    def refusals_of_topics(self, count: int) -> dict[str, Refusal]:
        """Return refused look-ups and producer reconnects after ``count`` lines; the last one by full topic name."""
        return {one.topic: one for one in self._since(count) if one.subscription is None}

    def _since(self, count: int) -> list[Refusal]:
        self.read()
        return [one for one in list(self._refusals) if one.line > count]

    def _run(self, pipe: Pipe) -> None:
        while pipe.wait():
            self.read()

    def _parse(self, data: bytes) -> None:
        *lines, self._left = (self._left + data).split(b"\n")
        self._left = self._left[-_LONGEST_LINE:]
        for raw in lines:
            self.count += 1
            text = raw.decode(errors="replace")
            _log.debug("pulsar-client: %s", text)
            if line := _LINE.fullmatch(text):
                self._parse_line(**line.groupdict())

    def _parse_line(self, level: str, thread: str, source: str, text: str) -> None:
        self.doubts += casts_doubt(level, source, text)
        reason = self._reasons.get(thread, "")
        if level != "INFO":  # any other warning or error is not about what was refused with this reason
            self._reasons.pop(thread, None)
        if match := _REASON.fullmatch(text):
            self._reasons[thread] = match[1]
        elif match := _DISCARDED.fullmatch(text):
            damage = Damage(match[1], match[2], int(match[3]), int(match[4]))
            if not self.on_damage(damage):
                _log.error("%s; it will not be redelivered", damage, extra=damage.where())
        for kind, pattern in _REFUSED.items():
            if match := pattern.fullmatch(text):
                words = {"reason": reason} | match.groupdict()
                self._refusals.append(Refusal(kind=kind, line=self.count, **words))

    def after_fork(self) -> None:
        """Reset in a child process, where pulsar-client writes to a new pipe once it creates a client."""
        pipe, self._pipe, self._lock, self._left = self._pipe, None, threading.Lock(), b""
        if pipe is not None:
            self._inherited = pipe.identity
            pipe.close()


NATIVE_LOG = NativeLog()

if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=NATIVE_LOG.after_fork)


def _pauses() -> Iterator[float]:
    pause = _PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


async def ask_again(bridge: Bridge, ask: Callable[[], Awaitable[Answer]], patience: float) -> Answer:
    """Make a request, repeated for ``patience`` seconds while the broker temporarily refuses to answer."""
    end, pauses = bridge.loop.time() + patience, _pauses()
    while True:
        try:
            return await ask()
        except JMSError as error:
            pause = next(pauses)
            if not passes(error) or bridge.loop.time() + pause > end:
                raise
        await asyncio.sleep(pause)


@attrs.define(eq=False)
class Attempts(Generic[Opened]):
    """Opens one native consumer or reader."""

    bridge: Bridge
    start: Callable[[Callable[..., None]], object]  # as of ``Bridge.start``
    what: str
    timeout: float  # seconds for all attempts together
    discard: Callable[[Opened], object] = close_late
    topic: str | None = None  # in the log; None: any
    subscription: str | None = None
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    _waiting: list[asyncio.Future[Opened]] = attrs.field(factory=list, init=False)
    _refusal: Refusal | None = attrs.field(default=None, init=False)

    async def run(self) -> Opened:
        """Return the native object. Cancelled, it waits 2 s for the last attempt, so that it opens nothing later."""
        native = None
        try:
            with anyio.fail_after(max(0.0, self.timeout)):
                native = await self._repeat()
                return native
        except TimeoutError:
            raise self._late() from None
        except asyncio.CancelledError:
            if self._waiting:
                with anyio.move_on_after(LINGER, shield=True):
                    await asyncio.wait(self._waiting[-1:])
            raise
        finally:
            for future in self._waiting:
                drop(future, lambda opened: None if opened is native else self.discard(opened))

    async def _repeat(self) -> Opened:
        pauses = _pauses()
        while True:
            async with self.turn():
                position = NATIVE_LOG.read()
                self._waiting.append(self.bridge.start(self.start, self.what, self.discard))
                answered = await self._answer(position)
            answered = answered or await self._first(next(pauses))
            if answered is not None:
                return await self._outcome(answered)

    async def _first(self, timeout: float) -> asyncio.Future[Opened] | None:
        done, _ = await asyncio.wait(self._waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return next((future for future in self._waiting if future in done), None)

    async def _answer(self, position: int) -> asyncio.Future[Opened] | None:
        end = self.bridge.loop.time() + ATTEMPT
        while self.bridge.loop.time() < end:
            answered = await self._first(_ANSWER)
            if answered is not None:
                return answered
            refusal = NATIVE_LOG.refusal(position, self.topic, self.subscription)
            if refusal is not None:
                self._refusal = refusal
                if _TOO_LARGE in refusal.reason:
                    raise TransportError(f"{self.what}: {refusal.reason}", METADATA_TOO_LARGE)
                if refusal.name in _FINAL:
                    raise translate(_FINAL[refusal.name], self.what, refusal.reason)
                return None
        return None

    async def _outcome(self, answered: asyncio.Future[Opened]) -> Opened:
        error = answered.exception()
        if error is None:
            return answered.result()
        self._waiting.remove(answered)
        if isinstance(error, ConsumerBusyError) and self._waiting:  # busy with an earlier attempt of this one?
            earlier = await self._first(_GRACE)
            if earlier is not None and earlier.exception() is None:
                return earlier.result()
        if isinstance(error, OperationTimeoutError):
            raise self._late() from None
        raise error

    def _late(self) -> JMSError:
        why = "" if self._refusal is None else f"; the broker refused it for the moment: {self._refusal}"
        return OperationTimeoutError(f"{self.what}: no answer within {self.timeout:g} s{why}")

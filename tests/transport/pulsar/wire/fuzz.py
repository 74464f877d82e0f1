"""Feeds a whole client over wire with a broker's bytes that were changed on their way.

``python -m tests.transport.pulsar.wire.fuzz --seconds N [--seed S]`` prints how many sessions there were and how their
calls ended. Allowed are a value, a JMSError, and a connection that is closed and opened again with growing pauses;
anything else is printed with the seed of its session and ends the program with code 1. The network and the time are the
program's own, so a session with all its time-outs takes milliseconds, and its seed repeats it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

from jmsaio.config import ConsumerConfig, ProducerConfig
from jmsaio.errors import JMSError, MalformedMessageError
from jmsaio.protocol.commands import Command
from jmsaio.protocol.framing import crc32c
from jmsaio.protocol.messages import send
from jmsaio.protocol.metadata import encode_metadata
from jmsaio.transport.base import ReaderOptions, SenderOptions, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.wire.transport import WireTransport, open_transport
from tests.kit.records import record
from tests.kit.virtual_time import VirtualLoop
from tests.protocol.all_commands import encode_command
from tests.protocol.server_errors import ServerError
from tests.transport.pulsar.wire.conftest import TOPIC
from tests.transport.pulsar.wire.peer import Fields, Link, Peer
from tests.transport.pulsar.wire.recorded import cut, fields_of, frames

#: Bytes of address space that the program may use, and of memory by which it may grow after the first sessions.
MEMORY, GROWTH = 2 << 30, 64 << 20
#: Seconds for one session: of the machine, which shows a busy loop, and of its own time, which shows a hang.
STEP, SESSION = 20, 600.0
#: Attempts to connect in any ten seconds of a session's own time; more of them would be a loop without pauses.
CONNECTS = 100
_WARM = 50
#: What a real broker said, and the peer says at times: the fields of commands, and entries from their magic on.
RECORDED = frames()
COMMANDS = [(cut(one).kind, fields_of(one)) for one in RECORDED]
ENTRIES = [one[cut(one).rest :] for one in RECORDED if cut(one).kind == Command.MESSAGE]
#: Fields of an answer that name whom it is for; with those of a session long ago nobody would take it.
_OWN = ("request_id", "producer_id", "consumer_id", "sequence_id")
_KINDS = ("flip", "cut", "insert", "drop", "size", "repeat", "piece", "end")
_PIECES = [
    b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x06",
    b"\x0e\x01", b"\x0e\x02", b"\xff" * 10, b"\xff" * 9 + b"\x01", b"\x0a\x00", b"\x80\x80\x80\x80\x08", b"\xc0\x80",
]  # fmt: skip


class Pipe(asyncio.Transport):
    """One end of a connection in memory; what is written arrives in a later turn of the loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol, changed: Callable[..., list[bytes]]
    ):
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._changed = changed
        self._closing = False
        self.other: Pipe

    def write(self, data: Any) -> None:
        if not self._closing:
            for piece in self._changed(bytes(data)):
                self._loop.call_soon(self.other._arrive, piece)

    def _arrive(self, data: bytes) -> None:
        if not self._closing:
            self._protocol.data_received(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        for end in (self, self.other):
            if not end._closing:
                end._closing = True
                self._loop.call_soon(end._protocol.connection_lost, None)


class FuzzLoop(VirtualLoop):
    """A loop on virtual time whose connections lead to a peer, through changes of what that sends."""

    def __init__(self) -> None:
        super().__init__()
        self.peer: FuzzPeer
        self.failures: list[dict[str, Any]] = []
        self.connected: list[float] = []
        self.set_exception_handler(lambda loop, context: self.failures.append(context))

    async def create_connection(self, protocol_factory: Any, *_: Any, **__: Any) -> Any:
        self.connected.append(self.time())
        await asyncio.sleep(0)
        mine, link = protocol_factory(), Link(self.peer)
        here, there = Pipe(self, mine, lambda data: [data]), Pipe(self, link, self.peer.changed)
        here.other, there.other = there, here
        link.connection_made(there)
        mine.connection_made(here)
        return here, mine


class FuzzPeer(Peer):
    """A broker that also delivers what it stored, and whose bytes are changed on their way."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.url = "pulsar://fuzz:6650"
        self._chance = chance
        self._share = chance.choice([0.0, 0.02, 0.1, 0.4])  # of what is sent
        self._seen: list[bytes] = [b"\x00", *RECORDED]
        self._sent: Counter[int] = Counter()  # entries by consumer

    def usual(self, link: Link, command: Command, fields: Fields) -> bytes:
        if self._chance.random() < self._share / 10 and fields.get("request_id") is not None:
            error, number = self._chance.choice(list(ServerError)), fields["request_id"]
            return encode_command(Command.ERROR, request_id=number, error=error, message="fuzz \x00 é")
        answer = super().usual(link, command, fields)
        if command is Command.GET_LAST_MESSAGE_ID:
            place = {"ledger_id": 1, "entry_id": (len(self.entries) - 1) % (1 << 64)}
            return encode_command(
                Command.GET_LAST_MESSAGE_ID_RESPONSE, request_id=fields["request_id"], last_message_id=place
            )
        asyncio.get_running_loop().call_soon(self._deliver_all)
        return self._as_recorded(answer) if answer and self._chance.random() < self._share else answer

    def _as_recorded(self, answer: bytes) -> bytes:
        """What a real broker answered."""
        kind, own = cut(answer).kind, fields_of(answer)
        said = [found for command, found in COMMANDS if command == kind]
        if not said:
            return answer
        mine = {name: own[name] for name in _OWN if name in own}
        return encode_command(Command(kind), **self._chance.choice(said) | mine)

    def _deliver_all(self) -> None:
        for link in self.links:
            for consumer, permits in list(link.permits.items()):
                while permits > 0 and self._sent[consumer] < len(self.entries):
                    entry = self._sent[consumer]
                    self._sent[consumer] += 1
                    permits -= self.entries[entry][0].num_messages_in_batch or 1
                    link.write(self._message(consumer, entry))
                link.permits[consumer] = permits

    def _message(self, consumer: int, entry: int) -> bytes:
        metadata, payload = self.entries[entry]
        place, count = {"ledger_id": 1, "entry_id": entry}, self._chance.choice([0, 0, 1])
        head = encode_command(Command.MESSAGE, consumer_id=consumer, message_id=place, redelivery_count=count)[4:]
        frame = send(1, 0, encode_metadata(metadata), payload)
        tail = frame[8 + int.from_bytes(frame[4:8]) :]
        if self._chance.random() < 0.2:
            tail = self._chance.choice(ENTRIES)
        return (len(head) + len(tail)).to_bytes(4) + head + tail

    def changed(self, data: bytes) -> list[bytes]:
        """What arrives of bytes sent, in pieces."""
        chance = self._chance
        self._seen[chance.randrange(len(self._seen)) if len(self._seen) > 50 else len(self._seen) :] = [data]
        if chance.random() < self._share:
            data = self._whole(data) if chance.random() < 0.5 else self._damaged(data)
        if chance.random() < 0.7 or len(data) < 2:
            return [data]
        place = chance.randrange(1, len(data))
        return [data[:place], data[place:]]

    def _damaged(self, data: bytes) -> bytes:
        """Changed bytes, of which the framing can be lost."""
        chance, made = self._chance, bytearray(data)
        for _ in range(chance.choice([1, 1, 2, 5])):
            place, kind = chance.randrange(len(made) + 1), chance.choice(_KINDS)
            if kind == "flip" and place < len(made):
                made[place] ^= 1 << chance.randrange(8)
            elif kind == "cut":
                del made[place:]
            elif kind == "insert":
                made[place:place] = chance.choice(_PIECES)
            elif kind == "drop":
                del made[place : place + chance.randrange(1, 9)]
            elif kind == "size":
                made[:4] = chance.choice(_PIECES)[:4].ljust(4, b"\x00")
            elif kind == "repeat":
                made *= 2 if len(made) < 10_000 else 1
            elif kind == "piece":
                made[place:place] = chance.choice(self._seen)
            elif self.links:
                chance.choice(self.links).cut()
        return bytes(made)

    def _whole(self, data: bytes) -> bytes:
        """A changed command or entry whose sizes and checksum are right, so that it is read to its end."""
        if len(data) < 8:
            return data
        size = int.from_bytes(data[4:8])
        command, tail = data[8 : 8 + size], data[8 + size :]
        if tail[:2] == b"\x0e\x01" and self._chance.random() < 0.7:
            entry = self._damaged(tail[6:])
            tail = tail[:2] + crc32c(entry).to_bytes(4) + entry
        else:
            command = self._damaged(command)
        return (4 + len(command) + len(tail)).to_bytes(4) + len(command).to_bytes(4) + command + tail


@attrs.define(eq=False)
class Session:
    """One client and all that it does."""

    chance: random.Random
    outcomes: Counter[str]
    peer: FuzzPeer

    async def run(self) -> None:
        """Open a client, use all of it, and close it."""
        opened = await self._tried("open", open_transport(self.peer.config()))
        if opened is None:
            return
        assert isinstance(opened, WireTransport)
        try:
            await asyncio.gather(self._sends(opened), self._receives(opened), self._reads(opened))
        finally:
            await self._tried("close", opened.aclose(2.0))
        await asyncio.sleep(0.1)

    async def _tried(self, what: str, call: Awaitable[Any]) -> Any:
        try:
            found = await call
        except JMSError as error:
            self.outcomes[f"{what}: {type(error).__name__}"] += 1
            return None
        self.outcomes[f"{what}: done"] += 1
        return found

    async def _sends(self, transport: WireTransport) -> None:
        config = ProducerConfig(
            compression_type=self.chance.choice(["NONE", "ZLIB"]), batching_enabled=self.chance.random() < 0.7,
            send_timeout=3.0,
        )  # fmt: skip
        waiting: set[int] = set()
        sent = 0

        def settled(tokens: Any, place: object, error: JMSError | None) -> None:
            self.outcomes["send: done" if error is None else f"send: {type(error).__name__}"] += len(tokens)
            waiting.difference_update(tokens)

        sender = await self._tried("sender", transport.open_sender(TOPIC, SenderOptions(config, settled)))
        if sender is None:
            return
        try:
            for _ in range(6):
                for _ in range(self.chance.choice([1, 2, 30])):
                    properties = {"n": str(sent), "größe": "x" * self.chance.choice([0, 3, 200])}
                    sender.send(record(self.chance.randbytes(self.chance.choice([0, 5, 500])), properties), sent)
                    waiting.add(sent)
                    sent += 1
                await self._tried("drain", sender.drain(10.0))
                await asyncio.sleep(self.chance.choice([0.0, 0.01, 1.0]))
        except JMSError as error:
            self.outcomes[f"send: {type(error).__name__}"] += 1
        await self._tried("close", sender.aclose(2.0))
        assert not waiting, f"{len(waiting)} sends have no outcome"

    async def _receives(self, transport: WireTransport) -> None:
        woken = asyncio.Event()
        kind = self.chance.choice(list(SubscriptionType))
        config = ConsumerConfig(receiver_queue_size=self.chance.choice([0, 1, 100]))
        wanted = Subscription((TOPIC,), "s", kind, config, StartPosition.EARLIEST)
        receiver = await self._tried("receiver", transport.open_receiver(wanted, woken.set))
        if receiver is None:
            return
        try:
            for number in range(12):
                woken.clear()
                found = receiver.receive(self.chance.choice([1, 10, 100]))
                for one in found:
                    self._read(one)
                half = len(found) // 2
                receiver.acknowledge(found[:half])
                receiver.negative_acknowledge(found[half:], self.chance.choice([0.0, 0.5]))
                if number == 6:
                    await self._tried("seek", receiver.seek(StartPosition.EARLIEST, 5.0))
                await self._tried("settle", receiver.settle(5.0, receipt=True))
                try:
                    async with asyncio.timeout(1.0):
                        await woken.wait()
                except TimeoutError:
                    pass
        except JMSError as error:
            self.outcomes[f"receive: {type(error).__name__}"] += 1
        await self._tried("close", receiver.aclose(2.0))

    async def _reads(self, transport: WireTransport) -> None:
        await asyncio.sleep(self.chance.random())
        reader = await self._tried(
            "reader", transport.open_reader(ReaderOptions(TOPIC, ConsumerConfig(), StartPosition.EARLIEST))
        )
        if reader is not None:
            for _ in range(4):
                for one in await self._tried("read", reader.read(50, 2.0)) or ():
                    self._read(one)
            await self._tried("close", reader.aclose(2.0))

    def _read(self, one: Any) -> None:
        outcome = "record: read"
        try:
            dict(one.properties), one.key
        except MalformedMessageError:
            outcome = "record: malformed"
        for name in ("payload", "message_id", "event_time", "publish_time", "sequence_id", "size"):
            getattr(one, name)
        self.outcomes[outcome] += 1


def try_one(seed: int, outcomes: Counter[str]) -> None:
    """One session. Raises AssertionError or the error that is not allowed."""
    chance = random.Random(seed)
    with asyncio.Runner(loop_factory=FuzzLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, FuzzLoop)
        loop.peer = FuzzPeer(chance)
        session = Session(chance, outcomes, loop.peer)

        async def bounded() -> None:
            async with asyncio.timeout(SESSION):
                await session.run()
            assert len(asyncio.all_tasks()) == 1, f"left behind: {asyncio.all_tasks()}"

        runner.run(bounded())
        times = loop.connected
        assert not any(late - early < 10 for early, late in zip(times, times[CONNECTS:], strict=False)), "no pauses"
        assert not loop.failures, loop.failures
    outcomes["connections"] += len(times)


def run(
    seconds: float, seed: int, sessions: int | None = None, limit: Callable[[int], object] = lambda seconds: None
) -> Counter[str]:
    """Try sessions for some seconds, or so many of them if that is sooner; what they came to.

    ``limit`` ends a session that takes so many seconds of the machine; 0 takes that back.
    """
    outcomes: Counter[str] = Counter()
    end, count, warm = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end and count != sessions:
        number = seed * 1_000_000 + count
        count += 1
        limit(STEP)
        try:
            try_one(number, outcomes)
        except BaseException:
            print(f"session {number}: --one {number} repeats it", file=sys.stderr)
            raise
        finally:
            limit(0)
        if count == _WARM:
            gc.collect()
            warm = _resident()
    gc.collect()
    grown = _resident() - warm if warm else 0
    assert grown < GROWTH, f"{grown >> 20} MiB more than after {_WARM} sessions"
    outcomes["sessions"] = count
    return outcomes


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _late(*_: object) -> None:
    raise AssertionError(f"a session takes more than {STEP} s: a busy loop")


_USED: Final = ("sessions", "connections")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", type=int, help="only the session with this seed")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _late)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if arguments.one is not None:
        try_one(arguments.one, Counter())
        return
    outcomes = run(arguments.seconds, arguments.seed, limit=signal.alarm)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sizes = ", ".join(f"{outcomes.pop(name):,} {name}" for name in _USED)
    print(f"{sizes}, {peak} MiB at most; no outcome that is not allowed")
    for outcome, times in sorted(outcomes.items()):
        print(f"{times:>12,}  {outcome}")


if __name__ == "__main__":
    main()

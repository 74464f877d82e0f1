"""A Pulsar broker in the test's own event loop, which does what a script says and otherwise what a broker does."""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from jmsaio.config import Configuration, load
from jmsaio.errors import ProtocolError
from jmsaio.protocol import messages
from jmsaio.protocol.codes import LookupType
from jmsaio.protocol.commands import Command, decode_command, encode_command
from jmsaio.protocol.framing import Framing, entry_of
from jmsaio.protocol.metadata import Metadata, SingleMetadata, decode_metadata, encode_metadata, encode_single

Fields = dict[str, Any]
#: Handles one command in place of the peer: returns the frames to answer with.
Script = Callable[["Link", Fields], bytes]


class Link(asyncio.Protocol):
    """The peer's end of one connection."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.permits: dict[int, int] = defaultdict(int)
        self._framing = Framing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self.peer.links.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.peer.links.remove(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._take(data)
        except ProtocolError:  # a client that looks whether this is a port with TLS
            self.cut()

    def _take(self, data: bytes) -> None:
        for frame in self._framing.feed(data):
            if self.transport.is_closing():
                return  # what came in the same breath as the cut is lost
            fields: Fields = decode_command(frame.kind, frame.data, frame.command, frame.rest)
            command = Command(frame.kind)
            if command is Command.SEND:
                parts = entry_of(frame)
                metadata = decode_metadata(parts.data, parts.metadata, parts.payload)
                fields |= {"metadata": metadata, "payload": parts.data[parts.payload :]}
            self.peer.take(self, command, fields)

    def write(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        self.transport.write(data)

    def send(self, command: Command, **fields: Any) -> None:
        """Send a command."""
        self.write(encode_command(command, **fields))

    def cut(self) -> None:
        """Break the connection."""
        self.transport.abort()


class Peer:
    """A broker with one topic's worth of memory.

    Attributes:
        url: where it listens.
        links: its open connections.
        received: all commands with their fields, in order.
        entries: entries that are stored, by entry id: metadata and payload.
        scripts: for each command the next scripts, used once each instead of the usual answer.
        partitions: number of partitions of every topic.
    """

    def __init__(self) -> None:
        self.url = ""
        self.links: list[Link] = []
        self.received: list[tuple[Command, Fields]] = []
        self.entries: dict[int, tuple[Metadata, bytes]] = {}
        self.scripts: dict[Command, deque[Script]] = defaultdict(deque)
        self.partitions = 0
        self._changed = asyncio.Event()

    def script(self, command: Command, *scripts: Script) -> None:
        """Let the next commands of a kind be handled by these."""
        self.scripts[command].extend(scripts)

    def take(self, link: Link, command: Command, fields: Fields) -> None:
        """Handle a command."""
        self.received.append((command, fields))
        self._changed.set()
        scripts = self.scripts[command]
        answer = scripts.popleft()(link, fields) if scripts else self.usual(link, command, fields)
        if answer:
            link.write(answer)

    def all(self, command: Command) -> list[Fields]:
        """The fields of all commands of a kind."""
        return [fields for kind, fields in self.received if kind is command]

    async def seen(self, command: Command, count: int = 1) -> list[Fields]:
        """Wait until so many commands of a kind have come."""
        async with asyncio.timeout(10):
            while len(self.all(command)) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.all(command)

    def usual(self, link: Link, command: Command, fields: Fields) -> bytes:
        """What a broker answers."""
        request = fields.get("request_id")
        match command:
            case Command.CONNECT:
                return encode_command(Command.CONNECTED, server_version="peer", max_message_size=100_000)
            case Command.PING:
                return encode_command(Command.PONG)
            case Command.LOOKUP:
                tls = "_tls" if self.url.startswith("pulsar+ssl:") else ""
                place = {"response": LookupType.Connect, f"broker_service_url{tls}": self.url}
                return encode_command(Command.LOOKUP_RESPONSE, request_id=request, **place)
            case Command.PARTITIONED_METADATA:
                return encode_command(
                    Command.PARTITIONED_METADATA_RESPONSE, request_id=request, response=0, partitions=self.partitions
                )
            case Command.PRODUCER:
                name = fields.get("producer_name") or "peer-1"
                return encode_command(Command.PRODUCER_SUCCESS, request_id=request, producer_name=name)
            case Command.SEND:
                self.store(fields)
                return self.receipt(fields)
            case Command.FLOW:
                link.permits[fields["consumer_id"]] += fields["message_permits"]
            case Command.ACK if request is not None:
                return encode_command(Command.ACK_RESPONSE, consumer_id=fields["consumer_id"], request_id=request)
            case _ if request is not None:
                return encode_command(Command.SUCCESS, request_id=request)
        return b""

    def store(self, fields: Fields) -> None:
        """Store the entry of a SEND."""
        self.entries[len(self.entries)] = fields["metadata"], fields["payload"]

    def receipt(self, fields: Fields, entry: int | None = None) -> bytes:
        """The receipt of a SEND."""
        place = {"ledger_id": 1, "entry_id": len(self.entries) - 1 if entry is None else entry}
        return encode_command(
            Command.SEND_RECEIPT, producer_id=fields["producer_id"], sequence_id=fields["sequence_id"], message_id=place
        )

    @property
    def consumer(self) -> int:
        """Id of the consumer that subscribed last."""
        number: int = self.all(Command.SUBSCRIBE)[-1]["consumer_id"]
        return number

    def deliver(
        self, entry: int, *texts: str, count: int = 0, published: int = 1, damage: bool = False,
        compacted: tuple[int, ...] = (), left: int | None = None, due: int | None = None,
        consumer: int | None = None,
    ) -> None:  # fmt: skip
        """Send an entry to the last consumer, or to another one: a batch if there are several texts.

        Of a batch, ``compacted`` are the messages that compaction left out, and ``left`` is the ack set.
        """
        bodies = [text.encode() for text in texts]
        many = len(bodies) if len(bodies) > 1 else None
        payload = bodies[0]
        if many:
            singles = [
                encode_single(SingleMetadata(len(body), compacted_out=index in compacted))
                for index, body in enumerate(bodies)
            ]
            pairs = zip(singles, bodies, strict=True)
            payload = b"".join(len(single).to_bytes(4) + single + body for single, body in pairs)
        metadata = Metadata("p", 0, published, num_messages_in_batch=many, deliver_at_time=due)
        self.deliver_entry(entry, metadata, payload, count=count, damage=damage, left=left, consumer=consumer)

    def deliver_entry(
        self, entry: int, metadata: Metadata, payload: bytes, *, count: int = 0, damage: bool = False,
        left: int | None = None, consumer: int | None = None,
    ) -> None:  # fmt: skip
        """Send an entry to the last consumer."""
        frame = messages.send(1, 0, encode_metadata(metadata), payload)
        command = encode_command(
            Command.MESSAGE, consumer_id=consumer or self.consumer, message_id={"ledger_id": 1, "entry_id": entry},
            redelivery_count=count, ack_set=[] if left is None else [left],
        )[8:]  # fmt: skip
        tail = frame[8 + int.from_bytes(frame[4:8]) :]
        if damage:
            tail = tail[:-1] + bytes([tail[-1] ^ 1])
        size = 4 + len(command) + len(tail)
        self.links[-1].write(size.to_bytes(4) + len(command).to_bytes(4) + command + tail)

    def config(self, **options: Any) -> Configuration:
        """How to reach it; the bytes of received records matter only where a test sets their limit."""
        usual = {"transport": "wire", "use_pulsar_admin": False, "operation_timeout": 5.0, "close_timeout": 2.0}
        return load(self.url, **{"receive_buffer_bytes": 2**30, **usual, **options})


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    """A peer that listens on a free port."""
    peer = Peer()
    server = await asyncio.get_running_loop().create_server(lambda: Link(peer), "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    peer.url = f"pulsar://127.0.0.1:{port}" if tls is None else f"pulsar+ssl://localhost:{port}"
    try:
        yield peer
    finally:
        server.close()
        for link in list(peer.links):
            link.cut()

"""A Pulsar broker in the test's own event loop, which does what a script says and otherwise what a broker does."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any, cast

import attrs

from jmsaio.config import Configuration, load
from jmsaio.errors import ProtocolError
from jmsaio.protocol import messages
from jmsaio.protocol.commands import ANSWERS, Command, LookupType, TxnAction
from jmsaio.protocol.framing import Framing, entry_of
from jmsaio.protocol.metadata import Metadata, SingleMetadata, TxnId, decode_metadata, encode_metadata, encode_single
from tests.protocol.all_commands import decode_command, encode_command
from tests.protocol.server_errors import ServerError

Fields = dict[str, Any]
#: Handles one command in place of the peer: returns the frames to answer with.
Script = Callable[["Link", Fields], bytes]
#: The topic whose partitions are the transaction coordinators.
COORDINATORS = "persistent://pulsar/system/transaction_coordinator_assign"
_REGISTRATIONS = (Command.ADD_PARTITION_TO_TXN, Command.ADD_SUBSCRIPTION_TO_TXN)
_IN_TRANSACTIONS = (Command.NEW_TXN, *_REGISTRATIONS, Command.END_TXN)
_WORK = (Command.SEND, Command.ACK, *_REGISTRATIONS)


@attrs.define(eq=False)
class Txn:
    """An open transaction.

    Attributes:
        parts: topics, and topics with subscriptions, whose registration the client knows.
        entries: what was sent in it.
        acked: what was acknowledged in it: the bits of each entry.
        unanswered: number of its sends and acknowledgements without an answer, or with an error.
        sends: ids of the producers, and of the messages, that might still arrive.
    """

    parts: set[object] = attrs.field(factory=set)
    entries: list[int] = attrs.field(factory=list)
    acked: Counter[int] = attrs.field(factory=Counter)
    unanswered: int = 0
    sends: set[tuple[int, int]] = attrs.field(factory=set)


class Link(asyncio.Protocol):
    """The peer's end of one connection."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.permits: dict[int, int] = defaultdict(int)
        self.coordinators: set[int] = set()  # that know this client
        self.parts: dict[tuple[Command, int], object] = {}  # topics of producers, also subscriptions of consumers
        self.asked: dict[object, deque[tuple[Txn, set[object]]]] = defaultdict(deque)  # in transactions
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
        if self.peer.open:
            self.peer.answered(self, data)
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
        coordinators: number of transaction coordinators.
        open: open transactions.
        outcomes: how those ended that the client has ended.
        wrong: what the client did in transactions and must never do.
    """

    def __init__(self) -> None:
        self.url = ""
        self.links: list[Link] = []
        self.received: list[tuple[Command, Fields]] = []
        self.entries: dict[int, tuple[Metadata, bytes]] = {}
        self.scripts: dict[Command, deque[Script]] = defaultdict(deque)
        self.partitions = 0
        self.coordinators = 1
        self.open: dict[TxnId, Txn] = {}
        self.outcomes: dict[TxnId, TxnAction] = {}
        self.wrong: list[str] = []
        self._changed = asyncio.Event()
        self._txns = count()  # a broker's first transaction has the id (0, 0)

    def script(self, command: Command, *scripts: Script) -> None:
        """Let the next commands of a kind be handled by these."""
        self.scripts[command].extend(scripts)

    def answer(self, command: Command, *ways: str | float | ServerError) -> None:
        """Script how the next commands of a kind are answered.

        Each way is a number of seconds later, an error in place of what is asked, or "usual", "twice", "never" or
        "lost", which differ only in the answer ("lost" ends the connection), or "cut", which does nothing else.
        """

        def handle(way: str | float | ServerError, link: Link, fields: Fields) -> bytes:
            if isinstance(way, ServerError):
                return error_answer(command, fields, way)
            if way == "cut":
                link.cut()
                return b""
            answer = self.usual(link, command, fields)
            if way == "lost":
                link.cut()
            elif isinstance(way, float | int):
                asyncio.get_running_loop().call_later(way, link.write, answer)
            return {"usual": answer, "twice": 2 * answer}.get(str(way), b"")

        self.script(command, *(partial(handle, way) for way in ways))

    def take(self, link: Link, command: Command, fields: Fields) -> None:
        """Handle a command."""
        self.received.append((command, fields))
        self._changed.set()
        if command is Command.PRODUCER:
            link.parts[command, fields["producer_id"]] = fields["topic"]
        elif command is Command.SUBSCRIBE:
            link.parts[command, fields["consumer_id"]] = fields["topic"], fields["subscription"]
        elif command in _WORK and "txnid_most_bits" in fields:
            self._asked(link, command, fields)
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
                number = self.coordinators if fields["topic"] == COORDINATORS else self.partitions
                return encode_command(
                    Command.PARTITIONED_METADATA_RESPONSE, request_id=request, response=0, partitions=number
                )
            case Command.CLOSE_PRODUCER:
                self.fence(fields)
                return encode_command(Command.SUCCESS, request_id=request)
            case Command.PRODUCER:
                self.fence(fields)
                name = fields.get("producer_name") or "peer-1"
                return encode_command(Command.PRODUCER_SUCCESS, request_id=request, producer_name=name)
            case Command.SEND:
                self.store(fields)
                return self.receipt(fields)
            case Command.FLOW:
                link.permits[fields["consumer_id"]] += fields["message_permits"]
            case Command.ACK if "txnid_most_bits" in fields and not self.acknowledge(txn_of(fields), fields):
                return error_answer(command, fields, ServerError.TransactionConflict)
            case Command.ACK if request is not None:
                return encode_command(Command.ACK_RESPONSE, consumer_id=fields["consumer_id"], request_id=request)
            case Command.TC_CLIENT_CONNECT_REQUEST:
                link.coordinators.add(fields["tc_id"])
                return encode_command(ANSWERS[command], request_id=request)
            case _ if command in _IN_TRANSACTIONS:
                return self._coordinate(link, command, fields)
            case _ if request is not None:
                return encode_command(Command.SUCCESS, request_id=request)
        return b""

    def store(self, fields: Fields) -> None:
        """Store the entry of a SEND."""
        txn = self.open.get(fields["metadata"].txn)
        if txn is not None:
            txn.entries.append(len(self.entries))
        self.entries[len(self.entries)] = fields["metadata"], fields["payload"]

    def receipt(self, fields: Fields, entry: int | None = None) -> bytes:
        """The receipt of a SEND."""
        number = len(self.entries) - 1 if entry is None else entry
        place = {"ledger_id": 1 if number < 1 << 63 else number, "entry_id": number}
        return encode_command(
            Command.SEND_RECEIPT, producer_id=fields["producer_id"], sequence_id=fields["sequence_id"], message_id=place
        )

    # transactions

    def _coordinate(self, link: Link, command: Command, fields: Fields) -> bytes:
        txn = txn_of(fields)
        if fields.get("tc_id", txn.most) not in link.coordinators:
            return error_answer(command, fields, ServerError.TransactionCoordinatorNotFound)
        if command is Command.NEW_TXN:
            txn = TxnId(fields["tc_id"], next(self._txns))
            self.open[txn] = Txn()
            asyncio.get_running_loop().call_later(fields["txn_ttl_seconds"] / 1000, self.end, txn, TxnAction.ABORT)
        elif txn not in self.open:
            return error_answer(command, fields, ServerError.TransactionNotFound)
        elif command is Command.END_TXN:
            action = self.outcomes[txn] = TxnAction(fields["txn_action"])
            if self.open[txn].sends:
                self.wrong.append(f"END of {txn}, of which messages might still arrive")
            if action is TxnAction.COMMIT and self.open[txn].unanswered:
                self.wrong.append(f"END with commit of {txn}, in which something has no answer or was refused")
            self.end(txn, action)
        names = {"txnid_least_bits": txn.least, "txnid_most_bits": txn.most}
        return encode_command(ANSWERS[command], request_id=fields["request_id"], **names)

    def fence(self, fields: Fields) -> None:
        """Take that nothing arrives any more that a producer has sent before."""
        for txn in self.open.values():
            txn.sends = {each for each in txn.sends if each[0] != fields["producer_id"]}

    def end(self, name: TxnId, action: TxnAction) -> Txn | None:
        """End a transaction, which is forgotten then; return it, None if it has ended before."""
        return self.open.pop(name, None)

    def acknowledge(self, name: TxnId, fields: Fields) -> bool:
        """Acknowledge in a transaction; return False for a conflict, which leaves all as it was."""
        txn = self.open.get(name)
        if txn is None:
            return False
        wanted = {each["entry_id"]: self.bits(each) for each in fields["message_id"]}
        for other in self.open.values():
            if any(other.acked[entry] & bits for entry, bits in wanted.items()):
                return False
        for entry, bits in wanted.items():
            txn.acked[entry] |= bits
        return True

    def bits(self, place: Fields) -> int:
        """Return which messages of an entry an acknowledgement covers."""
        known = self.entries.get(place["entry_id"])
        size: int = place.get("batch_size") or (known and known[0].num_messages_in_batch) or 1
        return ~messages.ack_set(place["ack_set"]) & (1 << size) - 1

    def _asked(self, link: Link, command: Command, fields: Fields) -> None:
        """Take a registration; note a SEND or ACK that comes too early or too late."""
        name, parts = txn_of(fields), {*fields.get("partitions", ())}
        parts |= {(each["topic"], each["subscription"]) for each in fields.get("subscription", ())}
        if command is Command.SEND:
            parts = {link.parts[Command.PRODUCER, fields["producer_id"]]}
            if fields["metadata"].txn != name:
                self.wrong.append(f"SEND in {name}, and its metadata in {fields['metadata'].txn}")
        elif command is Command.ACK:
            parts = {link.parts[Command.SUBSCRIBE, fields["consumer_id"]]}
        if any("non-persistent:" in str(part) for part in parts):
            self.wrong.append(f"{command.name} in {name} on {parts}, after which a broker closes the connection")
        if name in self.outcomes:
            self.wrong.append(f"{command.name} in {name}, which the client has ended")
        txn = self.open.get(name)
        if txn is None:
            return
        if command is Command.SEND:
            txn.sends.add((fields["producer_id"], fields["sequence_id"]))
        if command not in _REGISTRATIONS:
            txn.unanswered += 1
            if not parts <= txn.parts:
                self.wrong.append(f"{command.name} in {name} before the registration of {parts} is answered")
        link.asked[_key(fields)].append((txn, parts))

    def answered(self, link: Link, data: bytes) -> None:
        """Take what the client learns from these frames."""
        for frame in Framing().feed(data):
            fields = decode_command(frame.kind, frame.data, frame.command, frame.rest)
            asked = link.asked[_key(fields)]
            if asked and "sequence_id" in fields:
                asked[0][0].sends.discard((fields["producer_id"], fields["sequence_id"]))
            if asked and "error" not in fields:
                txn, parts = asked.popleft()
                txn.parts |= parts
                txn.unanswered -= frame.kind in (Command.SEND_RECEIPT, Command.ACK_RESPONSE)

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


def txn_of(fields: Fields) -> TxnId:
    """Return the transaction of a command."""
    return TxnId(fields.get("txnid_most_bits", -1), fields.get("txnid_least_bits", -1))


def _key(fields: Fields) -> object:
    """Return what a command and its answer have in common."""
    return (fields["producer_id"], fields["sequence_id"]) if "sequence_id" in fields else fields.get("request_id")


def error_answer(command: Command, fields: Fields, error: ServerError) -> bytes:
    """The answer to a command that fails."""
    what = {"error": int(error), "message": error.name}
    if command is Command.SEND:
        known = {"producer_id": fields["producer_id"], "sequence_id": fields["sequence_id"]}
        return encode_command(Command.SEND_ERROR, **known, **what)
    if command is Command.ACK:
        number, request = fields["consumer_id"], fields["request_id"]
        return encode_command(Command.ACK_RESPONSE, consumer_id=number, request_id=request, **what)
    own = command in _IN_TRANSACTIONS or command is Command.TC_CLIENT_CONNECT_REQUEST
    return encode_command(ANSWERS[command] if own else Command.ERROR, request_id=fields["request_id"], **what)


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    """A peer that listens on a free port."""
    peer = Peer()
    server = await asyncio.get_running_loop().create_server(lambda: Link(peer), "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    peer.url = f"pulsar://127.0.0.1:{port}" if tls is None else f"pulsar+ssl://localhost:{port}"
    try:
        yield peer
        assert peer.wrong == []
    finally:
        server.close()
        for link in list(peer.links):
            link.cut()

"""A scripted peer that also serves: it stores once, delivers within permits, and redelivers what is unacknowledged.

What was sent in a transaction, and all that was stored behind it, is delivered once that transaction has ended.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from jmsaio.protocol import messages
from jmsaio.protocol.commands import Command, TxnAction
from jmsaio.protocol.messages import ack_set, words_of
from jmsaio.protocol.metadata import TxnId, encode_metadata
from tests.protocol.all_commands import encode_command
from tests.transport.pulsar.wire.peer import Fields, Link, Peer, Txn

_NOWHERE = (1 << 64) - 1


class Server(Peer):
    """A broker with one topic, one shared subscription, and readers from its beginning. It deduplicates.

    Attributes:
        left: the ack set of each entry that is not acknowledged.
        held: the consumer that has each entry that was delivered.
        aborted: entries of transactions that were rolled back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[int, int] = {}
        self.held: dict[int, tuple[Link, int]] = {}
        self.aborted: set[int] = set()
        self._stored: set[tuple[str, int, int | None]] = set()
        self._counts: Counter[int] = Counter()
        self._readers: dict[tuple[Link, int], int] = {}  # the next entry of each
        self._open: set[tuple[Command, Link, int]] = set()

    @property
    def registered(self) -> set[tuple[Command, int]]:
        """The producers and consumers on open connections."""
        self._open = {one for one in self._open if one[1] in self.links}
        return {(command, number) for command, link, number in self._open}

    @property
    def texts(self) -> list[str]:
        """The payloads of all entries that consumers can receive, which are no batches."""
        hidden = {*self.aborted, *(entry for txn in self.open.values() for entry in txn.entries)}
        return [payload.decode() for entry, (_, payload) in self.entries.items() if entry not in hidden]

    def usual(self, link: Link, command: Command, fields: Fields) -> bytes:
        """What a broker does."""
        number: int = fields.get("producer_id") or fields.get("consumer_id") or -1
        asyncio.get_running_loop().call_soon(self._deliver)
        match command:
            case Command.SUBSCRIBE:
                self._open.add((command, link, number))
                if not fields["durable"]:
                    self._readers[link, number] = 0
            case Command.SEEK:
                self.left.clear()
                self.held.clear()
                for entry in self.entries:
                    self._whole(entry)
                asyncio.get_running_loop().call_soon(self._close, Command.SUBSCRIBE, link, number)
            case Command.PRODUCER:
                self.fence(fields)
                self._open.add((command, link, number))
                name = fields.get("producer_name") or f"peer-{len(self.received)}"
                return encode_command(Command.PRODUCER_SUCCESS, request_id=fields["request_id"], producer_name=name)
            case Command.CLOSE_PRODUCER:
                self._open.discard((Command.PRODUCER, link, number))
            case Command.CLOSE_CONSUMER:
                self._open.discard((Command.SUBSCRIBE, link, number))
                link.permits.pop(number, None)
            case Command.SEND:
                mark = fields["metadata"].producer_name, fields["sequence_id"], fields["metadata"].chunk_id
                if mark in self._stored:
                    return self.receipt(fields, _NOWHERE)
                self._stored.add(mark)
            case Command.ACK if "txnid_most_bits" not in fields:
                for place in fields["message_id"]:
                    bits = ack_set(place["ack_set"]) if place["ack_set"] else 0
                    self.left[place["entry_id"]] = self.left.get(place["entry_id"], 0) & bits
                    if not self.left[place["entry_id"]]:
                        self.left.pop(place["entry_id"])
            case Command.REDELIVER_UNACKNOWLEDGED_MESSAGES:
                for place in fields["message_ids"]:
                    self._counts[place["entry_id"]] += 1
                    self.held.pop(place["entry_id"], None)
            case Command.GET_LAST_MESSAGE_ID:
                place = {"ledger_id": 1, "entry_id": (len(self.entries) - 1) % (1 << 64)}
                return encode_command(
                    Command.GET_LAST_MESSAGE_ID_RESPONSE, request_id=fields["request_id"], last_message_id=place
                )
        return super().usual(link, command, fields)

    def close_parts(self) -> None:
        """Close all producers and consumers, as a broker that unloads the topic."""
        for each in list(self._open):
            self._close(*each)

    def _close(self, command: Command, link: Link, number: int) -> None:
        self._open.discard((command, link, number))
        link.permits.pop(number, None)
        if command is Command.PRODUCER:
            link.send(Command.CLOSE_PRODUCER, producer_id=number, request_id=0)
        else:
            link.send(Command.CLOSE_CONSUMER, consumer_id=number, request_id=0)

    def store(self, fields: Fields) -> None:
        """Store the entry of a SEND."""
        super().store(fields)
        if fields["metadata"].txn is None:
            self._whole(len(self.entries) - 1)

    def acknowledge(self, name: TxnId, fields: Fields) -> bool:
        """Acknowledge in a transaction what is not acknowledged yet."""
        left = all(self.left.get(each["entry_id"], 0) & self.bits(each) for each in fields["message_id"])
        return left and super().acknowledge(name, fields)

    def end(self, name: TxnId, action: TxnAction) -> Txn | None:
        """Show what was sent in a transaction, or hide it; acknowledge in it, or deliver whole entries again."""
        txn = super().end(name, action)
        if txn is None:
            return None
        if action is TxnAction.ABORT:
            self.aborted.update(txn.entries)
            self._counts.update(txn.acked.keys())
            for entry in txn.acked:
                self.held.pop(entry, None)
        else:
            for entry in txn.entries:
                self._whole(entry)
            for entry, bits in txn.acked.items():
                self.left[entry] &= ~bits
                if not self.left[entry]:
                    del self.left[entry]
        self._deliver()
        return txn

    def _whole(self, entry: int) -> None:
        self.left[entry] = (1 << (self.entries[entry][0].num_messages_in_batch or 1)) - 1

    def _deliver(self) -> None:
        end = min((txn.entries[0] for txn in self.open.values() if txn.entries), default=len(self.entries))
        for (reading, number), entry in self._readers.items():
            while reading in self.links and reading.permits[number] > 0 and entry < end:
                if entry not in self.aborted:
                    reading.permits[number] -= self.entries[entry][0].num_messages_in_batch or 1
                    reading.write(self._message(number, entry))
                entry += 1
            self._readers[reading, number] = entry
        for entry in sorted(entry for entry in self.left if entry < end and self._given(entry)):
            link, consumer = self.held.get(entry, (None, -1))
            if link in self.links and (Command.SUBSCRIBE, link, consumer) in self._open:
                continue
            for other in self.links:
                free = [
                    number for number, permits in other.permits.items()
                    if permits > 0 and (other, number) not in self._readers
                ]  # fmt: skip
                if free:
                    other.permits[free[0]] -= self._given(entry).bit_count()
                    self.held[entry] = other, free[0]
                    other.write(self._message(free[0], entry))
                    break

    def _given(self, entry: int) -> int:
        """The messages of an entry that nobody has acknowledged, in an open transaction or without."""
        given = self.left[entry]
        for txn in self.open.values():
            given &= ~txn.acked[entry]
        return given

    def _message(self, consumer: int, entry: int) -> bytes:
        metadata, payload = self.entries[entry]
        all_of_it = (1 << (metadata.num_messages_in_batch or 1)) - 1
        left = self._given(entry) if entry in self.left else all_of_it  # a reader gets all
        fields: dict[str, Any] = {"ack_set": [] if left == all_of_it else words_of(left)}
        place, count = {"ledger_id": 1, "entry_id": entry}, self._counts[entry]
        head = encode_command(Command.MESSAGE, consumer_id=consumer, message_id=place, redelivery_count=count, **fields)
        frame = messages.send(1, 0, encode_metadata(metadata), payload)
        tail = frame[8 + int.from_bytes(frame[4:8]) :]
        return (len(head) - 4 + len(tail)).to_bytes(4) + head[4:] + tail


@asynccontextmanager
async def serving(port: int = 0) -> AsyncIterator[Server]:
    """A server that listens on a port."""
    made = Server()
    server = await asyncio.get_running_loop().create_server(lambda: Link(made), "127.0.0.1", port)
    made.url = f"pulsar://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
        assert made.wrong == []
    finally:
        server.close()
        for link in list(made.links):
            link.cut()

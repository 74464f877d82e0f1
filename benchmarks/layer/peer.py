"""A transport that costs next to nothing, so that the JMS layer above it is what is measured.

It confirms what it is sent in groups, a turn of the loop later; its receivers are full from the start. It has one
topic, no broker and no administration, and takes every acknowledgement. Under `MAPS_URL` properties are maps in both
directions, as for pulsar-client and the embedded broker; under `URL` they are packed, as on the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any

import attrs

from benchmarks.floor import wire_properties
from benchmarks.workload import Workload
from jmsaio.config import Configuration
from jmsaio.config.schemes import SCHEMES, BrokerAddress, Scheme, TransportEntry
from jmsaio.model.packed import pack, pack_name, unpack
from jmsaio.model.wire import EXPIRATION, MESSAGE_TYPE, OutgoingRecord, ReceivedRecord, WireId
from jmsaio.transport.base import Capabilities, LinkListener, SenderOptions, Subscription, Token, Transaction, Wake
from jmsaio.transport.clock import SystemClock
from jmsaio.transport.waiting import Waiters

#: Its URL, with packed properties.
URL = "costless://packed"
#: Its URL, with maps of properties.
MAPS_URL = "costless://maps"
#: Records in one group.
GROUP = 1_000
_SIZES = Struct(">II")


class LayerSender:
    """Joins the bytes of a group, as a connection would get them, and confirms all of it in the next turn.

    Properties that are not packed are looked at by key, and left out.
    """

    outdated = False
    last_sequence_ids: Mapping[str, int] = {}

    def __init__(self, options: SenderOptions, packed: bool) -> None:
        self.full = False
        self._packed = packed
        self._window = options.window_records
        self._settled = options.settled
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._tokens: list[Token] = []
        self._open = 0
        self._entry = 0
        self._scheduled = False
        self._changed = Waiters()

    def send(self, record: OutgoingRecord, token: Token, transaction: Transaction | None = None) -> None:
        """Take a record."""
        assert record.payload is not None
        if self._packed:
            self._parts += record.packed, record.payload
        else:
            assert MESSAGE_TYPE in record.properties
            self._parts.append(record.payload)
        self._tokens.append(token)
        self._open += 1
        self.full = self._open >= self._window
        if len(self._tokens) >= GROUP:
            self._flush()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        tokens, self._tokens = self._tokens, []
        frame = b"".join(self._parts)
        self._parts.clear()
        if tokens:
            self._loop.call_soon(self._confirm, tokens, len(frame))

    def _confirm(self, tokens: list[Token], size: int) -> None:
        self._entry += 1
        self._settled(tokens, WireId(1, self._entry, -1, 0), None)
        self._open -= len(tokens)
        self.full = self._open >= self._window
        self._changed.wake()

    async def ready(self) -> None:
        """Wait until there is room."""
        while self.full:
            await self._changed.wait()

    async def drain(self, timeout: float) -> None:
        """Wait until all is confirmed."""
        async with asyncio.timeout(timeout):
            while self._open:
                await self._changed.wait()

    async def aclose(self, timeout: float) -> None:
        """Confirm what is open."""
        await self.drain(timeout)


_EXPIRATION = pack_name(EXPIRATION)
#: What a record's properties are looked up by, for each name.
_NAMES: dict[str, bytes] = {}


class LayerRecord:
    """A received record: the parts that are the same in both forms."""

    __slots__ = ("_index", "_map", "_number", "may_expire", "redelivery_count")

    event_time = publish_time = 1_700_000_000_000
    key: str | None = None
    producer_name: str | None = None
    schema_version: bytes | None = None
    sequence_id: int | None = None
    batch_size = 0
    topic = "persistent://public/default/layer"
    size = 400

    def __init__(self, number: int, index: int, may_expire: bool) -> None:
        self.may_expire = may_expire
        self.redelivery_count = 0
        self._number, self._index = number, index
        self._map: dict[str, str] | None = None

    @property
    def message_id(self) -> WireId:
        """Where it is stored."""
        return WireId(1, self._number, -1, self._index)


class PackedRecord(LayerRecord):
    """It looks its parts up in the bytes of its entry."""

    __slots__ = ("_entry", "_middle", "_start", "_stop")

    def __init__(
        self, entry: bytes, start: int, middle: int, stop: int, number: int, index: int, may_expire: bool
    ) -> None:
        super().__init__(number, index, may_expire)
        self._entry, self._start, self._middle, self._stop = entry, start, middle, stop

    @property
    def payload(self) -> bytes:
        """The body."""
        return self._entry[self._middle : self._stop]

    @property
    def properties(self) -> dict[str, str]:
        """All of them, made once."""
        found = self._map
        if found is None:
            found = self._map = unpack(self._entry[self._start : self._middle])
        return found

    def get(self, name: str) -> str | None:
        """One of them, found without the others: names and values of the workload contain no other's bytes."""
        packed_name = _NAMES.get(name)
        if packed_name is None:
            packed_name = _NAMES[name] = pack_name(name)
        entry = self._entry
        place = entry.find(packed_name, self._start, self._middle)
        if place < 0:
            return None
        place += len(packed_name) + 1
        return entry[place : place + entry[place - 1]].decode()


class MapRecord(LayerRecord):
    """Its properties are a map, made anew for each as pulsar-client makes it."""

    __slots__ = ("_given", "payload")

    def __init__(self, given: Mapping[str, str], payload: bytes, number: int, index: int) -> None:
        super().__init__(number, index, EXPIRATION in given)
        self._given = given
        self.payload = payload

    @property
    def properties(self) -> dict[str, str]:
        """All of them, made once."""
        found = self._map
        if found is None:
            found = self._map = dict(self._given)
        return found

    def get(self, name: str) -> str | None:
        """One of them."""
        return self.properties.get(name)


def make_entry(work: Workload, number: int) -> bytes:
    """Messages from ``number`` on as the bytes of one entry: for each the sizes of both parts, properties, text."""
    text, parts = work.text.encode(), list[bytes]()
    for each in range(number, min(number + GROUP, work.messages)):
        packed = pack(wire_properties(each, LayerRecord.event_time))
        parts += _SIZES.pack(len(packed), len(text)), packed, text
    return b"".join(parts)


def split(entry: bytes, number: int) -> list[PackedRecord]:
    """Return the records of an entry."""
    records, place, end, sizes = list[PackedRecord](), 0, len(entry), _SIZES.unpack_from
    may_expire = entry.find(_EXPIRATION) >= 0
    while place < end:
        packed, payload = sizes(entry, place)
        start = place + _SIZES.size
        middle = start + packed
        place = middle + payload
        records.append(PackedRecord(entry, start, middle, place, number, len(records), may_expire))
    return records


def map_records(entry: bytes, number: int) -> list[MapRecord]:
    """Return the records of an entry as maps; the maps themselves are made before the clock runs, see `fill`."""
    return [MapRecord(given, payload, number, index) for index, (given, payload) in enumerate(MAPS[entry])]


class LayerReceiver:
    """Has all messages of a workload, each entry split when it is wanted."""

    def __init__(self, records_of: Callable[[bytes, int], Sequence[ReceivedRecord]], wake: Wake) -> None:
        self._records_of = records_of
        self._entries = iter(enumerate(ENTRIES))
        self._records: list[ReceivedRecord] = []
        self._taken = 0
        self.acknowledged = 0
        asyncio.get_running_loop().call_soon(wake)

    def receive(self, limit: int) -> list[ReceivedRecord]:
        """Return the next records; fewer only at the end of all."""
        while len(self._records) - self._taken < limit:
            number, entry = next(self._entries, (0, b""))
            if not entry:
                break
            self._records = [*self._records[self._taken :], *self._records_of(entry, number)]
            self._taken = 0
        found = self._records[self._taken : self._taken + limit]
        self._taken += len(found)
        return found

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Count them."""
        self.acknowledged += len(records)

    def negative_acknowledge(self, records: Sequence[object], delay: float, *, counted: bool = True) -> None:
        """Return the prefetched records."""

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """Nobody asks."""

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        """All is sent."""

    async def stop(self, timeout: float) -> None:
        """Nothing comes by itself."""

    async def resume(self, timeout: float) -> None:
        """Likewise."""

    async def aclose(self, timeout: float) -> None:
        """Nothing is open."""


@attrs.define(eq=False)
class LayerTransport:
    """The transport; see the module."""

    packed: bool
    capabilities: Capabilities = attrs.field(init=False)
    admin = None
    clock = SystemClock()
    link_listeners: set[LinkListener] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.capabilities = Capabilities(
            transactions=False, sequence_ids=False, exact_redelivery_count=True, packed=self.packed, message_ids=True
        )

    async def open_sender(self, topic: str, options: SenderOptions) -> LayerSender:
        """See ``Transport.open_sender``."""
        return LayerSender(options, self.packed)

    async def open_receiver(self, subscription: Subscription, wake: Wake) -> LayerReceiver:
        """See ``Transport.open_receiver``."""
        return LayerReceiver(split if self.packed else map_records, wake)

    async def aclose(self, timeout: float) -> None:
        """Nothing is open."""


#: What its receivers have.
ENTRIES: list[bytes] = []
#: The same as maps and payloads, by entry.
MAPS: dict[bytes, list[tuple[Mapping[str, str], bytes]]] = {}


async def open_transport(config: Configuration) -> Any:
    """Open it. Only what the rows ask of a transport is there."""
    return LayerTransport(config.service_url == URL)


def fill(work: Workload) -> None:
    """Have the messages of a workload ready, each entry as bytes."""
    ENTRIES[:] = [make_entry(work, number) for number in range(0, work.messages, GROUP)]
    MAPS.clear()
    MAPS.update((entry, [(each.properties, each.payload) for each in split(entry, 0)]) for entry in ENTRIES)


@contextmanager
def registered() -> Iterator[None]:
    """Have ``jmsaio.connect`` know its URLs while the block lasts."""
    SCHEMES["costless"] = Scheme(
        "costless",
        (TransportEntry("costless", __name__),),
        lambda rest: BrokerAddress("costless", "", f"costless://{rest.removeprefix('//')}", ""),
    )
    try:
        yield
    finally:
        del SCHEMES["costless"]

"""Topics and subscriptions of the model cluster: what is stored, who gets it, and what is acknowledged."""

from __future__ import annotations

import zlib
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Protocol

import attrs

from jmsaio.protocol import messages
from jmsaio.protocol.batch import split
from jmsaio.protocol.commands import Command, SubType
from jmsaio.protocol.framing import Frame, entry_of
from jmsaio.protocol.metadata import TxnId, decode_metadata
from tests.protocol.all_commands import encode_command

Fields = dict[str, Any]
Place = tuple[int, int]


class Link(Protocol):
    """The broker's end of a connection."""

    def send(self, command: Command, **fields: Any) -> None:
        """Send a command."""

    def write(self, data: bytes) -> None:
        """Send bytes."""


@attrs.define(eq=False)
class Stored:
    """An entry.

    Attributes:
        place: ledger and number.
        tail: what follows the command in its frame: checksum, metadata and payload.
        texts: bodies of its messages.
        key: partition key.
        batch: number of messages if it is a batch, else None.
    """

    place: Place
    tail: bytes
    texts: list[str]
    key: bytes | None
    batch: int | None


def read_entry(place: Place, frame: Frame) -> Stored:
    """Read the entry of a SEND."""
    parts = entry_of(frame)
    metadata = decode_metadata(parts.data, parts.metadata, parts.payload)
    payload, count = parts.data[parts.payload :], metadata.num_messages_in_batch
    texts = [payload] if count is None else [payload[one.payload : one.stop] for one in split(payload, 0, count)]
    tail = frame.data[frame.rest : frame.end]
    return Stored(place, tail, [text.decode() for text in texts], metadata.partition_key, count)


@attrs.define(eq=False)
class Consumer:
    """A registration of a consumer.

    Attributes:
        link: its connection.
        number: its id there.
        subscription: what it receives from.
        permits: messages that it still accepts.
        pending: what it got and has not acknowledged.
        given: places of all that it ever got.
    """

    link: Link
    number: int
    subscription: Subscription
    permits: int = 0
    pending: dict[Place, Stored] = attrs.field(factory=dict)
    given: set[Place] = attrs.field(factory=set)


@attrs.define(eq=False)
class Subscription:
    """A subscription of one topic, with what its broker keeps in memory.

    Attributes:
        name: its name.
        topic: what it is subscribed to.
        type: how its consumers share it.
        durable: whether it outlives its last consumer.
        left: messages not acknowledged of entries that are partly or wholly acknowledged, as bits.
        pending: messages that are acknowledged in transactions which have not ended, as bits.
        waiting: entries for no consumer yet, in order.
        counts: earlier deliveries; only of shared types, and until the topic is moved.
        consumers: its consumers, the first one is active.
        overlapped: whether it ever had two consumers at a time.
        told: who was told last that it is active.
    """

    name: str
    topic: Topic
    type: SubType
    durable: bool
    left: dict[Place, int] = attrs.field(factory=dict)
    pending: dict[TxnId, dict[Place, int]] = attrs.field(factory=dict)
    waiting: list[Stored] = attrs.field(factory=list)
    counts: Counter[Place] = attrs.field(factory=Counter)
    consumers: list[Consumer] = attrs.field(factory=list)
    overlapped: bool = False
    told: Consumer | None = None

    @property
    def shared(self) -> bool:
        return self.type in (SubType.Shared, SubType.Key_Shared)

    def _bits(self, entry: Stored) -> int:
        return self.left.get(entry.place, (1 << len(entry.texts)) - 1)

    def _free(self, entry: Stored) -> int:
        """Messages that are not acknowledged, in no transaction either."""
        bits = self._bits(entry)
        for places in self.pending.values():
            bits &= ~places.get(entry.place, 0)
        return bits

    def join(self, consumer: Consumer) -> None:
        """Add a consumer."""
        self.overlapped |= bool(self.consumers)
        self.consumers.append(consumer)

    def leave(self, consumer: Consumer) -> None:
        """Remove a consumer; what it did not acknowledge waits again."""
        self.consumers.remove(consumer)
        self.returned(consumer, list(consumer.pending))
        if not self.consumers and not self.durable:
            self.topic.subscriptions.pop(self.name, None)

    def returned(self, consumer: Consumer, places: list[Place]) -> None:
        """Let others have entries of a consumer."""
        for place in places:
            entry = consumer.pending.pop(place, None)
            if entry is not None:
                self._repeat(entry)
        self.dispatch()

    def _repeat(self, entry: Stored) -> None:
        """Let an entry that was given wait again, if anything of it is free."""
        self.counts[entry.place] += 1
        if self._free(entry) and entry not in self.waiting:
            insort(self.waiting, entry, key=lambda one: one.place)

    def acknowledge(self, consumer: Consumer, places: dict[Place, int]) -> None:
        """Take an acknowledgement after which only these messages of the entries are left."""
        for place, bits in places.items():
            entry = self.topic.entries[place]
            before = self._bits(entry)
            left = self.left[place] = before & bits
            if left != before:
                self.topic.recent.append((self, place, before & ~left))
            if not left:
                self._settled(entry)
        if self.type is SubType.Key_Shared:
            self.dispatch()  # its keys are free

    def _settled(self, entry: Stored) -> None:
        """Take that nothing of an entry is left."""
        for consumer in self.consumers:
            consumer.pending.pop(entry.place, None)
        if entry in self.waiting:
            self.waiting.remove(entry)

    def acknowledge_in(self, txn: TxnId, places: dict[Place, int]) -> bool:
        """Take an acknowledgement in a transaction; return False for one of what is acknowledged already."""
        taken = dict[Place, int]()
        for place, left in places.items():
            entry = self.topic.entries[place]
            taken[place] = (1 << len(entry.texts)) - 1 & ~left
            if taken[place] & ~self._free(entry):
                return False
        pending = self.pending.setdefault(txn, {})
        for place, bits in taken.items():
            pending[place] = pending.get(place, 0) | bits
            entry = self.topic.entries[place]
            if not self._free(entry) and entry in self.waiting:
                self.waiting.remove(entry)
        return True

    def end(self, txn: TxnId, committed: bool, gone: list[TxnId]) -> None:
        """End a transaction: what was acknowledged in it is, or waits again for any consumer.

        So does what was acknowledged in one of those ``gone`` after it had ended.
        """
        for each in (txn, *gone) if txn in self.pending else ():
            for place, bits in self.pending.pop(each, {}).items():
                entry = self.topic.entries[place]
                if committed and each == txn:
                    left = self.left[place] = self._bits(entry) & ~bits
                    if not left:
                        self._settled(entry)
                else:
                    for consumer in self.consumers:
                        consumer.pending.pop(place, None)
                    self._repeat(entry)
        self.dispatch()

    def forget(self) -> None:
        """Lose what the broker had in memory: the topic moves."""
        self.consumers.clear()
        self.counts.clear()
        self.told = None
        self.waiting = [entry for entry in self.topic.entries.values() if self._free(entry)]

    @property
    def backlog(self) -> list[str]:
        """Texts that are not acknowledged."""
        found = [(entry, self._bits(entry)) for entry in self.topic.entries.values()]
        return [text for entry, bits in found for index, text in enumerate(entry.texts) if bits >> index & 1]

    def ends(self) -> tuple[Place, Place]:
        """The last entry, and the last before the first that is not acknowledged."""
        places = list(self.topic.entries)
        left = [index for index, place in enumerate(places) if self._bits(self.topic.entries[place])]
        before = (0, -1)
        last, mark = places[-1] if places else before, (left[0] if left else len(places)) - 1
        return last, places[mark] if mark >= 0 else before

    def dispatch(self) -> None:
        """Send what can be sent."""
        if not self.consumers:
            return
        if not self.shared and self.told is not self.consumers[0]:
            self.told = self.consumers[0]
            self.told.link.send(Command.ACTIVE_CONSUMER_CHANGE, consumer_id=self.told.number, is_active=True)
        held = {
            entry.key: consumer for consumer in self.consumers for entry in consumer.pending.values()
        } if self.type is SubType.Key_Shared else {}  # fmt: skip
        blocked, end = set[bytes | None](), self.topic.readable
        for entry in list(self.waiting):
            if end is not None and entry.place >= end:
                return
            consumer = self._taker(entry)
            if self.type is SubType.Key_Shared:
                if consumer is None or entry.key in blocked or held.get(entry.key, consumer) is not consumer:
                    blocked.add(entry.key)
                    continue
                held[entry.key] = consumer
            elif consumer is None:
                return
            self.waiting.remove(entry)
            self._deliver(consumer, entry)

    def _taker(self, entry: Stored) -> Consumer | None:
        if self.type is SubType.Shared:
            free = [one for one in self.consumers if one.permits > 0]
            return self.topic.choose(free) if free else None
        at = zlib.crc32(entry.key or b"") % len(self.consumers) if self.type is SubType.Key_Shared else 0
        one = self.consumers[at]
        return one if one.permits > 0 else None

    def _deliver(self, consumer: Consumer, entry: Stored) -> None:
        bits, place = self._free(entry), entry.place
        whole = bits == (1 << len(entry.texts)) - 1
        consumer.permits -= bits.bit_count()  # the broker counts only what is not acknowledged
        consumer.pending[place] = entry
        consumer.given.add(place)
        if (self.name, place) in self.topic.given:
            self.topic.repeated.update(entry.texts)
        self.topic.given.setdefault((self.name, place), self.topic.time())
        command = encode_command(
            Command.MESSAGE, consumer_id=consumer.number, message_id={"ledger_id": place[0], "entry_id": place[1]},
            redelivery_count=self.counts[place] if self.shared else 0, ack_set=[] if whole else messages.words_of(bits),
        )[8:]  # fmt: skip
        size = 4 + len(command) + len(entry.tail)
        consumer.link.write(size.to_bytes(4) + len(command).to_bytes(4) + command + entry.tail)


@attrs.define(eq=False)
class Producer:
    """A registration of a producer.

    Attributes:
        link: its connection.
        number: its id there.
        name: the broker's name for it.
        epoch: how often the client registered it before.
        topic: where it sends.
        failed: whether a write failed; then all that follow do.
    """

    link: Link
    number: int
    name: str
    epoch: int
    topic: Topic
    failed: bool = False


@attrs.define(eq=False)
class Topic:
    """A topic without partitions, or a partition.

    Attributes:
        name: full name.
        choose: chooses one of several by chance.
        time: the time.
        owner: name of the broker that serves it, "" for none.
        moving: whether it is between two brokers.
        ledger: id of the ledger that is written.
        entries: what is stored, by place, in order, without what was rolled back.
        open: what was sent in transactions that have not ended.
        subscriptions: by their names.
        producers: by their names.
        last: highest sequence id that is stored, by producer.
        recent: acknowledgements that a crash can undo: subscription, place, and messages as bits.
        given: when an entry was first given to a consumer of a subscription.
        repeated: texts of entries that were given several times.
        forgot: times at which it left a broker, which forgot its counts.
        undone: texts whose acknowledgement a crash has undone, by subscription.
    """

    name: str
    choose: Callable[[list[Any]], Any]
    time: Callable[[], float]
    owner: str = ""
    moving: bool = False
    ledger: int = -1
    entries: dict[Place, Stored] = attrs.field(factory=dict)
    open: dict[TxnId, list[Stored]] = attrs.field(factory=dict)
    subscriptions: dict[str, Subscription] = attrs.field(factory=dict)
    producers: dict[str, Producer] = attrs.field(factory=dict)
    last: dict[str, int] = attrs.field(factory=lambda: defaultdict(lambda: -1))
    recent: list[tuple[Subscription, Place, int]] = attrs.field(factory=list)
    given: dict[tuple[str, Place], float] = attrs.field(factory=dict)
    repeated: set[str] = attrs.field(factory=set)
    forgot: list[float] = attrs.field(factory=list)
    undone: set[tuple[str, str]] = attrs.field(factory=set)
    _next: int = 0

    @property
    def readable(self) -> Place | None:
        """Where the oldest open transaction begins, which nobody reads beyond; None without one."""
        return min((entries[0].place for entries in self.open.values()), default=None)

    def store(self, frame: Frame, txn: TxnId | None) -> Place:
        """Store the entry of a SEND, and pass it on."""
        entry = read_entry((self.ledger, self._next), frame)
        self._next += 1
        self.entries[entry.place] = entry
        if txn is not None:
            self.open.setdefault(txn, []).append(entry)
        for subscription in list(self.subscriptions.values()):
            subscription.waiting.append(entry)
            subscription.dispatch()
        return entry.place

    def end(self, txn: TxnId, subscription: str | None, committed: bool, gone: list[TxnId]) -> None:
        """End a transaction here, or on a subscription; also those ``gone`` in which something came after their end."""
        if subscription is not None:
            self.subscriptions[subscription].end(txn, committed, gone)
            return
        self._next += 1  # the marker of the end
        for each in (txn, *gone):
            entries = self.open.pop(each, [])
            for entry in () if committed and each == txn else entries:
                del self.entries[entry.place]
                for reader in self.subscriptions.values():
                    reader.waiting.remove(entry)
        for reader in list(self.subscriptions.values()):
            reader.dispatch()

    def subscribe(self, name: str, kind: SubType, durable: bool, earliest: bool) -> Subscription:
        """Return a subscription; create it if there is none."""
        found = self.subscriptions.get(name)
        if found is None:
            found = self.subscriptions[name] = Subscription(name, self, kind, durable)
            found.waiting = list(self.entries.values()) if earliest else []
            found.left = {} if earliest else dict.fromkeys(self.entries, 0)
        if not found.consumers:
            found.type = kind
        return found

    def undo(self, count: int) -> None:
        """Undo the last acknowledgements: their broker crashed before it had stored them."""
        for subscription, place, undone in self.recent[len(self.recent) - count :]:
            entry = self.entries[place]
            subscription.left[place] |= undone
            self.undone |= {(subscription.name, text) for at, text in enumerate(entry.texts) if undone >> at & 1}
        self.recent.clear()

    def leave(self) -> None:
        """Leave its broker: everything in the memory of that one is gone."""
        self.owner = ""
        self.forgot.append(self.time())
        self.recent.clear()
        self.producers.clear()
        for subscription in list(self.subscriptions.values()):
            subscription.forget()
            if not subscription.durable:
                del self.subscriptions[subscription.name]

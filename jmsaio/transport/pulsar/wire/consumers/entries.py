"""Entries as they arrive: read, or assembled from chunks; those that can't be read are requested again or reported."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NamedTuple

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ProtocolError
from jmsaio.model.packed import Shape
from jmsaio.model.wire import EntryId
from jmsaio.protocol.batch import Span, split
from jmsaio.protocol.chunks import Assembly, Partial, Whole
from jmsaio.protocol.compression import expand
from jmsaio.protocol.framing import Frame, entry_of
from jmsaio.protocol.messages import Delivery
from jmsaio.protocol.metadata import Metadata, decode_metadata
from jmsaio.transport.pulsar.wire.connections.registration import Registration
from jmsaio.transport.pulsar.wire.consumers.permits import Permits

_log = logging.getLogger(__name__)
#: Messages that were given up, of which later chunks are recognised.
_MOST_GIVEN_UP: Final = 1000
#: Seconds before the chunks of a message are returned, the first time; doubled each time.
_DELAY: Final = 1.0
#: Seconds after which the broker is asked again for an entry that can't be read, one after the other.
_AGAIN: Final = (0.1, 1.0, 10.0)
#: Entries of which is known how often they arrived damaged.
_MOST_DAMAGED: Final = 1000
#: Maximum records of a batch, unless its sender has another limit.
_USUAL: Final = 1000


class Arrival(NamedTuple):
    """A readable entry."""

    metadata: Metadata
    data: bytes  # its payload, not compressed; of a chunk as it was sent
    spans: list[Span] | None  # where each record of a batch is; None if it is no batch


def is_chunk(metadata: Metadata) -> bool:
    return (metadata.num_chunks_from_msg or 1) > 1


def assembled(whole: Whole) -> Arrival:
    """Read a message whose chunks have arrived. Raises ProtocolError if its compression is damaged, or unknown."""
    metadata = whole.metadata
    return Arrival(metadata, expand(metadata.compression, whole.payload, metadata.uncompressed_size), None)


def read_arrival(frame: Frame, shapes: dict[int, Shape] | None = None) -> Arrival:
    """Read the entry of a MESSAGE. Raises ProtocolError if it is damaged, encrypted, or its library is missing."""
    parts = entry_of(frame)
    metadata = decode_metadata(parts.data, parts.metadata, parts.payload)
    if metadata.encrypted:
        raise ProtocolError("it is encrypted")
    data = parts.data[parts.payload :]
    if is_chunk(metadata):
        return Arrival(metadata, data, None)
    data = expand(metadata.compression, data, metadata.uncompressed_size)
    count = metadata.num_messages_in_batch
    return Arrival(metadata, data, None if count is None else split(data, 0, count, shapes))


def is_as_sent(frame: Frame) -> bool:
    """Return whether an entry that can't be read matches its checksum, so that it arrives no better again."""
    try:
        entry_of(frame)
    except ProtocolError:
        return False
    return True


def announced(frame: Frame) -> int:
    """Return how many records an entry that can't be read has: as it says, or else the most that are usual."""
    try:
        parts = entry_of(frame, damaged=True)
        count = decode_metadata(parts.data, parts.metadata, parts.payload).num_messages_in_batch
    except ProtocolError:
        return _USUAL
    return min(max(1, count or 1), 100 * _USUAL)


class ArrivingEntries:
    """Reads the entries of one consumer. One that can't be read stays unacknowledged: the broker stores it.

    A message whose chunks could not be stored, because too many were incomplete or one came out of order, is returned
    with all its chunks. If nothing new of it arrives in ``expireTimeOfIncompleteChunkedMessageMillis``, its sender has
    failed, and it is acknowledged, unless an entry could not be read, which might be the missing chunk. It is lost for
    good then: if the rest arrives nevertheless, that is acknowledged and the loss is reported; if all of it arrives, it
    is delivered.
    """

    def __init__(self, at: Registration, config: ConsumerConfig, permits: Permits) -> None:
        self._at = at
        self._permits = permits
        self._acknowledges = config.auto_ack_oldest_chunked_message_on_queue_full
        self._expiry = config.expire_time_of_incomplete_chunked_message
        self._shapes: dict[int, Shape] = {}  # of properties
        self._damages: dict[EntryId, int] = {}  # how often entries arrived damaged
        self._damaged: set[EntryId] = set()  # entries that could not be read since the last ``clear``
        self._given_up: dict[tuple[str, str], None] = {}
        self._loop = at.client.loop
        self._assembly = Assembly(config.max_pending_chunked_message)
        self._timer: asyncio.TimerHandle | None = None

    def read(self, delivery: Delivery, frame: Frame, stopped: bool) -> tuple[Arrival, Whole | None] | None:
        """Read an entry; return None if nothing is complete with it, which is returned if ``stopped``."""
        key = delivery.ledger, delivery.entry
        try:
            arrival = read_arrival(frame, self._shapes)
            self._damaged.discard(key)
            if not is_chunk(arrival.metadata):
                return arrival, None
            whole = self._add_chunk(key, arrival.metadata, arrival.data, stopped)
            if whole is not None:
                return assembled(whole), whole
            self.pop_damages(key)
            self._permits.used(1, len(arrival.data))
        except ProtocolError as error:
            self._permits.used(announced(frame), 0)
            self._damaged.add(key)
            self._unreadable(key, error, is_as_sent(frame))
        return None

    def pop_damages(self, key: EntryId) -> int:
        """Return how often an entry arrived damaged that can be read now, and forget it."""
        return self._damages.pop(key, 0) if self._damages else 0

    def _unreadable(self, key: EntryId, error: ProtocolError, as_sent: bool) -> None:
        """Request an entry again that was damaged in transit; report one that arrives no better."""
        at = self._at
        times = self._damages[key] = self._damages.get(key, 0) + 1
        if len(self._damages) > _MOST_DAMAGED:
            del self._damages[next(iter(self._damages))]
        place = f"{at.topic} (subscription {at.subscription}, ID:{key[0]}:{key[1]})"
        text = f"an entry of {place} can't be read: {error}"
        most = len(_AGAIN) if at.persistent and not as_sent else 0
        if times <= most:
            if times == 1:
                _log.warning("%s; it is requested again", text)
            self._loop.call_later(_AGAIN[times - 1], self._request_again, key, at.number)
        elif times == most + 1 or not at.persistent:
            kept = "it stays unacknowledged" if at.persistent else "the topic does not store it"
            at.client.report_loss(f"{text}; {kept}; see 'jmsaio guide reliability' for how to look at it")

    def _request_again(self, key: EntryId, registration: int) -> None:
        if registration == self._at.number and self._at.connection is not None:  # else it comes by itself
            self._at.redeliver(self._with_incomplete(key))

    def _add_chunk(self, place: EntryId, metadata: Metadata, payload: bytes, stopped: bool) -> Whole | None:
        """Add a chunk; return its message if it is complete. Raises ProtocolError as ``Assembly.add``."""
        if (metadata.producer_name, metadata.uuid) in self._given_up:
            if metadata.chunk_id != 0:
                self._acknowledge_rest(place, metadata)
                return None
            del self._given_up[metadata.producer_name, metadata.uuid or ""]  # its sender sends all of it again
        whole, partial, oldest = self._assembly.add(place, metadata, payload, self._loop.time())
        if whole is not None:
            return whole
        if oldest is not None and self._acknowledges:
            _log.warning("%s: incomplete, acknowledged: more than maxPendingChunkedMessage", self._name(oldest))
            self._at.acknowledge(oldest.places)
            oldest.places.clear()
            oldest.begun = False
        for each in (partial, oldest):
            if each is not None and each.begun and not each.waits and (stopped or not each.stored):
                each.waits = True
                self._loop.call_later(_DELAY * 2**each.returns, self._return, each)
        if self._timer is None and self._expiry > 0:
            self._timer = self._loop.call_later(self._expiry, self._expire)
        return None

    def _acknowledge_rest(self, place: EntryId, metadata: Metadata) -> None:
        """Acknowledge a chunk of a message that was given up."""
        self._at.acknowledge([place])
        if metadata.chunk_id == (metadata.num_chunks_from_msg or 0) - 1:
            self._at.client.report_loss(
                f"a message in chunks of {self._at.topic} is lost: its last chunk (ID:{place[0]}:{place[1]}) was "
                f"stored more than {self._expiry:g} s after the others, which are acknowledged; "
                "expireTimeOfIncompleteChunkedMessageMillis should be longer than sendTimeoutMs of its sender"
            )

    def _return(self, partial: Partial) -> None:
        partial.waits = False
        if any(each is partial for each in self._assembly):
            partial.returns += 1
            partial.drop()
            self._at.redeliver(partial.places)

    def _with_incomplete(self, place: EntryId) -> list[EntryId]:
        """Return an entry to request again, with the chunks of all messages to which it might belong, in order.

        The broker redelivers a chunk to no one before it has redelivered those in front of it.
        """
        found = [place]
        for partial in self._assembly:
            if partial.begun or place < min(partial.places, default=(0, 0)):
                partial.returns += 1
                partial.drop()
                found += partial.places
        return sorted(found)

    def stop(self) -> None:
        for partial in self._assembly:
            if partial.begun:
                self._return(partial)

    def _expire(self) -> None:
        self._timer = None
        expired = self._assembly.expire(self._loop.time() - self._expiry)
        for partial in [each for each in expired if each.places]:
            if self._damaged:
                _log.warning("%s: incomplete, stays unacknowledged: an entry could not be read", self._name(partial))
            else:
                _log.warning("%s: incomplete for %g s, acknowledged", self._name(partial), self._expiry)
                self._at.acknowledge(partial.places)
                self._given_up[partial.key] = None
                if len(self._given_up) > _MOST_GIVEN_UP:
                    del self._given_up[next(iter(self._given_up))]
        oldest = min((partial.since for partial in self._assembly), default=None)
        if oldest is not None:
            self._timer = self._loop.call_at(oldest + self._expiry, self._expire)

    def _name(self, partial: Partial) -> str:
        ledger, entry = next(iter(partial.places))
        return f"{len(partial.places)} chunks of a message of {self._at.topic} (from ID:{ledger}:{entry})"

    def clear(self) -> None:
        """Forget all: the broker sends the chunks again, or others."""
        self._assembly.clear()
        self._damaged.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

"""A consumer's messages in chunks, until each is complete, returned, or lost."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from jmsaio.config import ConsumerConfig
from jmsaio.model.wire import EntryId
from jmsaio.protocol.chunks import Assembly, Partial, Whole
from jmsaio.protocol.metadata import Metadata
from jmsaio.transport.pulsar.wire.connections.registration import Registration

_log = logging.getLogger(__name__)
#: Messages that were given up, of which later chunks are recognised.
_MOST_GIVEN_UP: Final = 1000
#: Seconds before the chunks of a message are returned, the first time; doubled each time.
_DELAY: Final = 1.0


class Chunks:
    """Assembles the messages of one consumer.

    A message whose chunks could not be stored, because too many were incomplete or one came out of order, is returned
    with all its chunks. If nothing new of it arrives in ``expireTimeOfIncompleteChunkedMessageMillis``, its sender has
    failed, and it is acknowledged, unless an entry could not be read, which might be the missing chunk. It is lost for
    good then: if the rest arrives nevertheless, that is acknowledged and the loss is reported; if all of it arrives, it
    is delivered.
    """

    def __init__(self, at: Registration, config: ConsumerConfig) -> None:
        self.damaged: set[EntryId] = set()  # entries that could not be read since the last ``clear``
        self._at = at
        self._acknowledges = config.auto_ack_oldest_chunked_message_on_queue_full
        self._expiry = config.expire_time_of_incomplete_chunked_message
        self._given_up: dict[tuple[str, str], None] = {}
        self._loop = at.client.loop
        self._assembly = Assembly(config.max_pending_chunked_message)
        self._timer: asyncio.TimerHandle | None = None

    def add(self, place: EntryId, metadata: Metadata, payload: bytes, stopped: bool) -> Whole | None:
        """Add a chunk; return its message if it is complete. Raises ProtocolError as ``Assembly.add``.

        While the consumer is ``stopped``, an incomplete message is returned.
        """
        if (metadata.producer_name, metadata.uuid) in self._given_up:
            if metadata.chunk_id != 0:
                self._acknowledge_rest(place, metadata)
                return None
            del self._given_up[metadata.producer_name, metadata.uuid or ""]  # its sender sends all of it again
        whole, partial, oldest = self._assembly.add(place, metadata, payload, self._loop.time())
        self.damaged.discard(place)
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
            self._at.client.report(
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

    def with_incomplete(self, place: EntryId) -> list[EntryId]:
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
        """Give back what is incomplete."""
        for partial in self._assembly:
            if partial.begun:
                self._return(partial)

    def _expire(self) -> None:
        self._timer = None
        expired = self._assembly.expire(self._loop.time() - self._expiry)
        for partial in [each for each in expired if each.places]:
            if self.damaged:
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
        self.damaged.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

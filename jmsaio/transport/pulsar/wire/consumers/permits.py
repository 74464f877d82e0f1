"""Permits: how many records the broker can send ahead to one consumer or reader."""

from __future__ import annotations

import attrs

from jmsaio.protocol.commands import Command, encode_command
from jmsaio.rules.share import Share
from jmsaio.transport.pulsar.wire.connections.registration import Registration


@attrs.define(eq=False)
class Permits:
    """Permits of one consumer, limited by records and by bytes.

    The broker sends whole entries while it has permits, which then can fall below 0. It counts neither bytes nor
    entries, so the limit in bytes is kept by giving fewer permits, by the sizes of the records that arrived last;
    before the first record, each is expected to have the maximum size. The limit is half of ``receive_buffer_bytes``,
    shared by all consumers of the connection that receive, plus one entry for each.
    """

    _at: Registration
    _size: int
    _share: Share
    _granted: int = attrs.field(default=0, init=False)  # that the broker has; below 0 after a large batch
    _waiting: bool = attrs.field(default=False, init=False)
    _largest: int = attrs.field(default=0, init=False)  # bytes of a record lately; 0: none has arrived

    def __attrs_post_init__(self) -> None:
        self._share.join(self)

    def restart(self) -> None:
        """Start over: the broker has no permits for a consumer that has just subscribed."""
        self._granted = 0

    def close(self) -> None:
        self._share.leave(self)

    @property
    def granted(self) -> bool:
        """Whether the broker can send records while it is registered."""
        return self._granted > 0

    def used(self, records: int, size: int) -> None:
        """Count an entry that arrived, by the records that the broker counts, and its bytes (0 if unknown)."""
        self._granted -= records
        size = size // max(1, records) + 1
        largest = self._largest
        self._largest = size if size >= largest else max(size, largest - (largest >> 4))

    def fill(self, queued: int, waiting: bool | None = None, held: bool = False) -> None:
        """Give the permits that are missing, unless they are few; ``waiting``: whether a receive found too few."""
        if waiting is not None:
            self._waiting = waiting
        connection, size = self._at.connection, self._size or self._waiting
        missing = size - queued - self._granted
        if missing <= 0 or 2 * missing < size or held or connection is None or not size:
            return  # 0 permits would end the connection
        if size > 1:
            size = min(size, max(1, self._share.each // (self._largest or connection.max_message_size)))
            missing = size - queued - self._granted
            if missing <= 0 or 2 * missing < size:
                return
        self._granted += missing
        connection.write(encode_command(Command.FLOW, consumer_id=self._at.number, message_permits=missing))

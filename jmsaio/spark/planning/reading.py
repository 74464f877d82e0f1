"""Reading of one range: each of its messages once, as columns of rows.

A missing entry is never trusted until a second reader confirms it. Some entries are never delivered: all chunks of a
message except its last, transaction markers, aborted messages, and what compaction removed. A reader also leaves out
entries if it starts between the chunks of a message. So if entries are missing, another reader starts some entries
earlier and continues from there; its records are read. Entries that it does not deliver either are

* lost, if the ledger is no longer stored: the broker deletes whole ledgers, the oldest first; or if the broker says
  that one of them is a message, of which up to 64 per range are queried, unless the topic is read compacted;
* not for readers, otherwise. An entry that the broker itself can't read looks the same.

A batch is stored and sent whole, so a part of one that a second reader does not deliver either is lost as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import anyio
import attrs

from jmsaio.codec.headers import header
from jmsaio.codec.row_columns import ColumnMaker, RowColumns
from jmsaio.codec.rows import RawRow
from jmsaio.config import Configuration
from jmsaio.errors import (
    AdminError,
    JMSSecurityError,
    MalformedMessageError,
    NotFoundError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.model.log_fields import log_fields
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.selector import Selector
from jmsaio.spark.model.place import Place, place_of
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.batch_planning import admin_of
from jmsaio.spark.planning.plan import Stored
from jmsaio.spark.planning.ranges import BEGINNING, EntryRun, Gap, Loss, Range, RangeCheck
from jmsaio.spark.planning.tolerance import Outage, report_loss
from jmsaio.transport.base import Reader, ReaderOptions, StartPosition, Transport
from jmsaio.transport.subscriptions import passes

_log = logging.getLogger(__name__)

#: Maximum number of other readers opened for a range's missing entries. A topic with that many undelivered entries
#: has more of them, and each reader costs some milliseconds.
_RETRIES: Final = 8
#: Distance from a missing entry to the start of another reader, which must reach the first chunk of a message: 20 full
#: chunks (5 MB each); among small entries, which other senders can have sent in between, up to 256 entries.
_BACK_BYTES: Final = 100 * 1024 * 1024
_BACK_ENTRIES: Final = (20, 256)
#: Number and factor of further steps back per range, if the start of a chunked message was not found.
_FAR_RETRIES: Final = 3
_FURTHER: Final = 4
#: Maximum missing entries per range that are checked at the broker for a last chunk, and as many for a message: each
#: takes a millisecond.
_QUERIES: Final = 64
#: Status for an entry that the broker can't read.
_UNREADABLE: Final = 500
#: Assumed bytes of a message of an unknown topic.
_UNKNOWN_SIZE: Final = 1024 * 1024
#: Seconds without a record until the broker is queried: the first time, and after that.
_SILENCE, _LONG_SILENCE = 2.0, 10.0
_DELETED: Final = "the broker has deleted them, or the topic was deleted and created again, since the read was planned"
_NO_TOPIC: Final = "the topic was deleted since the read was planned"
_WITHHELD: Final = (
    "readers do not receive them, although the broker stores them; a filter of the broker, or a damaged entry, can be "
    "the reason"
)
_HOLE: Final = "readers receive only a part of their batch"


class RangeReading:
    """Reader of ``fields`` of raw rows of one range. Close it, even after cancellation, unless all were returned."""

    def __init__(
        self, transport: Transport, range: Range, options: SourceOptions, configuration: Configuration,
        fields: Collection[str] = RawRow._fields,
    ) -> None:  # fmt: skip
        self._fields = fields
        self._transport = transport
        self._admin = admin_of(transport)
        self._range = range
        self._options = options
        self._configuration = configuration
        self._config = attrs.evolve(configuration.consumer, receiver_queue_size=options.receiver_queue)
        self._selector = None if options.selector is None else Selector(options.selector)
        marks = options.start_of(range.topic), options.end_of(range.topic)
        self._since, self._before = (mark if isinstance(mark, int) else None for mark in marks)
        self._outage = Outage(options.outage_timeout)
        self._check = RangeCheck(range)
        self._store = Stored((), None)
        self._reader: Reader | None = None
        self._queue = 1
        self._waiting: deque[ReceivedRecord] = deque()
        self._records, self._bytes = 0, 0  # number and bytes of records converted to rows
        self._size = 0  # bytes of the current rows
        self._retries, self._retried_to = _RETRIES, BEGINNING
        self._far_retries, self._chunk_queries = _FAR_RETRIES, _QUERIES
        self._message_queries = _QUERIES
        self._back = 1  # distance of the last extra reader from its gap
        self._hole: Place | None = None  # the hole that another reader was opened for
        self._opened = self._check.last, self._check.place  # the last record and the reader's start at that time
        self._silent_at: Place | None = None  # the last record before a silence,
        self._silences = 0  # number of readers opened further back for it,
        self._silent_retries = _RETRIES  # and remaining number of such readers

    async def aclose(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            with anyio.CancelScope(shield=True):
                await reader.aclose(self._configuration.close_timeout)

    async def next_columns(self) -> RowColumns | None:
        """Return the next rows, up to ``batch_rows`` or ``batch_bytes``; None at the end, where the reader closes."""
        options = self._options
        self._size = 0
        maker = ColumnMaker(self._configuration.system_namespace, fields=self._fields)
        while maker.size < options.batch_rows and self._size < options.batch_bytes:
            if not self._waiting and not await self._fetch():
                break
            maker.add(self._selected(options.batch_rows - maker.size))
        else:
            await self._fit_queue()
        if self._check.done and not self._waiting:
            await self.aclose()
        return maker.columns() if maker.size else None

    def _selected(self, limit: int) -> Iterator[ReceivedRecord]:
        options, waiting, size, left = self._options, self._waiting, self._size, limit
        filtered = (self._selector, self._since, self._before) != (None, None, None)
        while waiting and left and size < options.batch_bytes:
            record = waiting.popleft()  # freed before the next one, so that its memory is reused in the cache
            if filtered and not self._is_selected(record):
                continue
            left -= 1
            yield record
            size += record.size  # cheaper after the payload was read
        self._records += limit - left
        self._bytes += size - self._size
        self._size = size

    def _is_selected(self, record: ReceivedRecord) -> bool:
        since, before, selector = self._since, self._before, self._selector
        if since is not None and record.publish_time < since:
            return False
        if before is not None and record.publish_time >= before:
            return False
        try:
            return selector is None or selector.matches_record(record, header) is True
        except MalformedMessageError:  # the row reports it
            return True

    async def _fetch(self) -> bool:
        while not self._waiting and not self._check.done:
            if self._reader is None and not await self._outage.wait(self._begin):
                return False
            records = await self._read()
            if records:
                await self._sort(records)
            elif (gap := self._check.finish()) is not None and not await self._retry(gap):
                await self._give_up(gap)
                self._check.finish()  # nothing remains
        return bool(self._waiting)

    async def _begin(self) -> bool:
        store = await self._find_ledgers()
        if store is None:
            report_loss(Loss(self._range.topic, self._range.start, None, _NO_TOPIC), self._options)
            self._check.done = True
            return False
        self._store = store
        await self._open(self._check.place)
        return True

    async def _find_ledgers(self) -> Stored | None:
        try:
            return Stored(await self._admin.ledgers(self._range.topic), None)
        except NotFoundError:
            return None

    async def _open(self, place: Place) -> None:
        self._opened = self._check.last, place
        await self.aclose()
        self._queue = self._fitting_queue()
        config = attrs.evolve(self._config, receiver_queue_size=self._queue)
        start = StartPosition.EARLIEST if place == BEGINNING else WireId(place.ledger, place.entry)
        self._reader = await self._transport.open_reader(ReaderOptions(self._range.topic, config, start))

    async def _reopen(self) -> None:
        """Replace the reader by one with the same start, which can be far back, if it has delivered nothing.

        Otherwise, start after the last record, perhaps between the chunks of a message.
        """
        last, place = self._opened
        if last != self._check.last:
            place = self._check.place
            self._retries, self._retried_to = max(self._retries, 1), BEGINNING
        await self._open(place)

    def _fitting_queue(self) -> int:
        size = self._bytes // self._records if self._records else self._store.mean_size or _UNKNOWN_SIZE
        return max(1, min(self._config.receiver_queue_size, self._options.batch_bytes // max(size, 1)))

    async def _fit_queue(self) -> None:
        fitting = self._fitting_queue()
        if not self._check.done and not self._queue / 4 < fitting < self._queue * 4:
            await self._outage.wait(self._reopen)

    async def _read(self) -> list[ReceivedRecord]:
        records = await self._outage.wait(self._read_on)
        if records is None:
            raise OperationTimeoutError(
                f"{self._range.topic}: no message was received for {self._options.read_timeout:g} s "
                f"(option readTimeout), although those from {self._check.place} to {self._range.end} were to be read"
            )
        return records

    async def _read_on(self) -> list[ReceivedRecord] | None:
        """Return the next records, through a new reader if the last one failed; None after ``read_timeout``."""
        if self._reader is None:
            self._silent_at = None
            await self._reopen()
        try:
            return await self._listen()
        except TransportError:
            await self.aclose()  # its records are redelivered
            raise

    async def _listen(self) -> list[ReceivedRecord] | None:
        left = self._options.read_timeout
        piece = min(_LONG_SILENCE if self._silent_at == self._check.last else _SILENCE, left)
        while True:
            reader = self._reader
            assert reader is not None
            if self._check.is_last and await reader.at_end():
                return []
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(piece):
                    if records := await reader.read(self._queue, self._options.read_timeout):
                        return records
            if await self._is_over() or await self._is_incomplete() or (left <= 0 and await reader.at_end()):
                return []
            if left <= 0:
                return None
            if await self._replace():
                left = self._options.read_timeout
            piece = min(_LONG_SILENCE, left)
            left -= piece

    async def _replace(self) -> bool:
        """Replace a silent reader; return False if that would not help.

        A client (pulsar-client) can retain a message without delivering it: once, another reader starts at the same
        place. Or the last message of the topic is chunked, and the reader started between its chunks: others start
        further and further back. A slow link is just as silent, so this does not count as one of the readers for a
        gap, and their results remain.
        """
        gap, (last, place) = self._check.rest(), self._opened
        began, is_first = place, self._silent_at != self._check.last
        if is_first:
            self._silent_at, self._silences = self._check.last, 0
        if last != self._check.last:
            place = self._check.place
        if gap is not None and self._silent_retries and self._retried_to <= self._check.last:
            earlier = self._store.before(gap.start, self._usual_back() * _FURTHER**self._silences)
            if earlier < place and await self._outage.wait(partial(self._may_end_chunks, gap)):
                self._silences, self._silent_retries, place = self._silences + 1, self._silent_retries - 1, earlier
        if not is_first and place == began:
            return False
        await self._outage.wait(partial(self._open, place))
        return True

    async def _may_end_chunks(self, gap: Gap) -> bool:
        """Return True if a chunked message ends in a gap; if that can't be determined, True only once."""
        with contextlib.suppress(JMSSecurityError):  # without the right to read what is stored
            return await self._last_chunk(gap, counts=False) is not None
        return not self._silences

    async def _is_over(self) -> bool:
        """Return True if the broker has no message after the last one. A reader can miss that after some markers."""
        try:
            last = await self._transport.end(self._range.topic)
        except TransportError as error:
            if passes(error):
                raise
            return False  # keep waiting
        return last is None or place_of(last) <= self._check.last

    async def _is_incomplete(self) -> bool:
        """Return True if only chunks are missing, and the last of their message is not stored or in another range."""
        gap = self._check.rest()
        if gap is None:
            return False
        try:
            for run in gap.missing:
                for entry in range(run.first, run.stop):
                    if not (await self._admin.entry(self._range.topic, WireId(run.ledger, entry))).chunks_left:
                        return False
        except (TransportError, JMSSecurityError):
            return False  # unknown: keep waiting
        return True

    async def _sort(self, records: Sequence[ReceivedRecord]) -> None:
        while True:
            ids = [record.message_id for record in records]
            selected = self._check.select(ids, partial(_batch_size, records))
            self._waiting.extend(map(records.__getitem__, selected.wanted))
            if selected.gap is None or await self._retry(selected.gap):
                return
            await self._give_up(selected.gap)
            records = records[selected.used :]

    async def _retry(self, gap: Gap) -> bool:
        """Open another reader before missing entries; return False if that was done already, or too often.

        It is repeated, further back, if the end of a chunked message is missing. A reader that starts with a batch's
        entry receives the batch whole; a compacted batch lacks what compaction removed, whichever reader receives it.
        """
        if gap.hole is not None and gap.hole != self._hole and not self._config.read_compacted:
            self._hole = gap.hole
            await self._outage.wait(self._reopen)
            return True
        if gap.end > self._retried_to and (self._retries or await self._message_in(gap.missing) is not None):
            self._retries = max(0, self._retries - 1)
            self._retried_to = gap.end
            self._back = self._usual_back()
        elif (last := await self._outage.wait(partial(self._last_chunk, gap, True))) is None:
            return False
        elif not self._far_retries:
            _log.warning(
                "%s: the message that ends at %s is left out: its start was not found", self._range.topic, last,
                extra=log_fields(destination=self._range.topic, message_id=str(last)),
            )  # fmt: skip
            return False
        else:
            self._far_retries -= 1
            self._back *= _FURTHER
        await self._outage.wait(partial(self._open, self._store.before(gap.start, self._back)))
        return True

    def _usual_back(self) -> int:
        least, most = _BACK_ENTRIES
        return min(most, max(least, _BACK_BYTES // (self._store.mean_size or _UNKNOWN_SIZE)))

    async def _last_chunk(self, gap: Gap, counts: bool) -> Place | None:
        """Return the missing entry with the last of several chunks; ``counts`` uses up the checks."""
        try:
            for run in gap.missing:
                for entry in range(run.first, min(run.stop, run.first + self._chunk_queries)):
                    stored = await self._admin.entry(self._range.topic, WireId(run.ledger, entry))
                    self._chunk_queries -= counts
                    if stored.chunks_left == 0:
                        return Place(run.ledger, entry)
        except TransportError as error:
            if _is_outage(error):
                raise
            return None  # unreadable; a loss if its ledger was deleted
        return None

    async def _message_in(self, missing: Iterable[EntryRun]) -> Place | None:
        """Return the first checked entry that the broker stores as a message; None if none is, or unknown."""
        if self._config.read_compacted:
            return None
        for run in missing:
            for entry in range(run.first, min(run.stop, run.first + self._message_queries)):
                self._message_queries -= 1
                with contextlib.suppress(JMSSecurityError):  # without the right to read what is stored
                    if await self._outage.wait(partial(self._is_message, WireId(run.ledger, entry))):
                        return Place(run.ledger, entry)
        return None

    async def _is_message(self, entry: WireId) -> bool:
        try:
            return (await self._admin.entry(self._range.topic, entry)).is_message
        except TransportError as error:
            if _is_outage(error):
                raise
            return False  # unreadable

    async def _give_up(self, gap: Gap) -> None:
        """Skip missing entries; report those whose ledgers are no longer stored, messages, and parts of batches.

        A compacted topic has batches without the messages that compaction removed.
        """
        found = gap.end if gap.end < self._range.end else None
        came_of = -1 if found is None else found.ledger  # stored, since a record of it was received
        if any(run.ledger != came_of for run in gap.missing):
            store = await self._outage.wait(self._find_ledgers)
            stored = {came_of, *(ledger.id for ledger in (store or Stored((), None)).ledgers)}
            gone = [run for run in gap.missing if run.ledger not in stored]
            if gone:
                reason = _NO_TOPIC if store is None else _DELETED
                report_loss(Loss(self._range.topic, Place(gone[0].ledger, gone[0].first), found, reason), self._options)
        if gap.hole is not None:
            if not self._config.read_compacted:
                report_loss(Loss(self._range.topic, gap.hole, found, _HOLE), self._options)
        elif (withheld := await self._message_in(gap.missing)) is not None:
            report_loss(Loss(self._range.topic, withheld, found, _WITHHELD), self._options)
        self._check.accept(gap)


def _is_outage(error: TransportError) -> bool:
    """Return True unless the broker refuses to read an entry."""
    return passes(error) and not (isinstance(error, AdminError) and error.status == _UNREADABLE)


def _batch_size(records: Sequence[ReceivedRecord], index: int) -> int:
    return records[index].batch_size

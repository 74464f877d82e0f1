"""The producer of one topic without partitions, or of one partition: batches, and their outcomes.

The records of one turn of the event loop are a batch, which leaves at once while few batches have no answer; while the
broker is busy it grows until the next answer, at most for ``batchingMaxPublishDelayMicros``. If that is configured, a
batch that is not full always waits so long. With KEY_BASED each key has a batch: the consumers of a Key_Shared
subscription share entries by key. A record that is alone in its batch, or has a delivery time, or fills a batch, leaves
as an entry of its own, in order; with ``chunkingEnabled``, as several entries if it is larger than the broker accepts.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, cast

import attrs

from jmsaio.config import ProducerConfig
from jmsaio.errors import (
    BrokerUnavailableError,
    IllegalStateError,
    JMSError,
    JMSSecurityError,
    MessageFormatError,
    MessageTooLargeError,
    ProtocolError,
    RefusedInDoubtError,
    ResourceAllocationError,
    SendError,
    SendInDoubtError,
    TransactionRolledBackError,
    TransportError,
)
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.protocol.batch import Batch as Body
from jmsaio.protocol.chunks import cut
from jmsaio.protocol.commands import Command, CompressionType, ProducerAccessMode, key_values
from jmsaio.protocol.compression import compressor
from jmsaio.protocol.messages import SendReceipt, send
from jmsaio.protocol.metadata import Metadata, encode_metadata
from jmsaio.protocol.producing import Batch, Producing
from jmsaio.transport.base import LinkChange, SenderOptions, Token
from jmsaio.transport.names import CLIENT, process_name
from jmsaio.transport.pulsar.window import Window
from jmsaio.transport.pulsar.wire.connections.answers import passes
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.connections.connection import Connection
from jmsaio.transport.pulsar.wire.connections.registration import Registration
from jmsaio.transport.pulsar.wire.transactions.transaction import WireTransaction, Work
from jmsaio.transport.sending import SequenceIds
from jmsaio.transport.waiting import SLICE, Waiters

#: Number of batches without an answer from which the broker counts as busy.
_BUSY: Final = 8
#: Records in a batch up to which a turn that adds nothing more sends it at once.
_FEW: Final = 8
#: Seconds that a longer batch waits for a loop of sends that yields every millisecond, while it grows.
_LONGEST_WAIT: Final = 0.005
#: Seconds of ``batchingMaxPublishDelayMicros`` unless it is configured.
_USUAL_DELAY: Final = ProducerConfig().batching_max_publish_delay
#: Bytes of an entry besides the payload and properties of its records, at most.
_OVERHEAD: Final = 10 * 1024
#: Bytes of a record in a batch besides its payload, properties and key, at least.
_LEAST: Final = 8
#: Error codes of records without an answer in time, and of those whose sender was closed before.
_LATE, _CLOSED = "Timeout", "AlreadyClosed"
#: Schema.Type by the names of the schemas that jmsaio sends with.
_SCHEMAS: Final = {"STRING": 1, "JSON": 2, "AVRO": 4}
_Compressed = tuple[CompressionType, bytes]


@attrs.define(eq=False)
class _Filling:
    """A batch that still grows: its first record with its packed properties and key, all of them, their transaction."""

    first: OutgoingRecord
    packed: bytes
    key: bytes | None
    deadline: float
    transaction: WireTransaction | None
    tokens: list[Token]
    size: int  # of its entry's payload
    body: Body | None = attrs.field(default=None, init=False)  # unless it has one record, which might stay alone

    def begin(self) -> Body:
        body = self.body = Body()
        body.add(self.packed, self.first.payload, self.first.event_time, self.key)
        return body


class Producer:
    """Sends to one topic or partition, over any number of connections."""

    def __init__(
        self, client: Client, topic: str, options: SenderOptions, window: Window, sequence_ids: SequenceIds,
        failed: Callable[[], object],
    ) -> None:  # fmt: skip
        config = options.config
        self.topic = topic
        self._failed = failed
        self._client = client
        self._options = options
        self._config = config
        self._persistent = not topic.startswith("non-persistent:")
        self._chunks = config.chunking_enabled and self._persistent
        self._keyed = config.batcher_builder == "KEY_BASED"
        most = config.batching_max_messages if config.batches else 1
        self._most_records = most if most > 0 else math.inf
        self._compression = CompressionType[config.compression_type.upper()]
        self._compress = compressor(self._compression)
        self._window = window
        self._sequence_ids = sequence_ids
        self._partition = split_partition(topic)[1]
        self._at = Registration(client, self, topic, producer=True)
        self._id = self._at.number
        self._producing: Producing[Token] = Producing()
        self._name = config.producer_name or ""
        self._epoch = -1
        self._topic_epoch: int | None = None  # by which the broker refuses an exclusive one that was replaced
        self._sequence = -1  # the last one given
        self._schema_version: bytes | None = None
        self._limit = self._most_bytes = 0
        self._filling: dict[object, _Filling] = {}  # by transaction and key, or one for all
        self._waiting: dict[_Filling, None] = {}  # for their transactions to include the topic
        self._unsure: set[WireTransaction] = set()  # of which something that was written might still arrive
        self._unsure_ended = Waiters()
        self._count = 0  # records of these batches
        self._bytes = 0  # of their entries' payloads
        self._scheduled = False
        self._busy: asyncio.TimerHandle | None = None  # while the next answer, or the delay, is awaited
        self._seen = 0
        self._latest = 0.0
        self._expiry: asyncio.TimerHandle | None = None

    async def open(self, timeout: float) -> None:
        await self._at.open(timeout)

    # the registration's side

    async def register(self, connection: Connection) -> dict[str, Any]:
        self._epoch += 1
        config, options = self._config, self._options
        metadata = {CLIENT: process_name(), **config.properties, **options.metadata}
        answer = await connection.request(
            f"open a producer to {self.topic}", self._client.config.operation_timeout, Command.PRODUCER,
            queued=self._at.queued, topic=self.topic, producer_id=self._id, producer_name=self._name or None,
            user_provided_producer_name=config.producer_name is not None, metadata=key_values(metadata),
            epoch=self._epoch, topic_epoch=self._topic_epoch, schema=_schema_fields(options.schema),
            producer_access_mode=int(ProducerAccessMode[config.access_mode]),
            initial_subscription_name=config.initial_subscription_name, txn_enabled=options.transacted or None,
        )  # fmt: skip
        if answer["last_sequence_id"] < -1:
            raise ProtocolError(f"the broker's last sequence id of {self.topic} is {answer['last_sequence_id']}")
        return answer

    def registered(self, connection: Connection, answer: dict[str, Any]) -> None:
        """Send what has no answer again, and then the rest."""
        config = self._config
        self._name = answer["producer_name"]
        self._schema_version = answer.get("schema_version") or None
        self._topic_epoch = answer.get("topic_epoch")
        self._limit = connection.max_message_size - _OVERHEAD
        asked = config.batching_max_bytes
        self._most_bytes = min(asked if asked > 0 else self._limit // 2, self._limit)
        if self.topic not in self._sequence_ids.last:  # the first attempt that succeeds
            first = config.initial_sequence_id
            self._sequence = answer["last_sequence_id"] if first is None else first
            self._sequence_ids.last[self.topic] = self._sequence
        elif self._persistent:
            self._options.topic_changed(self.topic)  # PRODUCER creates a topic that was deleted
        self._end_unsure()
        for frame in self._producing.connect():
            connection.write(frame)

    def failed(self, error: JMSError) -> None:
        self.flush()
        self._failed()
        if isinstance(error, JMSSecurityError) and self._client.loss is None:
            self._client.report(LinkChange(str(error), error))
        for batch in list(self._waiting):
            self._refuse(batch, error)
        for ended in self._producing.end():
            self._report_failure(ended, error)
        self._end_unsure()

    # the connection's side

    def ended(self, error: JMSError, assigned: str) -> None:
        """Send the batches on the next connection, except those in transactions, which fail."""
        for batch in self._producing.lose():
            self._report_failure(batch, error)
        self._at.ended(error, assigned)

    def migrated(self, cluster: str) -> None:
        self._at.migrated(cluster)

    def stored(self, receipt: SendReceipt) -> None:
        batch = self._producing.receipt(receipt.sequence_id, receipt.ledger < 0)
        self._release()
        if batch is None:
            return
        tokens = batch.tokens
        if batch.transaction is not None and batch.duplicate:
            text = "the broker has its sequence id already, perhaps from a transaction that was rolled back"
            self._report_failure(batch, TransportError(text))
        else:
            self._sequence_ids.confirm(self.topic, batch.sequence + len(tokens) - 1)
            ledger, entry = (-1, -1) if batch.duplicate else (receipt.ledger, receipt.entry)
            index = 0 if len(tokens) > 1 else -1
            self._report(batch, WireId(ledger, entry, self._partition, index), None)
        if self._busy is not None:
            self._busy.cancel()
            self._late()

    def refused(self, sequence: int, error: JMSError) -> None:
        """Process the broker's error about a batch.

        After one that passes, such as a failed write to the bookies, the batch might be stored or not: it is sent again
        on a new connection, as Java does.
        """
        connection = self._at.connection
        if connection is not None and passes(error, again=False):
            text = f"the connection to {connection.address.broker} was closed to repeat a send: {error}"
            connection.close(BrokerUnavailableError(text))
            return
        batch = self._producing.refuse(sequence)
        self._release()
        if batch is not None:
            self._report_failure(batch, error)

    def _release(self) -> None:
        """Write the batches that waited for an answer, because their ids did not grow."""
        connection = self._at.connection
        if connection is not None:
            for frame in self._producing.release():
                connection.write(frame)

    # sending

    def send(self, record: OutgoingRecord, token: Token, transaction: WireTransaction | None = None) -> None:
        """Add a record to the batch, or send it alone."""
        if self._at.failure is not None:
            raise self._at.failure
        packed, payload, key = record.packed, record.payload, None
        size = len(packed) + len(payload or b"")
        if record.key is not None:
            key = self._encoded(record.key)
            size += len(key)
        if transaction is not None and not self._persistent:
            raise IllegalStateError(f"send to {self.topic}: a topic that stores nothing takes no part in transactions")
        compressed = None
        if size > self._limit:
            compressed = self._compressed(payload or b"")
            self._check(size - len(payload or b""), size, len(compressed[1]))
        if record.sequence_id is not None:
            self._sequence_ids.checked(record.sequence_id)
        alone = record.deliver_at is not None or size > self._most_bytes
        if self._count and (alone or self._bytes + size > self._most_bytes):
            self.flush()
        group: object = key if self._keyed else None
        if transaction is not None:
            group = transaction, group
        batch = self._filling.get(group)
        if batch is None:
            timeout = self._config.send_timeout
            deadline = self._client.loop.time() + timeout if timeout > 0 else math.inf
            taken = size + _LEAST
            self._filling[group] = _Filling(record, packed, key, deadline, transaction, [token], taken)
        else:
            body = batch.body
            if body is None:
                body = batch.begin()
            taken = body.add(packed, payload, record.event_time, key)
            batch.tokens.append(token)
            batch.size += taken
        self._window.add(taken)
        self._bytes += taken
        self._count += 1
        if alone or self._count >= self._most_records:
            self.flush(compressed)
        elif not self._scheduled:
            self._scheduled = True
            self._seen = 0
            self._latest = self._client.loop.time() + _LONGEST_WAIT
            delay = self._config.batching_max_publish_delay
            if delay == _USUAL_DELAY:
                self._at_next_turn()
            else:
                self._client.loop.call_later(delay, self._late)

    def _encoded(self, key: str) -> bytes:
        try:
            return key.encode()
        except UnicodeEncodeError as error:
            text = f"a message to {self.topic}: the group id has a lone surrogate at {error.start}"
            raise MessageFormatError(text) from error

    def _check(self, head: int, size: int, compressed: int) -> None:
        """Raise MessageTooLargeError for a record that is too large although it is compressed, or cut into chunks."""
        if self._chunks and head > self._limit:
            raise MessageTooLargeError(
                f"a message with properties of {head} bytes to {self.topic}: the broker accepts up to {self._limit}"
            )
        if not self._chunks and head + compressed > self._limit:
            without = self._compression is CompressionType.NONE
            how = "" if without else f" ({head + compressed} with {self._compression.name})"
            raise MessageTooLargeError(
                f"a message of {size} bytes{how} to {self.topic}: the broker accepts up to {self._limit};"
                " send it in chunks (producerConfig.chunkingEnabled)"
                f"{' or compressed (producerConfig.compressionType)' if without else ''}"
            )

    def _at_next_turn(self) -> None:
        if self._at.connection is None:
            self._client.loop.call_soon(self._turn)
        else:
            self._at.connection.at_next_turn(self._turn)

    def _turn(self) -> None:
        """Send the batch, unless a loop of sends still adds to it, or the broker is busy."""
        count, loop = self._count, self._client.loop
        if count > _FEW and count != self._seen and loop.time() < self._latest:
            self._seen = count
            self._at_next_turn()
            return
        if count and self._producing.unanswered >= _BUSY:
            self._busy = loop.call_later(self._config.batching_max_publish_delay, self._late)
            return
        self._late()

    def _late(self) -> None:
        self._scheduled, self._busy = False, None
        self.flush()

    def flush(self, compressed: _Compressed | None = None) -> None:
        """Send the batches now, the first one with a payload that is compressed already, if given."""
        batches, self._filling = self._filling, {}
        self._count = self._bytes = 0
        for batch in batches.values():
            if batch.transaction is None:
                self._write(batch, compressed)
                continue
            self._waiting[batch] = None
            work = Work(partial(self._write, batch, compressed), partial(self._refuse, batch))
            batch.transaction.add(self.topic, None, work)

    def _write(self, filled: _Filling, compressed: _Compressed | None) -> None:
        transaction = filled.transaction
        if transaction is not None:
            if filled not in self._waiting:  # the producer has ended meanwhile
                transaction.answered()
                return
            del self._waiting[filled]
        first, count = filled.first, len(filled.tokens)
        sequence = self._sequence + 1 if first.sequence_id is None else first.sequence_id
        self._sequence = max(self._sequence, sequence + count - 1)
        entries, frame = self._frame(filled, sequence, compressed)
        batch = Batch(sequence, filled.tokens, filled.size, frame, filled.deadline, entries, transaction)
        if transaction is not None:
            transaction.producers.add(self)
        data = self._producing.add(batch)
        if self._at.connection is not None and data:
            self._at.connection.write(data)
        if self._expiry is None and batch.deadline != math.inf:
            self._expiry = self._client.loop.call_at(batch.deadline, self._expire)

    def _frame(self, batch: _Filling, sequence: int, compressed: _Compressed | None) -> tuple[int, bytes]:
        """Return the SEND of a batch, or of a record that is alone, or of each chunk of it, and their number."""
        record, count = batch.first, len(batch.tokens)
        alone = batch.body is None
        payload = record.payload or b"" if batch.body is None else batch.body.body()
        compression, data = compressed or self._compressed(payload)
        highest = 0 if alone else sequence + count - 1
        metadata = Metadata(
            self._name, sequence, int(self._client.clock.now() * 1000), batch.packed if alone else b"",
            partition_key=batch.key, compression=compression, uncompressed_size=len(payload),
            num_messages_in_batch=None if alone else count, event_time=record.event_time if alone else 0,
            schema_version=self._schema_version, deliver_at_time=record.deliver_at, highest_sequence_id=highest,
            null_value=alone and record.payload is None,
            txn=None if batch.transaction is None else batch.transaction.txn,
        )  # fmt: skip
        txn = metadata.txn
        encoded = encode_metadata(metadata)
        most = self._limit + _OVERHEAD - len(encoded)  # the broker allows more for the rest
        if self._config.chunk_max_message_size > 0:
            most = min(most, self._config.chunk_max_message_size)
        if len(data) <= most or not self._chunks:
            return 1, send(self._id, sequence, encoded, data, messages=count, highest_sequence_id=highest, txn=txn)
        frames = [
            send(self._id, sequence, encode_metadata(chunk), part, chunk=True, txn=txn)
            for chunk, part in cut(metadata, data, most)
        ]
        return len(frames), b"".join(frames)

    def _compressed(self, payload: bytes) -> _Compressed:
        """Return a payload and its compression: none if it would not become smaller."""
        if self._compression is not CompressionType.NONE:
            data = self._compress(payload)
            if len(data) < len(payload):
                return self._compression, data
        return CompressionType.NONE, payload

    # outcomes

    def _report(self, batch: Batch[Token], place: WireId | None, error: JMSError | None) -> None:
        transaction = cast(WireTransaction | None, batch.transaction)
        self._settle(batch.tokens, batch.size, place, error)
        if transaction is not None:
            if place is not None:
                transaction.stored(self.topic, place)
            transaction.answered(error)

    def _settle(self, tokens: list[Token], size: int, place: WireId | None, error: JMSError | None) -> None:
        self._window.remove(len(tokens), size)
        try:
            self._options.settled(tokens, place, error)
        except Exception as raised:  # an error of the caller must not end the connection
            context = {"message": f"a callback of the sender to {self.topic} raised", "exception": raised}
            self._client.loop.call_exception_handler(context)
        finally:
            self._window.reported(len(tokens))

    def _report_failure(self, batch: Batch[Token], error: JMSError) -> None:
        transaction = cast(WireTransaction | None, batch.transaction)
        if transaction is not None and batch.in_doubt:
            self._unsure.add(transaction)
        # A transaction without all its batches is never committed.
        self._report(batch, None, self._failure_of(error, in_doubt=batch.in_doubt and transaction is None))

    def withdraw(self, transaction: WireTransaction) -> None:
        """Fail what was not written of a transaction that can't be committed: later it would stall the topic."""
        error = TransactionRolledBackError("its transaction is rolled back")
        for batch in self._producing.withdraw(transaction):
            self._report_failure(batch, error)

    async def fence(self, transaction: WireTransaction) -> None:
        """Return once nothing that was written of a transaction can arrive any more. The caller bounds the time.

        A broker opens a producer again only after it has closed the connection that had it, and ignores what that still
        brings. Stored after the end of its transaction, a message would stall the topic.
        """
        while transaction in self._unsure or self._producing.has(transaction):
            if self._at.connection is not None:
                text = f"the connection was closed to roll back a transaction: a send to {self.topic} has no answer"
                self._at.connection.close(BrokerUnavailableError(text))
            await self._unsure_ended.wait()

    def _end_unsure(self) -> None:
        """Wake who waits: nothing arrives any more of what was written on earlier connections."""
        self._unsure.clear()
        self._unsure_ended.wake()

    def _refuse(self, filled: _Filling, error: JMSError) -> None:
        """Fail a batch that never left, and so its transaction."""
        if filled in self._waiting and filled.transaction is not None:
            del self._waiting[filled]
            filled.transaction.fail(error)
            self._settle(filled.tokens, filled.size, None, self._failure_of(error))

    def _failure_of(self, error: JMSError, *, in_doubt: bool = False) -> JMSError:
        """Return the error of records that failed; one for want of an answer names an outage."""
        what, code, outage = f"send to {self.topic}: {error}", error.error_code, self._client.loss
        if outage is not None and code in (_LATE, _CLOSED):
            what, error = f"{what}; {outage}", outage
        made: JMSError
        if in_doubt:
            kind = RefusedInDoubtError if isinstance(error, JMSSecurityError) else SendInDoubtError
            made = kind(f"{what}; the message might be stored; send it again only if a duplicate does no harm", code)
        elif isinstance(error, JMSSecurityError | ResourceAllocationError):
            made = type(error)(f"{what}; the message was not sent", code)
        else:
            made = SendError(f"{what}; the message was not sent", code)
        made.__cause__ = error
        return made

    def _expire(self) -> None:
        self._expiry = None
        loop = self._client.loop
        over = TransportError(f"no answer within {self._config.send_timeout:g} s (sendTimeoutMs)", _LATE)
        for batch in self._producing.expire(loop.time()):
            self._report_failure(batch, over)
        deadline = self._producing.deadline
        if deadline is not None and deadline != math.inf:
            self._expiry = loop.call_at(deadline, self._expire)

    def abandon(self, reason: str) -> Iterator[None]:
        """Fail all records without an outcome, one slice per step."""
        self.flush()
        closed = TransportError(reason, _CLOSED)
        for filled in list(self._waiting):
            self._refuse(filled, closed)
        reported = 0
        for batch in self._producing.end():
            self._report_failure(batch, closed)
            reported += len(batch.tokens)
            if reported >= SLICE:
                reported = 0
                yield

    async def aclose(self, timeout: float) -> None:
        if self._unsure and self._at.connection is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._unsure_ended.wait()
        if self._expiry is not None:
            self._expiry.cancel()
        await self._at.close(timeout)
        self._end_unsure()


def _schema_fields(schema: Schema | None) -> dict[str, object] | None:
    if schema is None:
        return None
    return {
        "name": schema.type, "schema_data": schema.definition.encode(), "type": _SCHEMAS[schema.type],
        "properties": [],
    }  # fmt: skip

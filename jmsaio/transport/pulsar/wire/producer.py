"""The producer of one topic without partitions, or of one partition: batches, and their outcomes.

The records of one turn of the event loop are a batch, which leaves at once while few batches have no answer; while the
broker is busy it grows until the next answer, at most for ``batchingMaxPublishDelayMicros``. A record that is alone in
its turn, or has a delivery time, leaves as an entry of its own, in order; with ``chunkingEnabled``, as several entries
if it is larger than the broker accepts.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import Iterator
from typing import Final

from jmsaio.errors import (
    JMSError,
    JMSSecurityError,
    MessageFormatError,
    MessageTooLargeError,
    ResourceAllocationError,
    SendError,
    SendInDoubtError,
    TransportError,
)
from jmsaio.model.partitions import split_partition
from jmsaio.model.schema import Schema
from jmsaio.model.wire import OutgoingRecord, WireId
from jmsaio.protocol.batch import Batch as Body
from jmsaio.protocol.chunks import cut
from jmsaio.protocol.codes import CompressionType, ProducerAccessMode, SchemaType
from jmsaio.protocol.commands import Command, key_values
from jmsaio.protocol.messages import SendReceipt, send
from jmsaio.protocol.metadata import Metadata, encode_metadata
from jmsaio.protocol.producing import Batch, Producing, State
from jmsaio.transport.base import SenderOptions, Token
from jmsaio.transport.names import CLIENT, process_name
from jmsaio.transport.pulsar.sending.window import Window
from jmsaio.transport.pulsar.wire.answers import passes
from jmsaio.transport.pulsar.wire.client import Client
from jmsaio.transport.pulsar.wire.connection import Connection
from jmsaio.transport.pulsar.wire.keeper import Keeper, registering
from jmsaio.transport.sending import SequenceIds
from jmsaio.transport.waiting import SLICE

#: Number of batches without an answer from which the broker counts as busy.
_BUSY: Final = 8
#: Records in a batch up to which a turn that adds nothing more sends it at once.
_FEW: Final = 8
#: Seconds that a longer batch waits for a loop of sends that yields every millisecond, while it grows.
_LONGEST_WAIT: Final = 0.005
#: Bytes of an entry besides the payload and properties of its records, at most.
_OVERHEAD: Final = 10 * 1024
_SMALL: Final = 64 * 1024
_SCHEMAS: Final = {"STRING": SchemaType.String, "JSON": SchemaType.Json, "AVRO": SchemaType.Avro}


class Producer:
    """Sends to one topic or partition, over any number of connections.

    Args:
        client: the transport's part that all share.
        topic: full name of the topic without partitions, or of the partition.
        options: those of the sender.
        window: counts the records of the sender without an outcome.
        sequence_ids: the sender's sequence ids.

    Attributes:
        topic: as above.
        failure: why it ended for good, or None.
    """

    __slots__ = (
        "_batches", "_body", "_changed", "_chunks", "_client", "_compression", "_config", "_connection", "_deadline",
        "_epoch", "_expiry", "_first", "_id", "_keeper", "_latest", "_limit", "_metadata", "_name", "_named",
        "_partition", "_producing", "_scheduled", "_schema", "_schema_version", "_seen", "_sequence", "_sequence_ids",
        "_settled", "_size", "_tokens", "_window", "failure", "topic",
    )  # fmt: skip

    def __init__(
        self, client: Client, topic: str, options: SenderOptions, window: Window, sequence_ids: SequenceIds
    ) -> None:
        config = options.config
        self.topic = topic
        self.failure: JMSError | None = None
        self._client = client
        self._config = config
        self._batches = config.batches and config.batcher_builder != "KEY_BASED"  # a batch goes to one consumer
        self._chunks = config.chunking_enabled and not topic.startswith("non-persistent:")
        self._compression = CompressionType[config.compression_type.upper()]
        self._settled = options.settled
        self._changed = options.topic_changed
        self._schema = options.schema
        self._metadata = {CLIENT: process_name(), **config.properties, **options.metadata}
        self._window = window
        self._sequence_ids = sequence_ids
        self._partition = split_partition(topic)[1]
        self._id = next(client.ids)
        self._keeper = Keeper(self, client.topics, client.tasks, client.backoff)
        self._connection: Connection | None = None
        self._producing: Producing[Token] = Producing()
        self._name, self._named = config.producer_name or "", config.producer_name is not None
        self._epoch = -1
        self._sequence = -1  # the last one given
        self._schema_version: bytes | None = None
        self._limit = 0
        self._new_batch()
        self._scheduled = False
        self._seen = 0
        self._latest = 0.0
        self._expiry: asyncio.TimerHandle | None = None

    def _new_batch(self) -> None:
        self._body = Body()
        self._first: OutgoingRecord | None = None
        self._tokens: list[Token] = []
        self._size = 0
        self._deadline = math.inf

    async def open(self, timeout: float) -> None:
        """Open it within ``timeout`` seconds. Raises as ``Transport.open_sender``."""
        await self._keeper.open(timeout)

    # the keeper's side

    async def register(self, connection: Connection) -> None:
        """Open the producer at a broker; what has no answer is sent again. Raises TransportError."""
        self._epoch += 1
        with registering(connection, connection.producers, self._id, self, Command.PRODUCER, self.topic):
            answer = await connection.request(
                f"open a producer to {self.topic}", self._client.config.operation_timeout, Command.PRODUCER,
                topic=self.topic, producer_id=self._id, producer_name=self._name or None,
                user_provided_producer_name=self._named, metadata=key_values(self._metadata), epoch=self._epoch,
                schema=_schema_fields(self._schema),
                producer_access_mode=int(ProducerAccessMode[self._config.access_mode]),
                initial_subscription_name=self._config.initial_subscription_name,
            )  # fmt: skip
        self._name = answer["producer_name"]
        self._schema_version = answer.get("schema_version") or None
        opened, self._limit = self._limit > 0, connection.max_message_size - _OVERHEAD
        if not opened:  # the first time that succeeds, which need not be the first attempt
            first = self._config.initial_sequence_id
            self._sequence = answer["last_sequence_id"] if first is None else first
            self._sequence_ids.last[self.topic] = self._sequence
        elif not self.topic.startswith("non-persistent:"):
            self._changed(self.topic)  # PRODUCER creates a topic that was deleted
        self._connection = connection
        for frame in self._producing.connect():
            connection.write(frame)

    def failed(self, error: JMSError) -> None:
        """End with an error: all records fail."""
        self.flush()
        self.failure = error
        for batch in self._producing.end():
            self._report_failure(batch, error)

    # the connection's side

    def ended(self, error: JMSError, assigned: str) -> None:
        """Take the end on this connection; the next one takes the batches up."""
        self._producing.lose()
        self._connection = None
        self._keeper.ended(error, assigned)

    def stored(self, receipt: SendReceipt) -> None:
        """Take a receipt: the records of its batch are stored, and the next batch can leave."""
        batch = self._producing.receipt(receipt.sequence_id, receipt.ledger < 0)
        self._release()
        if batch is None:
            return
        tokens = batch.tokens
        index = 0 if len(tokens) > 1 else -1
        ledger, entry = (-1, -1) if batch.duplicate else (receipt.ledger, receipt.entry)
        self._sequence_ids.confirm(self.topic, batch.sequence)
        self._report(batch, tokens, WireId(ledger, entry, self._partition, index), None)
        if self._tokens and not self._scheduled:
            self.flush()

    def refused(self, sequence: int, error: JMSError) -> None:
        """Take the broker's error about a batch.

        After one that passes, such as a failed write to the bookies, the batch might be stored or not: it is sent again
        on a new connection, as Java does.
        """
        connection = self._connection
        if connection is not None and passes(error, again=False):
            connection.close(error)
            return
        batch = self._producing.refuse(sequence)
        self._release()
        if batch is not None:
            self._report_failure(batch, error)

    def _release(self) -> None:
        """Write the batches that waited for an answer, because their ids did not grow."""
        connection = self._connection
        if connection is not None:
            for frame in self._producing.release():
                connection.write(frame)

    # sending

    def send(self, record: OutgoingRecord, token: Token) -> None:
        """Add a record to the batch, or send it alone. Raises as ``Sender.send``."""
        if self.failure is not None:
            raise self.failure
        packed, payload, key = record.packed, record.payload, _key_of(record, self.topic)
        size = len(packed) + (0 if payload is None else len(payload))
        if size > _SMALL and (len(packed) + len(key or b"") if self._chunks else size) > self._limit:
            raise MessageTooLargeError(
                f"a message of {size} bytes to {self.topic}: the broker accepts up to {self._limit};"
                " send it in chunks (producerConfig.chunkingEnabled) or compressed (producerConfig.compressionType)"
            )
        if record.sequence_id is not None:
            self._sequence_ids.checked(record.sequence_id)
        self._window.add(size)
        config = self._config
        alone = record.deliver_at is not None or not self._batches
        if self._tokens and (alone or self._size + size > config.batching_max_bytes):
            self.flush()
        tokens = self._tokens
        if not tokens:
            self._first = record
            timeout = config.send_timeout
            self._deadline = self._client.loop.time() + timeout if timeout > 0 else math.inf
        self._body.add(packed, payload, record.event_time, key)
        tokens.append(token)
        self._size += size
        if alone or len(tokens) >= config.batching_max_messages > 0:
            self.flush()
        elif not self._scheduled:
            self._scheduled = True
            self._seen = 0
            self._latest = self._client.loop.time() + _LONGEST_WAIT
            self._client.loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Send the batch, unless a loop of sends still adds to it, or the broker is busy."""
        count, loop = len(self._tokens), self._client.loop
        if count > _FEW and count != self._seen and loop.time() < self._latest:
            self._seen = count
            loop.call_soon(self._turn)
            return
        if count and self._producing.unanswered >= _BUSY:
            loop.call_later(self._config.batching_max_publish_delay, self._late)
            return
        self._late()

    def _late(self) -> None:
        self._scheduled = False
        self.flush()

    def flush(self) -> None:
        """Send the batch now."""
        tokens, first = self._tokens, self._first
        if first is None:
            return
        count, size, body, deadline = len(tokens), self._size, self._body, self._deadline
        self._new_batch()
        sequence = self._sequence + 1 if first.sequence_id is None else first.sequence_id
        self._sequence = max(self._sequence, sequence + count - 1)
        entries, frame = self._single(first, sequence) if count == 1 else (1, self._batch_frame(first, sequence, body))
        data = self._producing.add(Batch(sequence, tokens, size, frame, deadline, entries))
        if self._connection is not None and data:
            self._connection.write(data)
        if self._expiry is None and deadline != math.inf:
            self._expiry = self._client.loop.call_at(deadline, self._expire)

    def _single(self, record: OutgoingRecord, sequence: int) -> tuple[int, bytes]:
        """Return the SEND of a record that is alone in its entry, or of each chunk of it, and their number."""
        payload = record.payload or b""
        metadata = Metadata(
            self._name, sequence, int(self._client.clock.now() * 1000), record.packed,
            partition_key=_key_of(record, self.topic), compression=self._compression,
            uncompressed_size=len(payload), event_time=record.event_time, schema_version=self._schema_version,
            deliver_at_time=record.deliver_at, null_value=record.payload is None,
        )  # fmt: skip
        encoded, payload = encode_metadata(metadata), self._compressed(payload)
        most = self._limit + _OVERHEAD - len(encoded)  # the broker allows more for the rest
        if len(payload) <= most or not self._chunks:
            return 1, send(self._id, sequence, encoded, payload)
        frames = [
            send(self._id, sequence, encode_metadata(chunk), part, chunk=True)
            for chunk, part in cut(metadata, payload, most)
        ]
        return len(frames), b"".join(frames)

    def _compressed(self, payload: bytes) -> bytes:
        return zlib.compress(payload) if self._compression else payload

    def _batch_frame(self, first: OutgoingRecord, sequence: int, body: Body) -> bytes:
        count = body.count
        metadata = Metadata(
            self._name, sequence, int(self._client.clock.now() * 1000),
            partition_key=_key_of(first, self.topic), compression=self._compression,
            uncompressed_size=body.size,
            num_messages_in_batch=count, schema_version=self._schema_version,
            highest_sequence_id=sequence + count - 1,
        )  # fmt: skip
        return send(
            self._id, sequence, encode_metadata(metadata), self._compressed(body.body()), messages=count,
            highest_sequence_id=sequence + count - 1,
        )  # fmt: skip

    # outcomes

    def _report(self, batch: Batch[Token], tokens: list[Token], place: WireId | None, error: JMSError | None) -> None:
        self._window.leave(len(tokens), batch.size)
        try:
            self._settled(tokens, place, error)
        except Exception as raised:  # an error of the caller must not end the connection
            context = {"message": f"a callback of the sender to {self.topic} raised", "exception": raised}
            self._client.loop.call_exception_handler(context)
        finally:
            self._window.reported(len(tokens))

    def _report_failure(self, batch: Batch[Token], error: JMSError) -> None:
        self._report(batch, batch.tokens, None, self._failure_of(batch.state, error))

    def _failure_of(self, state: State, error: JMSError) -> JMSError:
        """Return the error of records whose batch ended in ``state``."""
        what = f"send to {self.topic}: {error}"
        made: JMSError
        if state is State.IN_DOUBT:
            made = SendInDoubtError(
                f"{what}; the message might be stored; send it again only if a duplicate does no harm",
                error.error_code,
            )
        elif isinstance(error, JMSSecurityError | ResourceAllocationError):
            made = type(error)(f"{what}; the message was not sent", error.error_code)
        else:
            made = SendError(f"{what}; the message was not sent", error.error_code)
        made.__cause__ = error
        return made

    def _expire(self) -> None:
        """Fail the batches whose time is over."""
        self._expiry = None
        loop = self._client.loop
        over = TransportError(f"no answer within {self._config.send_timeout:g} s (sendTimeoutMs)", "Timeout")
        for batch in self._producing.expire(loop.time()):
            self._report_failure(batch, over)
        deadline = self._producing.deadline
        if deadline is not None and deadline != math.inf:
            self._expiry = loop.call_at(deadline, self._expire)

    def abandon(self, reason: str) -> Iterator[None]:
        """Fail all records without an outcome, one slice per step."""
        self.flush()
        closed = TransportError(reason, "AlreadyClosed")
        reported = 0
        for batch in self._producing.end():
            self._report_failure(batch, closed)
            reported += len(batch.tokens)
            if reported >= SLICE:
                reported = 0
                yield

    async def aclose(self, timeout: float) -> None:
        """Close it at the broker. Idempotent."""
        await self._keeper.aclose()
        if self._expiry is not None:
            self._expiry.cancel()
        connection, self._connection = self._connection, None
        if connection is not None and connection.producers.pop(self._id, None) is not None:
            try:
                await connection.request(
                    f"close the producer of {self.topic}", max(timeout, 0.01), Command.CLOSE_PRODUCER,
                    producer_id=self._id,
                )  # fmt: skip
            except JMSError:
                return  # the connection is lost or silent: the broker drops the producer when it notices


def _key_of(record: OutgoingRecord, topic: str) -> bytes | None:
    """Return the key as bytes. Raises MessageFormatError if it has lone surrogates."""
    try:
        return None if record.key is None else record.key.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"a message to {topic}: the group id has a lone surrogate at {error.start}") from error


def _schema_fields(schema: Schema | None) -> dict[str, object] | None:
    """Return the fields of a schema."""
    if schema is None:
        return None
    return {
        "name": schema.type, "schema_data": schema.definition.encode(), "type": int(_SCHEMAS[schema.type]),
        "properties": [],
    }  # fmt: skip

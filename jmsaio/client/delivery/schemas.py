"""``Schemas``: the schemas of received messages, fetched from the broker once and cached."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import anyio
import attrs

from jmsaio.client.callbacks.reports import ExceptionReports
from jmsaio.codec.schemas.reading import SchemaReader, schema_reader
from jmsaio.errors import (
    ConfigurationError,
    JMSError,
    JMSSecurityError,
    MalformedMessageError,
    MessageFormatError,
    NotFoundError,
)
from jmsaio.model.schema import IMPOSSIBLE_VERSION, is_version
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.base import Admin
from jmsaio.transport.clock import Clock

#: Maximum time for fetching a schema, and the pause after a failure, in seconds.
_LONGEST, _PAUSE = 3.0, 60.0
#: Pause for messages that wait for their schema, in seconds.
_SHORT_PAUSE = 2.0
#: Maximum number of cached schemas, and of characters of their definitions.
_MOST, _MOST_CHARACTERS = 10_000, 4_000_000
#: Maximum number of values of large bodies, decoded for messages that are about to be received.
_MOST_VALUES = 100

#: A topic without its partition, and the version of one of its schemas.
Key = tuple[str, bytes]


class SchemaNeededError(Exception):
    """A message can't be decoded before its schema is fetched: call ``learn``, then decode it again."""

    def __init__(self, schemas: Schemas, record: ReceivedRecord, required: bool) -> None:
        self._schemas = schemas
        self._key = _key_of(record)
        self.required = required
        super().__init__(
            f"the broker did not return the schema of a message of {self._key[0]}; try again, and see the log"
        )

    async def learn(self) -> bool:
        """Fetch the schema, unless another caller did. Return False without an answer. Cancelling changes nothing."""
        return await self._schemas.learn(self._key, self.required)


class LargeBodyError(SchemaNeededError):
    """A large body would block the event loop while it is decoded: ``learn`` decodes it in a thread."""

    def __init__(self, schemas: Schemas, record: ReceivedRecord, reader: SchemaReader) -> None:
        super().__init__(schemas, record, required=True)
        self._record, self._reader = record, reader

    async def learn(self) -> bool:
        """Decode the body for the next call of ``Schemas.reader``. Cancelling: decoding continues."""
        await self._schemas.decode(self._record, self._reader)
        return True


def check_schemas(admin: Admin | None) -> None:
    if admin is None:
        reason = "option consumerConfig.useSchema reads schemas from the REST interface; set jms.usePulsarAdmin=true"
        raise ConfigurationError(reason, key="consumerConfig.useSchema")


@attrs.frozen
class _FetchedSchema:
    """The result of fetching one version of a schema."""

    reader: SchemaReader | None = None  # decodes its payloads; None: they stay bytes
    unreadable: str | None = None  # why messages with this schema can't be read
    unsupported: str | None = None  # warning that messages stay bytes although they should be decoded
    refused: bool = False  # reading is not permitted; fetched again for messages that require it


#: Result for a version that no schema can have.
_IMPOSSIBLE = _FetchedSchema(unreadable=IMPOSSIBLE_VERSION)


@attrs.define(eq=False)
class Schemas:
    """The schemas of received messages, each fetched once; without ``admin`` every message stays a BytesMessage."""

    admin: Admin | None
    clock: Clock
    reports: ExceptionReports
    _known: dict[Key, _FetchedSchema] = attrs.field(factory=dict, init=False)
    _characters: int = attrs.field(default=0, init=False)
    _learning: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _not_before: float = attrs.field(default=-inf, init=False)
    #: Values of large bodies, with their records, by the identity of these.
    _values: dict[int, tuple[ReceivedRecord, asyncio.Future[Any]]] = attrs.field(factory=dict, init=False)
    _spent: float = attrs.field(default=0.0, init=False)  # seconds spent in cancelled requests since the last answer

    def reader(self, record: ReceivedRecord, required: bool) -> SchemaReader | None:
        """Return the reader of a record that has a schema; None if its payload stays bytes.

        Unless ``required`` (``useSchema``), only the schema STRING is used, and a payload whose schema can't be fetched
        stays bytes. Raises SchemaNeededError if it has to be fetched first, or a large body to be decoded;
        MalformedMessageError if a schema that is required is missing or not valid.
        """
        known = self._find(_key_of(record), required)
        if known is None:
            if self.admin is not None and (required or self.clock.steady() >= self._not_before):
                raise SchemaNeededError(self, record, required)
            return None
        if required and known.unreadable is not None:
            raise MalformedMessageError(f"message {record.message_id} can't be read: {known.unreadable}", record)
        if required and known.unsupported is not None:
            self.reports.warn_once(known.unsupported)
        reader = known.reader
        if required and reader is not None and reader.is_slow(record.payload or b""):
            return self._prepared(record, reader)
        return reader if required or (reader is not None and reader.schema_type == "STRING") else None

    def _prepared(self, record: ReceivedRecord, reader: SchemaReader) -> SchemaReader:
        """Return a reader of the value that was decoded for ``record`` in a thread."""
        found = self._values.get(id(record))
        if found is None or not found[1].done():
            raise LargeBodyError(self, record, reader)
        del self._values[id(record)]
        return SchemaReader(reader.schema_type, lambda payload, key: found[1].result())

    async def decode(self, record: ReceivedRecord, reader: SchemaReader) -> None:
        """Decode a large body in a thread, once, for the next call of ``reader``. Cancelling: decoding continues."""
        found = self._values.get(id(record))
        if found is None:
            while len(self._values) >= _MOST_VALUES:  # no one came for the oldest: its consumer was closed
                del self._values[next(iter(self._values))]
            loop = asyncio.get_running_loop()
            found = record, loop.run_in_executor(None, reader.read, record.payload, record.key)
            found[1].add_done_callback(lambda value: value.cancelled() or value.exception())  # perhaps no one asks
            self._values[id(record)] = found
        await asyncio.wait({found[1]})

    async def learn(self, key: Key, required: bool = False) -> bool:
        """Fetch a schema, one at a time. Return False without an answer, after a pause if the schema is required."""
        async with self._learning:
            if self._find(key, required) is not None:
                return True
            if required or self.clock.steady() >= self._not_before:
                await self._ask(*key)
        found = self._find(key, required) is not None
        if required and not found:
            await anyio.sleep(_SHORT_PAUSE)
        return found

    def _find(self, key: Key, required: bool) -> _FetchedSchema | None:
        known = self._known.get(key) if is_version(key[1]) else _IMPOSSIBLE
        return None if known is None or (required and known.refused) else known

    async def _ask(self, topic: str, version: bytes) -> None:
        """Fetch a schema and remember the outcome, unless a second attempt can have another one."""
        assert self.admin is not None  # otherwise nothing needs a schema
        begun, spent, self._spent = self.clock.steady(), self._spent, 0.0
        number, size = int.from_bytes(version, "big"), 0
        name = f"schema {number} of {topic}"
        try:
            with anyio.fail_after(max(0.0, _LONGEST - spent)):
                schema = await self.admin.schema(topic, number)
            size = len(schema.definition)
            known = _FetchedSchema(schema_reader(schema))
            if known.reader is None:
                left = f"{name} has the type {schema.type}, which jmsaio does not read: its messages are BytesMessages"
                known = _FetchedSchema(unsupported=left)
        except MessageFormatError as error:
            known = _FetchedSchema(unreadable=f"{name} is not valid: {error}")
        except NotFoundError as error:
            known = _FetchedSchema(unreadable=f"its schema is missing: {error}")
            self.reports.warn_once(
                f"{name} is missing, so its messages stay BytesMessages; with useSchema they are malformed: {error}"
            )
        except JMSSecurityError as error:
            known = _FetchedSchema(refused=True)
            self.reports.warn_once(
                f"{name} can't be read, so its messages stay BytesMessages; with useSchema they wait: {error}"
            )
        except (JMSError, TimeoutError) as error:
            self._not_before = self.clock.steady() + _PAUSE
            reason = str(error) or f"no answer within {_LONGEST:g} s"
            self.reports.warn_once(
                f"{name} can't be read, so messages are BytesMessages for a while; with useSchema they wait: {reason}"
            )
            return
        except asyncio.CancelledError:  # otherwise a loop of receives with short time limits would wait forever
            self._spent = spent + self.clock.steady() - begun
            raise
        self._remember((topic, version), known, size)

    def _remember(self, key: Key, known: _FetchedSchema, size: int) -> None:
        self._characters += size
        if len(self._known) >= _MOST or self._characters > _MOST_CHARACTERS:
            self._known.clear()
            self._characters = size
        self._known[key] = known


def _key_of(record: ReceivedRecord) -> Key:
    return split_partition(record.topic)[0], record.schema_version or b""

"""``CopySenders``: senders for messages that are stored again elsewhere, with their schemas and whatever their sizes.

Dead letters, and messages that are redriven, moved or copied. The options of a service's producers don't decide whether
they can be stored: a message that was sent in chunks or compressed is again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import attrs

from jmsaio.config import ProducerConfig
from jmsaio.errors import NotFoundError
from jmsaio.model.schema import IMPOSSIBLE_VERSION, Schema, is_version
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import OutgoingRecord, ReceivedRecord
from jmsaio.protocol.compression import fast
from jmsaio.transport.administration import Admin
from jmsaio.transport.base import Sender, SenderOptions
from jmsaio.transport.sending import LONGEST_WAIT

#: Bytes above which a copy is sent compressed, and in chunks if it exceeds the broker's limit, whatever that is. A
#: message of this size fills a batch by itself.
LARGE: Final = 128 * 1024
#: Error code of a schema that a topic, or pulsar-client, refuses.
INCOMPATIBLE: Final = "IncompatibleSchema"
#: Types of schemas that say nothing about a payload.
_UNTYPED: Final = ("BYTES", "NONE")


@attrs.define(eq=False)
class CopySenders:
    """One sender for each topic and schema, opened on demand, ``most`` at once. Copies with the same one stay in order.

    ``reopening`` is called with the topic before an outdated sender is replaced: it might have been deleted. The
    configured producer name of ``options`` is not used. A sender closes within ``close_timeout`` seconds.
    """

    _open_sender: Callable[[str, SenderOptions], Awaitable[Sender]]
    _admin: Admin | None
    _reopening: Callable[[str], Awaitable[object]]
    _options: SenderOptions
    _most: int = sys.maxsize
    _close_timeout: float = 10.0
    _senders: dict[tuple[str, Schema | None], Sender] = attrs.field(init=False, factory=dict)
    _large: set[tuple[str, Schema | None]] = attrs.field(init=False, factory=set)
    _schemas: dict[tuple[str, bytes], Schema] = attrs.field(init=False, factory=dict)

    async def schema_of(self, record: ReceivedRecord) -> Schema | None:
        """Return the schema of a received message; None without one. Raises JMSError if it can't be read."""
        version, topic = record.schema_version, split_partition(record.topic)[0]
        if not version:
            return None
        schema = self._schemas.get((topic, version))
        if schema is None:
            if self._admin is None:
                raise NotFoundError(
                    f"the schemas of {topic} are unknown: set jms.usePulsarAdmin=true and webServiceUrl"
                )
            if not is_version(version):
                raise NotFoundError(f"the schema of a message of {topic} is unknown: {IMPOSSIBLE_VERSION}")
            schema = await self._admin.schema(topic, int.from_bytes(version, "big"))
            self._schemas[topic, version] = schema
        return None if schema.type in _UNTYPED else schema

    async def missing(self, topic: str, source: str, before: Schema | None = None) -> list[Schema]:
        """Return the schemas of the topic ``source`` that ``topic`` does not have, oldest first, up to ``before``."""
        if self._admin is None:
            return []
        schemas = [one for one in await self._admin.schemas(split_partition(source)[0]) if one.type not in _UNTYPED]
        if before in schemas:
            del schemas[schemas.index(before) :]
        known = await self._admin.schemas(split_partition(topic)[0]) if schemas else []
        return [one for one in schemas if one not in known]

    async def register(self, topic: str, schemas: Iterable[Schema]) -> None:
        """Register schemas with a topic. Raises TransportError if one is refused: error code IncompatibleSchema."""
        for schema in schemas:
            await (await self._open(topic, schema)).aclose(self._close_timeout)

    async def sender(self, topic: str, copy: OutgoingRecord, schema: Schema | None, source: str) -> Sender:
        """Return the sender for a copy of a record of the topic ``source``.

        Raises TransportError if the topic refuses the schema (error code IncompatibleSchema), JMSError if none can be
        opened. Cancelling: an outdated sender closes all the same.
        """
        key = topic, schema
        sender = self._senders.get(key)
        if sender is not None and sender.outdated:
            await self._reopening(topic)
            del self._senders[key]
            await sender.aclose(self._close_timeout)
            sender = None
        if key not in self._large and copy.size() > LARGE:
            if sender is not None:
                await self._close(key)
                sender = None
            self._large.add(key)
        if sender is None:
            while len(self._senders) >= self._most:
                await self._close(next(iter(self._senders)))
            if schema is not None:
                await self.register(topic, await self.missing(topic, source, schema))  # versions keep their order
            sender = self._senders[key] = await self._open(topic, schema)
        return sender

    async def _open(self, topic: str, schema: Schema | None) -> Sender:
        config = attrs.evolve(self._options.config, producer_name=None, initial_sequence_id=None)
        if (topic, schema) in self._large:
            config = _for_large(config)
        return await self._open_sender(topic, attrs.evolve(self._options, config=config, schema=schema))

    async def _close(self, key: tuple[str, Schema | None]) -> None:
        sender = self._senders[key]
        await sender.drain(self._options.config.send_timeout or LONGEST_WAIT)
        del self._senders[key]
        await sender.aclose(self._close_timeout)

    async def drain(self) -> None:
        """Wait until every record is confirmed or rejected; raise OperationTimeoutError otherwise."""
        for sender in list(self._senders.values()):
            await sender.drain(self._options.config.send_timeout or LONGEST_WAIT)

    async def aclose(self, timeout: float | None = None) -> None:
        """Close every sender; records not stored within ``timeout`` seconds (``close_timeout``) are in doubt."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._close_timeout if timeout is None else timeout)
        while self._senders:
            _, sender = self._senders.popitem()
            await sender.aclose(max(0.0, deadline - loop.time()))


def _for_large(config: ProducerConfig) -> ProducerConfig:
    """Return a configuration that sends messages of any size, on every transport."""
    compression = fast() if config.compression_type.upper() == "NONE" else config.compression_type
    return attrs.evolve(config, batching_enabled=False, chunking_enabled=True, compression_type=compression)

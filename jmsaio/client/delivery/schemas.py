"""``Schemas``: which messages of other libraries are texts, by the schema that their topic has in the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf

import anyio
import attrs

from jmsaio.errors import JMSError, JMSSecurityError, NotFoundError
from jmsaio.model.partitions import split_partition
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.base import Admin

#: Longest look at a schema, and how long none is asked for after one that failed, in seconds.
_LONGEST, _PAUSE = 3.0, 60.0
#: Schemas that are remembered.
_MOST = 10_000

#: A topic without its partition, and the version of one of its schemas.
Key = tuple[str, bytes]


class SchemaNeededError(Exception):
    """The kind of a message depends on a schema that was not asked for yet: ``learn``, then decode it again."""

    def __init__(self, schemas: Schemas, record: ReceivedRecord) -> None:
        super().__init__(record)
        self._schemas = schemas
        self._key = _key_of(record)

    async def learn(self) -> None:
        """Ask the broker, unless another caller did. Cancelling changes nothing."""
        await self._schemas.learn(self._key)


@attrs.define(eq=False)
class Schemas:
    """The schemas that received messages refer to, each asked for once.

    Attributes:
        admin: gives the schemas; None: every message stays a BytesMessage.
        now: a clock, in seconds.
        warn: takes a warning; the same one is logged once.
    """

    admin: Admin | None
    now: Callable[[], float]
    warn: Callable[[str], None]
    _texts: dict[Key, bool] = attrs.field(factory=dict, init=False)
    _learning: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _not_before: float = attrs.field(default=-inf, init=False)
    _spent: float = attrs.field(default=0.0, init=False)  # seconds of looks that were cancelled since the last answer

    def is_text(self, record: ReceivedRecord) -> bool:
        """Whether the schema of a record is STRING; False also where that can't be known.

        Raises:
            SchemaNeededError: the broker was not asked yet.
        """
        known = self._known(_key_of(record))
        if known is None:
            raise SchemaNeededError(self, record)
        return known

    async def learn(self, key: Key) -> None:
        """Ask the broker for a schema, one at a time."""
        async with self._learning:
            if self._known(key) is None:
                is_text = await self._ask(*key)
                if len(self._texts) >= _MOST:
                    self._texts.clear()
                if is_text is not None:
                    self._texts[key] = is_text

    def _known(self, key: Key) -> bool | None:
        known = self._texts.get(key)
        if known is None and (self.admin is None or self.now() < self._not_before):
            return False
        return known

    async def _ask(self, topic: str, version: bytes) -> bool | None:
        """Whether the schema is STRING; None where another look may tell."""
        assert self.admin is not None  # else nothing needs a schema
        begun, spent, self._spent = self.now(), self._spent, 0.0
        try:
            with anyio.fail_after(max(0.0, _LONGEST - spent)):
                return await self.admin.schema_type(topic, int.from_bytes(version, "big")) == "STRING"
        except (JMSSecurityError, NotFoundError) as error:
            self.warn(f"the schema of {topic} can't be read, so its messages stay BytesMessages: {error}")
            return False
        except (JMSError, TimeoutError) as error:
            self._not_before = self.now() + _PAUSE
            reason = str(error) or f"no answer within {_LONGEST:g} s"
            self.warn(f"the schema of {topic} can't be read, so its messages are BytesMessages for a while: {reason}")
            return None
        except asyncio.CancelledError:  # else a loop of receives with short time limits would wait for ever
            self._spent = spent + self.now() - begun
            raise


def _key_of(record: ReceivedRecord) -> Key:
    return split_partition(record.topic)[0], record.schema_version or b""

"""The subscription that an archive moves past the messages it has stored."""

from __future__ import annotations

import asyncio
import logging
import re
import zlib
from pathlib import Path
from typing import Any, Self

import attrs

from jmsaio.errors import ConfigurationError, JMSError
from jmsaio.model.destinations import resolve
from jmsaio.model.temporary_names import JOB_PREFIX
from jmsaio.spark.files import configuration_of
from jmsaio.spark.jobs.extent import ArchiveOrder
from jmsaio.spark.jobs.manifest import Manifest
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.planning.batch_planning import list_sources, look
from jmsaio.spark.planning.cursor import StreamCursor
from jmsaio.transport.base import StartPosition
from jmsaio.transport.registry import connected

_log = logging.getLogger(__name__)


def subscription_of(folder: Path) -> str:
    """Return the default subscription of the archive in a folder.

    It is unique on this machine; the same path on another machine has the same subscription.
    """
    whole = folder.resolve()
    readable = re.sub(r"[^\w.-]", "-", whole.name, flags=re.ASCII)
    return f"{JOB_PREFIX}{readable}-{zlib.crc32(str(whole).encode()):08x}"


@attrs.define(eq=False)
class ArchiveCursor:
    """Moves a subscription past the messages that an archive's manifest counts, and no further.

    Args:
        order: order of the archive; without ``consume``, nothing is done.
    """

    order: ArchiveOrder
    _cursor: StreamCursor | None = None
    _unmoved: list[str] = attrs.field(factory=list)

    @classmethod
    def begin(cls, order: ArchiveOrder, archived: Manifest) -> Self:
        """Create the subscription if it is missing, and move it past the archived messages.

        Raises:
            ConfigurationError: it has consumers, or there is no administration.
            NotFoundError: a topic does not exist.
            TransportError: the broker does not answer.
        """
        cursor = cls(order)
        if order.consume is not None:
            asyncio.run(cursor._move(archived))
        return cursor

    def follow(self, archived: Manifest) -> None:
        """Move the subscription past the archived messages. Warn about a failure: the next call or run retries."""
        if self.order.consume is None:
            return
        try:
            asyncio.run(self._move(archived))
        except JMSError as error:
            self._unmoved = sorted(archived.ends())
            _log.warning("subscription %s was not moved: %s", self.order.consume, error)

    def summary(self) -> dict[str, Any]:
        """Return ``subscription``, and ``unmoved``, the topics where moving it failed; empty without ``consume``."""
        if self.order.consume is None:
            return {}
        return {"subscription": self.order.consume, "unmoved": self._unmoved}

    async def _move(self, archived: Manifest) -> None:
        options = parse_options(self.order.reader_options(), Use.READ)
        configuration = configuration_of(options)
        assert options.destination is not None  # set for every archive
        async with connected(configuration) as transport:
            if transport.admin is None:
                raise ConfigurationError(
                    "consume needs the broker's REST interface, which jms.usePulsarAdmin=false rules out"
                )
            source = resolve(options.destination, configuration.system_namespace)
            stores = await look(transport, await list_sources(transport, source, may_miss=bool(archived.parts)))
            if self._cursor is None:
                assert self.order.consume is not None
                self._cursor = StreamCursor(transport.admin, self.order.consume, False, "consume", "")
                await self._cursor.begin(stores, StartPosition.EARLIEST)
            self._cursor.admin = transport.admin
            self._unmoved = await self._cursor.move(archived.ends(), stores, again=True)

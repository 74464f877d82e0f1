"""Check that the REST interface belongs to the broker's cluster.

If ``webServiceUrl`` is not given, its address is a guess, and one that was given can also be another cluster's. A
subscription created there would keep no message here. Addresses advertised by brokers prove nothing, since two clusters
might advertise the same ones, and one cluster several. So a reader with a unique name is opened over the binary
protocol and searched in the topic's statistics through REST. This requires permission to consume, but not an
administrator's.

The reader's topic is non-persistent and in the namespace of short names. The broker drops it when it is unused. If it
can't be opened (a broker that creates no topics, or has non-persistent ones disabled; permissions on single topics),
the topic of the call is used.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import attrs

from jmsaio.config import Configuration, ConsumerConfig
from jmsaio.errors import AdminError, ConfigurationError, JMSError, JMSSecurityError, NotFoundError, TransportError
from jmsaio.model.topic_names import PROBE_TOPIC
from jmsaio.transport.base import Reader, ReaderOptions, StartPosition
from jmsaio.transport.pulsar.admin.paths import topic_of

_log = logging.getLogger(__name__)

#: Seconds before each check: a topic that is moving between brokers is missing for a moment.
_PAUSES = (0.0, 0.2, 0.5, 1.0)
#: Seconds after which the topic of the call is used: pulsar-client retries endlessly on a broker without non-persistent
#: topics.
_OWN_LIMIT = 3.0
#: Maximum seconds to check an address that was given.
_LIMIT = 10.0
#: Seconds for which an interface counts as another cluster's: moving a topic can take longer than all checks.
_AGAIN = 10.0
#: Service URLs and REST addresses already checked in this process.
_KNOWN: set[tuple[str, str]] = set()

#: Returns the names of a topic's consumers through the REST interface. Raises NotFoundError if the topic does not exist
#: there.
ListConsumers = Callable[[str], Awaitable[set[str]]]
#: Type of ``SameCluster.check``.
Check = Callable[[str, str, ListConsumers], Awaitable[None]]


@attrs.define(eq=False)
class SameCluster:
    """Checks the REST interface of one transport before its first use.

    ``partitions`` returns the full names of a topic's partitions, or its own name if it has none.
    """

    config: Configuration
    partitions: Callable[[str], Awaitable[list[str]]]
    open_reader: Callable[[ReaderOptions], Awaitable[Reader]]
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _refused_until: float = attrs.field(default=-math.inf, init=False)

    async def check(self, path: str, what: str, list_consumers: ListConsumers) -> None:
        """Check the interface before a call; return at once if the result is known. Concurrent calls share one check.

        Raises ConfigurationError if the interface is another cluster's, or ``webServiceUrl`` is not given and that is
        unknown (if given, this is logged as a warning). Cancelling leaves no reader behind.
        """
        config = self.config
        key = (config.service_url, config.web_service_url)
        if key in _KNOWN or config.service_url == config.web_service_url:
            return
        async with self._turn:
            if key in _KNOWN:
                return
            loop = asyncio.get_running_loop()
            if loop.time() >= self._refused_until:
                if await self._belongs(topic_of(path), what, list_consumers):
                    _KNOWN.add(key)
                    return
                self._refused_until = loop.time() + _AGAIN
            option = "option webServiceUrl =" if config.web_service_named else "option webServiceUrl is not given, and"
            raise ConfigurationError(
                f"{what}: {option} {config.web_service_url} is the REST interface of another cluster than "
                f"{config.service_url}: it does not show a reader that was opened there; set "
                "webServiceUrl=http://host:port of this cluster, or switch REST off with jms.usePulsarAdmin=false",
                key="webServiceUrl",
            )

    async def _belongs(self, own: str | None, what: str, list_consumers: ListConsumers) -> bool:
        """Return False if the address belongs to another cluster.

        If that can't be determined, warn about an address that was given, and raise an error for one that was not.
        """
        web, service = self.config.web_service_url, self.config.service_url
        named, why = self.config.web_service_named, f"no answer within {_LIMIT:g} s"
        with anyio.move_on_after(_LIMIT if named else None):
            try:
                return await self.is_seen(own, list_consumers)
            except JMSError as error:
                if named and not (isinstance(error, AdminError) and error.status is None):
                    why = str(error)
                elif named or not isinstance(error, NotFoundError | JMSSecurityError):
                    raise  # as the call itself would
                else:
                    text = (
                        f"{what}: option webServiceUrl is not given, and whether {web} is of the cluster of {service} "
                        f"can't be shown: {error}; set webServiceUrl={web} if it is"
                    )
                    if isinstance(error, JMSSecurityError):
                        raise JMSSecurityError(text) from error
                    raise ConfigurationError(text, key="webServiceUrl") from error
        _log.warning(
            "whether option webServiceUrl = %s is the REST interface of the cluster of %s is not known (%s): if it is "
            "not, a queue can lose the messages that are sent before its first consumer opens", web, service, why,
        )  # fmt: skip
        return True

    async def is_seen(self, own: str | None, list_consumers: ListConsumers) -> bool:
        """Return whether a reader opened at the broker is listed by the REST interface.

        ``own`` is the topic to use if the usual one can't have a reader, which otherwise raises NotFoundError.
        """
        with anyio.move_on_after(None if own is None else _OWN_LIMIT):
            try:
                return await self._is_seen_at(
                    f"non-persistent://{self.config.system_namespace}/{PROBE_TOPIC}", list_consumers
                )
            except AdminError:
                raise
            except (NotFoundError, JMSSecurityError, TransportError):
                if own is None:
                    raise
        assert own is not None
        return await self._is_seen_at(own, list_consumers)

    async def _is_seen_at(self, topic: str, list_consumers: ListConsumers) -> bool:
        name = f"jmsaio-{uuid.uuid4()}"
        first = (await self.partitions(topic))[0]
        config = ConsumerConfig(receiver_queue_size=1)
        reader = await self.open_reader(ReaderOptions(first, config, StartPosition.LATEST, name=name))
        try:
            for pause in _PAUSES:
                await anyio.sleep(pause)
                with suppress(NotFoundError):  # another cluster might lack the topic or its namespace
                    if name in await list_consumers(first):
                        return True
            return False
        finally:
            with anyio.CancelScope(shield=True):
                await reader.aclose(self.config.close_timeout)

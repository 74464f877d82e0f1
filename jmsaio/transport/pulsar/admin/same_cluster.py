"""Whether the REST interface belongs to the broker's cluster: a reader opened at the broker is seen through REST.

Where ``webServiceUrl`` is not given, its address is a guess: another cluster may listen there. A subscription created
there would keep no message here. Addresses that brokers advertise prove nothing, since two clusters may advertise the
same ones, and one cluster several. So a reader with a name that no one else has is opened over the binary protocol, and
looked for in the topic's statistics: that needs the right to consume, and no administrator's.

The reader's topic is non-persistent and in the namespace of short names. The broker drops it when it is unused. Where
it can't be opened (a broker that creates no topics, or has no non-persistent ones; rights on single topics), the topic
of the call is taken.
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
from jmsaio.transport.base import Position, Reader, ReaderOptions
from jmsaio.transport.pulsar.admin.paths import topic_of

_log = logging.getLogger("jmsaio")

#: The topic of the reader, in the namespace of short names.
TOPIC = "jmsaio-same-cluster"
#: Seconds before each look: a topic that its broker hands over is missing for a moment.
_PAUSES = (0.0, 0.2, 0.5, 1.0)
#: Seconds after which the topic of the call is taken: pulsar-client asks a broker that has no non-persistent topics
#: again and again.
_OWN_LIMIT = 3.0
#: Seconds for the proof of an address that was given.
_LIMIT = 5.0
#: Seconds that an interface counts as another cluster's: a topic can be handed over for longer than all looks take.
_AGAIN = 10.0
#: Service URLs and REST addresses that nothing more is to be found out about in this process.
_KNOWN: set[tuple[str, str]] = set()

#: Names of the consumers of a topic, as the REST interface shows them. Raises NotFoundError: no such topic there.
Look = Callable[[str], Awaitable[set[str]]]
#: ``SameCluster.check``.
Check = Callable[[str, str, Look], Awaitable[None]]


@attrs.define(eq=False)
class SameCluster:
    """Checks the REST interface of one transport before its first use.

    Args:
        config: both addresses, and whether that of the REST interface was given.
        partitions: full names of a topic's partitions, or its own name if it has none.
        open_reader: opens a reader at the broker.
    """

    config: Configuration
    partitions: Callable[[str], Awaitable[list[str]]]
    open_reader: Callable[[ReaderOptions], Awaitable[Reader]]
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _refused_until: float = attrs.field(default=-math.inf, init=False)

    async def check(self, path: str, what: str, look: Look) -> None:
        """Return at once if the answer is known already; concurrent calls share one proof.

        Args:
            path: path of the call that is about to be made.
            what: the call, for errors.
            look: reads the names of a topic's consumers through REST, before it is believed.

        Raises:
            ConfigurationError: ``webServiceUrl`` is not given, and the interface is of another cluster, or nothing
                shows that it is of the same one. If the option is given, another cluster is a warning in the log.
            TransportError, JMSSecurityError: one of the two sides does not answer, or refuses.

        Cancelling leaves no reader behind.
        """
        config = self.config
        key = (config.service_url, config.web_service_url)
        if key in _KNOWN or config.service_url == config.web_service_url:
            return
        async with self._turn:
            if key in _KNOWN:
                return
            if config.web_service_named:
                await self._warn(path, look)
            elif not await self._is_proved(path, what, look):
                raise ConfigurationError(
                    f"{what}: option webServiceUrl is not given, and {config.web_service_url} is the REST interface of "
                    f"another cluster than {config.service_url}: it does not show a reader that was opened there; set "
                    "webServiceUrl=http://host:port of this cluster, or switch REST off with jms.usePulsarAdmin=false",
                    key="webServiceUrl",
                )
            _KNOWN.add(key)

    async def _warn(self, path: str, look: Look) -> None:
        """Log whether an address that was given is of another cluster, as far as that can be found out."""
        config = self.config
        with anyio.move_on_after(_LIMIT):
            try:
                if not await self.is_seen(topic_of(path), look):
                    _log.warning(
                        "option webServiceUrl = %s is the REST interface of another cluster than %s: subscriptions are "
                        "created and deleted there, so that a queue here may lose the messages that are sent before "
                        "its first consumer comes",
                        config.web_service_url, config.service_url,
                    )  # fmt: skip
            except JMSError as error:
                if isinstance(error, AdminError) and error.status is None:
                    raise  # as the call itself would
                _log.info("whether %s is of the cluster of %s is not known: %s", *self._addresses(), error)

    async def _is_proved(self, path: str, what: str, look: Look) -> bool:
        """Whether an address that was not given is of the same cluster; a "no" holds for a while."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._refused_until:
            return False
        proved = await self._prove(path, what, look)
        if not proved:
            self._refused_until = loop.time() + _AGAIN
        return proved

    async def _prove(self, path: str, what: str, look: Look) -> bool:
        try:
            return await self.is_seen(topic_of(path), look)
        except (NotFoundError, JMSSecurityError) as error:
            web, service = self._addresses()
            text = (
                f"{what}: option webServiceUrl is not given, and whether {web} is of the cluster of {service} can't be "
                f"shown: {error}; set webServiceUrl={web} if it is"
            )
            if isinstance(error, JMSSecurityError):
                raise JMSSecurityError(text) from error
            raise ConfigurationError(text, key="webServiceUrl") from error

    def _addresses(self) -> tuple[str, str]:
        return self.config.web_service_url, self.config.service_url

    async def is_seen(self, own: str | None, look: Look) -> bool:
        """Whether a reader that is opened at the broker is seen through the REST interface.

        Args:
            own: the topic that is taken if there can be no reader of the usual one; None: none is.
            look: as for ``check``.

        Raises:
            NotFoundError: no topic can be used.
            TransportError, JMSSecurityError: as ``check``.

        Cancelling leaves no reader behind.
        """
        with anyio.move_on_after(None if own is None else _OWN_LIMIT):
            try:
                return await self._is_seen_at(f"non-persistent://{self.config.system_namespace}/{TOPIC}", look)
            except AdminError:
                raise
            except (NotFoundError, JMSSecurityError, TransportError):
                if own is None:
                    raise
        assert own is not None
        return await self._is_seen_at(own, look)

    async def _is_seen_at(self, topic: str, look: Look) -> bool:
        """Whether a reader of the topic is seen.

        Raises:
            NotFoundError: the broker has no such topic, and creates none.
        """
        name = f"jmsaio-{uuid.uuid4()}"
        first = (await self.partitions(topic))[0]
        config = ConsumerConfig(receiver_queue_size=1)
        reader = await self.open_reader(ReaderOptions(first, config, Position.LATEST, name=name))
        try:
            for pause in _PAUSES:
                await anyio.sleep(pause)
                with suppress(NotFoundError):  # another cluster need not have the topic, nor its namespace
                    if name in await look(first):
                        return True
            return False
        finally:
            with anyio.CancelScope(shield=True):
                await reader.aclose(self.config.close_timeout)

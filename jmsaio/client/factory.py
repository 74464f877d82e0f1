"""``ConnectionFactory`` and ``connect``: a broker client, and the connections that use it."""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

import anyio
import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.connection import Connection
from jmsaio.client.context import Context
from jmsaio.client.lifetime.scope import Affinity, AsyncClosing, Deadline, FirstError, Opening
from jmsaio.client.runtime.connection import ConnectionRuntime
from jmsaio.client.senders.pool import SenderPool
from jmsaio.config import Configuration, ConnectOptions, FactoryOptions, load
from jmsaio.errors import BrokerUnavailableError, IllegalStateError, JMSSecurityError, ObjectClosedError
from jmsaio.model.arguments import check_optional_text
from jmsaio.model.durations import Duration, seconds
from jmsaio.model.messages.tracing import Tracing
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.public import public
from jmsaio.rules.routing import make_route
from jmsaio.transport.base import Transport
from jmsaio.transport.registry import open_transport

_log = logging.getLogger(__name__)

#: A configuration: a URL, Starlight's mapping, the path of a JSON or TOML file, or None.
Config = str | Mapping[str, Any] | os.PathLike[str] | None


@attrs.frozen
class _Connecting:
    """The arguments of ``create_connection``."""

    user: str | None
    password: str | None = attrs.field(repr=False)
    client_id: str | None
    wait: float = 0.0
    tracing: Tracing | None = None


@public
@attrs.define(eq=False, init=False)
class ConnectionFactory(AsyncClosing):
    """Owns a broker client, and creates connections and contexts. ``async with`` closes it with all of them.

    Args:
        config: a URL (``memory:``, ``memory://name``, ``pulsar://host:6650?jms.clientId=billing``,
            ``pulsar+ssl://...``), a mapping with Starlight's names, a path, or None: ``$JMSAIO_URL`` or else the
            embedded broker.
        options: keyword options, which override ``config``; ``jmsaio guide configuration`` lists them.

    Raises:
        ConfigurationError: an option that is unknown, not implemented, or has a wrong value.
    """

    configuration: Configuration
    _transport: Transport | None = attrs.field(default=None, init=False)
    _senders: SenderPool | None = attrs.field(default=None, init=False)
    _connections: dict[Connection, None] = attrs.field(factory=dict, init=False)
    _credentials: tuple[str | None, str | None] | None = attrs.field(default=None, init=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _affinity: Affinity | None = attrs.field(default=None, init=False)
    _owned: bool = attrs.field(default=False, init=False)  # by the one connection of ``connect``, which closes it
    _closed: bool = attrs.field(default=False, init=False)

    def __init__(self, config: Config = None, **options: Unpack[FactoryOptions]) -> None:
        self.__attrs_init__(load(config, environ=os.environ, **options))
        for sentence in self.configuration.ignored:
            _log.warning("%s", sentence)

    @property
    def queue_browser_read_max(self) -> int:
        """Maximum number of messages that browsers of future connections examine; 0 or less: all.

        Setting anything but an integer raises ConfigurationError.
        """
        return self.configuration.queue_browser_read_max

    @queue_browser_read_max.setter
    def queue_browser_read_max(self, limit: int) -> None:
        self.configuration = attrs.evolve(self.configuration, queue_browser_read_max=limit)

    def create_connection(
        self,
        user: str | None = None,
        password: str | None = None,
        client_id: str | None = None,
        *,
        wait: Duration = 0,
        tracing: Tracing | None = None,
    ) -> Opening[Connection]:
        """Create a stopped connection; ``await`` it or use ``async with``.

        Args:
            user: user name; used with ``jms.useCredentialsFromCreateConnection`` only.
            password: the token (``token:...``); used with the same option only, never logged.
            client_id: client identifier; default: the configuration's.
            wait: seconds for which an unavailable broker is tried again, with a log line for each try; 0: none.
            tracing: traces the connection's messages, such as ``jmsaio.otel.OpenTelemetry()``; None: no cost.

        Raises:
            BrokerUnavailableError: the broker does not answer within ``connect_timeout`` seconds, nor until ``wait``
                seconds have passed.
            JMSSecurityError: the broker refuses the credentials.
            IllegalStateError: with ``jms.useCredentialsFromCreateConnection``: the user or password differs from those
                of the factory's first connection.
            InvalidClientIDError: another open connection of this process uses the identifier.
            ObjectClosedError: the factory is closed.

        Cancelling leaves nothing open.
        """
        return Opening(self._connect(_Connecting(user, password, client_id, seconds(wait, "wait"), tracing)))

    create_queue_connection = create_topic_connection = create_connection  # its names in JMS 1.1

    def create_context(
        self,
        mode: AcknowledgeMode = AcknowledgeMode.AUTO,
        user: str | None = None,
        password: str | None = None,
        client_id: str | None = None,
    ) -> Opening[Context]:
        """Create a context of the simplified API: a connection and a session; ``await`` it or use ``async with``.

        Raises as ``create_connection``; a mode that does not exist is a JMSError.
        """
        return Opening(self._create_context(AcknowledgeMode.of(mode), _Connecting(user, password, client_id)))

    async def _create_context(self, mode: AcknowledgeMode, how: _Connecting) -> Context:
        connection = await self._connect(how)
        try:
            return await Context._open(connection, set(), mode, self.configuration.auto_start)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await connection.close()
            raise

    async def _connect(self, how: _Connecting) -> Connection:
        if self._affinity is None:
            self._affinity = Affinity.here()
        self._affinity.check()
        if self._closed:
            raise ObjectClosedError("the connection factory is closed; create a new one")
        async with self._opening:
            config = self._with_credentials(how.user, how.password)
            if self._transport is None:
                await self._open_transport(config, how.wait)
            self._credentials = (how.user, how.password)
        assert self._transport is not None and self._senders is not None  # set together
        runtime = ConnectionRuntime(config, self._transport, self._senders, config.service_url, how.tracing)
        connection = Connection(runtime, self._connection_closed)
        self._connections[connection] = None  # from now on, a close of the factory waits for it
        try:
            await connection._open(how.client_id if how.client_id is not None else config.client_id)
        except BaseException:
            self._connections.pop(connection, None)
            raise
        if self._closed:
            await connection.close()
            raise ObjectClosedError("the connection factory was closed while it connected; create a new one")
        return connection

    async def _open_transport(self, config: Configuration, wait: float) -> None:
        if config.fallback:
            _log.warning(
                "no broker is configured and $JMSAIO_URL is not set: using the embedded broker 'memory:', which no "
                "other process can reach; name a real one, such as pulsar://host:6650, or 'memory:'"
            )
        if config.without_effect:
            _log.info("options without an effect here: %s", ", ".join(config.without_effect))
        transport = await _open_in_time(config, wait)
        if self._closed:  # closed meanwhile, before this transport was stored
            with anyio.CancelScope(shield=True):
                await transport.aclose(config.close_timeout)
            raise ObjectClosedError("the connection factory was closed while it connected; create a new one")
        self._transport = transport
        route: Any = make_route(config.used_priority_mapping, config.transactions_sticky_partitions, random.random)
        self._senders = SenderPool(transport, config, route)

    def _with_credentials(self, user: str | None, password: str | None) -> Configuration:
        check_optional_text(user, "user")
        check_optional_text(password, "password")
        config = self.configuration
        if config.tck_username and (user, password) not in ((None, None), (config.tck_username, config.tck_password)):
            raise JMSSecurityError("user or password refused")
        if not config.use_credentials_from_create_connection:
            return config
        if self._credentials is not None and self._credentials != (user, password):
            used = "without credentials" if self._credentials == (None, None) else "with other credentials"
            raise IllegalStateError(
                f"this factory was used {used}, and it has one broker client: give every call the same user and "
                "password, or create a factory for each pair"
            )
        return config if (user, password) == (None, None) else attrs.evolve(config, auth_params=password)

    async def _connection_closed(self, connection: Connection, deadline: Deadline) -> None:
        self._connections.pop(connection, None)
        if self._owned:
            await self._close_by(deadline)

    async def close(self) -> None:
        """Close its connections, its senders and the broker client, within ``close_timeout``. Idempotent.

        Raises:
            IllegalStateError: called from a listener or completion listener of one of its connections.
            JMSError: the first problem; everything is closed nevertheless.

        Cancelling: call it again.
        """
        if self._affinity is None or self._affinity.forked:
            self._closed = True  # it has no client, or that of the parent
            return
        self._affinity.check()
        for connection in self._connections:
            callback_context.refuse("close of the factory", connection._runtime)
        await self._close_by(Deadline.after(self.configuration.close_timeout))

    async def _close_by(self, deadline: Deadline) -> None:
        self._closed = True
        errors = FirstError()
        async with anyio.create_task_group() as group:  # concurrently: one might wait for another to end
            for connection in list(self._connections):
                group.start_soon(errors.guard, partial(connection._close_by, deadline.before(2)))
        if self._senders is not None:
            await errors.guard(partial(self._senders.close, deadline.left(1)))
        if self._transport is not None:
            await errors.guard(partial(self._transport.aclose, deadline.left()))
        self._senders = self._transport = None
        errors.raise_once()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._connections)} connections"
        return f"<ConnectionFactory for {self.configuration.service_url}, {state}>"


@public
def connect(
    config: Config = None,
    *,
    user: str | None = None,
    password: str | None = None,
    client_id: str | None = None,
    wait: Duration = 0,
    tracing: Tracing | None = None,
    **options: Unpack[ConnectOptions],
) -> Opening[Connection]:
    """Create a connection with its own factory: ``async with jmsaio.connect(...) as connection``, or await it.

    The connection is started unless ``auto_start=False``. For arguments and errors see ``ConnectionFactory`` and
    ``ConnectionFactory.create_connection``.
    """
    return Opening(_open(config, _Connecting(user, password, client_id, seconds(wait, "wait"), tracing), options))


async def _open(config: Config, how: _Connecting, options: ConnectOptions) -> Connection:
    factory = ConnectionFactory(config, **options)
    factory._affinity = Affinity.here()  # without asyncio, nothing could be closed below
    try:
        connection = await factory._connect(how)
        factory._owned = True
        if factory.configuration.auto_start:
            await connection.start()
        return connection
    except BaseException:
        with anyio.CancelScope(shield=True):
            await factory.close()
        raise


async def _open_in_time(config: Configuration, wait: float) -> Transport:
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + wait, 0.1
    while True:
        try:
            return await open_transport(config)
        except BrokerUnavailableError as error:
            left = until - loop.time()
            if left <= 0:
                raise
            _log.warning("%s; trying again for %.0f s", error, left)
            pause = min(2 * pause, 5.0)
            await asyncio.sleep(min(pause, left))

"""The connections of one transport: one for each broker, opened when first needed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import anyio.to_thread

from jmsaio.config import Configuration
from jmsaio.errors import BrokerUnavailableError, JMSError, JMSSecurityError, ObjectClosedError, OperationTimeoutError
from jmsaio.protocol.handshake import Identity
from jmsaio.protocol.lookup import Address
from jmsaio.transport.causes import cause_of
from jmsaio.transport.pulsar.admin.causes import distrust
from jmsaio.transport.pulsar.admin.credentials import (
    AuthKind,
    Credentials,
    authorities,
    flaw,
    read_credentials,
    tls_context,
)
from jmsaio.transport.pulsar.wire.connection import Connection, Introduction
from jmsaio.transport.pulsar.wire.tasks import Tasks

_VERSION: Final = "jmsaio"
_METHODS: Final = {AuthKind.TOKEN: "token", AuthKind.TLS: "tls", AuthKind.OAUTH2: "token", AuthKind.BASIC: "basic"}


class Pool:
    """The connections of one transport.

    Args:
        config: service URL, credentials, TLS options and time limits.
        tasks: owner of the tasks that open connections.
        lost: called with its error when the last connection is lost.

    Attributes:
        service: URLs of the brokers or proxies to ask first, in turn.
        tls: whether connections use TLS.
    """

    def __init__(
        self, config: Configuration, tasks: Tasks, lost: Callable[[JMSError], object] = lambda error: None
    ) -> None:
        scheme, _, hosts = config.service_url.partition("://")
        self.service = [f"{scheme}://{host}" for host in hosts.split(",")]
        self.tls = config.scheme == "pulsar+ssl"
        self._config = config
        self._credentials: Credentials | None = read_credentials(
            config.auth_plugin, config.auth_params, authorities(config)
        )
        timeout = config.client.get("connection_timeout_ms", 10000)
        assert isinstance(timeout, int)  # checked by the configuration
        self._timeout = timeout / 1000
        self._tasks = tasks
        self._lost = lost
        self._introduction = Introduction(_VERSION, self._identify, config.keep_alive_interval)
        self._open: dict[Address, Connection] = {}
        self._opening: dict[Address, asyncio.Future[Connection]] = {}
        self._closed = False

    @property
    def connections(self) -> list[Connection]:
        """The open connections."""
        return list(self._open.values())

    async def connect_service(self) -> Connection:
        """Return a connection to the first address of the service URL that works.

        Raises:
            The error of the last address, as ``connect``.
        """
        for url in self.service:
            found = self._found(Address(url))
            if found is not None:
                return found
        for url in self.service[:-1]:
            try:
                return await self.connect(Address(url))
            except BrokerUnavailableError:
                continue
        return await self.connect(Address(self.service[-1]))

    async def connect(self, address: Address) -> Connection:
        """Return the connection to a broker; open it if there is none.

        Raises:
            BrokerUnavailableError: it can't be reached; has host, port and cause.
            JMSSecurityError: it refuses the credentials, or one side does not trust the other's certificate.
            ObjectClosedError: the transport is closed.

        Cancelling leaves the opening to others that need this connection.
        """
        if self._closed:
            raise ObjectClosedError("the connection to the broker is closed")
        found = self._found(address)
        if found is not None:
            return found
        opening = self._opening.get(address)
        if opening is None:
            opening = self._opening[address] = asyncio.get_running_loop().create_future()
            self._tasks.start(self._open_one(address, opening))
        return await asyncio.shield(opening)

    def _ended(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        if self._open.get(connection.address) is not connection:
            return  # it was never accepted
        del self._open[connection.address]
        if not self._open and not self._closed and connection.error is not None:
            self._lost(connection.error)

    def _found(self, address: Address) -> Connection | None:
        """Return the connection to a broker, unless there is none or it is lost."""
        found = self._open.get(address)
        if found is not None and found.error is not None:
            del self._open[address]
            return None
        return found

    async def aclose(self, timeout: float) -> None:
        """Close all connections within ``timeout`` seconds."""
        self._closed = True
        closed = ObjectClosedError("the connection to the broker is closed")
        await asyncio.gather(*(connection.aclose(closed, timeout) for connection in self.connections))
        self._open.clear()

    async def _open_one(self, address: Address, opening: asyncio.Future[Connection]) -> None:
        try:
            connection = await self._connected(address)
        except JMSError as error:
            opening.set_exception(error)
            opening.exception()  # whoever asked might have given up
        except asyncio.CancelledError:
            opening.set_exception(ObjectClosedError("the connection to the broker is closed"))
            opening.exception()
            raise
        else:
            self._open[address] = connection
            opening.set_result(connection)
        finally:
            del self._opening[address]

    async def _connected(self, address: Address) -> Connection:
        url = urlsplit(address.through or address.broker)
        host, port = url.hostname or "", url.port or (6651 if self.tls else 6650)
        place = f"{host}:{port}"
        connection: Connection | None = None
        identity = Identity()
        try:
            async with asyncio.timeout(self._timeout):
                context = await self._context()
                identity = await self._identify()
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(
                    partial(Connection, address, self._introduction, self._challenged, self._ended),
                    host, port, ssl=context, server_hostname=host if context is not None else None,
                )  # fmt: skip
                await connection.introduce(identity)
        except TimeoutError:
            self._drop(connection)
            raise BrokerUnavailableError(
                f"connect to {place}: no answer within {self._timeout:g} s", host, port
            ) from None
        except OSError as error:  # ssl.SSLError is one
            reason = distrust(error, place)
            if reason is not None:
                raise JMSSecurityError(reason, "AuthenticationError") from error
            raise BrokerUnavailableError(f"connect to {place}: {cause_of(error)}", host, port) from error
        except JMSSecurityError as error:
            if error.error_code != "AuthenticationError" or connection is None:
                raise
            text = f"the broker at {place} refuses the credentials: {flaw(self._credentials, identity.data.decode())}"
            raise JMSSecurityError(text, "AuthenticationError") from error
        except BaseException:
            self._drop(connection)
            raise
        return connection

    def _drop(self, connection: Connection | None) -> None:
        if connection is not None:
            connection.close(OperationTimeoutError("not connected in time"))

    async def _context(self) -> ssl.SSLContext | None:
        """Read the certificates again: they might have been renewed."""
        if not self.tls:
            return None
        return await anyio.to_thread.run_sync(tls_context, self._config, self._credentials)

    async def _identify(self) -> Identity:
        credentials = self._credentials
        if credentials is None:
            return Identity()
        data = await credentials.token()
        if credentials.kind is AuthKind.BASIC:
            data = f"{credentials.values['username']}:{credentials.values['password']}"
        method = credentials.values.get("method") or _METHODS[credentials.kind]
        return Identity(method, data.encode())

    def _challenged(self, connection: Connection) -> None:
        self._tasks.start(self._respond(connection))

    async def _respond(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                connection.respond(await self._identify())
        except TimeoutError:
            connection.close(BrokerUnavailableError("no credentials in time for the broker's challenge"))
        except JMSError as error:
            connection.close(error)

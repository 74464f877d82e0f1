"""The connections of one transport: one for each broker, opened when first needed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import anyio.to_thread
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    JMSError,
    JMSSecurityError,
    ObjectClosedError,
    OperationTimeoutError,
    ProtocolError,
)
from jmsaio.model.arguments import brief
from jmsaio.model.topic_names import PROBE_TOPIC
from jmsaio.protocol.handshake import Identity
from jmsaio.transport.causes import cause_of
from jmsaio.transport.pulsar.admin.causes import distrust, with_tls, without_tls
from jmsaio.transport.pulsar.admin.credentials import (
    Credentials,
    authorities,
    flaw,
    identity_of,
    read_credentials,
    tls_context,
)
from jmsaio.transport.pulsar.admin.rest import RestAdmin
from jmsaio.transport.pulsar.wire.connections.connection import Address, Connection
from jmsaio.transport.waiting import Tasks, shielded

#: Characters of the longest name in the DNS.
_LONGEST_HOST: Final = 253
#: Error code of an address where no broker can be reached.
UNREACHABLE: Final = "ConnectError"
#: Statuses from which on a REST interface can't answer for now.
_STARTING: Final = 500
#: Maximum seconds to check whether a port uses the other scheme.
_LOOK: Final = 2.0


class Pool:
    """The connections of one transport. Without an address in ``service``, a REST interface is asked for one."""

    def __init__(
        self, config: Configuration, tasks: Tasks, lost: Callable[[JMSError], object] = lambda error: None
    ) -> None:
        self.service = _addresses(config.service_url)
        self.tls = config.scheme == "pulsar+ssl"
        self._config = config
        self._interfaces: list[RestAdmin] = []
        if self.service[0].startswith("http"):
            self._interfaces = [RestAdmin(attrs.evolve(config, web_service_url=url)) for url in self.service]
            self.service = []
        self._asking: asyncio.Task[str] | None = None
        self._credentials: Credentials | None = read_credentials(
            config.auth_plugin, config.auth_params, authorities(config)
        )
        self._timeout = config.connection_timeout_ms / 1000
        self._tasks = tasks
        self._lost = lost  # called with its error when the last connection is lost
        self._open: dict[Address, Connection] = {}
        self._opening: dict[Address, asyncio.Task[Connection]] = {}
        self._challenges: set[Connection] = set()  # those that are being answered
        self._closed = False
        self._proven = False  # whether the URL's scheme has worked

    @property
    def connections(self) -> list[Connection]:
        return list(self._open.values())

    async def connect_service(self, cluster: str = "") -> Connection:
        """Return a connection to the first address that works, of the service URL or of another cluster's.

        Raises BrokerUnavailableError if none can be reached, with the causes of all, and host and port of the first, or
        the first other error of ``connect``.
        """
        service = _addresses(cluster) if cluster else self.service
        for url in service:
            found = self._found(Address(url))
            if found is not None:
                return found
        if not cluster and self._interfaces:
            if self._asking is None or self._asking.done():
                self._asking = self._tasks.start(self._named_by_rest())
            service = self.service = [await shielded(self._asking)]
        errors: list[JMSError] = []
        for url in service:
            try:
                return await self.connect(Address(url))
            except ObjectClosedError:
                raise
            except JMSError as error:
                errors.append(error)
        for each in errors:
            if len(errors) == 1 or each.error_code != UNREACHABLE:
                raise each
        first, text = errors[0], "; ".join(str(each) for each in errors)
        host, port = (first.host, first.port) if isinstance(first, BrokerUnavailableError) else (None, None)
        raise BrokerUnavailableError(text, host, port, error_code=UNREACHABLE) from first

    async def _named_by_rest(self) -> str:
        topic = f"non-persistent://{self._config.system_namespace}/{PROBE_TOPIC}"
        causes = []
        for interface in self._interfaces:
            try:
                async with asyncio.timeout(self._timeout):
                    place = await interface.owner(topic, self.tls)
                return f"pulsar{'+ssl' * self.tls}://{place}"
            except (TimeoutError, AdminError) as error:
                if isinstance(error, AdminError) and error.status is not None and error.status < _STARTING:
                    raise
                causes.append(f"{interface.address}: {cause_of(error.__cause__ or error)}")
        url = urlsplit(self._interfaces[0].address)
        text = f"ask the REST interface for a broker: {'; '.join(causes)}"
        raise BrokerUnavailableError(text, url.hostname, url.port, error_code=UNREACHABLE)

    async def connect(self, address: Address) -> Connection:
        """Return the connection to a broker; open it if there is none. Cancelling leaves the opening to others.

        Raises BrokerUnavailableError if it can't be reached (code ``UNREACHABLE``), or the OAuth 2.0 server, with host,
        port and cause; TransportError if it takes no connections for now; JMSSecurityError if it refuses the
        credentials, or one side does not trust the other's certificate; ObjectClosedError.
        """
        if self._closed:
            raise ObjectClosedError("the connection to the broker is closed")
        found = self._found(address)
        if found is not None:
            return found
        opening = self._opening.get(address)
        if opening is None:
            opening = self._opening[address] = self._tasks.start(self._connected(address))
            opening.add_done_callback(partial(self._tried, address))
        return await shielded(opening)

    def _ended(self, connection: Connection) -> None:
        if self._open.get(connection.address) is not connection:
            return  # it was never accepted
        del self._open[connection.address]
        if not self._open and not self._closed and connection.error is not None:
            self._lost(connection.error)

    def _found(self, address: Address) -> Connection | None:
        found = self._open.get(address)
        if found is not None and found.error is not None:
            del self._open[address]
            return None
        return found

    async def aclose(self, timeout: float) -> None:
        self._closed = True
        closed = ObjectClosedError("the connection to the broker is closed")
        await asyncio.gather(*(connection.aclose(closed, timeout) for connection in self.connections))
        for interface in self._interfaces:
            await interface.aclose()
        self._open.clear()

    def _tried(self, address: Address, task: asyncio.Task[Connection]) -> None:
        del self._opening[address]
        if not task.cancelled():
            task.exception()  # whoever asked might have given up

    async def _connected(self, address: Address) -> Connection:
        host, port = self._place(address)
        connection: Connection | None = None
        identity = Identity()
        try:
            async with asyncio.timeout(self._timeout):
                context = await self._context()
                identity = await self._identify()
                connection = await self._reached(address, host, port, context)
                await connection.introduce(identity)
        except BaseException as error:
            if connection is not None:
                connection.close(OperationTimeoutError("not connected in time"))
            if not isinstance(error, TimeoutError | OSError | UnicodeError | JMSError):
                raise
            refused = connection is not None and isinstance(error, JMSSecurityError)
            raise await self._reason(error, host, port, identity if refused else None) from error
        if self._closed:
            connection.close(ObjectClosedError("the connection to the broker is closed"))
        if connection.error is not None:  # it might have broken at once
            raise connection.error
        self._proven = True
        self._open[address] = connection
        return connection

    def _place(self, address: Address) -> tuple[str, int]:
        """Return host and port of an address, which a broker might have named."""
        text = address.through or address.broker
        try:
            url = urlsplit(text)
            host, port = url.hostname, url.port or (6651 if self.tls else 6650)
        except ValueError:
            host, port = None, 0
        if not host or not host.isprintable() or len(host) > _LONGEST_HOST:
            text = f"connect to {brief(text)}: this is no address of a broker"
            raise BrokerUnavailableError(text, error_code=UNREACHABLE)
        return host, port

    async def _reached(self, address: Address, host: str, port: int, context: ssl.SSLContext | None) -> Connection:
        make = partial(Connection, address, self._config.keep_alive_interval, self._challenged, self._ended)
        name = host if context is not None else None
        _, connection = await asyncio.get_running_loop().create_connection(
            make, host, port, ssl=context, server_hostname=name
        )
        return connection

    async def _reason(self, error: Exception, host: str, port: int, refused: Identity | None) -> JMSError:
        """Return the error to raise for a connection that failed. ``refused``: what the broker did not accept."""
        place = f"{host}:{port}"
        what = f"connect to {'pulsar+ssl' if self.tls else 'pulsar'}://{place}"
        if isinstance(error, JMSSecurityError):
            text = str(error)
            if refused is not None and error.error_code == "AuthenticationError":
                if self._credentials is not None and self._credentials.issued is not None:
                    self._credentials.issued.forget()
                text = f"the broker refuses the credentials: {flaw(self._credentials, refused.data.decode())}"
            return JMSSecurityError(f"{what}: {text}", error.error_code)
        if isinstance(error, TimeoutError):
            text = f"no answer within {self._timeout:g} s"
            return BrokerUnavailableError(f"{what}: {text}", host, port, error_code=UNREACHABLE)
        reason = distrust(error, place) or await self._other_scheme(host, port)
        if reason is not None:
            return JMSSecurityError(f"{what}: {reason}", "AuthenticationError")
        if isinstance(error, ProtocolError):
            text = f"no one speaks Pulsar's protocol there: {error}"
        elif isinstance(error, JMSError):
            if not isinstance(error, BrokerUnavailableError) or error.host is not None:
                return error  # for now the broker, or the OAuth 2.0 server, can't do it
            return BrokerUnavailableError(str(error), host, port, error_code=UNREACHABLE)
        else:
            text = cause_of(error)
        return BrokerUnavailableError(f"{what}: {text}", host, port, error_code=UNREACHABLE)

    async def _other_scheme(self, host: str, port: int) -> str | None:
        """Return the remedy if a port uses TLS and the URL does not, or the reverse. Sends no credentials."""
        if self._proven:
            return None
        place, context = f"{host}:{port}", None
        if not self.tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection: Connection | None = None
        try:
            async with asyncio.timeout(_LOOK):
                connection = await self._reached(Address(place), host, port, context)
                if self.tls:
                    await connection.speak()
        except ssl.SSLError as error:
            return with_tls(place) if "ALERT" in (error.reason or "") else None  # it wants a certificate
        except (TimeoutError, OSError, UnicodeError, JMSError):
            return None
        finally:
            if connection is not None:
                connection.close(OperationTimeoutError("only a look"))
        return without_tls(place) if self.tls else with_tls(place)

    async def _context(self) -> ssl.SSLContext | None:
        """Read the certificates again: they might have been renewed."""
        if not self.tls:
            return None
        return await anyio.to_thread.run_sync(tls_context, self._config, self._credentials)

    async def _identify(self) -> Identity:
        credentials = self._credentials
        return identity_of(credentials, "" if credentials is None else await credentials.token())

    def _challenged(self, connection: Connection) -> None:
        if connection not in self._challenges:  # another one before the answer asks for the same
            self._challenges.add(connection)
            self._tasks.start(self._respond(connection))

    async def _respond(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                connection.respond(await self._identify())
        except TimeoutError:
            connection.close(BrokerUnavailableError("no credentials in time for the broker's challenge"))
        except JMSError as error:
            connection.close(error)
        finally:
            self._challenges.discard(connection)


def _addresses(service_url: str) -> list[str]:
    scheme, _, hosts = service_url.partition("://")
    return [f"{scheme}://{host}" for host in hosts.split(",")]

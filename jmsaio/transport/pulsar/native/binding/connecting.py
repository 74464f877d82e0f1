"""Connect: find out whether the broker is reachable and accepts this client, and if not, why.

pulsar-client retries until its operation time-out and then reports no cause. So separate connections are made
meanwhile: they show the cause, which is logged while the broker is unreachable. If all addresses stay silent for
``connectionTimeoutMs``, no broker is there. Retrying is also useless if the credentials are refused, a certificate is
not trusted, or the broker uses TLS and the URL does not, or the reverse.

pulsar-client does not report why a broker, or TLS, refuses it either. So a CONNECT frame with the credentials is sent
over the separate connection; the broker answers CONNECTED or an error.

A service URL with ``http://`` or ``https://`` is that of the REST interface, where pulsar-client looks brokers up.
There a REST call replaces the separate connection.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import attrs
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from jmsaio.config import Configuration
from jmsaio.errors import AdminError, BrokerUnavailableError, JMSError, JMSSecurityError, NotFoundError, ProtocolError
from jmsaio.protocol.codes import ServerError
from jmsaio.protocol.commands import Command, decode_command, encode_command
from jmsaio.protocol.framing import Frame, Framing
from jmsaio.protocol.handshake import connect_frame
from jmsaio.transport.causes import cause_of
from jmsaio.transport.pulsar.admin import RestAdmin
from jmsaio.transport.pulsar.admin.causes import distrust, speaks_tls, with_tls, without_tls
from jmsaio.transport.pulsar.admin.credentials import (
    AuthKind,
    Credentials,
    authorities,
    flaw,
    identity_of,
    read_credentials,
    tls_context,
)

#: Description of an address that accepts this client.
ACCEPTED = "the broker accepts the connection, but does not answer"
#: Description of an address that accepts a TCP connection.
MUTE = "a TCP connection works, but no one speaks Pulsar's protocol there"
_PLAIN = "it speaks Pulsar's protocol without TLS, or not at all: is it pulsar:// instead of pulsar+ssl://?"
_LONGEST_ANSWER = 64 * 1024


async def introduce(
    connection: ByteStream, address: str, config: Configuration, credentials: Credentials | None
) -> str:
    """Describe an address: `ACCEPTED`, or a problem. The caller limits the time, and closes the connection.

    Args:
        connection: TCP connection to the address.
        address: ``host:port``, as in the service URL.
        config: configuration of TLS.
        credentials: credentials of this client, or None.

    Raises:
        JMSSecurityError: the broker refuses the credentials, or does not use TLS; one side does not trust the other's
            certificate; a file of certificates or credentials can't be read; an OAuth 2.0 server returns no token.
        BrokerUnavailableError: the OAuth 2.0 server does not answer.
    """
    stream, context = connection, tls_context(config, credentials) if config.scheme == "pulsar+ssl" else None
    try:
        if context is not None:
            stream = await TLSStream.wrap(
                connection, hostname=_host(address), ssl_context=context, standard_compatible=False
            )
        elif credentials is not None and not await answers_ping(stream):
            return MUTE
        token = "" if credentials is None else await credentials.token()
        await stream.send(connect_frame(identity_of(credentials, token)))
        return await _answer(stream, address, credentials, token)
    except (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
        reason = distrust(error, address)
        if reason is not None:
            raise JMSSecurityError(reason, "AuthenticationError") from error
        return _PLAIN if context is not None else MUTE


async def answers_ping(stream: ByteStream) -> bool:
    """Return whether a broker answers a PING, which needs no CONNECT before. The caller limits the time.

    This shows whether credentials can be sent without TLS: sending them to a port with TLS would only expose them.
    """
    try:
        await stream.send(encode_command(Command.PING))
        frame = await _receive(stream)
    except (anyio.BrokenResourceError, anyio.EndOfStream):
        return False
    return frame is not None and frame.kind == Command.PONG


async def check_scheme(connection: ByteStream, address: str, config: Configuration) -> None:
    """Check whether an address without a clear answer uses the other scheme.

    No credentials are sent: without TLS anyone could read them. The caller limits the time, and closes the connection.

    Raises:
        JMSSecurityError: it uses the other scheme.
    """
    if config.scheme != "pulsar+ssl":
        if await speaks_tls(connection, _host(address)):
            raise JMSSecurityError(with_tls(address), "AuthenticationError")
    elif await answers_ping(connection):
        raise JMSSecurityError(without_tls(address), "AuthenticationError")


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


async def _receive(stream: ByteStream) -> Frame | None:
    """Receive the next command; return None if the data is not one."""
    framing = Framing(_LONGEST_ANSWER)
    with suppress(ProtocolError):
        while True:
            for frame in framing.feed(await stream.receive()):
                return frame
    return None


async def _answer(stream: ByteStream, address: str, credentials: Credentials | None, token: str) -> str:
    """Read the broker's answer to a CONNECT."""
    frame = await _receive(stream)
    kind = None if frame is None else frame.kind
    if kind in (Command.CONNECTED, Command.AUTH_CHALLENGE):
        return ACCEPTED
    if frame is None or kind != Command.ERROR:
        return MUTE
    try:
        fields = decode_command(Command.ERROR, frame.data, frame.command, frame.rest)
    except ProtocolError:
        return MUTE
    if fields["error"] != ServerError.AuthenticationError:
        return ACCEPTED  # whatever prevents it from serving now, it does not refuse the credentials
    raise JMSSecurityError(
        f"the broker at {address} refuses the credentials: {flaw(credentials, token)}", "AuthenticationError"
    )


_log = logging.getLogger(__name__)

#: Seconds for pulsar-client alone, before separate connections are made.
_PATIENCE = 0.3
#: Seconds between two attempts.
_PAUSE = 0.5
#: Maximum seconds for the answer of an idle broker.
_SOON = 0.5
#: Maximum seconds for the check after pulsar-client has failed: two round trips, and loading the certificates (0.2 s of
#: CPU).
_LAST_LOOK = 5.0
#: Seconds between two checks while pulsar-client opens something: most slow openings have another reason.
_LONG_PAUSE = 5.0
_SILENT = "no answer to a TCP connection"


class Probe:
    """The addresses of a service URL, and the reasons why they can't be used.

    Args:
        config: configuration with the service URL, ``connectionTimeoutMs``, credentials and TLS options.

    Attributes:
        is_web: whether the service URL is that of the REST interface.
    """

    def __init__(self, config: Configuration) -> None:
        self._config = config
        self.is_web = config.service_url.startswith("http")
        self._credentials = read_credentials(config.auth_plugin, config.auth_params, authorities(config))
        self._url = config.service_url
        self._addresses = urlsplit(config.service_url).netloc.split(",")
        extra: Mapping[str, Any] = config.client
        self._timeout = extra.get("connection_timeout_ms", 10000) / 1000
        self._causes: dict[str, str | JMSError] = {}
        self._reached: set[str] = set()  # addresses that accepted a TCP connection in the last check

    @property
    def error(self) -> JMSError | None:
        """Error of the last check if no address could be used and an error explains it; None otherwise.

        JMSSecurityError: a broker or TLS refuses the connection. BrokerUnavailableError: there is no token, because the
        OAuth 2.0 server does not answer.
        """
        if self._taken:
            return None
        return next((cause for cause in self._causes.values() if isinstance(cause, JMSError)), None)

    @property
    def accepted(self) -> bool:
        """Whether a broker accepted this client in the last check."""
        return ACCEPTED in self._causes.values()

    @property
    def _found(self) -> str:
        """Description of the result for each address."""
        return "; ".join(f"{address}: {cause}" for address, cause in self._causes.items())

    @property
    def _taken(self) -> bool:
        """Whether an address accepts connections, so that it is unknown why it does not answer."""
        return any(cause in (ACCEPTED, MUTE) for cause in self._causes.values())

    async def hopeless(self) -> None:
        """Return once no address can ever be used by this client; until then, check again and log the causes."""
        await asyncio.sleep(_PATIENCE)
        async with anyio.create_task_group() as group:
            group.start_soon(self._report)
            while True:
                await self.look(self._timeout)
                if all(cause == _SILENT or isinstance(cause, JMSError) for cause in self._causes.values()):
                    group.cancel_scope.cancel()
                    return
                await asyncio.sleep(_PAUSE)

    async def _report(self) -> None:
        """Log why the broker is unreachable: soon if no address accepts connections, then repeatedly."""
        await asyncio.sleep(_PAUSE)
        if self._taken:  # it might only be slow
            await asyncio.sleep(_LONG_PAUSE)
        while True:
            limit = self._config.connect_timeout
            _log.warning("no broker answers at %s yet, trying for %g s: %s", self._url, limit, self._found)
            await asyncio.sleep(_LONG_PAUSE)

    async def safe(self) -> None:
        """Return when pulsar-client can safely connect: with TLS, or once a broker has answered without it.

        Otherwise credentials could be exposed; and an answer from a server other than Pulsar's REST interface would end
        the process, because pulsar-client treats any answer as that of a look-up.
        """
        credentials = self._credentials
        secure = self._config.scheme == "pulsar+ssl" or credentials is None or credentials.kind is AuthKind.TLS
        if secure and not self.is_web:
            return
        async with anyio.create_task_group() as group:
            for address in self._addresses:
                group.start_soon(self._ping, address, group.cancel_scope)

    async def _ping(self, address: str, done: anyio.CancelScope) -> None:
        """Cancel ``done`` when a broker has answered."""
        while True:
            with anyio.move_on_after(self._timeout), suppress(OSError, JMSError):
                if await self._answers(address):
                    done.cancel()
            await asyncio.sleep(_PAUSE)

    async def _answers(self, address: str) -> bool:
        """Return whether a broker answers a PING, or accepts a REST call."""
        if self.is_web:
            return await self._visit(address) == ACCEPTED
        async with _connection(address) as stream:
            return await answers_ping(stream)

    async def refusal(self) -> JMSError | None:
        """Return why this client can't connect now (see ``error``), if this can be found within a second."""
        await self.look(min(1.0, self._timeout))
        return self.error

    async def refusal_of(self, owner: str) -> JMSError | None:
        """Return why the broker at a looked-up address refuses this client. The caller limits the time."""
        with suppress(OSError):
            async with _connection(owner) as stream:
                try:
                    await introduce(stream, owner, self._config, self._credentials)
                except JMSError as error:
                    return error
        return None

    async def until_refused(self) -> JMSError:
        """Wait until the broker refuses this client, and return the error."""
        await asyncio.sleep(_PATIENCE)
        while True:
            refused = await self.refusal()
            if refused is not None:
                return refused
            await asyncio.sleep(_LONG_PAUSE)

    async def look(self, timeout: float) -> None:
        """Check all addresses, for up to ``timeout`` seconds."""
        async with anyio.create_task_group() as group:
            for address in self._addresses:
                group.start_soon(self._try, address, timeout)

    async def _try(self, address: str, timeout: float) -> None:
        self._causes.setdefault(address, _SILENT)
        self._reached.discard(address)
        try:
            with anyio.fail_after(timeout):
                self._causes[address] = await self._meet(address)
        except TimeoutError:
            self._causes[address] = MUTE if address in self._reached else _SILENT
        except OSError as error:
            self._causes[address] = cause_of(error)
        except JMSError as error:
            self._causes[address] = error

    async def _meet(self, address: str) -> str:
        """Describe an address; if it gives no clear answer soon, check whether it uses the other scheme."""
        if self.is_web:
            return await self._visit(address)
        with anyio.move_on_after(_SOON):
            async with self._connected(address) as stream:
                met = await introduce(stream, address, self._config, self._credentials)
            if met == ACCEPTED:
                return met
        if address in self._reached:
            left = anyio.current_effective_deadline() - anyio.current_time()
            with anyio.move_on_after(max(_SOON, left / 2)):  # on a crowded machine a TLS handshake takes seconds
                async with self._connected(address) as stream:
                    await check_scheme(stream, address, self._config)
        async with self._connected(address) as stream:
            return await introduce(stream, address, self._config, self._credentials)

    async def _visit(self, address: str) -> str:
        """Describe an address of a REST interface; raises as ``introduce``."""
        url = f"{self._url.partition(':')[0]}://{address}"
        admin = RestAdmin(attrs.evolve(self._config, web_service_url=url))
        try:
            await admin.version()
        except AdminError as error:
            return cause_of(error.__cause__) if error.status is None and error.__cause__ is not None else str(error)
        except NotFoundError as error:
            return str(error)
        finally:
            with anyio.CancelScope(shield=True):
                await admin.aclose()
        return ACCEPTED

    @asynccontextmanager
    async def _connected(self, address: str) -> AsyncIterator[anyio.abc.SocketStream]:
        """Open a TCP connection to an address, and record it."""
        async with _connection(address) as stream:
            if address not in self._reached:
                self._reached.add(address)
                self._causes[address] = MUTE
            yield stream

    async def trouble(self) -> str | None:
        """Describe why no address is reachable, if this can be found within a second; None if one is."""
        await self.look(min(1.0, self._timeout))
        return None if self._taken else self._found

    async def failure(self, seconds: float, refused: JMSSecurityError | None = None) -> JMSError:
        """Create the error of a connect that took ``seconds``, with host and port if no broker answers.

        Args:
            seconds: the duration of the connect.
            refused: pulsar-client's error, without a cause: returned if no cause is found.
        """
        if refused is not None or not self._causes:
            await self.look(min(_LAST_LOOK, self._timeout))
        if self.error is not None:
            return again(f"connect to {self._url}", self.error)
        if refused is not None:
            return refused
        host, _, port = self._addresses[0].rpartition(":")
        within = f" within {seconds:.3g} s" if seconds >= _PATIENCE else ""  # an unknown host is reported at once
        return BrokerUnavailableError(
            f"no broker answers at {self._url}{within}: {self._found}", host.strip("[]"), int(port)
        )


@asynccontextmanager
async def _connection(address: str) -> AsyncIterator[anyio.abc.SocketStream]:
    host, _, port = address.rpartition(":")
    stream = await anyio.connect_tcp(host.strip("[]"), int(port))
    try:
        yield stream
    finally:
        with anyio.CancelScope(shield=True):  # completely closed before the caller can close the loop
            await stream.aclose()


def again(what: str, error: JMSError) -> JMSError:
    """Create an error of the same kind whose text starts with the operation it prevents."""
    made = type(error)(f"{what}: {error}", error_code=error.error_code)
    if isinstance(error, BrokerUnavailableError) and isinstance(made, BrokerUnavailableError):
        made.host, made.port = error.host, error.port
    return made

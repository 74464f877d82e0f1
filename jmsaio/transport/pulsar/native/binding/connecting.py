"""Connect: find out whether the broker is reachable and accepts this client, and if not, why.

pulsar-client retries until its operation time-out and then reports no cause: an unreachable address, refused
credentials, a certificate that is not trusted. So a CONNECT frame is sent over separate connections meanwhile: they
show the cause, and whether retrying is useless. If all addresses stay silent for ``connectionTimeoutMs``, no broker is
there. A service URL with ``http://`` or ``https://`` names the REST interface; there a REST call replaces the frame.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import anyio
import attrs
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from jmsaio.config import Configuration
from jmsaio.errors import AdminError, BrokerUnavailableError, JMSError, JMSSecurityError, NotFoundError, ProtocolError
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
_SILENT = "no answer to a TCP connection"
_LONGEST_ANSWER = 64 * 1024
_AUTHENTICATION_ERROR = 3  # of the protocol
#: Seconds for pulsar-client alone, before separate connections are made.
_PATIENCE = 0.3
#: Seconds between two attempts.
_PAUSE = 0.5
#: Maximum seconds of a check whose result is waited for.
_SOON = 1.0
#: Maximum seconds for the check after pulsar-client has failed: two round trips, and loading the certificates.
_LAST_CHECK = 5.0
#: Seconds between two checks while pulsar-client opens something: most slow openings have another reason.
_LONG_PAUSE = 5.0
_log = logging.getLogger(__name__)


async def introduce(
    connection: ByteStream, address: str, config: Configuration, credentials: Credentials | None
) -> str:
    """Describe an address: ``ACCEPTED``, or a problem. The caller limits the time, and closes the connection."""
    stream, context = connection, tls_context(config, credentials) if config.scheme == "pulsar+ssl" else None
    try:
        if context is not None:
            stream = await TLSStream.wrap(
                connection, hostname=_host(address), ssl_context=context, standard_compatible=False
            )
        # A port that uses TLS would expose credentials. A PING needs no CONNECT before.
        elif credentials is not None and not await _answers_ping(stream):
            return MUTE
        token = "" if credentials is None else await credentials.token()
        await stream.send(connect_frame(identity_of(credentials, token)))
        frame = await _receive(stream)
        if frame.kind not in (Command.CONNECTED, Command.AUTH_CHALLENGE, Command.ERROR):
            return MUTE
        if frame.kind == Command.ERROR:
            fields = decode_command(Command.ERROR, frame.data, frame.command, frame.rest)
            if fields["error"] == _AUTHENTICATION_ERROR:
                reason = f"the broker at {address} refuses the credentials: {flaw(credentials, token)}"
                raise JMSSecurityError(reason, "AuthenticationError")
        return ACCEPTED  # whatever else prevents it from serving now, it does not refuse the credentials
    except ProtocolError:
        return MUTE
    except (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
        remedy = distrust(error, address)
        if remedy is not None:
            raise JMSSecurityError(remedy, "AuthenticationError") from error
        return _PLAIN if context is not None else MUTE


async def _check_scheme(connection: ByteStream, address: str, tls: bool) -> None:
    """Raise JMSSecurityError if an address uses the other scheme. No credentials are sent."""
    if not tls and await speaks_tls(connection, _host(address)):
        raise JMSSecurityError(with_tls(address), "AuthenticationError")
    if tls and await _answers_ping(connection):
        raise JMSSecurityError(without_tls(address), "AuthenticationError")


async def _answers_ping(stream: ByteStream) -> bool:
    with suppress(ProtocolError, anyio.BrokenResourceError, anyio.EndOfStream):
        await stream.send(encode_command(Command.PING))
        return (await _receive(stream)).kind == Command.PONG
    return False


async def _receive(stream: ByteStream) -> Frame:
    framing = Framing(_LONGEST_ANSWER)
    while True:
        for frame in framing.feed(await stream.receive()):
            return frame


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


@asynccontextmanager
async def _connection(address: str) -> AsyncIterator[ByteStream]:
    stream = await anyio.connect_tcp(_host(address), int(address.rpartition(":")[2]))
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


class Probe:
    """The addresses of the configuration's service URL, and the reasons why they can't be used."""

    def __init__(self, config: Configuration) -> None:
        self._config = config
        self._url = config.service_url
        self.is_web = self._url.startswith("http")  # the REST interface
        self._credentials = read_credentials(config.auth_plugin, config.auth_params, authorities(config))
        self._addresses = urlsplit(self._url).netloc.split(",")
        self._timeout = config.connection_timeout_ms / 1000
        self._causes: dict[str, str | JMSError] = {}
        self._begin = 0.0  # time of the connect

    @property
    def error(self) -> JMSError | None:
        """Error of the last check if no address could be used and an error explains it (see ``introduce``), or None."""
        if self._reached:
            return None
        return next((cause for cause in self._causes.values() if isinstance(cause, JMSError)), None)

    @property
    def _found(self) -> str:
        return "; ".join(f"{address}: {cause}" for address, cause in self._causes.items())

    @property
    def _reached(self) -> bool:
        """Whether an address accepts connections, so that it is unknown why it does not answer."""
        return any(cause in (ACCEPTED, MUTE) for cause in self._causes.values())

    async def hopeless(self) -> JMSError:
        """Return an error once no address can ever be used by this client; until then, log the causes."""
        self._begin = anyio.current_time()
        await asyncio.sleep(_PATIENCE)
        async with anyio.create_task_group() as group:
            group.start_soon(self._report)
            while True:
                await self._check_all(self._timeout)
                if all(cause == _SILENT or isinstance(cause, JMSError) for cause in self._causes.values()):
                    group.cancel_scope.cancel()
                    break
                await asyncio.sleep(_PAUSE)
        return await self.failure()

    async def _report(self) -> None:
        await asyncio.sleep(_PAUSE)
        if self._reached:  # it might only be slow
            await asyncio.sleep(_LONG_PAUSE)
        while True:
            limit = self._config.connect_timeout
            _log.warning("no broker answers at %s yet, trying for %g s: %s", self._url, limit, self._found)
            await asyncio.sleep(_LONG_PAUSE)

    async def safe(self) -> None:
        """Return when pulsar-client can safely connect: with TLS, or once a broker has answered without it.

        Otherwise credentials could be exposed, and the answer of another server than Pulsar's could end the process.
        """
        credentials = self._credentials
        secure = self._config.scheme == "pulsar+ssl" or credentials is None or credentials.kind is AuthKind.TLS
        if secure and not self.is_web:
            return
        async with anyio.create_task_group() as group:
            for address in self._addresses:
                group.start_soon(self._ping, address, group.cancel_scope)

    async def _ping(self, address: str, done: anyio.CancelScope) -> None:
        while True:
            with anyio.move_on_after(self._timeout), suppress(OSError, JMSError):
                if self.is_web:
                    answered = await self._visit(address) == ACCEPTED
                else:
                    async with _connection(address) as stream:
                        answered = await _answers_ping(stream)
                if answered:
                    done.cancel()
            await asyncio.sleep(_PAUSE)

    async def refusal(self) -> JMSError | None:
        await self._check_all(min(_SOON, self._timeout))
        return self.error

    async def refusal_of(self, owner: str) -> JMSError | None:
        """Return why the broker at a looked-up address refuses this client. The caller limits the time."""
        try:
            async with _connection(owner) as stream:
                await introduce(stream, owner, self._config, self._credentials)
        except JMSError as error:
            return error
        except OSError:
            pass  # unreachable: that is no refusal
        return None

    async def until_refused(self, delay: float) -> JMSError:
        await asyncio.sleep(delay)
        while True:
            refused = await self.refusal()
            if refused is not None:
                return refused
            await asyncio.sleep(_LONG_PAUSE)

    async def explain(self, error: JMSError) -> JMSError:
        refused = await self.refusal()
        if refused is not None:
            return again(str(error), refused)
        if self._reached:
            return error
        text = f"{error}: the broker can't be reached: {self._found}"
        return BrokerUnavailableError(text, error_code=error.error_code)

    async def failure(self, refused: JMSSecurityError | None = None) -> JMSError:
        """Create the error of a connect: ``refused``, pulsar-client's error, if no cause is found."""
        seconds = anyio.current_time() - self._begin
        if refused is not None or not self._causes:
            await self._check_all(min(_LAST_CHECK, self._timeout))
        if self.error is not None:
            return again(f"connect to {self._url}", self.error)
        if refused is not None:
            return refused
        first = self._addresses[0]
        within = f" within {seconds:.3g} s" if seconds >= _PATIENCE else ""  # an unknown host is reported at once
        text = f"no broker answers at {self._url}{within}: {self._found}"
        return BrokerUnavailableError(text, _host(first), int(first.rpartition(":")[2]))

    async def _check_all(self, timeout: float) -> None:
        async with anyio.create_task_group() as group:
            for address in self._addresses:
                group.start_soon(self._check, address, timeout)

    async def _check(self, address: str, timeout: float) -> None:
        """Check an address; without a clear answer in half of the time, check whether it uses the other scheme."""
        cause: str | JMSError = _SILENT
        self._causes.setdefault(address, cause)
        try:
            with anyio.move_on_after(timeout):
                if self.is_web:
                    cause = await self._visit(address)
                else:
                    async with _connection(address) as stream:
                        cause = self._causes[address] = MUTE
                        with anyio.move_on_after(timeout / 2):  # a TLS handshake can take seconds
                            cause = await introduce(stream, address, self._config, self._credentials)
                    if cause != ACCEPTED:
                        async with _connection(address) as stream:
                            await _check_scheme(stream, address, self._config.scheme == "pulsar+ssl")
        except OSError as error:
            cause = cause_of(error)
        except JMSError as error:
            cause = error
        self._causes[address] = cause

    async def _visit(self, address: str) -> str:
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

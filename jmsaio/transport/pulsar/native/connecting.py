"""Connecting: whether the broker can be reached and accepts this client, and if not, why.

pulsar-client tries again until its operation time-out and then gives no cause. So while it tries, connections are made
beside it: they show the cause, and the log has it while the broker is away. When an address stays silent for
``connectionTimeoutMs`` no one is there; who is refused for his credentials, trusts another certificate, or meets TLS
where the URL has none or none where it has, need not try again.

A service URL with ``http://`` or ``https://`` names the REST interface, where pulsar-client looks brokers up. There a
REST call takes the place of the connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import AdminError, BrokerUnavailableError, JMSError, JMSSecurityError, NotFoundError
from jmsaio.transport.pulsar.admin import open_admin
from jmsaio.transport.pulsar.admin.causes import cause_of
from jmsaio.transport.pulsar.admin.credentials import AuthKind, authorities, read_credentials
from jmsaio.transport.pulsar.native.handshake import ACCEPTED, MUTE, answers_ping, check_scheme, introduce

_log = logging.getLogger("jmsaio")

#: Seconds that pulsar-client has before anything is tried beside it.
_PATIENCE = 0.3
#: Seconds between two tries.
_PAUSE = 0.5
#: Seconds within which a broker that is not busy answers.
_SOON = 0.5
#: Seconds for the look after pulsar-client has given up: two round trips, and the certificates to be loaded.
_LAST_LOOK = 2.0
#: Seconds between two looks while pulsar-client opens something: most that takes longer has another reason.
_LONG_PAUSE = 5.0
_SILENT = "no answer to a TCP connection"


class Reach:
    """The addresses of a service URL, and why they can't be reached.

    Args:
        config: with the service URL, ``connectionTimeoutMs``, credentials and TLS.

    Attributes:
        is_web: the service URL names the REST interface.
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
        self._reached: set[str] = set()  # those that took a TCP connection in the last look

    @property
    def error(self) -> JMSError | None:
        """Why no address could be used at the last look, where that is an error of its own; None if one can.

        JMSSecurityError: a broker, or TLS, is against the connection. BrokerUnavailableError: there is no token for it,
        because the OAuth 2.0 server does not answer.
        """
        if self._taken:
            return None
        return next((cause for cause in self._causes.values() if isinstance(cause, JMSError)), None)

    @property
    def accepted(self) -> bool:
        """Whether a broker accepted this client at the last look."""
        return ACCEPTED in self._causes.values()

    @property
    def _found(self) -> str:
        """What was found at each address."""
        return "; ".join(f"{address}: {cause}" for address, cause in self._causes.items())

    @property
    def _taken(self) -> bool:
        """An address takes connections; why nothing else comes from there does not show."""
        return any(cause in (ACCEPTED, MUTE) for cause in self._causes.values())

    async def hopeless(self) -> None:
        """Returns when no address can ever be used by this client; looks again, and reports, as long as one might."""
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
        """Log what keeps the broker away: soon if no address takes connections, and again and again."""
        await asyncio.sleep(_PAUSE)
        if self._taken:  # it may only be slow
            await asyncio.sleep(_LONG_PAUSE)
        while True:
            limit = self._config.connect_timeout
            _log.warning("no broker answers at %s yet, trying for %g s: %s", self._url, limit, self._found)
            await asyncio.sleep(_LONG_PAUSE)

    async def safe(self) -> None:
        """Return when pulsar-client can be asked: with TLS, or when a broker has answered without it.

        Until then credentials would be betrayed; and what is no REST interface of Pulsar would end the process, since
        pulsar-client takes any answer for a look-up's.
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
        """Whether a broker answers a PING, or accepts a REST call."""
        if self.is_web:
            return await self._visit(address) == ACCEPTED
        async with _connection(address) as stream:
            return await answers_ping(stream)

    async def refusal(self) -> JMSError | None:
        """Why this client can't connect now (see ``error``), as far as that shows within a second."""
        await self.look(min(1.0, self._timeout))
        return self.error

    async def until_refused(self) -> JMSError:
        """Wait until the broker refuses this client, and return why."""
        await asyncio.sleep(_PATIENCE)
        while True:
            refused = await self.refusal()
            if refused is not None:
                return refused
            await asyncio.sleep(_LONG_PAUSE)

    async def look(self, timeout: float) -> None:
        """Try all addresses, for ``timeout`` seconds at most."""
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
        """What an address is; one that gives no clear answer soon is asked whether it speaks as the other scheme."""
        if self.is_web:
            return await self._visit(address)
        with anyio.move_on_after(_SOON):
            async with self._connected(address) as stream:
                met = await introduce(stream, address, self._config, self._credentials)
            if met == ACCEPTED:
                return met
        if address in self._reached:
            with anyio.move_on_after(_SOON):
                async with self._connected(address) as stream:
                    await check_scheme(stream, address, self._config)
        async with self._connected(address) as stream:
            return await introduce(stream, address, self._config, self._credentials)

    async def _visit(self, address: str) -> str:
        """What an address of a REST interface is; raises as ``introduce``."""
        url = f"{self._url.partition(':')[0]}://{address}"
        admin = open_admin(attrs.evolve(self._config, web_service_url=url))
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
        """A TCP connection to an address, which is noted."""
        async with _connection(address) as stream:
            if address not in self._reached:
                self._reached.add(address)
                self._causes[address] = MUTE
            yield stream

    async def trouble(self) -> str | None:
        """Why no address can be reached, as far as that shows within a second; None if one can."""
        await self.look(min(1.0, self._timeout))
        return None if self._taken else self._found

    async def failure(self, seconds: float, refused: JMSSecurityError | None = None) -> JMSError:
        """The error of a connect that took ``seconds``; carries host and port where no one answers.

        Args:
            seconds: the duration of the connect.
            refused: what pulsar-client said, which does not know why: the answer if no cause shows.
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
        with anyio.CancelScope(shield=True):  # closed for good before anyone closes the loop
            await stream.aclose()


def again(what: str, error: JMSError) -> JMSError:
    """An error of the same kind that says what it keeps from being done."""
    made = type(error)(f"{what}: {error}", error_code=error.error_code)
    if isinstance(error, BrokerUnavailableError) and isinstance(made, BrokerUnavailableError):
        made.host, made.port = error.host, error.port
    return made

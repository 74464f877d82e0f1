"""Connecting: whether the broker can be reached and accepts this client, and if not, why.

pulsar-client tries again until its operation time-out and then gives no cause. So while it tries, connections are made
beside it: they show the cause. When an address stays silent for ``connectionTimeoutMs`` no one is there, and who is
refused for his credentials, or trusts another certificate, need not try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio

from jmsaio.config import Configuration
from jmsaio.errors import BrokerUnavailableError, JMSError, JMSSecurityError
from jmsaio.transport.pulsar.admin.causes import cause_of
from jmsaio.transport.pulsar.admin.credentials import read_credentials
from jmsaio.transport.pulsar.native.handshake import ACCEPTED, MUTE, introduce

#: Seconds that pulsar-client has before anything is tried beside it.
_PATIENCE = 0.3
#: Seconds between two tries.
_PAUSE = 0.5
#: Seconds for the look after pulsar-client has given up: two round trips, and the certificates to be loaded.
_LAST_LOOK = 2.0
#: Seconds between two looks while pulsar-client opens something: most that takes longer has another reason.
_LONG_PAUSE = 5.0
_SILENT = "no answer to a TCP connection"


class Reach:
    """The addresses of a service URL, and why they can't be reached.

    Args:
        config: with the service URL, ``connectionTimeoutMs``, credentials and TLS.
    """

    def __init__(self, config: Configuration) -> None:
        self._config = config
        self._credentials = read_credentials(config.auth_plugin, config.auth_params)
        self._url = config.service_url
        self._addresses = urlsplit(config.service_url).netloc.split(",")
        extra: Mapping[str, Any] = config.client
        self._timeout = extra.get("connection_timeout_ms", 10000) / 1000
        self._causes: dict[str, str | JMSSecurityError] = {}

    @property
    def refused(self) -> JMSSecurityError | None:
        """What security had against the connection at the last look; None if an address can be used."""
        causes = self._causes.values()
        if any(cause in (ACCEPTED, MUTE) for cause in causes):
            return None
        return next((cause for cause in causes if isinstance(cause, JMSSecurityError)), None)

    async def hopeless(self) -> None:
        """Returns when each address stays silent or refuses this client; goes on looking as long as one does not."""
        await asyncio.sleep(_PATIENCE)
        while True:
            await self.look(self._timeout)
            if all(cause == _SILENT or isinstance(cause, JMSSecurityError) for cause in self._causes.values()):
                return
            await asyncio.sleep(_PAUSE)

    async def refusal(self) -> JMSSecurityError | None:
        """What security has against the connection now, as far as that shows within a second."""
        await self.look(min(1.0, self._timeout))
        return self.refused

    async def until_refused(self) -> JMSSecurityError:
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
        host, _, port = address.rpartition(":")
        cause: str = _SILENT
        try:
            with anyio.fail_after(timeout):
                stream = await anyio.connect_tcp(host.strip("[]"), int(port))
                try:
                    cause = self._causes[address] = MUTE
                    self._causes[address] = await introduce(stream, address, self._config, self._credentials)
                finally:
                    with anyio.CancelScope(shield=True):  # closed for good before anyone closes the loop
                        await stream.aclose()
        except TimeoutError:
            self._causes[address] = cause
        except OSError as error:
            self._causes[address] = cause_of(error)
        except JMSSecurityError as error:
            self._causes[address] = error

    async def trouble(self) -> str | None:
        """Why no address can be reached, as far as that shows within a second; None if one can."""
        await self.look(min(1.0, self._timeout))
        if any(cause in (ACCEPTED, MUTE) for cause in self._causes.values()):
            return None
        return "; ".join(f"{address}: {cause}" for address, cause in self._causes.items())

    async def failure(self, seconds: float) -> JMSError:
        """The error of a connect that took ``seconds``; carries host and port where no one answers."""
        if not self._causes:
            await self.look(min(_LAST_LOOK, self._timeout))
        if self.refused is not None:
            return JMSSecurityError(f"connect to {self._url}: {self.refused}", self.refused.error_code)
        cause = "; ".join(f"{address}: {cause}" for address, cause in self._causes.items())
        host, _, port = self._addresses[0].rpartition(":")
        within = f" within {seconds:.3g} s" if seconds >= _PATIENCE else ""  # an unknown host is reported at once
        return BrokerUnavailableError(f"no broker answers at {self._url}{within}: {cause}", host.strip("[]"), int(port))

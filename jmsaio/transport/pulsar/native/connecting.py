"""Connecting: whether a TCP connection to the broker works at all, and if not, why.

pulsar-client tries again until its operation time-out and then gives no cause. So while it tries, TCP connections are
made beside it: they show the cause, and when an address stays silent for ``connectionTimeoutMs`` no one is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio

from jmsaio.config import Configuration
from jmsaio.errors import BrokerUnavailableError
from jmsaio.transport.pulsar.admin.causes import cause_of

#: Seconds that pulsar-client has before anything is tried beside it.
_PATIENCE = 0.3
#: Seconds between two tries.
_PAUSE = 0.5
_SILENT = "no answer to a TCP connection"


class Reach:
    """The addresses of a service URL, and why they can't be reached.

    Args:
        config: with the service URL and ``connectionTimeoutMs``.
    """

    def __init__(self, config: Configuration) -> None:
        self._url = config.service_url
        self._addresses = urlsplit(config.service_url).netloc.split(",")
        extra: Mapping[str, Any] = config.client
        self._timeout = extra.get("connection_timeout_ms", 10000) / 1000
        self._causes: dict[str, str | None] = {}

    async def silent(self) -> None:
        """Returns when no address answers, be it to refuse; goes on looking as long as one does."""
        await asyncio.sleep(_PATIENCE)
        while True:
            await self.look(self._timeout)
            if all(cause == _SILENT for cause in self._causes.values()):
                return
            await asyncio.sleep(_PAUSE)

    async def look(self, timeout: float) -> None:
        """Try all addresses, for ``timeout`` seconds at most."""
        async with anyio.create_task_group() as group:
            for address in self._addresses:
                group.start_soon(self._try, address, timeout)

    async def _try(self, address: str, timeout: float) -> None:
        self._causes.setdefault(address, _SILENT)
        host, _, port = address.rpartition(":")
        try:
            with anyio.fail_after(timeout):
                stream = await anyio.connect_tcp(host.strip("[]"), int(port))
                await stream.aclose()
        except TimeoutError:
            self._causes[address] = _SILENT
        except OSError as error:
            self._causes[address] = cause_of(error)
        else:
            self._causes[address] = None

    async def trouble(self) -> str | None:
        """Why no address can be reached, as far as that shows within a second; None if one can."""
        await self.look(min(1.0, self._timeout))
        causes = [f"{address}: {cause}" for address, cause in self._causes.items() if cause is not None]
        return "; ".join(causes) if len(causes) == len(self._addresses) else None

    async def failure(self, seconds: float) -> BrokerUnavailableError:
        """The error of a connect that took ``seconds``; carries host and port."""
        if not self._causes:
            await self.look(min(1.0, self._timeout))
        spoken = "a TCP connection works, but no one speaks Pulsar's protocol there"
        cause = "; ".join(f"{address}: {cause or spoken}" for address, cause in self._causes.items())
        host, _, port = self._addresses[0].rpartition(":")
        within = f" within {seconds:.3g} s" if seconds >= _PATIENCE else ""  # an unknown host is reported at once
        return BrokerUnavailableError(f"no broker answers at {self._url}{within}: {cause}", host.strip("[]"), int(port))

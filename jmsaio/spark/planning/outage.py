"""Retries while a broker is temporarily unreachable, such as during a restart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import attrs

from jmsaio.errors import JMSError
from jmsaio.transport.subscriptions import passes

T = TypeVar("T")
_log = logging.getLogger(__name__)

#: Seconds between two attempts.
_PAUSE: Final = 1.0


@attrs.define(eq=False)
class Outage:
    """State of a broker outage, as one planner or task sees it.

    ``limit`` is its maximum in seconds (option ``outageTimeout``); with 0, every error is raised at once.
    """

    limit: float
    _since: float | None = attrs.field(init=False, default=None)
    _reason: str = attrs.field(init=False, default="")

    def note(self, error: JMSError) -> None:
        """Record a failed call; the first failure of an outage is logged as a WARNING.

        Raises ``error`` itself, unless it means that the broker is unreachable and the outage is within the limit.
        """
        now = asyncio.get_running_loop().time()
        begun = now if self._since is None else self._since
        if not passes(error) or now - begun >= self.limit:
            raise error
        if self._since is None:
            self._since = begun
            _log.warning("the broker is unreachable; waiting for up to %g s (outageTimeout): %s", self.limit, error)
        self._reason = str(error)

    def end(self) -> None:
        """Record that the broker has answered."""
        if self._since is not None:
            seconds = asyncio.get_running_loop().time() - self._since
            self._since = None
            _log.warning("the broker answers again after %.0f s", seconds)

    def shown(self) -> dict[str, Any] | None:
        """Return the current outage as JSON: ``seconds`` since its first error, and newest ``reason``; None without."""
        if self._since is None:
            return None
        return {"seconds": round(asyncio.get_running_loop().time() - self._since, 1), "reason": self._reason}

    async def wait(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry a call once a second until the broker answers; raises as ``note``."""
        while True:
            try:
                answer = await call()
            except JMSError as error:
                self.note(error)
            else:
                self.end()
                return answer
            await asyncio.sleep(_PAUSE)

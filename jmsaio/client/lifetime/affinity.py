"""The event loop and the process of a connection and of everything created from it."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import attrs

from jmsaio.errors import ForkError, IllegalStateError
from jmsaio.transport import forks


@attrs.define(eq=False)
class Affinity:
    """The event loop and process in which an object was created."""

    loop: asyncio.AbstractEventLoop
    _forks: int

    @classmethod
    def here(cls) -> Affinity:
        """Return the running loop and this process."""
        return cls(asyncio.get_running_loop(), forks.count)

    @property
    def forked(self) -> bool:
        """Whether this is a child of the process in which it was created."""
        return self._forks != forks.count

    def check(self) -> None:
        """Raise IllegalStateError outside of the loop, ForkError in a child process."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is not self.loop or self._forks != forks.count:
            self.refuse()

    def check_process(self) -> None:
        """Raise ForkError in a child process."""
        if self._forks != forks.count:
            self.refuse()

    def refuse(self) -> NoReturn:
        """Raise the error of ``check``."""
        if self.forked:
            raise ForkError("it was created in the parent process; create a new connection after the fork")
        raise IllegalStateError(
            "called outside the event loop of the connection; from another thread use "
            "asyncio.run_coroutine_threadsafe(..., loop), in another loop create another connection"
        )

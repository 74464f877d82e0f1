"""One event loop and one transport for each process of Spark, whichever tasks run there.

Spark calls a source's functions without an event loop, and uses a Python process for many tasks. So a process has one
loop, which runs only while a task waits for it, once for each list of records, and one client of the broker for each
set of connection options. Both belong to the process that made them: Spark forks its workers.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import JMSSecurityError, ObjectClosedError, TransportError
from jmsaio.spark.planning.outage import Outage
from jmsaio.transport.base import Transport
from jmsaio.transport.registry import open_transport

T = TypeVar("T")
#: What a task raises after which the next one should not use the same connection: it may be lost, or its credentials
#: may be out of date.
CONNECTION_ERRORS: Final = (TransportError, JMSSecurityError, ObjectClosedError)


@attrs.define(eq=False)
class Worker:
    """A loop and a transport that runs on it.

    Attributes:
        transport: open until ``close``.
        configuration: of the transport, with the secrets as they were when it was opened.
    """

    transport: Transport
    configuration: Configuration
    _runner: asyncio.Runner

    @classmethod
    def open(cls, configure: Callable[[], Configuration], outage_timeout: float = 0.0) -> Worker:
        """Connect.

        Args:
            configure: gives the configuration, for each attempt.
            outage_timeout: how long an unreachable broker is waited for, in seconds.

        Raises:
            BrokerUnavailableError: the broker does not answer within ``connect_timeout`` seconds, and the outage lasts
                longer than ``outage_timeout``.
            JMSSecurityError: it refuses the credentials.
        """

        async def connect() -> tuple[Transport, Configuration]:
            configuration = configure()
            return await open_transport(configuration), configuration

        runner = asyncio.Runner()
        try:
            transport, configuration = runner.run(Outage(outage_timeout).wait(connect))
        except BaseException:
            runner.close()
            raise
        return cls(transport, configuration, runner)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; what Ctrl-C or a signal raises cancels it."""
        return self._runner.run(work)

    def close(self) -> None:
        """Close the transport, within ``close_timeout`` seconds, and the loop."""
        try:
            self._runner.run(self.transport.aclose(self.configuration.close_timeout))
        finally:
            self._runner.close()


@attrs.define
class _Workers:
    """The workers of one process, by their connection options."""

    process: int
    by_connection: dict[frozenset[tuple[str, str]], Worker] = attrs.field(factory=dict)


_workers: Final = _Workers(-1)


def worker(
    connection: Mapping[str, str], configure: Callable[[], Configuration], outage_timeout: float = 0.0
) -> Worker:
    """The worker of this process for these connection options, connected at the first call.

    Args:
        connection: the options as they were given, before secrets are resolved.
        configure: resolves them; called for each new connection, so that a new one has the secret of its time.
        outage_timeout: as for ``Worker.open``.

    Raises:
        As ``Worker.open`` and ``configure``.
    """
    if _workers.process != os.getpid():  # what a parent process left cannot be used, and is not ours to close
        _workers.by_connection = {}
        _workers.process = os.getpid()
    key = frozenset(connection.items())
    found = _workers.by_connection.get(key)
    if found is None:
        found = _workers.by_connection[key] = Worker.open(configure, outage_timeout)
    return found


def forget(connection: Mapping[str, str]) -> None:
    """Close the worker for these options, if there is one, so that the next task connects anew.

    A task that failed at the broker calls it: the credentials may have been replaced since the connection was made.
    """
    found = _workers.by_connection.pop(frozenset(connection.items()), None) if _workers.process == os.getpid() else None
    if found is not None:
        found.close()


@contextmanager
def without_collection() -> Iterator[None]:
    """Let Python's garbage collector wait while the block reads or sends a batch.

    A batch takes several objects for each row, none of them in a cycle, and all are gone at its end. The collector
    would look at them again and again: a tenth of a task's time and more, measured.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

"""One event loop and one transport for each Spark process, shared by its tasks.

Spark calls a source's functions without an event loop and runs many tasks in one Python process. Each process therefore
has one loop, which runs only while a task waits for it, once per list of records, and one broker client for each set of
connection options. Both belong to the process that created them: Spark forks its workers.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import JMSSecurityError, ObjectClosedError, TransportError
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.tolerance import Outage
from jmsaio.transport.base import Transport
from jmsaio.transport.registry import connected, open_transport

T = TypeVar("T")
#: Errors after which the next task must not reuse the connection: it can be lost, or its credentials out of date.
CONNECTION_ERRORS: Final = (TransportError, JMSSecurityError, ObjectClosedError)


def configuration_of(options: SourceOptions) -> Configuration:
    """Return the configuration with the current secrets, including those in Spark's distributed files (``--files``)."""
    from pyspark import SparkFiles  # the tests of the planning need none of Spark

    root = SparkFiles._root_directory  # getRootDirectory() raises if a Spark process has none yet
    if root is None:
        return options.configuration()
    folder = Path(root).absolute()
    return options.configuration([folder, folder.parent])  # a stream's planner gets a subfolder of the files' folder


@asynccontextmanager
async def connected_by(options: SourceOptions) -> AsyncIterator[tuple[Transport, Configuration]]:
    configuration = configuration_of(options)
    async with connected(configuration) as transport:
        yield transport, configuration


def call_broker(
    options: SourceOptions, call: Callable[[Transport, Configuration], Awaitable[T]], outage_timeout: float = 0.0
) -> T:
    """Return the result of a call, on a connection and a loop of its own; both are repeated in an outage."""

    async def run() -> T:
        async with connected_by(options) as (transport, configuration):
            return await call(transport, configuration)

    return asyncio.run(Outage(outage_timeout).wait(run))


@attrs.define(eq=False)
class Worker:
    """An event loop, and a transport that runs on it until ``close``, with the secrets of when it was opened."""

    transport: Transport
    configuration: Configuration
    _runner: asyncio.Runner

    @classmethod
    def open(cls, options: SourceOptions) -> Worker:
        """Connect with the current secrets; wait up to ``outage_timeout`` for an unreachable broker."""

        async def connect() -> tuple[Transport, Configuration]:
            configuration = configuration_of(options)
            return await open_transport(configuration), configuration

        runner = asyncio.Runner()
        try:
            transport, configuration = runner.run(Outage(options.outage_timeout).wait(connect))
        except BaseException:
            runner.close()
            raise
        return cls(transport, configuration, runner)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine until it returns; an exception that Ctrl-C or a signal raises cancels it."""
        return self._runner.run(work)

    def close(self) -> None:
        try:
            self._runner.run(self.transport.aclose(self.configuration.close_timeout))
        finally:
            self._runner.close()


#: Workers by process and connection options. A parent process's workers can be neither used nor closed in its child.
_workers: Final[dict[tuple[int, frozenset[tuple[str, str]]], Worker]] = {}


def _key(options: SourceOptions) -> tuple[int, frozenset[tuple[str, str]]]:
    return os.getpid(), frozenset(options.connection.items())


def worker(options: SourceOptions) -> Worker:
    """Return this process's worker for the connection options; connect at the first call, as ``Worker.open``."""
    key = _key(options)
    if key not in _workers:
        _workers[key] = Worker.open(options)
    return _workers[key]


def forget(options: SourceOptions) -> None:
    """Close the worker, if there is one, so that the next task reconnects: the credentials can have changed."""
    found = _workers.pop(_key(options), None)
    if found is not None:
        found.close()


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable Python's garbage collector inside the block, which reads or sends a batch.

    A batch creates several objects per row; none is part of a cycle, and all are freed at its end. The collector would
    scan them repeatedly, which takes a tenth of a task's time and more, measured.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

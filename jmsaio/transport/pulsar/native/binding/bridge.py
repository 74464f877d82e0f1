"""Bridge between pulsar-client's threads and one event loop, for all callbacks and pending operations.

Rules that keep the process alive (each has its test in ``tests/transport/pulsar/native/test_hazards.py``):

* A native callback only calls ``Bridge.post``, which never raises: an exception in a receive callback ends the process,
  and a closed loop raises exactly there.
* Native operations are never cancelled: what one opens is closed when it arrives.
* ``flush`` of a producer is never called: it holds the GIL and waits for a lock whose owner waits for the GIL.
* After a fork every object of the parent raises: pulsar-client's threads do not exist in the child.
* The callback of a client's ``close_async`` is destroyed by a thread that outlives the call, which at the interpreter's
  end aborts the process (1 of 10 runs). So ``NativeClient`` calls the blocking ``close`` in a daemon thread.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import _pulsar
import anyio

from jmsaio.errors import ForkError, JMSError, ObjectClosedError, OperationTimeoutError
from jmsaio.transport.clock import Clock, clock_of
from jmsaio.transport.pulsar.native.binding.handles import ClientHandle, ClosableHandle
from jmsaio.transport.pulsar.native.binding.results import OK, translate

#: Seconds that a cancelled opening waits for its pending operation.
LINGER = 2.0
#: Maximum seconds that the exit of the process waits for open clients.
EXIT_TIMEOUT = 3.0

Opened = TypeVar("Opened", bound=ClosableHandle)


def ignore(*answer: object) -> None:
    """Native callback for an operation whose outcome is not needed."""


def close_late(native: ClosableHandle) -> None:
    """Close a producer, consumer or reader that was opened after its caller had given up."""
    native.close_async(ignore)


class NativeHolder(Protocol):
    """An object that drops its native producer, consumer or reader in ``release``, after its close."""

    def release(self) -> None: ...


class Released:
    """Replaces a native object of a closed connection: its methods do nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return ignore


class Bridge:
    """One event loop, the native threads of one client, and pending operations between them."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock: Clock = clock_of(self.loop)
        self.thread = threading.get_ident()  # runs everything except native callbacks
        self.failure: tuple[type[JMSError], str] | None = None  # raised by all operations now; None while it is open
        self.captures_log = False  # whether the native client's log is read by ``native_log``
        self.retained: dict[int, object] = {}  # closed native objects that pulsar-client might still use, by identity
        self._pending: dict[asyncio.Future[object], str] = {}
        self._parts: weakref.WeakSet[NativeHolder] = weakref.WeakSet()
        self._tasks: set[asyncio.Task[None]] = set()
        _BRIDGES.add(self)

    def check(self) -> None:
        """Raise ObjectClosedError after close, and ForkError in a child process."""
        if self.failure is not None:
            kind, text = self.failure
            raise kind(text)

    @property
    def forked(self) -> bool:
        return self.failure is not None and self.failure[0] is ForkError

    def close(self) -> None:
        """Refuse new operations, fail pending ones with ObjectClosedError, and cancel the tasks. Idempotent."""
        if self.failure is None:
            self.failure = (ObjectClosedError, "the connection to the broker is closed")
        pending, self._pending = self._pending, {}
        for future, what in pending.items():
            if not future.done():
                _fail(future, ObjectClosedError(f"{what}: the connection to the broker was closed meanwhile"))
        for task in list(self._tasks):
            task.cancel()

    def task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task. Its owner ends it (``end``); ``close`` cancels the remaining ones."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def all_ended(self, timeout: float) -> None:
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=max(0.0, timeout))

    def made(self, part: NativeHolder) -> None:
        self._parts.add(part)
        holds_native(part)

    def release(self) -> None:
        """Make all parts, which can live on in cycles, drop their native objects: each keeps native threads alive."""
        for part in list(self._parts):
            part.release()

    def retain(self, native: object, seconds: float) -> None:
        """Retain a closed native object for some seconds, or until the client's threads have ended."""
        self.retained[id(native)] = native
        self.loop.call_later(seconds, self.retained.pop, id(native), None)

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Run a function on the loop's thread soon. For native threads: never raises."""
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            # The loop is closed: no caller waits for this, and raising here would end the process.
            return

    def start(
        self,
        start: Callable[[Callable[..., None]], object],
        what: str,
        discard: Callable[[Any], object] | None = None,
    ) -> asyncio.Future[Any]:
        """Start a native operation at once; ``discard`` is called with a result that arrives after a cancellation."""
        future: asyncio.Future[Any] = self.loop.create_future()

        def arrived(*answer: Any) -> None:
            self._pending.pop(future, None)
            if future.done():
                if discard is not None and _succeeded(answer):
                    discard(answer[-1])
                return
            if _succeeded(answer):
                future.set_result(answer[-1])
            elif isinstance(answer[0], _pulsar.Error):
                _fail(future, translate(answer[0].error, what, answer[0].message))
            else:
                _fail(future, translate(answer[0], what))

        start(_once(self.post, arrived))
        self._pending[future] = what
        return future

    async def ask(
        self,
        start: Callable[[Callable[..., None]], object],
        what: str,
        timeout: float,
        discard: Callable[[Any], object] | None = None,
    ) -> Any:
        """Wait up to ``timeout`` seconds for an operation of ``start``.

        Cancelled, and with ``discard``, it waits up to 2 seconds for the answer, so that nothing is opened afterwards.
        """
        future = self.start(start, what, discard)
        try:
            with anyio.fail_after(max(0.0, timeout)):
                await asyncio.wait([future])
        except TimeoutError:
            drop(future, discard or ignore)  # it might have arrived in the same turn of the loop
            raise OperationTimeoutError(f"{what}: no answer within {timeout:g} s") from None
        except asyncio.CancelledError:
            if discard is not None and not future.done():
                with anyio.move_on_after(LINGER, shield=True):
                    await asyncio.wait([future])
            drop(future, discard or ignore)
            raise
        return future.result()

    async def ask_all(self, futures: Sequence[asyncio.Future[Any]], timeout: float) -> None:
        """Wait for futures from ``start``; raise the first error once all have ended, or that one was late."""
        if not futures:
            return
        done, late = await asyncio.wait(futures, timeout=max(0.0, timeout))
        errors = [error for error in (future.exception() for future in done) if error is not None]
        for future in late:
            errors.append(OperationTimeoutError(f"{self._pending[future]}: no answer within {timeout:g} s"))
            future.cancel()
        if errors:
            raise errors[0]


def _once(post: Callable[..., None], arrived: Callable[..., object]) -> Callable[..., None]:
    """Drop the references at the first call: pulsar-client never frees the callback of a reader's creation."""
    references = [(post, arrived)]

    def answered(*answer: object) -> None:
        if references:
            post, arrived = references.pop()
            post(arrived, *answer)

    return answered


def _fail(future: asyncio.Future[Any], error: JMSError) -> None:
    future.set_exception(error)
    future.exception()  # asyncio reports no error then, although perhaps no caller waits any more


def drop(future: asyncio.Future[Any], discard: Callable[[Any], object]) -> None:
    """Discard the result of an operation from ``Bridge.start``: now, or when it arrives."""
    if not future.done():
        future.cancel()
    elif not future.cancelled() and future.exception() is None:
        discard(future.result())


async def open_together(opening: Iterable[Coroutine[Any, Any, Opened]]) -> list[Opened]:
    """Return the results of all openings. After an error, or cancelled, it closes the others once all have ended."""
    tasks = [asyncio.create_task(one) for one in opening]
    whole = False
    try:
        if tasks:
            await asyncio.wait(tasks)
        natives = [task.result() for task in tasks]
        whole = True
        return natives
    finally:
        if not whole:
            for task in tasks:  # once, however often this is cancelled: each can wait for its pending request
                task.cancel()
            with anyio.CancelScope(shield=True):
                answers = await asyncio.gather(*tasks, return_exceptions=True)
            for answer in answers:
                if not isinstance(answer, BaseException):
                    close_late(answer)


async def wait_for(waiting: Awaitable[object], timeout: float) -> bool:
    with anyio.move_on_after(max(0.0, timeout)) as scope:
        await waiting
    return not scope.cancelled_caught


def _succeeded(answer: tuple[object, ...]) -> bool:
    first = answer[0]
    if isinstance(first, _pulsar.Result):
        return int(first) == OK
    return not isinstance(first, _pulsar.Error)


class NativeClient:
    """Closes one ``_pulsar.Client`` once: at exit if nobody did, as its threads would call into a dead interpreter."""

    def __init__(self, native: ClientHandle) -> None:
        self.native = native
        self._done: Callable[[], object] | None = None
        self._asked = threading.Event()
        # Started now: since Python 3.12 no thread can be started at exit.
        self._thread = threading.Thread(target=self._close, name="jmsaio-close", daemon=True)
        self._thread.start()
        _OPEN[id(self)] = self
        holds_native(self)

    def close(self, done: Callable[[], object] = ignore) -> threading.Thread:
        if self._done is None:
            self._done = done
            self._asked.set()
        return self._thread

    def _close(self) -> None:
        self._asked.wait()
        try:
            self.native.close()
        except _pulsar.PulsarException:
            # A part of it could not disconnect from the broker. It is closed anyway.
            return
        finally:
            self.native = None  # type: ignore[assignment]  # not used any more
            _OPEN.pop(id(self), None)
            if self._done is not None:
                self._done()


_OPEN: dict[int, NativeClient] = {}
_BRIDGES: weakref.WeakSet[Bridge] = weakref.WeakSet()
_HOLDERS: weakref.WeakSet[object] = weakref.WeakSet()


def holds_native(holder: object) -> None:
    """Register an object that holds a native client, producer, consumer or reader: it is never destroyed in a child."""
    _HOLDERS.add(holder)


def _at_exit() -> None:
    threads = [client.close() for client in list(_OPEN.values())]
    for thread in threads:
        thread.join(EXIT_TIMEOUT)


def _after_fork() -> None:
    """Make a child's bridges raise, and keep native objects: destroying them would wait for missing threads."""
    _OPEN.clear()
    for bridge in list(_BRIDGES):
        bridge.failure = (
            ForkError,
            "made in the parent process; pulsar-client does not survive a fork: connect after forking",
        )
    for holder in list(_HOLDERS):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder))


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_after_fork)

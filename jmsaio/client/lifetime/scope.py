"""The scope of objects: their event loop and process, how they are opened, and how they end.

A close has one time limit, a ``Deadline``, which is passed on to everything that closes with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Protocol, Self, TypeVar

import anyio
import attrs

from jmsaio.errors import ForkError, IllegalStateError, JMSError, OperationTimeoutError
from jmsaio.model.arguments import shown
from jmsaio.transport import forks


@attrs.define(eq=False)
class Affinity:
    """The event loop and process in which an object was created."""

    loop: asyncio.AbstractEventLoop
    _forks: int

    @classmethod
    def here(cls) -> Affinity:
        try:
            return cls(asyncio.get_running_loop(), forks.count)
        except RuntimeError:
            text = "jmsaio runs on asyncio (or uvloop), not on trio, nor without a loop; use asyncio.run"
            raise JMSError(text) from None

    @property
    def forked(self) -> bool:
        return self._forks != forks.count

    def check(self) -> None:
        if self._forks != forks.count:
            self.check_process()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is not self.loop:
            raise IllegalStateError(
                "called outside the event loop of the connection; from another thread use "
                "asyncio.run_coroutine_threadsafe(..., loop), in another loop create another connection"
            )

    def check_process(self) -> None:
        if self._forks != forks.count:
            raise ForkError("it was created in the parent process; create a new connection after the fork")


class Closable(Protocol):
    """Anything with an asynchronous ``close``."""

    async def close(self) -> None: ...


T = TypeVar("T", bound=Closable)

_NOT_OPEN = "write `await` in front of the call that returned it, or use that call in `async with`"


class Opening(Coroutine[Any, None, T]):
    """The result of a ``create_...`` call.

    ``await opening`` returns the object, which the caller closes; ``async with opening as it`` closes it at the end. It
    is a coroutine, so tasks, ``gather``, ``wait_for`` and task groups accept it. Use each opening once.
    """

    __slots__ = ("_coroutine", "_object")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._object: T | None = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> T:
        self._object = await self._coroutine
        return self._object

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._object is not None:
            await self._object.close()

    def send(self, value: None, /, *more: Never, **options: Never) -> Any:
        """Resume it, as the event loop does; raise TypeError if it was used as a producer without ``await``."""
        if value is not None or more or options:
            raise TypeError(f"an 'Opening' sends no message: {_NOT_OPEN}")
        return self._coroutine.send(None)

    def throw(self, error: Any, /, *more: Any) -> Any:
        return self._coroutine.throw(error, *more)

    def close(self) -> None:
        """End it without opening anything; no effect if it has ended."""
        self._coroutine.close()

    if not TYPE_CHECKING:

        def __enter__(self) -> Never:
            raise TypeError("write `async with` instead of `with`")

        def __exit__(self, *error: object) -> None: ...

        def __aiter__(self) -> Never:
            raise TypeError(f"an 'Opening' has no messages: {_NOT_OPEN}")

        def __getattr__(self, name: str) -> Any:
            if name.startswith(("cr_", "__")):  # for debuggers and the repr of a task
                return getattr(self._coroutine, name)
            raise AttributeError(f"'Opening' object has no attribute {shown(name)}: {_NOT_OPEN}", name=name, obj=self)


class AsyncClosing:
    """Mixin: ``async with`` returns the object, and closes it at the end of the block, even if the block raises."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __enter__(self) -> Never:
            raise TypeError("write `async with` instead of `with`")

        def __exit__(self, *error: object) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self: Closable, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


#: The share of its time, and the maximum seconds, that a step reserves for each later step.
_SHARE, _LONGEST_SHARE = 0.05, 1.0
#: Minimum seconds that a caller waits for a close, even if its deadline has passed: cancelled steps need a moment.
GRACE = 0.1


@attrs.frozen
class Deadline:
    """A time of the running event loop, ``at``, by which everything has to be closed.

    ``share`` seconds are reserved for each later step, so that a step that hangs leaves them some time.
    """

    at: float
    share: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(asyncio.get_running_loop().time() + seconds, min(_LONGEST_SHARE, _SHARE * seconds))

    def before(self, steps: int) -> Deadline:
        return Deadline.after(self.left(steps))

    def left(self, steps: int = 0) -> float:
        """Return the seconds left for a step that is followed by ``steps`` more steps; 0 if its time is over."""
        return max(0.0, self.at - steps * self.share - asyncio.get_running_loop().time())


@attrs.define(eq=False)
class FirstError:
    """The first JMSError of several calls."""

    error: JMSError | None = None

    async def guard(self, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except JMSError as error:
            self.add(error)

    def add(self, error: JMSError) -> None:
        self.error = self.error or error

    async def guard_within(
        self, deadline: Deadline, call: Callable[[], Awaitable[object]], what: str, steps: int = 0
    ) -> None:
        """Guard a call for the time of ``Deadline.left``; if it is cancelled then, record an OperationTimeoutError."""
        with anyio.move_on_after(deadline.left(steps)) as scope:
            await self.guard(call)
        if scope.cancelled_caught:
            self.add(OperationTimeoutError(f"{what} did not end within close_timeout"))

    def pop(self) -> JMSError | None:
        error, self.error = self.error, None
        return error

    def raise_once(self) -> None:
        error = self.pop()
        if error is not None:
            raise error


@attrs.define(eq=False)
class BackgroundTask:
    """The task of a session or connection.

    The task sets ``running`` and ``ended``; ``requested`` is set when it should end, by the earliest ``deadline`` of
    all requests. ``errors`` occurred during its end.
    """

    running: asyncio.Event = attrs.field(factory=asyncio.Event)
    requested: asyncio.Event = attrs.field(factory=asyncio.Event)
    ended: asyncio.Event = attrs.field(factory=asyncio.Event)
    deadline: Deadline | None = None
    errors: FirstError = attrs.field(factory=FirstError)

    async def end(self, what: str, deadline: Deadline, close_timeout: float) -> None:
        """Request the end, and wait for it until the earliest deadline; a time-out names the first problem instead."""
        if self.deadline is None or deadline.at < self.deadline.at:
            self.deadline = deadline
        self.requested.set()
        with anyio.move_on_after(max(self.deadline.left(), GRACE)):
            await self.ended.wait()
        if not self.ended.is_set():
            text, problem = f"{what} did not close within {close_timeout:g} s (close_timeout)", self.errors.pop()
            raise OperationTimeoutError(text if problem is None else f"{text}: {problem}") from problem

"""``await create()`` and ``async with create() as it`` on one object; ``async with`` on an object that is open."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Protocol, Self, TypeVar

from jmsaio.model.arguments import shown


class Closable(Protocol):
    """Anything with an asynchronous ``close``."""

    async def close(self) -> None:
        """Close it; idempotent."""


T = TypeVar("T", bound=Closable)

_NOT_OPEN = "write `await` in front of the call that returned it, or use that call in `async with`"


class Opening(Coroutine[Any, None, T]):
    """The result of a ``create_...`` call.

    ``await opening`` returns the object, which the caller closes; ``async with opening as it`` closes it at the end. It
    is a coroutine, so tasks, ``gather``, ``wait_for`` and task groups accept it. Use each opening once.

    Args:
        coroutine: opens the object.
        first: another opening that ``coroutine`` awaits. It is closed if ``coroutine`` ends before it began.
    """

    __slots__ = ("_coroutine", "_first", "_object")

    def __init__(self, coroutine: Coroutine[Any, Any, T], first: Opening[Any] | None = None) -> None:
        self._coroutine = coroutine
        self._first = first
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
        """Resume it, as the event loop does.

        Raises:
            TypeError: it was used as a producer: its ``await`` is missing.
        """
        if value is not None or more or options:
            raise TypeError(f"an 'Opening' sends no message: {_NOT_OPEN}")
        return self._coroutine.send(None)

    def throw(self, error: Any, /, *more: Any) -> Any:
        """Raise an error in it, as the event loop does to cancel it."""
        try:
            return self._coroutine.throw(error, *more)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it without opening anything; no effect if it has ended."""
        self._coroutine.close()
        if self._first is not None:
            self._first.close()

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
    """Mixin: ``async with`` returns the object, and closes it at the end of the block, also if the block raises."""

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

"""``await create()`` and ``async with create() as it``: one object for both ways to open something."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar


class Closable(Protocol):
    """Anything with an asynchronous ``close``."""

    async def close(self) -> None:
        """Close it; idempotent."""


T = TypeVar("T", bound=Closable)


class Opening(Generic[T]):
    """The result of a ``create_...`` call.

    ``await opening`` gives the object, which the caller closes; ``async with opening as it`` closes it at the end.
    Use each opening once.
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

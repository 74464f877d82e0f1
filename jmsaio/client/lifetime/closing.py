"""``async with`` on an open object."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from jmsaio.client.lifetime.opening import Closable


class AsyncClosing:
    """Mixin: ``async with`` returns the object, and closes it at the end of the block, also if the block raises."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self: Closable, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

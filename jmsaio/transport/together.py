"""``together``: several coroutines at the same time, all of them or the first error."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_Value = TypeVar("_Value")


async def together(work: Iterable[Coroutine[Any, Any, _Value]]) -> list[_Value]:
    """What several coroutines return, in their order.

    Raises what the first of those that fail raises, when the others, cancelled, have ended.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]

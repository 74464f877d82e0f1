"""``together``: run several coroutines concurrently, for all results or the first error."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_Value = TypeVar("_Value")


async def together(work: Iterable[Coroutine[Any, Any, _Value]]) -> list[_Value]:
    """Run coroutines concurrently; return their results in order.

    Raises the first error, after the other coroutines were cancelled and have ended.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]

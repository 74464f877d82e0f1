"""Mutual exclusion between creating a subscription through REST and subscribing to it, per topic and subscription.

The broker creates a subscription at the topic's end and then resets its cursor. A client that subscribes in between is
refused with "Subscription is fenced", and one that subscribed just before is disconnected. All clients of one event
loop take turns here; those of other processes can't be excluded. If the topic is unloaded meanwhile, the cursor is not
reset: the resulting subscription would skip everything stored, so ``RestAdmin`` recreates it.

If the broker dies in between, nothing shows that the cursor was not reset: the next attempt finds a subscription ("409
Conflict") that looks like one created and used by others. Resetting or deleting it would redeliver or lose their
messages; checking for its existence before each creation would not help the attempts of a later call or process. So it
is left as it is.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import attrs

from jmsaio.errors import OperationTimeoutError
from jmsaio.model.partitions import split_partition


@attrs.define(eq=False)
class _Turns:
    """A subscription of one topic, over all partitions.

    Attributes:
        wanting: number of callers that create it or wait to create it. They have priority.
        creating: whether a caller is creating it.
        subscribing: number of callers subscribing; they don't exclude each other.
        visitors: total number of callers.
        changed: set when a caller has left.
    """

    wanting: int = 0
    creating: bool = False
    subscribing: int = 0
    visitors: int = 0
    changed: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def wait_while(self, taken: Callable[[], bool], what: str, timeout: float) -> None:
        try:
            with anyio.fail_after(timeout):
                while taken():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            raise OperationTimeoutError(
                f"{what}: others of this process have been creating it, or subscribing to it, for {timeout:g} s"
            ) from None


_TURNS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], _Turns]] = (
    weakref.WeakKeyDictionary()
)


@asynccontextmanager
async def creating(topic: str, subscription: str, timeout: float) -> AsyncIterator[None]:
    """Exclude other creators and subscribers of the subscription on this event loop during the block.

    Raises:
        OperationTimeoutError: others were still busy after ``timeout`` seconds.
    """
    what = f"create subscription {subscription} of {topic}"
    with _visit(topic, subscription) as turns:
        turns.wanting += 1
        try:
            await turns.wait_while(lambda: turns.creating or turns.subscribing > 0, what, timeout)
            turns.creating = True
            try:
                yield
            finally:
                turns.creating = False
        finally:
            turns.wanting -= 1


@asynccontextmanager
async def subscribing(topic: str, subscription: str, timeout: float) -> AsyncIterator[None]:
    """Exclude creators of the subscription on this event loop during the block; others can subscribe, too.

    Raises:
        OperationTimeoutError: creators were still busy after ``timeout`` seconds.
    """
    with _visit(topic, subscription) as turns:
        await turns.wait_while(lambda: turns.wanting > 0, f"subscribe {subscription} to {topic}", timeout)
        turns.subscribing += 1
        try:
            yield
        finally:
            turns.subscribing -= 1


@contextmanager
def _visit(topic: str, subscription: str) -> Iterator[_Turns]:
    """Provide the state of a subscription, which exists while it has visitors."""
    all_turns = _TURNS.setdefault(asyncio.get_running_loop(), {})
    key = (split_partition(topic)[0], subscription)
    turns = all_turns.setdefault(key, _Turns())
    turns.visitors += 1
    try:
        yield turns
    finally:
        turns.visitors -= 1
        turns.changed.set()
        if turns.visitors == 0:
            del all_turns[key]

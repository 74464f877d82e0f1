"""Whoever creates a subscription through REST and whoever subscribes take turns, for each topic and subscription.

The broker creates a subscription at the topic's end and then resets its cursor: who subscribes in between is refused
with "Subscription is fenced", and who subscribed just before is disconnected. All clients of one event loop keep out
of each other's way here; those of other processes can't be kept out.
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
class _Place:
    """One subscription of one topic, all partitions together.

    Attributes:
        wanting: how many create it, or wait to create it. They go first.
        creating: one creates it now.
        subscribing: how many subscribe now; they don't mind each other.
        visitors: all of these.
        changed: set when someone has left.
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


_PLACES: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], _Place]] = (
    weakref.WeakKeyDictionary()
)


@asynccontextmanager
async def creating(topic: str, subscription: str, timeout: float) -> AsyncIterator[None]:
    """No one else of this event loop creates the subscription, or subscribes, meanwhile.

    Raises:
        OperationTimeoutError: it was not this one's turn within ``timeout`` seconds.
    """
    what = f"create subscription {subscription} of {topic}"
    with _visit(topic, subscription) as place:
        place.wanting += 1
        try:
            await place.wait_while(lambda: place.creating or place.subscribing > 0, what, timeout)
            place.creating = True
            try:
                yield
            finally:
                place.creating = False
        finally:
            place.wanting -= 1


@asynccontextmanager
async def subscribing(topic: str, subscription: str, timeout: float) -> AsyncIterator[None]:
    """No one of this event loop creates the subscription meanwhile; others may subscribe, too.

    Raises:
        OperationTimeoutError: it was not this one's turn within ``timeout`` seconds.
    """
    with _visit(topic, subscription) as place:
        await place.wait_while(lambda: place.wanting > 0, f"subscribe {subscription} to {topic}", timeout)
        place.subscribing += 1
        try:
            yield
        finally:
            place.subscribing -= 1


@contextmanager
def _visit(topic: str, subscription: str) -> Iterator[_Place]:
    """The place of a subscription; it is there while someone is at it."""
    places = _PLACES.setdefault(asyncio.get_running_loop(), {})
    key = (split_partition(topic)[0], subscription)
    place = places.setdefault(key, _Place())
    place.visitors += 1
    try:
        yield place
    finally:
        place.visitors -= 1
        place.changed.set()
        if place.visitors == 0:
            del places[key]

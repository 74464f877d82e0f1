"""Whoever creates a subscription through REST and whoever subscribes take turns, for each topic and subscription.

The broker creates a subscription at the topic's end and then resets its cursor: who subscribes in between is refused
with "Subscription is fenced", and who subscribed just before is disconnected. All clients of one event loop keep out
of each other's way here; those of other processes can't be kept out. Where the topic is unloaded meanwhile, the cursor
is not reset: the subscription that was made so would skip all that is stored.

Where the broker dies in between, nothing tells that the cursor was not reset: the next attempt finds a subscription
("409 Conflict") that looks like one which others have made and used. To reset or delete that would deliver its messages
again, or lose them; to ask before each creation whether it is there would not help the attempts of a later call, or of
a later process. So it stays as it is.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
import attrs

from jmsaio.errors import AdminError, NotFoundError, OperationTimeoutError
from jmsaio.model.partitions import split_partition

#: What the broker answers where it has made a subscription, and not reset its cursor.
_PRECONDITION_FAILED, _NOT_RESET = 412, "cursor reset"
_ATTEMPTS = 4


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


async def create_whole(create: Callable[[], Awaitable[bool]], delete: Callable[[], Awaitable[None]]) -> bool:
    """Create a subscription; one whose cursor could not be reset is deleted and created anew.

    Args:
        create: creates it, on a topic without partitions or on one partition; False if it exists.
        delete: deletes it, unless it has consumers.

    Raises:
        AdminError: the broker refuses. Then there is no subscription, unless it was there before.
    """
    failure: AdminError | None = None
    for _ in range(_ATTEMPTS):
        try:
            return await create()
        except AdminError as error:
            if error.status != _PRECONDITION_FAILED or _NOT_RESET not in str(error):
                raise
            failure = error
            with suppress(NotFoundError):
                await delete()
    assert failure is not None
    raise failure


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

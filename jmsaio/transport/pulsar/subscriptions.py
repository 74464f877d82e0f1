"""``ReceiverOpener``: opens receivers, including on kinds of subscriptions that Pulsar's protocol lacks.

Subscriptions that end with their last consumer: with a client that lacks them they are durable for the broker, and
their last receiver deletes them before it closes. Remaining ones are deleted here through the admin interface, never
with force: the broker refuses while a subscription has consumers.

Durable subscriptions that are opened with other properties than before: Jakarta Messaging 3.1, 4.11.3 "Unshared durable
subscriptions": one that is opened with another selector or noLocal is deleted and recreated. The properties are read
and written through the admin interface when a receiver is opened, never later. A subscription without them was created
by other software, or without admin: it is resumed, and receives them then. The same name on another topic is another
subscription: Pulsar's names are per topic.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Generic, Protocol, TypeVar

import anyio
import attrs

from jmsaio.errors import AdminError, ConsumerBusyError, JMSError, JMSSecurityError, NotFoundError, TransportError
from jmsaio.model.arguments import shown
from jmsaio.model.log_fields import log_fields
from jmsaio.transport.base import (
    FOREIGN_PROPERTY,
    SHARED_PROPERTY,
    Admin,
    Subscription,
    SubscriptionStats,
    SubscriptionType,
    Wake,
)

_log = logging.getLogger(__name__)
#: Maximum seconds for a deletion. It is best effort: ``jmsaio sweep`` removes leftovers.
_LIMIT = 5.0
#: Seconds between two attempts while the broker still sees a consumer, and the number of attempts.
_PAUSE, _ATTEMPTS = 0.1, 10
#: Unused subscriptions deleted concurrently.
TOGETHER = 16
#: Maximum number of checks: another process might recreate the subscription in between.
_CHECKS = 2


class SubscriptionEnd(Protocol):
    """A receiver, as its opener sees it; ``after_close`` is called last, with the remaining seconds.

    It is set if the subscription ends with its last consumer: this receiver can't delete it while it has others.
    """

    after_close: Callable[[float], Awaitable[None]] | None

    async def aclose(self, timeout: float) -> None: ...


_Receiver = TypeVar("_Receiver", bound=SubscriptionEnd)


@attrs.define(eq=False)
class ReceiverOpener(Generic[_Receiver]):
    """Opens the receivers of one transport.

    ``subscribe`` opens one on a subscription that outlives it, without properties; ``timeout``: seconds for a deletion,
    and for closing a receiver whose opening was cancelled.
    """

    subscribe: Callable[[Subscription, Wake], Awaitable[_Receiver]]
    admin: Admin | None
    timeout: float
    _warned: set[str] = attrs.field(factory=set, init=False)
    _deleting: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(TOGETHER), init=False)

    async def open(self, wanted: Subscription, wake: Wake) -> _Receiver:
        """Open a receiver; see ``Transport.open_receiver``. Without admin, the client knows that it is only resumed."""
        admin = self.admin
        if admin is None or (wanted.durable and not wanted.properties):
            return await self.subscribe(wanted, wake)
        if not wanted.durable:
            return await self._open_ephemeral(admin, wanted, wake)
        topics = await delete_other(admin, wanted, self._warn)
        receiver = await self.subscribe(wanted, wake)
        try:
            await write_properties(admin, wanted, topics)
        except (AdminError, JMSSecurityError) as error:
            warn_unknown(self._warn, str(error))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await receiver.aclose(self.timeout)
            raise
        return receiver

    async def _open_ephemeral(self, admin: Admin, wanted: Subscription, wake: Wake) -> _Receiver:
        if wanted.type is not SubscriptionType.EXCLUSIVE:
            await delete_leftover(admin, wanted, self.timeout)
        try:
            receiver = await self._subscribe_or_create(admin, wanted, wake)
        except ConsumerBusyError:
            raise  # the subscription is in use, so it is kept
        except BaseException:
            await delete_unused(admin, wanted, self.timeout, patient=True)
            raise
        receiver.after_close = partial(self._delete_unused, admin, wanted)
        return receiver

    async def _delete_unused(self, admin: Admin, wanted: Subscription, timeout: float) -> None:
        """Delete a subscription as ``delete_unused`` does, whose time limit begins when it is this one's turn."""
        deadline = anyio.current_time() + timeout
        with anyio.move_on_after(timeout, shield=True):
            async with self._deleting:
                await delete_unused(admin, wanted, deadline - anyio.current_time())

    async def _subscribe_or_create(self, admin: Admin, wanted: Subscription, wake: Wake) -> _Receiver:
        """Subscribe, even if ``allowAutoSubscriptionCreation=false`` refuses what is durable for the broker."""
        try:
            return await self.subscribe(wanted, wake)
        except NotFoundError as error:
            if error.error_code != "SubscriptionNotFound" or wanted.pattern is not None:
                raise
        for topic in wanted.topics:
            await admin.create_subscription(topic, wanted.name, wanted.position)
        return await self.subscribe(wanted, wake)

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)


async def delete_unused(admin: Admin, subscription: Subscription, timeout: float, *, patient: bool = False) -> None:
    """Delete the subscription, unless it has a pattern, if it has no consumers, for up to 5 seconds.

    ``patient``: retry for a second. Never raises a JMSError, and continues if the caller is cancelled.
    """
    with anyio.move_on_after(max(0.0, min(_LIMIT, timeout)), shield=True):
        for topic in subscription.topics:
            await _delete(admin, topic, subscription.name, _ATTEMPTS if patient else 1)


async def _delete(admin: Admin, topic: str, name: str, attempts: int) -> None:
    for attempt in range(1, attempts + 1):
        try:
            await admin.delete_subscription(topic, name)
        except NotFoundError:  # another client was faster
            return
        except JMSError as error:
            if isinstance(error, AdminError) and error.in_use and attempt < attempts:
                await anyio.sleep(_PAUSE)
                continue
            text, about = "the subscription %s of %s is left: %s", log_fields(destination=topic, subscription=name)
            _log.info(text, name, topic, error, extra=about)
        return


async def delete_leftover(admin: Admin, subscription: Subscription, timeout: float) -> None:
    """Delete leftovers of a crashed process: a shared subscription that is not durable (Jakarta Messaging 3.1, 4.11.2).

    Raises ConsumerBusyError: a durable one has the name.
    """
    for topic in subscription.topics:
        try:
            properties = await admin.subscription_properties(topic, subscription.name)
        except NotFoundError:
            continue
        except JMSError as error:
            text, name = "could not find out whether a crash left %s of %s: %s", subscription.name
            _log.info(text, name, topic, error, extra=log_fields(destination=topic, subscription=name))
            return
        if SHARED_PROPERTY in properties:
            raise ConsumerBusyError(
                f"{shown(subscription.name)} of {topic} is a durable subscription; use another name for the shared one"
            )
        await delete_unused(admin, subscription, timeout)
        return


async def delete_other(
    admin: Admin, wanted: Subscription, warn: Callable[[str], None]
) -> Mapping[str, Mapping[str, str]]:
    """Delete the subscription that ``wanted`` replaces, if there is one; warn if its properties can't be read.

    Return the topics whose subscription is to receive the properties once it exists, each with additional ones: those
    that others set on the deleted one, such as an operator's selector, or the mark of one that others made. Raises
    ConsumerBusyError: the existing one has consumers, or is shared otherwise.
    """
    if wanted.pattern is not None:
        warn_unknown(warn, "a topics pattern")
        return {}
    try:
        for _ in range(_CHECKS):
            found = await _find(admin, wanted)
            if not wanted.replace:
                return {topic: {} for topic in wanted.topics if topic not in found}
            _check_sharing(found, wanted)
            if all(_same(properties, wanted) for properties in found.values()):
                return {
                    topic: wanted.added_to(found[topic]) if topic in found else {}
                    for topic in wanted.topics
                    if not _marked(found.get(topic, {}), wanted)
                }
            if await _delete_other(admin, wanted, tuple(found)):
                for properties in found.values():
                    properties.pop(FOREIGN_PROPERTY, None)  # jmsaio creates it, whoever created the first one
                return {topic: found.get(topic, {}) for topic in wanted.topics}
    except (AdminError, JMSSecurityError) as error:
        warn_unknown(warn, str(error))
        return {}
    raise ConsumerBusyError(
        f"the durable subscription {shown(wanted.name)} is active with another selector or noLocal; close its "
        "consumers first, or use another name"
    )


async def _find(admin: Admin, wanted: Subscription) -> dict[str, dict[str, str]]:
    found = {}
    for topic in wanted.topics:
        with suppress(NotFoundError):
            found[topic] = dict(await admin.subscription_properties(topic, wanted.name))
    return found


def _check_sharing(found: Mapping[str, Mapping[str, str]], wanted: Subscription) -> None:
    here = wanted.properties.get(SHARED_PROPERTY)
    for topic, properties in found.items():
        there = properties.get(SHARED_PROPERTY, here)
        if there != here:
            kind = "shared" if there == "true" else "unshared"
            raise ConsumerBusyError(
                f"{shown(wanted.name)} of {topic} is {kind}: unsubscribe it first, or use another name"
            )


def _marked(properties: Mapping[str, str], wanted: Subscription) -> bool:
    return wanted.properties.keys() <= properties.keys()


def _same(properties: Mapping[str, str], wanted: Subscription) -> bool:
    """Return whether it was created with the same properties, or with unknown ones."""
    return not _marked(properties, wanted) or all(properties[key] == value for key, value in wanted.properties.items())


async def _delete_other(admin: Admin, wanted: Subscription, topics: tuple[str, ...]) -> bool:
    """Delete the subscription on ``topics``, with a warning; return False if it has consumers."""
    for topic in topics:
        try:
            statistics = (await admin.stats(topic)).subscriptions.get(wanted.name)
            if statistics is None:
                continue
            if statistics.consumers:
                return False
            dropped = await _count(admin, topic, statistics)
            await admin.delete_subscription(topic, wanted.name)
        except NotFoundError:  # another client was faster
            continue
        except AdminError as error:
            if error.in_use:  # a consumer connected meanwhile
                return False
            raise
        _log.warning(
            "subscription %r of %s is opened with another selector or noLocal: it is recreated, and the %d messages "
            "kept for it are dropped", wanted.name, topic, dropped,
            extra=log_fields(destination=topic, subscription=wanted.name),
        )  # fmt: skip
    return True


async def _count(admin: Admin, topic: str, statistics: SubscriptionStats) -> int:
    """Return the messages kept for a subscription, or the batches if the broker can't count (before Pulsar 2.11)."""
    try:
        return max(statistics.backlog, await admin.backlog(topic, statistics.name))
    except TransportError:
        return statistics.backlog


async def write_properties(admin: Admin, wanted: Subscription, topics: Mapping[str, Mapping[str, str]]) -> None:
    """Add the properties of ``wanted`` to its subscription on ``topics``, after the additional ones of each topic."""
    for topic, others in topics.items():
        properties = await admin.subscription_properties(topic, wanted.name)
        complete = {**properties, **others, **wanted.properties}
        if complete != properties:  # Pulsar's protocol stored them with the subscription
            await admin.set_subscription_properties(topic, wanted.name, complete)


def warn_unknown(warn: Callable[[str], None], why: str) -> None:
    """Warn that a subscription is resumed although it might have been created with other properties."""
    warn(
        "could not find out whether a durable subscription is opened with another selector or noLocal than before "
        f"({why}): it is resumed with the messages it holds"
    )

"""Subscribes, and makes a durable subscription anew when it is opened with another selector or noLocal.

The embedded broker does it by itself. For Pulsar a durable subscription's selector, noLocal and sharing are its
properties ``jmsaio.selector``, ``jmsaio.nolocal`` and ``jmsaio.shared``, read and written through the admin interface
when a consumer is opened, never later. A subscription without them was made by somebody else, or without admin: it is
resumed, and remembered from now on. A name on another topic is another subscription there: Pulsar's names are per
topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import anyio

from jmsaio.client.subscriptions.create import open_receiver
from jmsaio.client.subscriptions.plan import SELECTOR, SHARED
from jmsaio.errors import AdminError, ConsumerBusyError, JMSError, JMSSecurityError, NotFoundError, TransportError
from jmsaio.transport.base import Admin, Receiver, Subscription, SubscriptionStats, Transport

_log = logging.getLogger("jmsaio")

#: Looks at a subscription: another process may have made it anew between ours.
_LOOKS = 2


async def subscribe(
    transport: Transport,
    wanted: Subscription,
    wake: Callable[[], None],
    *,
    create_missing: bool,
    close_timeout: float,
    warn: Callable[[str], None],
) -> Receiver:
    """Open a receiver; first delete an inactive durable subscription that was made with something else.

    Args:
        transport: opens the receiver.
        wanted: what to subscribe to.
        wake: called when records may have arrived.
        create_missing: see ``subscriptions.create.open_receiver``.
        close_timeout: bound in seconds of closing the receiver when this call is cancelled.
        warn: takes a warning where the subscription's selector can't be told.

    Raises:
        ConsumerBusyError: the subscription is active with something else, or is shared otherwise.
        TransportError: as ``subscriptions.create.open_receiver``.

    Cancelling leaves no consumer behind.
    """
    topics: tuple[str, ...] = ()
    if wanted.replace and not transport.capabilities.subscription_properties:
        topics = await _to_remember(transport.admin, wanted, warn)
    receiver = await open_receiver(transport, wanted, wake, create_missing)
    if topics and transport.admin is not None:
        try:
            await _remember(transport.admin, wanted, topics)
        except (AdminError, JMSSecurityError) as error:
            _cannot_tell(warn, str(error))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await receiver.aclose(close_timeout)
            raise
    return receiver


async def _to_remember(admin: Admin | None, wanted: Subscription, warn: Callable[[str], None]) -> tuple[str, ...]:
    """Make way for ``wanted``; the topics whose subscription does not say yet what it was made with."""
    if admin is None:
        _cannot_tell(warn, "jms.usePulsarAdmin=false")
        return ()
    if wanted.pattern is not None:
        _cannot_tell(warn, "a topics pattern")
        return ()
    try:
        for _ in range(_LOOKS):
            found = await _look(admin, wanted)
            if all(_same(properties, wanted) for properties in found.values()):
                return tuple(topic for topic in wanted.topics if SELECTOR not in found.get(topic, {}))
            if await _delete(admin, wanted, tuple(found)):
                return wanted.topics
    except (AdminError, JMSSecurityError) as error:
        _cannot_tell(warn, str(error))
        return ()
    raise ConsumerBusyError(
        f"the durable subscription {wanted.name!r} is active with another selector or noLocal; close its consumers "
        "first, or use another name"
    )


async def _look(admin: Admin, wanted: Subscription) -> dict[str, Mapping[str, str]]:
    """The properties of the subscription by topic, where it exists."""
    found: dict[str, Mapping[str, str]] = {}
    for topic in wanted.topics:
        try:
            found[topic] = await admin.subscription_properties(topic, wanted.name)
        except NotFoundError:
            continue
    for topic, properties in found.items():
        if properties.get(SHARED, wanted.properties[SHARED]) != wanted.properties[SHARED]:
            kind = "shared" if properties[SHARED] == "true" else "unshared"
            raise ConsumerBusyError(f"{wanted.name!r} of {topic} is {kind}: unsubscribe it first, or use another name")
    return found


def _same(properties: Mapping[str, str], wanted: Subscription) -> bool:
    """Made with the same, or nobody knows with what."""
    return SELECTOR not in properties or all(
        properties.get(key, value) == value for key, value in wanted.properties.items()
    )


async def _delete(admin: Admin, wanted: Subscription, topics: tuple[str, ...]) -> bool:
    """Delete the subscription on ``topics``, with a warning; False if it has consumers."""
    for topic in topics:
        try:
            statistics = (await admin.stats(topic)).subscriptions.get(wanted.name)
            if statistics is None:
                continue
            if statistics.consumers:
                return False
            dropped = await _count(admin, topic, statistics)
            await admin.delete_subscription(topic, wanted.name)
        except NotFoundError:  # somebody else was faster
            continue
        except AdminError as error:
            if error.in_use:  # a consumer came meanwhile
                return False
            raise
        _log.warning(
            "subscription %r of %s is opened with another selector or noLocal: it is made anew, and %d messages kept "
            "for it are dropped", wanted.name, topic, dropped,
        )  # fmt: skip
    return True


async def _count(admin: Admin, topic: str, statistics: SubscriptionStats) -> int:
    """Messages kept for a subscription; batches instead where the broker can't count (before Pulsar 2.11)."""
    try:
        return max(statistics.backlog, await admin.backlog(topic, statistics.name))
    except TransportError:
        return statistics.backlog


async def _remember(admin: Admin, wanted: Subscription, topics: tuple[str, ...]) -> None:
    for topic in topics:
        properties = await admin.subscription_properties(topic, wanted.name)
        await admin.set_subscription_properties(topic, wanted.name, {**properties, **wanted.properties})


def _cannot_tell(warn: Callable[[str], None], why: str) -> None:
    warn(
        "whether a durable subscription is opened with another selector or noLocal than before can't be told "
        f"({why}): it is resumed with what it holds"
    )


def check_settled(unsettled: Iterable[Subscription], wanted: Subscription) -> None:
    """Refuse to open a durable subscription with something else while the session holds deliveries of it.

    Args:
        unsettled: subscriptions whose consumers are closed, with deliveries that are not settled.
        wanted: what is to be opened.

    Raises:
        JMSError: it is among them, with another selector, noLocal or sharing.
    """
    for other in unsettled:
        if other.identity == wanted.identity and other.properties != wanted.properties:
            raise JMSError(
                f"the durable subscription {wanted.name!r} is active: it has unsettled messages; acknowledge, recover, "
                "commit or roll back before you open it with another selector or noLocal"
            )

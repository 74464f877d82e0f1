"""Replacement of a durable subscription that is opened with other properties than before.

Jakarta Messaging 3.1, 4.11.3 "Unshared durable subscriptions": one that is opened with another selector or noLocal is
deleted and recreated. The properties are read and written through the admin interface when a receiver is opened,
never later. A subscription without them was created by other software, or without admin: it is
resumed, and receives them then. The same name on another topic is another subscription: Pulsar's names are per topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from jmsaio.errors import AdminError, ConsumerBusyError, JMSSecurityError, NotFoundError, TransportError
from jmsaio.model.arguments import shown
from jmsaio.model.log_fields import log_fields
from jmsaio.transport.base import FOREIGN_PROPERTY, SHARED_PROPERTY, Admin, Subscription, SubscriptionStats

_log = logging.getLogger(__name__)

#: Maximum number of checks: another process might recreate the subscription in between.
_LOOKS = 2


async def delete_other(
    admin: Admin | None, wanted: Subscription, warn: Callable[[str], None]
) -> Mapping[str, Mapping[str, str]]:
    """Delete the subscription that ``wanted`` replaces, if there is one.

    Args:
        wanted: the subscription to open.
        warn: called with a warning if the properties of the subscription can't be read.

    Returns:
        The topics whose subscription is to receive the properties once it exists, each with additional properties:
        those that others set on the deleted one, such as an operator's selector, or the mark of one that others made.

    Raises:
        ConsumerBusyError: the existing one has consumers, or is shared otherwise.
    """
    if admin is None:
        return {}  # the client knows from Capabilities.replaces_properties
    if wanted.pattern is not None:
        warn_unknown(warn, "a topics pattern")
        return {}
    try:
        for _ in range(_LOOKS):
            found = await _look(admin, wanted)
            if not wanted.replace:
                return {topic: {} for topic in wanted.topics if topic not in found}
            _check_sharing(found, wanted)
            if all(_same(properties, wanted) for properties in found.values()):
                return {
                    topic: wanted.added_to(found[topic]) if topic in found else {}
                    for topic in wanted.topics
                    if not _marked(found.get(topic, {}), wanted)
                }
            if await _delete(admin, wanted, tuple(found)):
                return {topic: _without_origin(found.get(topic, {})) for topic in wanted.topics}
    except (AdminError, JMSSecurityError) as error:
        warn_unknown(warn, str(error))
        return {}
    raise ConsumerBusyError(
        f"the durable subscription {shown(wanted.name)} is active with another selector or noLocal; close its "
        "consumers first, or use another name"
    )


async def _look(admin: Admin, wanted: Subscription) -> dict[str, Mapping[str, str]]:
    """Return the properties of the subscription by topic, for topics where it exists."""
    found: dict[str, Mapping[str, str]] = {}
    for topic in wanted.topics:
        try:
            found[topic] = await admin.subscription_properties(topic, wanted.name)
        except NotFoundError:
            continue
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
    """Return whether the properties include those that the subscription was created with."""
    return wanted.properties.keys() <= properties.keys()


def _same(properties: Mapping[str, str], wanted: Subscription) -> bool:
    """Return whether it was created with the same properties, or with unknown ones."""
    return not _marked(properties, wanted) or all(properties[key] == value for key, value in wanted.properties.items())


def _without_origin(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a recreated subscription keeps: jmsaio creates it, whoever created the first one."""
    return {key: value for key, value in properties.items() if key != FOREIGN_PROPERTY}


async def _delete(admin: Admin, wanted: Subscription, topics: tuple[str, ...]) -> bool:
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


async def write_properties(admin: Admin | None, wanted: Subscription, topics: Mapping[str, Mapping[str, str]]) -> None:
    """Add the properties of ``wanted`` to its subscription on ``topics``, after the additional ones of each topic.

    Raises AdminError and JMSSecurityError.
    """
    if admin is None:
        return
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

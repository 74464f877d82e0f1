"""Deletion of a subscription that was created with other properties or topics, when a client opens it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from jmsaio.errors import ConsumerBusyError
from jmsaio.model.arguments import shown
from jmsaio.model.log_fields import log_fields
from jmsaio.transport import base
from jmsaio.transport.base import FOREIGN_PROPERTY, SubscriptionType
from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.partition import Partition
from jmsaio.transport.memory.broker.subscription import BrokerSubscription, subscriptions_of

_log = logging.getLogger(__name__)


def renew(
    broker: Broker, wanted: base.Subscription, logs: Sequence[Partition]
) -> Mapping[Partition, Mapping[str, str]]:
    """Delete the subscription named ``wanted.name`` if it has other properties or topics. With the broker's lock held.

    Only durable subscriptions of that name, on any topic of the broker, that have every property of ``wanted`` are
    considered; others of that name (of a queue, of an administrator) are left alone. Returns the properties of the
    deleted subscriptions; those set by others are to be kept.

    Raises ConsumerBusyError: the existing one has consumers, or only one of the two is shared.
    """
    found = {
        log: subscription
        for log in broker.logs.values()
        if (subscription := subscriptions_of(log).get(wanted.name)) is not None and _marked(subscription, wanted)
    }
    for subscription in found.values():
        if (subscription.type is SubscriptionType.EXCLUSIVE) is not (wanted.type is SubscriptionType.EXCLUSIVE):
            kind = "shared" if wanted.type is SubscriptionType.EXCLUSIVE else "unshared"
            raise ConsumerBusyError(
                f"{shown(wanted.name)} of {subscription.log.name} is {kind}: unsubscribe it first, or use another name"
            )
    if _same(found, wanted, logs):
        return {}
    for log, subscription in found.items():
        if subscription.consumers:
            raise ConsumerBusyError(
                f"subscription {shown(wanted.name)} of {log.name} has {len(subscription.consumers)} consumer(s): it "
                "can't be opened with another topic, selector or noLocal; close them first"
            )
    for log, subscription in found.items():
        _log.warning(
            "subscription %r of %s is opened with another topic, selector or noLocal: it is recreated, and the %d "
            "messages kept for it are dropped", wanted.name, log.name, subscription.size,
            extra=log_fields(destination=log.name, subscription=wanted.name),
        )  # fmt: skip
        broker.remove(subscription, None)
    return {
        log: {key: value for key, value in subscription.properties.items() if key != FOREIGN_PROPERTY}
        for log, subscription in found.items()
    }


def _marked(subscription: BrokerSubscription, wanted: base.Subscription) -> bool:
    return subscription.durable and wanted.properties.keys() <= subscription.properties.keys()


def _same(found: dict[Partition, BrokerSubscription], wanted: base.Subscription, logs: Sequence[Partition]) -> bool:
    """Return whether properties and topics are the same. Topics newly matched by a pattern don't count as a change."""
    if any(log not in logs for log in found) or (wanted.pattern is None and any(log not in found for log in logs)):
        return False
    return all(
        all(subscription.properties[key] == value for key, value in wanted.properties.items())
        for subscription in found.values()
    )

"""Deletes subscriptions that end with their consumers, where the engine's client can't (jms-spec 8.1).

On Pulsar these are durable subscriptions (see ``subscriptions.plan``), and their last consumer deletes them before it
closes. What that leaves is deleted here through the admin interface, never with force: the broker refuses while anybody
consumes from the subscription.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from jmsaio.client.subscriptions.plan import SHARED
from jmsaio.errors import AdminError, ConsumerBusyError, JMSError, NotFoundError
from jmsaio.transport.base import Subscription

if TYPE_CHECKING:
    from jmsaio.client.connection import Connection

_log = logging.getLogger("jmsaio")

#: Bound of a deletion in seconds: it is a courtesy, ``jmsaio sweep`` comes after it.
_LIMIT = 5.0
#: Seconds between two attempts while the broker still sees a consumer, and the number of attempts.
_PAUSE, _ATTEMPTS = 0.1, 10


async def drop_unused(
    connection: Connection, subscription: Subscription, limit: float = _LIMIT, *, patient: bool = False
) -> None:
    """Delete the subscription if nobody consumes from it.

    Args:
        connection: whose admin interface is used; without one nothing is done.
        subscription: what it subscribes to; nothing is done for a topics pattern.
        limit: seconds it may take at most, no more than 5.
        patient: a consumer may be on its way out: try again for a second.

    Never raises a JMSError. Takes no longer when the caller is cancelled.
    """
    admin = connection.transport.admin
    if admin is None:
        return
    with anyio.move_on_after(min(_LIMIT, limit, connection.configuration.close_timeout), shield=True):
        for topic in subscription.topics:
            for attempt in range(_ATTEMPTS if patient else 1):
                if attempt:
                    await anyio.sleep(_PAUSE)
                try:
                    await admin.delete_subscription(topic, subscription.name)
                except NotFoundError:  # somebody else was faster
                    break
                except JMSError as error:
                    _log.info("the subscription %s of %s is left: %s", subscription.name, topic, error)
                    if not (isinstance(error, AdminError) and error.in_use):
                        break
                else:
                    break


async def make_way(connection: Connection, subscription: Subscription) -> None:
    """Delete what a crashed process left of a shared subscription: it ended with its last consumer, says JMS.

    Raises:
        ConsumerBusyError: the name is that of a durable subscription.
    """
    admin = connection.transport.admin
    if admin is None:
        return
    for topic in subscription.topics:
        try:
            properties = await admin.subscription_properties(topic, subscription.name)
        except NotFoundError:
            continue
        except JMSError as error:
            _log.info("whether %s of %s was left by a crash can't be told: %s", subscription.name, topic, error)
            return
        if SHARED in properties:
            raise ConsumerBusyError(
                f"{subscription.name!r} of {topic} is a durable subscription; use another name for the shared one"
            )
        await drop_unused(connection, subscription)
        return

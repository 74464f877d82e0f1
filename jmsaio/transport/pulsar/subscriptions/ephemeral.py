"""Subscriptions that end with their last consumer.

With a client that lacks them they are durable for the broker, and their last receiver deletes them before it closes.
Remaining ones are deleted here through the admin interface, never with force: the broker refuses while a subscription
has consumers.
"""

from __future__ import annotations

import logging

import anyio
import tenacity

from jmsaio.errors import AdminError, ConsumerBusyError, JMSError, NotFoundError
from jmsaio.model.arguments import shown
from jmsaio.model.log_fields import log_fields
from jmsaio.transport.base import SHARED_PROPERTY, Admin, Subscription

_log = logging.getLogger(__name__)

#: Maximum seconds for a deletion. It is best effort: ``jmsaio sweep`` removes leftovers.
_LIMIT = 5.0
#: Seconds between two attempts while the broker still sees a consumer, and the number of attempts.
_PAUSE, _ATTEMPTS = 0.1, 10


async def delete_unused(
    admin: Admin | None, subscription: Subscription, timeout: float, *, patient: bool = False
) -> None:
    """Delete the subscription if it has no consumers.

    Args:
        admin: the admin interface; None: nothing is done.
        subscription: the subscription; nothing is done for a topics pattern.
        timeout: maximum seconds, limited to 5.
        patient: retry for a second, because a consumer might be about to leave.

    Never raises a JMSError. Continues even if the caller is cancelled.
    """
    if admin is None:
        return
    with anyio.move_on_after(max(0.0, min(_LIMIT, timeout)), shield=True):
        for topic in subscription.topics:
            await _delete(admin, topic, subscription.name, _ATTEMPTS if patient else 1)


async def _delete(admin: Admin, topic: str, name: str, attempts: int) -> None:
    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(attempts),
        wait=tenacity.wait_fixed(_PAUSE),
        retry=tenacity.retry_if_exception(_in_use),
        reraise=True,
        sleep=anyio.sleep,
    )
    try:
        await retrying(admin.delete_subscription, topic, name)
    except NotFoundError:  # another client was faster
        return
    except JMSError as error:
        text, about = "the subscription %s of %s is left: %s", log_fields(destination=topic, subscription=name)
        _log.info(text, name, topic, error, extra=about)


def _in_use(error: BaseException) -> bool:
    return isinstance(error, AdminError) and error.in_use


async def delete_leftover(admin: Admin | None, subscription: Subscription, timeout: float) -> None:
    """Delete leftovers of a crashed process: a shared subscription that is not durable.

    Jakarta Messaging 3.1, 4.11.2 "Shared non-durable subscriptions": such a subscription ends with its last consumer.

    Args:
        admin: the admin interface; None: nothing is done.
        timeout: maximum seconds for the deletion.

    Raises:
        ConsumerBusyError: the name is that of a durable subscription.
    """
    if admin is None:
        return
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

"""``session.unsubscribe``: deletes a durable subscription, and never another one's backlog (jms-spec 8.4).

The Java client deletes every subscription of that name in the whole namespace, by force (Starlight 3.5). Here a name
without a topic is searched, found on exactly one topic, not in use, and not a queue's; otherwise nothing is deleted.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import anyio

from jmsaio.client import registry
from jmsaio.client.subscribing import durable_name
from jmsaio.errors import IllegalStateError, InvalidDestinationError, NotFoundError
from jmsaio.model.destinations import Topic, resolve
from jmsaio.transport.base import Admin

if TYPE_CHECKING:
    from jmsaio.client.runtime import SessionRuntime

_PARTITION = "-partition-"
#: Topics that are asked for at once: a namespace may have thousands.
_AT_ONCE = 8


async def unsubscribe(runtime: SessionRuntime, name: str, topic: Topic | None) -> None:
    """Delete a durable subscription; see ``Session.unsubscribe``."""
    runtime.check_open()
    connection = runtime.connection
    subscription = durable_name(connection.client_id, name)
    if not name or subscription == connection.configuration.queue_subscription_name:
        raise InvalidDestinationError(f"{name!r} is not the name of a durable subscription")
    if registry.is_active(connection.broker, subscription):
        raise IllegalStateError(
            f"the subscription {name!r} has an active consumer, or unsettled messages; close and settle it first"
        )
    admin = connection.transport.admin
    if admin is None:
        raise IllegalStateError("unsubscribe needs the admin interface; set jms.usePulsarAdmin=true and webServiceUrl")
    if topic is not None:
        found = resolve(topic, connection.configuration.system_namespace).topics[0]
    else:
        found = await _search(admin, connection.configuration.system_namespace, subscription)
    try:
        statistics = (await admin.stats(found)).subscriptions[subscription]
        if statistics.consumers:
            raise IllegalStateError(f"the subscription {name!r} on {found} has {statistics.consumers} active consumers")
        await admin.delete_subscription(found, subscription)
    except (KeyError, NotFoundError) as error:
        raise InvalidDestinationError(f"there is no subscription {name!r} on {found}") from error


async def _search(admin: Admin, namespace: str, subscription: str) -> str:
    """The one topic that has the subscription; a few are asked at a time."""
    found: list[str] = []
    rest = iter(sorted({_whole(topic) for topic in await admin.topics(namespace)}))

    async def ask() -> None:
        for topic in rest:
            with contextlib.suppress(NotFoundError):  # deleted since it was listed
                if subscription in (await admin.stats(topic)).subscriptions:
                    found.append(topic)

    try:
        async with anyio.create_task_group() as tasks:
            for _ in range(_AT_ONCE):
                tasks.start_soon(ask)
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    if not found:
        raise InvalidDestinationError(f"there is no subscription {subscription!r} in {namespace}")
    if len(found) > 1:
        raise InvalidDestinationError(
            f"the subscription {subscription!r} exists on {len(found)} topics: {sorted(found)}; name the one you mean"
        )
    return found[0]


def _whole(topic: str) -> str:
    """The topic that a partition belongs to; any other name as it is."""
    base, mark, index = topic.rpartition(_PARTITION)
    return base if mark and index.isdecimal() else topic

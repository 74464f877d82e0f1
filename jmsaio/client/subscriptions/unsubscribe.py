"""``session.unsubscribe``: deletes a durable subscription, and never the backlog of another one.

The Java client deletes every subscription of that name in the whole namespace, by force. Here a name without a topic is
searched for, and deleted only if it exists on exactly one topic, is not in use, and has properties that mark it as a
durable subscription that jmsaio created: a queue's or another program's could have that name, too, and stays theirs
after jmsaio resumed it.
"""

from __future__ import annotations

import contextlib

from jmsaio.client.subscriptions import in_process
from jmsaio.client.subscriptions.plan import SHARED, durable_name
from jmsaio.config import Configuration
from jmsaio.errors import AdminError, IllegalStateError, InvalidDestinationError, NotFoundError
from jmsaio.model.arguments import brief, shown
from jmsaio.model.destinations import Topic, as_destination, broker_name_problem, resolve
from jmsaio.model.partitions import split_partition
from jmsaio.transport.base import FOREIGN_PROPERTY, Admin
from jmsaio.transport.waiting import together

#: Maximum number of topics queried concurrently: a namespace can have thousands.
_AT_ONCE = 8


async def unsubscribe(
    admin: Admin | None, config: Configuration, broker: str, client_id: str | None, name: str, topic: Topic | None
) -> None:
    """Delete a durable subscription; see ``Session.unsubscribe``.

    Args:
        broker: the broker's name in this process.
        client_id: the connection's client identifier.
        topic: its topic, or None to search for it.
    """
    subscription = durable_name(client_id, name)
    queue = subscription == config.queue_subscription_name
    if not isinstance(name, str) or not name or queue or broker_name_problem(subscription) is not None:
        raise InvalidDestinationError(f"{shown(name)} is not the name of a durable subscription")
    if in_process.is_active(broker, subscription):
        raise IllegalStateError(
            f"the subscription {shown(name)} has an active consumer, or unsettled messages; close and settle it first"
        )
    if admin is None:
        raise IllegalStateError("unsubscribe needs the admin interface; set jms.usePulsarAdmin=true and webServiceUrl")
    namespace = config.system_namespace
    topics = [await _search(admin, namespace, subscription)] if topic is None else _named(topic, namespace)
    for one in topics:
        await _check_idle(admin, one, subscription)
    for one in topics:
        try:
            await admin.delete_subscription(one, subscription)
        except NotFoundError as error:
            raise InvalidDestinationError(f"there is no subscription {shown(name)} on {brief(one)}") from error
        except AdminError as error:
            if error.in_use:
                raise IllegalStateError(
                    f"the subscription {shown(name)} on {brief(one)} got a consumer meanwhile"
                ) from error
            raise


def _named(topic: Topic, namespace: str) -> tuple[str, ...]:
    """Return the topics of a destination that the application named."""
    destination = as_destination(topic)
    found = resolve(destination, namespace).topics if isinstance(destination, Topic) else ()
    if not found:
        raise InvalidDestinationError(f"unsubscribe needs a Topic, or several (multi:), not {shown(topic)}")
    return found


async def _check_idle(admin: Admin, topic: str, subscription: str) -> None:
    try:
        statistics = (await admin.stats(topic)).subscriptions[subscription]
    except (KeyError, NotFoundError) as error:
        raise InvalidDestinationError(f"there is no subscription {shown(subscription)} on {brief(topic)}") from error
    if statistics.consumers:
        raise IllegalStateError(
            f"the subscription {shown(subscription)} on {brief(topic)} has {statistics.consumers} active consumers"
        )


async def _search(admin: Admin, namespace: str, subscription: str) -> str:
    """Return the one topic with the subscription. Queries a few topics at a time, with the cheapest sufficient call."""
    found: dict[str, bool] = {}
    rest = iter({split_partition(topic)[0] for topic in await admin.topics(namespace)})

    async def ask() -> None:
        for topic in rest:
            with contextlib.suppress(NotFoundError):  # it has no such subscription, or was deleted after it was listed
                properties = await admin.subscription_properties(topic, subscription)
                found[topic] = SHARED in properties and FOREIGN_PROPERTY not in properties

    await together(ask() for _ in range(_AT_ONCE))
    if not found:
        raise InvalidDestinationError(f"there is no subscription {shown(subscription)} in {namespace}")
    if len(found) > 1:
        raise InvalidDestinationError(
            f"the subscription {shown(subscription)} exists on {len(found)} topics: {sorted(found)}; name the one you "
            "mean"
        )
    (topic, ours), *_ = found.items()
    if not ours:
        raise InvalidDestinationError(
            f"jmsaio did not create {shown(subscription)} of {brief(topic)}: it might be a queue's, or another "
            "program's; name the topic to delete it"
        )
    return topic

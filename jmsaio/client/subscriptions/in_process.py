"""Subscriptions and client ids in use in this process, and ``session.unsubscribe``.

Unsubscribing never deletes the backlog of another subscription.

The Java client deletes every subscription of that name in the whole namespace, by force. Here a name without a topic is
searched for, and deleted only if it exists on exactly one topic, is not in use, and has properties that mark it as a
durable subscription that jmsaio created: a queue's or another program's could also have that name, and stays theirs
after jmsaio resumed it.

Pulsar has no client ids, and the name of a subscription belongs to one topic. So these rules apply within one process,
as in Starlight.

Jakarta Messaging 3.1, 6.1.2 Client identifier; 8.3.3 Unshared durable subscriptions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import attrs

from jmsaio.client.subscriptions.plan import SHARED, ConsumerKind, durable_name
from jmsaio.config import Configuration
from jmsaio.errors import (
    AdminError,
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    JMSError,
    NotFoundError,
)
from jmsaio.model.arguments import brief, shown
from jmsaio.model.destinations import Topic, as_destination, broker_name_problem, resolve
from jmsaio.model.topic_names import split_partition
from jmsaio.transport.base import FOREIGN_PROPERTY, Admin
from jmsaio.transport.waiting import together

_client_ids: set[tuple[str, str]] = set()
_subscriptions: dict[tuple[str, str], list[ActiveSubscription]] = {}  # one for each consumer


@attrs.frozen(eq=False)
class ActiveSubscription:
    """A consumer's use of a subscription: its kind, its topics (or pattern) and its selector."""

    kind: ConsumerKind
    topics: tuple[str, ...]
    selector: str | None


def claim_client_id(broker: str, client_id: str) -> None:
    if not isinstance(client_id, str) or not client_id:
        raise InvalidClientIDError(f"client_id must be a text that is not empty, not {shown(client_id)}")
    if (broker, client_id) in _client_ids:
        raise InvalidClientIDError(
            f"client id {shown(client_id)} is used by another open connection of this process; close it, or use "
            "another id"
        )
    _client_ids.add((broker, client_id))


def release_client_id(broker: str, client_id: str) -> None:
    _client_ids.discard((broker, client_id))


def claim_subscription(broker: str, name: str, use: ActiveSubscription) -> Callable[[], None]:
    """Register a consumer of a named subscription, or refuse it; return the function that unregisters it."""
    uses = _subscriptions.setdefault((broker, name), [])
    kind = use.kind.value
    for first in uses[:1]:
        # Durable and non-durable ones can have the same Pulsar name.
        if first.kind is not use.kind or use.kind is ConsumerKind.DURABLE:
            raise JMSError(
                f"the {kind} subscription {shown(name)} is in use by another consumer; close it first, or use another "
                "name"
            )
        if (first.topics, first.selector) != (use.topics, use.selector):
            raise JMSError(
                f"the {kind} subscription {shown(name)} is active with topic {first.topics} and selector "
                f"{shown(first.selector)}, not {use.topics} and {shown(use.selector)}; close its consumers first"
            )
    uses.append(use)

    def release() -> None:
        if use in uses:
            uses.remove(use)
            if not uses:
                del _subscriptions[broker, name]

    return release


#: Maximum number of topics queried concurrently: a namespace can have thousands.
_AT_ONCE = 8


async def unsubscribe(
    admin: Admin | None, config: Configuration, broker: str, client_id: str | None, name: str, topic: Topic | None
) -> None:
    subscription = durable_name(client_id, name)
    queue = subscription == config.queue_subscription_name
    if not isinstance(name, str) or not name or queue or broker_name_problem(subscription) is not None:
        raise InvalidDestinationError(f"{shown(name)} is not the name of a durable subscription")
    if (broker, subscription) in _subscriptions:
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

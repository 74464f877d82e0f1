"""The client identifiers and named subscriptions that this process uses, by broker.

Pulsar has no client ids, and the name of a subscription belongs to one topic. So these rules apply within one process,
as in Starlight.

Jakarta Messaging 3.1, 6.1.2 Client identifier; 8.3.3 Unshared durable subscriptions.
"""

from __future__ import annotations

import attrs

from jmsaio.client.subscriptions.plan import ConsumerKind
from jmsaio.errors import InvalidClientIDError, JMSError

_client_ids: set[tuple[str, str]] = set()
_subscriptions: dict[tuple[str, str], ActiveSubscription] = {}


@attrs.define
class ActiveSubscription:
    """An active subscription: the topics (or pattern) and options with which it was opened, and its consumers."""

    topics: tuple[str, ...]
    selector: str | None
    no_local: bool
    shared: bool
    consumers: int = 0
    kind: ConsumerKind | None = None  # of its first consumer


def claim_client_id(broker: str, client_id: str) -> None:
    """Claim a client identifier on a broker.

    Raises:
        InvalidClientIDError: it is empty, or an open connection of this process uses it.
    """
    if not isinstance(client_id, str) or not client_id:
        raise InvalidClientIDError(f"client_id must be a text that is not empty, not {client_id!r:.40}")
    if (broker, client_id) in _client_ids:
        raise InvalidClientIDError(
            f"client id {client_id!r} is used by another open connection of this process; close it, or use another id"
        )
    _client_ids.add((broker, client_id))


def release_client_id(broker: str, client_id: str) -> None:
    """Release a client identifier."""
    _client_ids.discard((broker, client_id))


def claim_subscription(broker: str, name: str, kind: ConsumerKind, use: ActiveSubscription) -> None:
    """Register a consumer of a named subscription.

    Args:
        broker: the broker.
        name: Pulsar's name of the subscription.
        kind: the kind of consumer.
        use: the topics and options with which it is opened.

    Raises:
        JMSError: it is active with another topic, selector or kind (durable and non-durable ones can have the same
            Pulsar name), or it is unshared and has a consumer.
    """
    active = _subscriptions.get((broker, name))
    if active is None:
        active = _subscriptions[broker, name] = use
        active.kind = kind
    elif not (use.shared and active.shared and active.kind is kind):
        raise JMSError(
            f"the {kind.value} subscription {name!r} is in use by another consumer; close it first, or use another name"
        )
    elif (active.topics, active.selector) != (use.topics, use.selector):
        raise JMSError(
            f"the {kind.value} subscription {name!r} is active with topic {active.topics} and selector "
            f"{active.selector!r}, not {use.topics} and {use.selector!r}; close its consumers first"
        )
    active.consumers += 1


def release_subscription(broker: str, name: str) -> None:
    """Unregister a consumer of a named subscription."""
    active = _subscriptions.get((broker, name))
    if active is not None:
        active.consumers -= 1
        if active.consumers <= 0:
            del _subscriptions[broker, name]


def is_active(broker: str, name: str) -> bool:
    """Return whether a consumer of this process uses the subscription."""
    return (broker, name) in _subscriptions

"""The client identifiers and named subscriptions that this process uses, by broker.

Pulsar has no client ids, and the name of a subscription belongs to one topic. So these rules apply within one process,
as in Starlight.

Jakarta Messaging 3.1, 6.1.2 Client identifier; 8.3.3 Unshared durable subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from jmsaio.client.subscriptions.plan import ConsumerKind
from jmsaio.errors import InvalidClientIDError, JMSError
from jmsaio.model.arguments import shown

_client_ids: set[tuple[str, str]] = set()
_subscriptions: dict[tuple[str, str], list[ActiveSubscription]] = {}  # one for each consumer


@attrs.frozen(eq=False)
class ActiveSubscription:
    """A consumer's use of a subscription: its kind, and the topics (or pattern) and options that it asked for."""

    kind: ConsumerKind
    topics: tuple[str, ...]
    selector: str | None
    no_local: bool
    shared: bool


def claim_client_id(broker: str, client_id: str) -> None:
    """Claim a client identifier on a broker.

    Raises:
        InvalidClientIDError: it is empty, or an open connection of this process uses it.
    """
    if not isinstance(client_id, str) or not client_id:
        raise InvalidClientIDError(f"client_id must be a text that is not empty, not {shown(client_id)}")
    if (broker, client_id) in _client_ids:
        raise InvalidClientIDError(
            f"client id {shown(client_id)} is used by another open connection of this process; close it, or use "
            "another id"
        )
    _client_ids.add((broker, client_id))


def release_client_id(broker: str, client_id: str) -> None:
    """Release a client identifier."""
    _client_ids.discard((broker, client_id))


def claim_subscription(broker: str, name: str, use: ActiveSubscription) -> Callable[[], None]:
    """Register a consumer of a named subscription; return the function that unregisters it.

    Args:
        broker: the broker.
        name: Pulsar's name of the subscription.
        use: the kind of consumer, the topics and options with which it is opened.

    Raises:
        JMSError: it is active with another topic, selector or kind (durable and non-durable ones can have the same
            Pulsar name), or it is unshared and has a consumer.
    """
    uses = _subscriptions.setdefault((broker, name), [])
    kind = use.kind.value
    for first in uses[:1]:
        if not (use.shared and first.shared and first.kind is use.kind):
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


def is_active(broker: str, name: str) -> bool:
    """Return whether a consumer of this process uses the subscription."""
    return (broker, name) in _subscriptions

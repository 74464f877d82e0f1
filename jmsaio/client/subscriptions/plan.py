"""From a JMS request for a consumer to a Pulsar subscription: names, types, positions.

===============  ==========================================  =====================  =========  ============
consumer         subscription                                type                   starts     outlives it
===============  ==========================================  =====================  =========  ============
queue            ``:suffix`` or ``jms.queueSubscriptionName``  as set                 earliest   yes
simple topic     ``jmsaio-nd-<uuid>`` or ``<uuid>``          Exclusive, or as set   latest     no
shared           ``[clientId_]name-nd``                      as set                 latest     no
durable          ``clientId_name`` (``name`` without id)     Exclusive              latest     yes
shared durable   ``[clientId_]name``                         as set                 latest     yes
===============  ==========================================  =====================  =========  ============

A simple consumer's name has the prefix if the subscription would outlive a crash (``Capabilities.non_durable``).

A shared subscription that is not durable has another name than in Java, where the broker's is not durable either: no
subscription can be both, see ``jmsaio guide compatibility``.

A durable subscription carries its selector, noLocal and sharing as properties, see ``transport.base.Subscription``.

*As set* is ``jms.topicSharedSubscriptionType``, for queues ``jms.queueSubscriptionType``, also per destination.
"""

from __future__ import annotations

import enum
from collections.abc import Container

import attrs

from jmsaio.config import Configuration, ConsumerConfig
from jmsaio.errors import IllegalArgumentError, IllegalStateError, InvalidDestinationError, InvalidSelectorError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Destination, Queue, TemporaryTopic, Topic, broker_name_problem, resolve
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.model.topic_names import SUBSCRIPTION_PREFIX
from jmsaio.selector import Selector
from jmsaio.transport.base import (
    CLIENT_SELECTOR,
    DESTINATION_TYPE,
    FILTERING,
    FORCE_DROP,
    NOT_FROM,
    REJECT_ACTION,
    SELECTOR as PLUGIN_SELECTOR,
    SHARED_PROPERTY,
    StartPosition,
    Subscription,
    SubscriptionType,
)


class ConsumerKind(enum.Enum):
    """The five kinds of consumers (Jakarta Messaging 3.1, 8 Receiving messages)."""

    QUEUE = "queue"
    SIMPLE = "simple topic"
    SHARED = "shared"
    DURABLE = "durable"
    SHARED_DURABLE = "shared durable"


#: The kinds whose subscriptions an application names.
NAMED = frozenset({ConsumerKind.SHARED, ConsumerKind.DURABLE, ConsumerKind.SHARED_DURABLE})


@attrs.frozen
class ConsumerRequest:
    """An application's request for a consumer; the shared and durable kinds have a subscription name."""

    destination: Destination
    kind: ConsumerKind
    name: str | None = None
    selector: str | None = None
    no_local: bool = False


#: Properties of a durable subscription that record its terms. Never ``jms.selector``: that belongs to Starlight, and
#: turns on the broker's filter.
SELECTOR, NO_LOCAL, SHARED = CLIENT_SELECTOR, "jmsaio.nolocal", SHARED_PROPERTY
#: Maximum bytes of a selector in a consumer's metadata, which Pulsar limits to 1024 bytes in all.
_SHOWN_SELECTOR = 200

_MODE_WORDS = {
    AcknowledgeMode.TRANSACTED: "SESSION_TRANSACTED",
    AcknowledgeMode.AUTO: "AUTO_ACKNOWLEDGE",
    AcknowledgeMode.CLIENT: "CLIENT_ACKNOWLEDGE",
    AcknowledgeMode.DUPS_OK: "DUPS_OK_ACKNOWLEDGE",
    AcknowledgeMode.INDIVIDUAL: "INDIVIDUAL_ACKNOWLEDGE",
}


def parse_selector(text: str | None) -> Selector | None:
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise InvalidSelectorError(f"a selector is a text, not {type(text).__name__}")
    return Selector(text)


def check(request: ConsumerRequest, client_id: str | None, strict_client_id: bool) -> None:
    if not isinstance(request.destination, Topic):
        raise InvalidDestinationError(
            f"a {request.kind.value} subscription needs a Topic, not {request.destination!r}; use create_topic"
        )
    if request.kind is not ConsumerKind.SIMPLE and not (isinstance(request.name, str) and request.name):
        raise IllegalArgumentError(f"a {request.kind.value} subscription needs a name, not {shown(request.name)}")
    if request.name and (problem := broker_name_problem(durable_name(client_id, request.name))) is not None:
        raise IllegalArgumentError(f"{shown(request.name)} is not the name of a subscription: {problem}")
    if request.kind in (ConsumerKind.DURABLE, ConsumerKind.SHARED_DURABLE) and isinstance(
        request.destination, TemporaryTopic
    ):
        raise InvalidDestinationError(f"{request.destination!r} is temporary: a subscription on it can't be durable")
    if request.kind is ConsumerKind.DURABLE and client_id is None and strict_client_id:
        raise IllegalStateError("an unshared durable subscription needs a client id; set client_id on the connection")


def durable_name(client_id: str | None, name: str) -> str:
    return name if client_id is None else f"{client_id}_{name}"


def plan(
    request: ConsumerRequest,
    client_id: str | None,
    config: Configuration,
    mode: AcknowledgeMode,
    unique: str,
    non_durable: Container[SubscriptionType] = (),
    *,
    connection_id: str = "",
    sent_selector: str | None = None,
) -> Subscription:
    """Turn a request into a subscription of the transport. Raises as ``check``.

    ``unique`` is a name that no other subscription has; consumers on the types ``non_durable`` take their subscriptions
    with them. The broker runs ``sent_selector``, and finds ``connection_id`` in the messages of the connection.
    """
    resolved = resolve(request.destination, config.system_namespace)
    if request.kind is ConsumerKind.QUEUE:
        name = config.queue_subscription(resolved.subscription)
        subscription_type = SubscriptionType(config.type_of_queue(resolved.queue_type))
        position = StartPosition.EARLIEST
    else:
        check(request, client_id, config.strict_client_id)
        subscription_type, position = _type(request.kind, config), StartPosition.LATEST
        if request.kind is ConsumerKind.SIMPLE:
            name = unique if subscription_type in non_durable else f"{SUBSCRIPTION_PREFIX}{unique}"
        else:
            name = durable_name(client_id, request.name or "")
            name += "-nd" if request.kind is ConsumerKind.SHARED else ""
    durable = request.kind in (ConsumerKind.DURABLE, ConsumerKind.SHARED_DURABLE)
    consumer = config.consumer.merge(resolved.overrides)
    metadata = {
        DESTINATION_TYPE: "queue" if isinstance(request.destination, Queue) else "topic",
        "jms.acknowledgeMode": _MODE_WORDS[mode],
    }
    if config.enable_jms_priority:
        metadata["jms.priority"] = "enabled"
    if config.acknowledge_rejected_messages:
        metadata[FORCE_DROP] = "true"
    if request.selector and sent_selector is None:
        metadata[CLIENT_SELECTOR] = request.selector.encode()[:_SHOWN_SELECTOR].decode(errors="ignore")
    if config.use_server_side_filtering:
        metadata |= _filtering(request, client_id, connection_id, sent_selector)
    return Subscription(
        topics=resolved.topics,
        pattern=resolved.pattern,
        name=name,
        type=subscription_type,
        config=consumer if consumer.dead_letter is None else _with_full_names(consumer, config.system_namespace),
        position=position,
        durable=durable or request.kind is ConsumerKind.QUEUE,
        metadata=metadata,
        properties=_terms(request, client_id) if durable else {},
        replace=durable,
        selective=bool(request.selector) or request.no_local or config.use_server_side_filtering,
    )


def _with_full_names(config: ConsumerConfig, system_namespace: str) -> ConsumerConfig:
    """Complete a short ``deadLetterTopic`` as a destination of that name; the engines support one namespace only."""
    policy = config.dead_letter
    if policy is None or not policy.dead_letter_topic or "/" in policy.dead_letter_topic:
        return config
    topic = f"persistent://{system_namespace}/{policy.dead_letter_topic}"
    return attrs.evolve(config, dead_letter=attrs.evolve(policy, dead_letter_topic=topic))


def _type(kind: ConsumerKind, config: Configuration) -> SubscriptionType:
    if kind is ConsumerKind.DURABLE or (
        kind is ConsumerKind.SIMPLE and config.use_exclusive_subscriptions_for_simple_consumers
    ):
        return SubscriptionType.EXCLUSIVE
    return SubscriptionType(config.topic_shared_subscription_type)


def _terms(request: ConsumerRequest, client_id: str | None) -> dict[str, str]:
    """Return the terms recorded with a durable subscription; noLocal only if it has an effect."""
    no_local = request.no_local and request.kind is ConsumerKind.DURABLE and client_id is not None
    return {
        SELECTOR: request.selector or "",
        NO_LOCAL: str(no_local).lower(),
        SHARED: str(request.kind is ConsumerKind.SHARED_DURABLE).lower(),
    }


def _filtering(
    request: ConsumerRequest, client_id: str | None, connection_id: str, sent_selector: str | None
) -> dict[str, str]:
    metadata = {
        FILTERING: "true",
        REJECT_ACTION: "reschedule" if isinstance(request.destination, Queue) else "drop",
    }
    if sent_selector is not None:
        metadata[PLUGIN_SELECTOR] = sent_selector
    if request.no_local and (request.kind is not ConsumerKind.DURABLE or client_id is not None):
        metadata[NOT_FROM] = connection_id
    return metadata

"""Opens the inbox of a new consumer: checks, plans, subscribes, or takes over the inbox of a closed consumer."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack

import anyio
import attrs

from jmsaio.client.callbacks.reports import ExceptionReports
from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.inbox import BATCH, Inbox, siblings
from jmsaio.client.delivery.schemas import check_schemas
from jmsaio.client.delivery.settlement import Settlement
from jmsaio.client.runtime.connection import ConnectionRuntime
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.subscriptions.in_process import ActiveSubscription, claim_subscription
from jmsaio.client.subscriptions.plan import NAMED, ConsumerKind, ConsumerRequest, parse_selector, plan
from jmsaio.client.subscriptions.selectors import SubscriptionSelectors
from jmsaio.codec.headers import connection_id, sender_client_id
from jmsaio.config import Configuration
from jmsaio.errors import InvalidSelectorError, NotFoundError, ObjectClosedError, TransportError
from jmsaio.model.arguments import check_flag, shown
from jmsaio.model.destinations import Destination, resolve, without_query
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.fate import asks_for_delay
from jmsaio.selector import Selector
from jmsaio.selector.agreement import objection
from jmsaio.transport.base import (
    CLIENT_SELECTOR,
    METADATA_TOO_LARGE,
    REJECT_ACTION,
    SELECTOR,
    Capabilities,
    Receiver,
    Subscription,
    SubscriptionType,
    Transport,
)


async def open_inbox(runtime: SessionRuntime, request: ConsumerRequest) -> Inbox:
    """Open the inbox of a new consumer; messages are stored for it from the moment this returns."""
    runtime.check_call()
    connection, config, transport = runtime.connection, runtime.connection.configuration, runtime.connection.transport
    check_flag(request.no_local, "no_local")
    selector, sent = parse_selector(request.selector), None
    if request.selector is not None and config.use_server_side_filtering:
        sent = _sent_selector(connection, request, request.selector)
    can = transport.capabilities
    connection.check_options(request.destination)
    subscription = plan(
        request, connection.client_id, config, runtime.mode, str(uuid.uuid4()), can.non_durable,
        connection_id=connection.connection_id, sent_selector=sent,
    )  # fmt: skip
    connection.temporaries.check_may_consume(request.destination)
    if config.enable_client_side_emulation is False:
        _refuse_emulation(config, request, subscription)
    if subscription.config.use_schema:
        check_schemas(transport.admin)

    async with AsyncExitStack() as undo:
        inbox = runtime.inboxes.take_over(subscription)
        if inbox is not None:
            undo.push_async_callback(_put_back, runtime, inbox)
        free_name = None
        if request.kind in NAMED:
            topics = subscription.topics or (subscription.pattern or "",)
            use = ActiveSubscription(request.kind, topics, request.selector)
            free_name = claim_subscription(connection.broker, subscription.name, use)
            undo.callback(free_name)
        if inbox is not None:
            await _resume(inbox.settlement.own, subscription.metadata.get(CLIENT_SELECTOR), config.operation_timeout)
        else:
            if subscription.replace and not can.replaces_properties:
                _warn_of_unknown_terms(connection, can)
            create_missing = request.kind is ConsumerKind.QUEUE and config.precreate_queue_subscription

            def wake() -> None:
                if inbox is not None and inbox.session is not None:  # otherwise the inbox was never filled, and will be
                    inbox.session.announce(inbox)

            receiver = await subscribe(transport, subscription, wake, create_missing, connection.reports)
            undo.push_async_callback(receiver.aclose, config.close_timeout)
            inbox = _make_inbox(connection, request.destination, subscription, receiver)
        selectors = await connection.selectors.open(subscription)
        undo.pop_all()

    others = siblings(connection.broker, subscription, connection.timers)
    wanted = _filter(connection, request, subscription, selector, selectors)
    inbox.attach(runtime.inboxes, wanted, others, free_name, subscription.config.use_schema)
    if runtime.refuses():  # the session was closed meanwhile, before this inbox was added
        with anyio.CancelScope(shield=True):
            await inbox.aclose(config.close_timeout)
        raise ObjectClosedError("the session was closed while the consumer was created")
    runtime.inboxes.open[inbox] = None
    return inbox


async def _resume(receiver: Receiver, selector: str | None, timeout: float) -> None:
    try:
        await receiver.resume(timeout, selector)
    except TransportError as error:
        if error.error_code != METADATA_TOO_LARGE:
            raise
        await receiver.resume(timeout)  # only the statistics lack it then


async def _put_back(runtime: SessionRuntime, inbox: Inbox) -> None:
    inbox.detach()
    with anyio.CancelScope(shield=True):
        if runtime.inboxes.retain(inbox, runtime.connection.transport):
            await inbox.stop(runtime.close_timeout)  # it might have been resumed
        else:
            await inbox.aclose(runtime.close_timeout)


async def subscribe(
    transport: Transport,
    wanted: Subscription,
    wake: Callable[[], None],
    create_missing: bool,
    reports: ExceptionReports,
) -> Receiver:
    """Open a receiver; if the broker does not create a queue's subscription itself, create it first, as Java does.

    A selector that is too long for the broker is left out, with a warning: it runs in the client.
    """
    try:
        return await transport.open_receiver(wanted, wake)
    except NotFoundError as error:
        refused = error.error_code != "SubscriptionNotFound" or not create_missing or wanted.pattern is not None
        if refused or transport.admin is None:
            raise
    except TransportError as error:
        metadata = dict(wanted.metadata)
        if error.error_code != METADATA_TOO_LARGE or not metadata.keys() & {CLIENT_SELECTOR, SELECTOR}:
            raise
        if metadata.pop(CLIENT_SELECTOR, None) is None:  # only the statistics lack it then
            reports.warn_once(
                f"the selector {shown(metadata.pop(SELECTOR))} runs in the client, because it is too long for the "
                "broker: raise its maxConsumerMetadataSize"
            )
        return await subscribe(transport, attrs.evolve(wanted, metadata=metadata), wake, create_missing, reports)
    for topic in wanted.topics:
        await transport.admin.create_subscription(topic, wanted.name, wanted.position)
    return await subscribe(transport, wanted, wake, False, reports)


def _warn_of_unknown_terms(connection: ConnectionRuntime, can: Capabilities) -> None:
    """Warn that nothing can recreate a subscription (Jakarta Messaging 3.1, 8.3.3 Unshared durable subscriptions)."""
    rest = "" if can.stores_properties else ". Nor are they kept with new ones"
    connection.reports.warn_once(
        "could not find out whether a durable subscription is opened with another selector or noLocal than before, "
        f"without the admin interface (jms.usePulsarAdmin): it is resumed with the messages it holds{rest}"
    )


def _sent_selector(connection: ConnectionRuntime, request: ConsumerRequest, selector: str) -> str | None:
    """Return a request's selector if the broker can run it: its filter plugin must not hold back selected messages."""
    reason = objection(selector)
    resolved = resolve(request.destination, connection.configuration.system_namespace)
    if request.kind is ConsumerKind.QUEUE and any(
        topic.startswith("non-persistent:") for topic in (*resolved.topics, resolved.pattern or "")
    ):
        reason = "a queue that is not persistent loses what it holds back from one consumer"
    if reason is not None:
        connection.reports.warn_once(
            f"the selector {shown(selector)} runs in the client, because the broker's filter plugin might hold "
            f"back messages that it selects: {reason}"
        )
        return None
    return selector


def _refuse_emulation(config: Configuration, request: ConsumerRequest, subscription: Subscription) -> None:
    exclusive = subscription.type is SubscriptionType.EXCLUSIVE or (
        request.kind is ConsumerKind.QUEUE and config.use_exclusive_subscriptions_for_simple_consumers
    )
    selects = bool(request.selector) and not config.use_server_side_filtering
    if (selects or request.no_local) and not exclusive:
        raise InvalidSelectorError(
            "jms.enableClientSideEmulation=false refuses selectors and noLocal on a shared subscription; "
            "remove the option, or the selector",
            text=request.selector or "",
        )


def _make_inbox(
    connection: ConnectionRuntime, destination: Destination, subscription: Subscription, receiver: Receiver
) -> Inbox:
    config, can, tracing = connection.configuration, connection.transport.capabilities, connection.tracing
    settlement = Settlement(
        receiver,
        subscription,
        max_at_once=0 if asks_for_delay(subscription.config) else config.max_local_redeliveries,
        max_resting=can.most_unacknowledged,
        acks_at_once=can.acknowledges_at_once,
        trace=None if tracing is None else tracing.at(without_query(destination), connection.broker, subscription.name),
        timers=connection.timers,
    )
    most = config.receive_buffer if config.enable_jms_priority else min(BATCH, config.receive_buffer)
    return Inbox(
        destination=without_query(destination),
        subscription=subscription,
        settlement=settlement,
        by_priority=config.enable_jms_priority,
        batch=max(1, min(most, subscription.config.receiver_queue_size or 1)),
        share=connection.inbox_bytes,
    )


def _filter(
    connection: ConnectionRuntime,
    request: ConsumerRequest,
    subscription: Subscription,
    selector: Selector | None,
    selectors: SubscriptionSelectors,
) -> Filter:
    config, metadata = connection.configuration, subscription.metadata
    # In a batch, the broker delivers messages it would drop elsewhere; all consumers of a topic's subscription select
    # alike.
    dropped = SELECTOR in metadata and metadata[REJECT_ACTION] == "drop"
    return Filter(
        selector=selector,
        is_local=_is_local(connection, request) if request.no_local else None,
        shared=subscription.shared and request.kind is not ConsumerKind.SIMPLE,
        acknowledge_rejected=config.acknowledge_rejected_messages or dropped,
        dead_letter_expired=config.expired_messages == "dead-letter"
        and request.kind is ConsumerKind.QUEUE
        and subscription.config.dead_letter is not None,
        subscription=selectors,
    )


def _is_local(connection: ConnectionRuntime, request: ConsumerRequest) -> Callable[[ReceivedRecord], bool] | None:
    """Return the noLocal test: own connection; for a durable subscription also any with the same client id."""
    client_id = connection.client_id
    if request.kind is not ConsumerKind.DURABLE:
        return lambda record: connection_id(record) == connection.connection_id
    if client_id is None:
        connection.reports.warn_once(
            "noLocal has no effect on a durable subscription of a connection without client id"
        )
        return None
    return lambda record: sender_client_id(record) == client_id

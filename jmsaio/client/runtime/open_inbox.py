"""Opens the inbox of a new consumer: checks, plans, subscribes, or takes over the inbox of a closed consumer."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial

import anyio
import attrs

from jmsaio.client.delivery.filter import Filter, parse_selector
from jmsaio.client.delivery.inbox import BATCH, Inbox
from jmsaio.client.delivery.redelivery import Redelivery
from jmsaio.client.delivery.schemas import check_schemas
from jmsaio.client.delivery.sharing import SharingReceiver
from jmsaio.client.delivery.siblings import siblings
from jmsaio.client.runtime.connection import ConnectionRuntime
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.subscriptions import in_process
from jmsaio.client.subscriptions.plan import NAMED, ConsumerKind, ConsumerRequest, Plan, check, plan
from jmsaio.client.subscriptions.selectors import SubscriptionSelectors
from jmsaio.codec.headers import connection_id, sender_client_id
from jmsaio.errors import InvalidSelectorError, JMSError, ObjectClosedError, TransportError
from jmsaio.model.arguments import check_flag
from jmsaio.model.destinations import Destination, Resolved, resolve, without_query
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.fate import asks_for_delay
from jmsaio.selector import Selector
from jmsaio.selector.starlight.agreement import objection
from jmsaio.transport.base import Capabilities, Subscription, SubscriptionType
from jmsaio.transport.options import METADATA_TOO_LARGE, REJECT_ACTION, SELECTOR
from jmsaio.transport.subscriptions import open_receiver


async def open_inbox(runtime: SessionRuntime, request: ConsumerRequest) -> Inbox:
    """Open the inbox of a new consumer; messages are stored for it from the moment this returns.

    Raises:
        JMSError: as ``Session.create_consumer`` and the like.

    Cancelling leaves no subscription of this process open.
    """
    runtime.check_call()
    connection, config = runtime.connection, runtime.connection.configuration
    check_flag(request.no_local, "no_local")
    check(request, connection.client_id, config.strict_client_id)
    connection.temporaries.check_may_consume(request.destination)
    selector = parse_selector(request.selector)
    can = connection.transport.capabilities
    planned = plan(
        request,
        connection.client_id,
        config,
        runtime.mode,
        str(uuid.uuid4()),
        can.non_durable,
        connection_id=connection.connection_id,
        sent_selector=_sent_selector(connection, request),
    )
    _check_emulation(connection, request, planned)
    check_schemas(planned.subscription.config, connection.transport.admin)
    check_settled((inbox.subscription for inbox in runtime.inboxes.lingering), planned.subscription)

    async with AsyncExitStack() as undo:
        inbox = runtime.inboxes.take_over(planned.subscription)
        if inbox is not None:
            undo.push_async_callback(_put_back, runtime, inbox)
        free_name = _claim_name(connection, request, planned)
        undo.callback(free_name)
        if inbox is None:
            inbox = _make_inbox(connection, request.destination, planned)
            receiver = await _subscribe(connection, request, planned, inbox.announce)
            undo.push_async_callback(receiver.aclose, config.close_timeout)
        else:
            receiver = inbox.receiver
            await receiver.resume(config.operation_timeout)
        selectors = await connection.selectors.open(planned.subscription)
        undo.pop_all()

    receiver.keep = runtime.keep
    others = siblings(connection.broker, planned.subscription, connection.timers)
    wanted = _filter(connection, request, planned, selector, selectors)
    use_schema = planned.subscription.config.use_schema
    inbox.attach(receiver, wanted, others, runtime.dispatch.mark, free_name, runtime.dispatch.announce, use_schema)
    if runtime.refuses():  # the session was closed meanwhile, before this inbox was added
        with anyio.CancelScope(shield=True):
            await inbox.aclose(config.close_timeout)
        raise ObjectClosedError("the session was closed while the consumer was created")
    runtime.inboxes.open[inbox] = None
    return inbox


async def _put_back(runtime: SessionRuntime, inbox: Inbox) -> None:
    """Return an inbox that was taken over; close it if the session has ended without this inbox."""
    if not runtime.consumers_closed:
        runtime.inboxes.keep(inbox, runtime.connection.transport)
        return
    with anyio.CancelScope(shield=True):
        await inbox.aclose(runtime.close_timeout)


def _claim_name(connection: ConnectionRuntime, request: ConsumerRequest, planned: Plan) -> Callable[[], None]:
    """Claim the name of a named subscription in this process; return the function that releases it.

    Raises:
        JMSError: it is in use.
    """
    if request.kind not in NAMED:
        return _nothing
    subscription = planned.subscription
    topics = subscription.topics or (subscription.pattern or "",)
    use = in_process.ActiveSubscription(
        topics, request.selector, request.no_local, request.kind is not ConsumerKind.DURABLE
    )
    in_process.claim_subscription(connection.broker, subscription.name, request.kind, use)
    return partial(in_process.release_subscription, connection.broker, subscription.name)


def _nothing() -> None:
    """Release no name."""


async def _subscribe(
    connection: ConnectionRuntime, request: ConsumerRequest, planned: Plan, wake: Callable[[], None]
) -> SharingReceiver[Inbox]:
    transport, config = connection.transport, connection.configuration
    if planned.subscription.replace:
        _warn_of_unknown_terms(connection, transport.capabilities)
    create_missing = request.kind is ConsumerKind.QUEUE and config.precreate_queue_subscription
    subscription = planned.subscription
    try:
        receiver = await open_receiver(transport, subscription, wake, create_missing)
    except TransportError as error:
        if error.error_code != METADATA_TOO_LARGE or SELECTOR not in subscription.metadata:
            raise
        connection.warn_once(
            f"the selector {request.selector!r:.80} runs in the client, because it is too long for the broker: raise "
            "its maxConsumerMetadataSize"
        )
        metadata = {key: value for key, value in subscription.metadata.items() if key != SELECTOR}
        subscription = attrs.evolve(subscription, metadata=metadata)
        receiver = await open_receiver(transport, subscription, wake, create_missing)
    return SharingReceiver(receiver, transport.capabilities.most_unacknowledged)


def _warn_of_unknown_terms(connection: ConnectionRuntime, can: Capabilities) -> None:
    """Warn once if a durable subscription can't be recreated for another selector or noLocal.

    Jakarta Messaging 3.1, 8.3.3 Unshared durable subscriptions.
    """
    if can.replaces_properties:
        return
    rest = "" if can.stores_properties else ". Nor are they kept with new ones"
    connection.warn_once(
        "could not find out whether a durable subscription is opened with another selector or noLocal than before, "
        f"without the admin interface (jms.usePulsarAdmin): it is resumed with the messages it holds{rest}"
    )


def check_settled(unsettled: Iterable[Subscription], wanted: Subscription) -> None:
    """Refuse to open a durable subscription with other terms while the session has unsettled deliveries of it.

    Args:
        unsettled: subscriptions of closed consumers with unsettled deliveries.
        wanted: the subscription to open.

    Raises:
        JMSError: it is among them with another selector, noLocal or sharing.
    """
    for other in unsettled:
        if other.identity == wanted.identity and other.properties != wanted.properties:
            raise JMSError(
                f"the durable subscription {wanted.name!r} is active: it has unsettled messages; acknowledge, recover, "
                "commit or roll back before you open it with another selector or noLocal"
            )


def _sent_selector(connection: ConnectionRuntime, request: ConsumerRequest) -> str | None:
    """Return a request's selector if the broker can run it: its filter plugin must not hold back selected messages."""
    config = connection.configuration
    if not config.use_server_side_filtering or request.selector is None:
        return None
    reason = objection(request.selector)
    if request.kind is ConsumerKind.QUEUE and _keeps_nothing(resolve(request.destination, config.system_namespace)):
        reason = "a queue that is not persistent loses what it holds back from one consumer"
    if reason is not None:
        connection.warn_once(
            f"the selector {request.selector!r:.80} runs in the client, because the broker's filter plugin might hold "
            f"back messages that it selects: {reason}"
        )
        return None
    return request.selector


def _keeps_nothing(resolved: Resolved) -> bool:
    return any(topic.startswith("non-persistent:") for topic in (*resolved.topics, resolved.pattern or ""))


def _check_emulation(connection: ConnectionRuntime, request: ConsumerRequest, planned: Plan) -> None:
    """Refuse selectors and noLocal on shared subscriptions with ``jms.enableClientSideEmulation=false``."""
    config = connection.configuration
    if config.enable_client_side_emulation is not False:
        return
    exclusive = planned.subscription.type is SubscriptionType.EXCLUSIVE or (
        request.kind is ConsumerKind.QUEUE and config.use_exclusive_subscriptions_for_simple_consumers
    )
    selects = bool(request.selector) and not config.use_server_side_filtering
    if (selects or request.no_local) and not exclusive:
        raise InvalidSelectorError(
            "jms.enableClientSideEmulation=false refuses selectors and noLocal on a shared subscription; "
            "remove the option, or the selector",
            text=request.selector or "",
        )


def _make_inbox(connection: ConnectionRuntime, destination: Destination, planned: Plan) -> Inbox:
    config, subscription = connection.configuration, planned.subscription
    policy = subscription.config.dead_letter
    redelivery = Redelivery(
        config=subscription.config,
        most_at_once=0 if asks_for_delay(subscription.config) else config.max_local_redeliveries,
        broker_dead_letters=policy is not None and planned.shared,
        dead_after=None if policy is None or planned.shared else policy.max_redeliver_count,
    )
    most = config.receive_buffer if config.enable_jms_priority else min(BATCH, config.receive_buffer)
    return Inbox(
        destination=without_query(destination),
        subscription=subscription,
        redelivery=redelivery,
        by_priority=config.enable_jms_priority,
        batch=max(1, min(most, subscription.config.receiver_queue_size or 1)),
        share=connection.inbox_bytes,
        timers=connection.timers,
        acks_at_once=connection.transport.capabilities.acknowledges_at_once,
    )


def _filter(
    connection: ConnectionRuntime,
    request: ConsumerRequest,
    planned: Plan,
    selector: Selector | None,
    selectors: SubscriptionSelectors,
) -> Filter:
    config, metadata = connection.configuration, planned.subscription.metadata
    # In a batch, the broker delivers messages it would drop elsewhere; all consumers of a topic's subscription select
    # alike.
    dropped = SELECTOR in metadata and metadata[REJECT_ACTION] == "drop"
    return Filter(
        selector=selector,
        is_local=_is_local(connection, request) if request.no_local else None,
        shared=planned.shared,
        alone=request.kind is ConsumerKind.SIMPLE,
        acknowledge_rejected=config.acknowledge_rejected_messages or dropped,
        dead_letter_expired=config.expired_messages == "dead-letter"
        and request.kind is ConsumerKind.QUEUE
        and planned.subscription.config.dead_letter is not None,
        subscription=selectors,
    )


def _is_local(connection: ConnectionRuntime, request: ConsumerRequest) -> Callable[[ReceivedRecord], bool] | None:
    """Return the noLocal test: own connection; for a durable subscription also any with the same client id."""
    client_id = connection.client_id
    if request.kind is not ConsumerKind.DURABLE:
        return lambda record: connection_id(record) == connection.connection_id
    if client_id is None:
        connection.warn_once("noLocal has no effect on a durable subscription of a connection without client id")
        return None
    return lambda record: sender_client_id(record) == client_id

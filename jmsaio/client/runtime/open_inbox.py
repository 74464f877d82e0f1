"""Opens consumers for a session: checks, plans, subscribes, and takes over what a closed consumer left unsettled."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial

import anyio

from jmsaio.client.consumer import MessageConsumer
from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.inbox import BATCH, Inbox
from jmsaio.client.delivery.sharing import SharingReceiver
from jmsaio.client.delivery.siblings import Siblings, siblings
from jmsaio.client.runtime.session import SessionRuntime
from jmsaio.client.subscriptions import in_process
from jmsaio.client.subscriptions.delete import drop_unused, make_way
from jmsaio.client.subscriptions.plan import ConsumerKind, ConsumerRequest, Plan, check, plan
from jmsaio.client.subscriptions.replace import check_settled, subscribe
from jmsaio.codec.view import connection_id, sender_client_id
from jmsaio.errors import ConsumerBusyError, InvalidSelectorError, JMSError, ObjectClosedError
from jmsaio.model.arguments import check_flag
from jmsaio.model.destinations import Destination
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.fate import asks_for_delay
from jmsaio.selector import Selector
from jmsaio.transport.base import SubscriptionType


async def open_consumer(runtime: SessionRuntime, request: ConsumerRequest) -> MessageConsumer:
    """Open a consumer; messages are kept for it from the moment this returns.

    Cancelling leaves no subscription of this process behind.
    """
    runtime.check_call()
    connection = runtime.connection
    config = connection.configuration
    check_flag(request.no_local, "no_local")
    check(request, connection.client_id, config.strict_client_id)
    connection.check_may_consume(request.destination)
    selector = parse_selector(request.selector)
    planned = plan(
        request, connection.client_id, config, runtime.mode, connection.transport.capabilities, str(uuid.uuid4())
    )
    _check_emulation(runtime, request, planned)
    name = planned.subscription.name
    named = request.kind in (ConsumerKind.SHARED, ConsumerKind.DURABLE, ConsumerKind.SHARED_DURABLE)
    check_settled((inbox.subscription for inbox in runtime._lingering), planned.subscription)
    adopted = runtime.adopt(planned.subscription)
    if named:
        shared = request.kind is not ConsumerKind.DURABLE
        topics = planned.subscription.topics or (planned.subscription.pattern or "",)
        use = in_process.Use(topics, request.selector, request.no_local, shared)
        try:
            in_process.claim_subscription(connection.broker, name, request.kind, use)
        except JMSError:
            if adopted is not None:
                runtime.linger(adopted)
            raise
    release = (lambda: in_process.release_subscription(connection.broker, name)) if named else None
    try:
        inbox = adopted or _make_inbox(runtime, request.destination, planned)
        inbox.filter = _filter(runtime, request, planned, selector)
        inbox.released = release
        inbox.lingering = adopted is None  # a receiver that is not there yet may wake it
        inbox.changed = runtime.dispatch.mark  # one that was taken over may be another session's
        if adopted is None:
            if planned.drop_at_close and named:
                await make_way(connection.transport.admin, planned.subscription, config.close_timeout)
            receiver = await subscribe(
                connection.transport,
                planned.subscription,
                inbox.wake,
                create_missing=planned.drop_at_close
                or (request.kind is ConsumerKind.QUEUE and config.precreate_queue_subscription),
                close_timeout=config.close_timeout,
                warn=connection.warn_once,
            )
            inbox.receiver = SharingReceiver(receiver, connection.transport.capabilities.most_unacknowledged)
            inbox.lingering = False
        else:
            await _resume(runtime, adopted)
    except BaseException as error:
        if release is not None:
            release()
        if planned.drop_at_close and not isinstance(error, ConsumerBusyError):  # else it is somebody else's
            await drop_unused(connection.transport.admin, planned.subscription, config.close_timeout, patient=True)
        raise
    if runtime.refuses():  # it was closed meanwhile and did not know of this inbox
        with anyio.CancelScope(shield=True):
            await inbox.aclose(config.close_timeout)
        raise ObjectClosedError("the session was closed while the consumer was made")
    consumer = MessageConsumer(
        runtime=runtime,
        inbox=inbox,
        selector=request.selector,
        no_local=request.no_local,
        namespace=config.system_namespace,
    )
    runtime.add_consumer(consumer)
    inbox.receiver.keep = runtime.keep
    if planned.shared:
        inbox.siblings = _siblings(runtime, planned)
        inbox.siblings.join(inbox)
    if inbox.filter.concerns_others:
        runtime.dispatch.mark(inbox)
    return consumer


async def _resume(runtime: SessionRuntime, adopted: Inbox) -> None:
    """Receive again with an inbox that was taken over; where that fails it lingers on."""
    try:
        await adopted.receiver.resume(runtime.connection.configuration.operation_timeout)
    except BaseException:
        adopted.released = None
        runtime.linger(adopted)
        raise


def parse_selector(text: str | None) -> Selector | None:
    """The selector of a text; None and "" are none (jms-spec 3.1). Raises InvalidSelectorError."""
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise InvalidSelectorError(f"a selector is a text, not {type(text).__name__}")
    return Selector(text)


def _check_emulation(runtime: SessionRuntime, request: ConsumerRequest, planned: Plan) -> None:
    """``jms.enableClientSideEmulation=false``, given explicitly, refuses as Java does (Starlight 5.1)."""
    if runtime.connection.configuration.enable_client_side_emulation is not False:
        return
    exclusive = planned.subscription.type is SubscriptionType.EXCLUSIVE or (
        request.kind is ConsumerKind.QUEUE
        and runtime.connection.configuration.use_exclusive_subscriptions_for_simple_consumers
    )
    if (request.selector or request.no_local) and not exclusive:
        raise InvalidSelectorError(
            "jms.enableClientSideEmulation=false refuses selectors and noLocal on a shared subscription; "
            "remove the option, or the selector",
            text=request.selector or "",
        )


def _siblings(runtime: SessionRuntime, planned: Plan) -> Siblings:
    """The consumers that share the subscription; held by every inbox of it from its opening on."""
    return siblings(runtime.connection.broker, planned.subscription)


def _make_inbox(runtime: SessionRuntime, destination: Destination, planned: Plan) -> Inbox:
    config = runtime.connection.configuration
    policy = planned.subscription.config.dead_letter
    inbox = Inbox(
        destination=destination,
        subscription=planned.subscription,
        max_local=0 if asks_for_delay(planned.subscription.config) else config.max_local_redeliveries,
        broker_dead_letters=policy is not None and planned.shared,
        dead_after=None if policy is None or planned.shared else policy.max_redeliver_count,
        by_priority=config.enable_jms_priority,
        changed=runtime.dispatch.mark,
        drop_at_close=planned.drop_at_close,
        drop_left=partial(drop_unused, runtime.connection.transport.admin, planned.subscription),
        siblings=_siblings(runtime, planned),
        batch=max(1, min(BATCH, config.receive_buffer, planned.subscription.config.receiver_queue_size or 1)),
        share=runtime.connection.inbox_bytes,
    )
    inbox.share.join(inbox)
    return inbox


def _filter(runtime: SessionRuntime, request: ConsumerRequest, planned: Plan, selector: Selector | None) -> Filter:
    capabilities = runtime.connection.transport.capabilities
    return Filter(
        selector=selector,
        is_local=_is_local(runtime, request) if request.no_local else None,
        shared=planned.shared,
        alone=request.kind is ConsumerKind.SIMPLE,
        acknowledge_rejected=runtime.connection.configuration.acknowledge_rejected_messages,
        hold_delayed=not planned.shared and not capabilities.delayed_exclusive,
        dead_letter_expired=runtime.connection.configuration.expired_messages == "dead-letter"
        and request.kind is ConsumerKind.QUEUE
        and planned.subscription.config.dead_letter is not None,
    )


def _is_local(runtime: SessionRuntime, request: ConsumerRequest) -> Callable[[ReceivedRecord], bool] | None:
    """noLocal: own connection; for a durable subscription also any with the same client id (seed 002)."""
    connection = runtime.connection
    client_id = connection.client_id
    if request.kind is not ConsumerKind.DURABLE:
        return lambda record: connection_id(record) == connection.connection_id
    if client_id is None:
        connection.warn_once("noLocal has no effect on a durable subscription of a connection without client id")
        return None
    return lambda record: sender_client_id(record) == client_id

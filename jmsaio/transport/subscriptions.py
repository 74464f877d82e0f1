"""Find the topics of subscriptions, and create subscriptions of queues in advance."""

from __future__ import annotations

from functools import partial

import anyio
import attrs
import tenacity

from jmsaio.config import Configuration
from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    ConsumerBusyError,
    JMSError,
    NotFoundError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.model.destinations import Resolved
from jmsaio.model.topic_names import partition_names, split_partition, topic_pattern
from jmsaio.transport.administration import Browsable
from jmsaio.transport.base import StartPosition, Subscription, SubscriptionType, Transport
from jmsaio.transport.causes import PASSING
from jmsaio.transport.clock import Clock, LoopTimers


async def list_topics(admin: Browsable, resolved: Resolved | Subscription) -> list[str]:
    """Return the full names of the topics of a destination or subscription, without partitions.

    Listed topics keep the order of the list, and need not exist. Topics matched by a pattern exist now, and are sorted
    by name. Raises InvalidDestinationError: the pattern is not a regular expression.
    """
    if resolved.pattern is None:
        return list(resolved.topics)
    return list(dict.fromkeys(split_partition(name)[0] for name in await list_matching(admin, resolved.pattern)))


async def list_partitions(admin: Browsable, topic: str) -> list[str]:
    """Return the full names of a topic's partitions in the order of their indexes, or its own if it has none.

    Empty if the topic does not exist.
    """
    try:
        count = await admin.partitions(topic)
    except NotFoundError:
        return []
    return partition_names(topic, count)


async def list_matching(admin: Browsable, pattern: str) -> list[str]:
    """Return the full names of the topics without partitions, and of the partitions, that match a pattern, sorted.

    The number of calls does not depend on the number of topics. A partition that never had a client can be missing.
    """
    fits = topic_pattern(pattern).fullmatch
    names = set(await admin.topics("/".join(pattern.split("/")[2:4])))
    return [name for name in sorted(names, key=split_partition) if fits(split_partition(name)[0])]


#: Seconds between two attempts.
_PAUSE = 1.0
#: REST statuses of transient failures: request time-out, too many requests; 500 and above also count.
_PASSING_STATUSES = (408, 429)
#: A broker's answers, with status 412: while it moves the subscription's cursor for another request, and while it stops
#: or another broker takes the topic over.
_PASSING_ANSWERS = ("Subscription Busy", "Can't find owner", "Failed to find ownership")


async def precreate(
    transport: Transport, config: Configuration, topic: str, subscription: str, timers: LoopTimers
) -> bool:
    """Create a queue's subscription at the topic's beginning; return False if it existed, or if that is unknown.

    Transient failures are retried every second. All attempts together are limited by
    ``jms.waitForServerStartupTimeout``, or by ``operationTimeoutMs`` if that is shorter and the broker does not answer
    at all. With 0 there is one attempt. Without an admin interface, a consumer is opened and closed. Cancelling can
    leave the subscription, which does no harm.

    Raises TransportError: the broker refuses, or did not finish in time; JMSSecurityError: no permission.
    """
    begun, limit = timers.clock.steady(), config.wait_for_server_startup_timeout
    last: JMSError | None = None

    async def create() -> bool:
        nonlocal last
        left = begun + limit - timers.clock.steady() if limit > 0 else None
        try:
            with anyio.fail_after(left):
                return await _create(transport, config, topic, subscription)
        except TimeoutError:
            what = f"create subscription {subscription} of {topic}"
            late = OperationTimeoutError(f"{what}: not done within {limit:g} s (jms.waitForServerStartupTimeout)")
            raise last or late from None  # an earlier attempt's error has the cause
        except JMSError as error:
            last = error
            raise

    retrying = tenacity.AsyncRetrying(
        stop=partial(_is_late, config, timers.clock, begun),
        wait=tenacity.wait_fixed(_PAUSE),
        retry=tenacity.retry_if_exception(passes),
        reraise=True,
        sleep=timers.sleep,
    )
    try:
        return await retrying(create)
    except JMSError as error:
        if not is_away(error):
            raise
        # Its message is complete; tracebacks of the network libraries would only hide it.
        raise error.with_traceback(None) from None


def _is_late(config: Configuration, clock: Clock, begun: float, state: tenacity.RetryCallState) -> bool:
    error = None if state.outcome is None else state.outcome.exception()
    limit = config.wait_for_server_startup_timeout
    if is_away(error):
        limit = min(limit, config.operation_timeout)
    return clock.steady() - begun + _PAUSE > limit


def is_away(error: BaseException | None) -> bool:
    """Return whether the broker did not answer at all."""
    if isinstance(error, AdminError):
        return error.status is None
    return isinstance(error, BrokerUnavailableError | OperationTimeoutError)


def passes(error: BaseException) -> bool:
    """Return whether a failure is transient."""
    if is_away(error):
        return True
    if isinstance(error, AdminError) and error.status is not None:
        if error.status in _PASSING_STATUSES or error.status >= 500:
            return True
        return error.status == 412 and any(answer in str(error) for answer in _PASSING_ANSWERS)
    return isinstance(error, JMSError) and error.error_code in PASSING


async def _create(transport: Transport, config: Configuration, topic: str, subscription: str) -> bool:
    admin = transport.admin
    if admin is not None:
        try:
            return await admin.create_subscription(topic, subscription, StartPosition.EARLIEST)
        except AdminError as error:
            if error.status is not None and topic.startswith("non-persistent://"):
                raise TransportError(
                    f"{error}: a non-persistent queue keeps nothing while it has no consumer; send to it with "
                    "jms.precreateQueueSubscription=false if that is meant"
                ) from error
            raise
    wanted = Subscription(
        topics=(topic,),
        name=subscription,
        type=SubscriptionType(config.queue_subscription_type),
        config=attrs.evolve(config.consumer, receiver_queue_size=1),
        position=StartPosition.EARLIEST,
    )
    try:
        receiver = await transport.open_receiver(wanted, lambda: None)
    except ConsumerBusyError:
        return False  # it has consumers of another type, which the queue's own options set
    await receiver.aclose(config.close_timeout)
    return False

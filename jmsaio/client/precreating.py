"""Creates a queue's subscription before it is needed, so that the queue keeps what is sent to it (Starlight 3.3)."""

from __future__ import annotations

from typing import Any

import anyio
import attrs
import tenacity

from jmsaio.config import Configuration
from jmsaio.errors import AdminError, BrokerUnavailableError, JMSError, OperationTimeoutError, TransportError
from jmsaio.transport.base import Position, Subscription, SubscriptionType, Transport

#: Result codes of a broker that is about to be ready.
_PASSING_CODES = frozenset({"ServiceUnitNotReady", "LookupError", "BrokerMetadataError", "Retryable"})
#: Statuses of REST that may be another one the next time: too slow, too many, or the server's own trouble.
_PASSING_STATUSES = (408, 429)


async def precreate(transport: Transport, config: Configuration, topic: str, subscription: str) -> None:
    """Create a queue's subscription where it is missing, at the topic's beginning.

    A failure that may pass is asked again each second, for ``jms.waitForServerStartupTimeout``.

    Args:
        transport: whose admin interface is used; without one a consumer is opened and closed.
        config: options.
        topic: full topic name.
        subscription: the queue's subscription.

    Raises:
        TransportError: the broker refuses, or could not do it in time.
        JMSSecurityError: no right to do so.

    Cancelling may leave the subscription behind, which does no harm.
    """
    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_delay(config.wait_for_server_startup_timeout),
        wait=tenacity.wait_fixed(1),
        retry=tenacity.retry_if_exception(passes),
        reraise=True,
        sleep=anyio.sleep,
    )
    await retrying(_create, transport, config, topic, subscription)


def passes(error: BaseException) -> bool:
    """True for a failure that may be gone when the same is asked again."""
    if isinstance(error, AdminError):
        return error.status is None or error.status in _PASSING_STATUSES or error.status >= 500
    if isinstance(error, BrokerUnavailableError | OperationTimeoutError):
        return True
    return isinstance(error, JMSError) and error.error_code in _PASSING_CODES


async def _create(transport: Transport, config: Configuration, topic: str, subscription: str) -> None:
    admin = transport.admin
    if admin is not None:
        try:
            await admin.create_subscription(topic, subscription, Position.EARLIEST)
        except AdminError as error:
            if error.status is not None and topic.startswith("non-persistent://"):
                raise TransportError(
                    f"{error}: a non-persistent queue keeps nothing while it has no consumer; send to it with "
                    "jms.precreateQueueSubscription=false if that is meant"
                ) from error
            raise
        return
    receiver = await transport.open_receiver(
        Subscription(
            topics=(topic,),
            name=subscription,
            type=SubscriptionType.SHARED,
            config=attrs.evolve(config.consumer, receiver_queue_size=1),
            position=Position.EARLIEST,
        ),
        _nothing,
    )
    await receiver.aclose(config.close_timeout)


def _nothing(*_: Any) -> None:
    """A wake-up that nobody waits for."""

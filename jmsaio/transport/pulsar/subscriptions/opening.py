"""``ReceiverOpener``: opens receivers, including on kinds of subscriptions that Pulsar's protocol lacks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

import anyio
import attrs

from jmsaio.errors import AdminError, ConsumerBusyError, JMSSecurityError, NotFoundError
from jmsaio.transport.base import Admin, Subscription, SubscriptionType, Wake
from jmsaio.transport.pulsar.subscriptions.ephemeral import delete_leftover, delete_unused
from jmsaio.transport.pulsar.subscriptions.replacement import delete_other, warn_unknown, write_properties

_log = logging.getLogger(__name__)


class SubscriptionEnd(Protocol):
    """A receiver, as its opener sees it.

    Attributes:
        after_close: called last, with the remaining seconds, if the subscription ends with its last consumer and this
            receiver could not delete it because it had others.
    """

    after_close: Callable[[float], Awaitable[None]] | None

    async def aclose(self, timeout: float) -> None:
        """Close. See ``Receiver.aclose``."""


_Receiver = TypeVar("_Receiver", bound=SubscriptionEnd)

#: Unused subscriptions deleted concurrently.
TOGETHER = 16


@attrs.define(eq=False)
class ReceiverOpener(Generic[_Receiver]):
    """Opens the receivers of one transport.

    Args:
        subscribe: opens a receiver on a subscription that outlives it, without properties.
        admin: the admin interface, or None.
        timeout: seconds for a deletion, and for closing a receiver whose opening was cancelled.
    """

    subscribe: Callable[[Subscription, Wake], Awaitable[_Receiver]]
    admin: Admin | None
    timeout: float
    _warned: set[str] = attrs.field(factory=set, init=False)
    _deleting: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(TOGETHER), init=False)

    async def open(self, wanted: Subscription, wake: Wake) -> _Receiver:
        """Open a receiver; see ``Transport.open_receiver``."""
        if not wanted.durable:
            return await self._open_ephemeral(wanted, wake)
        if wanted.properties:
            return await self._open_with_properties(wanted, wake)
        return await self.subscribe(wanted, wake)

    async def _open_with_properties(self, wanted: Subscription, wake: Wake) -> _Receiver:
        topics = await delete_other(self.admin, wanted, self._warn)
        receiver = await self.subscribe(wanted, wake)
        try:
            await write_properties(self.admin, wanted, topics)
        except (AdminError, JMSSecurityError) as error:
            warn_unknown(self._warn, str(error))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await receiver.aclose(self.timeout)
            raise
        return receiver

    async def _open_ephemeral(self, wanted: Subscription, wake: Wake) -> _Receiver:
        """Open a receiver on a subscription that ends with its last consumer."""
        if wanted.type is not SubscriptionType.EXCLUSIVE:
            await delete_leftover(self.admin, wanted, self.timeout)
        try:
            receiver = await self._subscribe_or_create(wanted, wake)
        except ConsumerBusyError:
            raise  # the subscription is in use, so it is kept
        except BaseException:
            await delete_unused(self.admin, wanted, self.timeout, patient=True)
            raise
        receiver.after_close = partial(self._delete_unused, wanted)
        return receiver

    async def _delete_unused(self, wanted: Subscription, timeout: float) -> None:
        """Delete a subscription as ``delete_unused`` does, whose time limit begins when it is this one's turn."""
        deadline = anyio.current_time() + timeout
        with anyio.move_on_after(timeout, shield=True):
            async with self._deleting:
                await delete_unused(self.admin, wanted, deadline - anyio.current_time())

    async def _subscribe_or_create(self, wanted: Subscription, wake: Wake) -> _Receiver:
        """Subscribe, even in a namespace with ``allowAutoSubscriptionCreation=false``.

        There the broker creates only non-durable subscriptions; this one is durable for the broker, so it is created
        here.
        """
        try:
            return await self.subscribe(wanted, wake)
        except NotFoundError as error:
            if error.error_code != "SubscriptionNotFound" or self.admin is None or wanted.pattern is not None:
                raise
        for topic in wanted.topics:
            await self.admin.create_subscription(topic, wanted.name, wanted.position)
        return await self.subscribe(wanted, wake)

    def _warn(self, text: str) -> None:
        """Log a warning, once per text."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)

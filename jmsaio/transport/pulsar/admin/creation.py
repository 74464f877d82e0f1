"""A subscription that is created through REST stands where it was asked for, or it is not there.

The broker creates a subscription at the topic's end, and then resets its cursor. In between two things may happen:

- The topic is unloaded, and the broker says that the cursor was not reset. That subscription would skip all that is
  stored: it is deleted, unless it has consumers by now, and created anew.
- The broker dies, or its answer is lost. The next attempt finds a subscription ("409 Conflict") that looks like one
  which others have made and used, and whose cursor nobody may touch. So that ours can be told from theirs, it is
  created with a property, different for each creation, and that is taken away when the subscription is whole: with
  properties of its own, it would not take those of its first consumer. Where an attempt failed and the next one finds
  that property, the cursor is reset from here.

A creation that failed as a whole is gone on with by the next one of the same connection. After a restart of the
client nothing is known of it, and the subscription stays as it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import attrs

from jmsaio.errors import AdminError, JMSSecurityError, NotFoundError
from jmsaio.transport.administration import Admin, Position
from jmsaio.transport.pulsar.admin.paths import start_position, subscription_path

#: The property that names a creation.
MARK: Final = "jmsaio.creation"
#: What the broker answers where it has made a subscription, and not reset its cursor.
_PRECONDITION_FAILED, _NOT_RESET = 412, "cursor reset"
_CONFLICT: Final = 409
_ATTEMPTS: Final = 4


@attrs.define(eq=False)
class SubscriptionCreation:
    """Creates subscriptions of topics without partitions, or of one partition.

    Args:
        admin: deletes subscriptions, reads and replaces their properties.
        call: one REST call with its repetitions; tells ``on_retry`` of each.
    """

    _admin: Admin
    _call: Callable[..., Awaitable[Any]]
    #: The marks of creations that have begun and not come to a good end, by topic and subscription.
    _begun: dict[tuple[str, str], str] = attrs.field(init=False, factory=dict)

    async def create(self, topic: str, name: str, position: Position) -> bool:
        """Create a subscription; False if it exists.

        Raises:
            AdminError: the broker refuses, or does not answer.

        Cancelling may leave it behind, with a cursor that is not reset; the next call resets it.
        """
        failure: AdminError | None = None
        for _ in range(_ATTEMPTS):
            try:
                if position is Position.EARLIEST:
                    return await self._create_marked(topic, name)
                return await self._put(topic, name, position)
            except AdminError as error:
                if error.status != _PRECONDITION_FAILED or _NOT_RESET not in str(error):
                    raise
                failure = error
                with suppress(NotFoundError):
                    await self._admin.delete_subscription(topic, name)
        assert failure is not None
        raise failure

    async def _create_marked(self, topic: str, name: str) -> bool:
        place = topic, name
        doubts: list[object] = [place] if place in self._begun else []  # attempts whose outcome is unknown
        mark = self._begun.setdefault(place, uuid.uuid4().hex)
        is_ours = await self._put(topic, name, Position.EARLIEST, {MARK: mark}, doubts.append)
        if not is_ours and doubts and await self._properties(topic, name) == {MARK: mark}:
            await self._reset(topic, name)
            is_ours = True
        if is_ours:
            with suppress(AdminError, JMSSecurityError, NotFoundError):  # it does no harm but the one said above
                await self._admin.set_subscription_properties(topic, name, {})
        self._begun.pop(place, None)
        return is_ours

    async def _put(
        self,
        topic: str,
        name: str,
        position: Position,
        properties: dict[str, str] | None = None,
        on_retry: Callable[[object], None] | None = None,
    ) -> bool:
        """One call that creates it; False if it exists."""
        body: dict[str, object] = {**start_position(position)}
        if properties is not None:
            body["properties"] = properties
        what, query = f"create subscription {name} of {topic}", {"replicated": "false"}
        try:
            await self._call(
                "PUT", subscription_path(topic, name), body=body, what=what, query=query, on_retry=on_retry
            )
        except AdminError as error:
            if error.status != _CONFLICT:
                raise
            return False
        return True

    async def _properties(self, topic: str, name: str) -> dict[str, str]:
        with suppress(NotFoundError):  # somebody deleted it meanwhile
            return await self._admin.subscription_properties(topic, name)
        return {}

    async def _reset(self, topic: str, name: str) -> None:
        """Move the cursor to the beginning; consumers that have come by now are disconnected, and come again."""
        path, what = f"{subscription_path(topic, name)}/resetcursor", f"reset subscription {name} of {topic}"
        await self._call("POST", path, body=start_position(Position.EARLIEST), what=what)

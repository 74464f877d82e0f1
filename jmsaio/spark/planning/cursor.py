"""The durable cursor of a stream: a subscription that acknowledges messages that the stream has stored."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress

import attrs

from jmsaio.errors import ConfigurationError, JMSError, NotFoundError
from jmsaio.model.arguments import shown
from jmsaio.model.log_fields import log_fields
from jmsaio.model.wire import WireId
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.batch_planning import for_each
from jmsaio.spark.planning.offsets import Offsets
from jmsaio.spark.planning.plan import Stored
from jmsaio.transport.administration import Admin, StartPosition

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class StreamCursor:
    """Moves a subscription past the messages that a stream has read, so that the broker keeps the rest.

    Args:
        shared: move it even while it has consumers, which then miss messages that they have not received yet.
    """

    admin: Admin
    subscription: str
    shared: bool
    _moved: dict[str, Place] = attrs.field(init=False, factory=dict)
    _tried: dict[str, Place] = attrs.field(init=False, factory=dict)
    _there: set[str] = attrs.field(init=False, factory=set)
    _checked: bool = attrs.field(init=False, default=False)

    async def begin(self, stores: Mapping[str, Stored], position: StartPosition) -> dict[str, Place]:
        """Create the subscription, or return its position if it exists: the stream then starts there.

        Messages acknowledged individually after that position are read again.

        Args:
            position: start of a new subscription.

        Returns:
            Start of the stream by partition, except for partitions where the subscription is new.

        Raises:
            ConfigurationError: it has consumers, and ``shared`` is False.
            TransportError: the broker does not answer.
        """

        async def one(topic: str) -> Place | None:
            is_new = await self.admin.create_subscription(topic, self.subscription, position)
            self._there.add(topic)
            if is_new:
                return None
            await self._check_unused(topic)
            mark, store = (await self.admin.cursor(topic, self.subscription)).mark_delete, stores[topic]
            return store.first if mark is None else store.normal(Place(mark.ledger, mark.entry + 1))

        places = await for_each(stores, one)
        self._checked = True
        return {topic: place for topic, place in places.items() if place is not None}

    def leave(self, places: Offsets) -> None:
        """Do not move the cursor to these places: nothing was read before them."""
        self._moved.update(places)

    async def kept(self, topics: Iterable[str]) -> set[str]:
        """Return the topics that have the subscription; each is checked until it was found.

        Raises:
            TransportError: the broker does not answer.
        """

        async def one(topic: str) -> None:
            with suppress(NotFoundError):
                if self.subscription in (await self.admin.stats(topic)).subscriptions:
                    self._there.add(topic)

        await for_each([topic for topic in topics if topic not in self._there], one)
        return self._there

    async def move(self, start: Offsets, stores: Mapping[str, Stored], again: bool) -> list[str]:
        """Acknowledge everything before ``start``. A failure is a warning: the broker keeps more than necessary.

        On a topic that is new to the stream, or has lost the subscription, it is created first, so that the broker
        keeps unread messages.

        Args:
            start: end of the messages that were read and stored.
            again: retry failed topics.

        Returns:
            Topics whose subscription could not be moved.

        Raises:
            ConfigurationError: as ``begin``, only if neither method was called before.
        """

        async def one(topic: str) -> bool:
            place = start.get(topic)
            tried = place is not None and self._tried.get(topic) == place
            if (topic in self._there and self._moved.get(topic) == place) or (tried and not again):
                return True
            last = None if place is None else _entry_before(place, stores[topic])
            is_done = await self._try(topic, last, logging.DEBUG if tried else logging.WARNING)
            if place is not None:
                self._tried[topic] = place
                if is_done:
                    self._moved[topic] = place
            return is_done

        done = await for_each(stores, one)
        self._checked = True
        return [topic for topic in stores if not done[topic]]

    async def _try(self, topic: str, last: WireId | None, level: int) -> bool:
        """Move the subscription of one topic, unless nothing lies before it; return False if that failed."""
        try:
            if topic not in self._there:
                await self.admin.create_subscription(topic, self.subscription, StartPosition.EARLIEST)
                self._there.add(topic)
            if last is not None:
                await self._check_unused(topic)
                await self.admin.advance(topic, self.subscription, last)
        except JMSError as error:
            text = f"subscription {self.subscription} of {topic} was not moved: {error}"
            if isinstance(error, ConfigurationError):
                if not self._checked:
                    raise
                text = f"{error}; its cursor is not moved while they are there"
            elif isinstance(error, NotFoundError):
                self._there.discard(topic)
            _log.log(level, "%s", text, extra=log_fields(destination=topic, subscription=self.subscription))
            return False
        return True

    async def _check_unused(self, topic: str) -> None:
        if self.shared:
            return
        found = (await self.admin.stats(topic)).subscriptions.get(self.subscription)
        if found is not None and found.consumers:
            raise ConfigurationError(
                f"option subscription: {shown(self.subscription)} of {topic} has {found.consumers} consumers, which "
                f"would miss what is read; close them, or name another subscription, or set sharedCursor=true",
                key="subscription",
            )


def _entry_before(place: Place, store: Stored) -> WireId | None:
    """Return the last entry before a place; None if the topic keeps none."""
    if place.entry:
        return WireId(place.ledger, place.entry - 1)
    before = [ledger for ledger in store.ledgers if ledger.id < place.ledger and ledger.entries]
    return WireId(before[-1].id, before[-1].entries - 1) if before else None

"""The durable cursor of a stream: a subscription that forgets what the stream has stored."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from jmsaio.errors import ConfigurationError, JMSError
from jmsaio.model.wire import WireId
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.offsets import Offsets
from jmsaio.spark.planning.plan import Stored
from jmsaio.transport.administration import Admin, Position

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class StreamCursor:
    """Moves a subscription behind what a stream has read, so that the broker keeps the rest and may forget that.

    Args:
        admin: of the broker.
        subscription: its name.
        shared: move it even while it has consumers, which then miss what they have not received yet.
    """

    admin: Admin
    subscription: str
    shared: bool
    _moved: dict[str, Place] = attrs.field(init=False, factory=dict)
    _tried: dict[str, Place] = attrs.field(init=False, factory=dict)
    _checked: bool = attrs.field(init=False, default=False)

    async def begin(self, stores: Mapping[str, Stored], position: Position) -> dict[str, Place]:
        """Create the subscription where it is missing; where it is there, the stream begins behind it.

        What was acknowledged one by one behind that place is read again.

        Args:
            stores: what each partition stores.
            position: where a new one begins.

        Returns:
            Where the stream begins, by partition; nothing for those where the subscription is new.

        Raises:
            ConfigurationError: it has consumers, and is not to be shared with them.
            TransportError: the broker does not answer.
        """
        places = {}
        for topic, store in stores.items():
            if await self.admin.create_subscription(topic, self.subscription, position):
                continue
            await self._check_unused(topic)
            mark = (await self.admin.cursor(topic, self.subscription)).mark_delete
            places[topic] = store.first if mark is None else Place(mark.ledger, mark.entry + 1)
        self._checked = True
        return places

    def leave(self, places: Offsets) -> None:
        """Nothing was read before these places: the cursor is not moved there."""
        self._moved.update(places)

    async def move(self, start: Offsets, stores: Mapping[str, Stored], again: bool) -> None:
        """Acknowledge what lies before ``start``. A failure is a warning: the broker keeps more than it needs to.

        Args:
            start: behind what was read and stored.
            stores: what each partition stores.
            again: try what failed once more.

        Raises:
            ConfigurationError: at the first call, as ``begin``.
        """
        for topic, place in start.items():
            store = stores.get(topic)
            if store is None or self._moved.get(topic) == place or (self._tried.get(topic) == place and not again):
                continue
            self._tried[topic] = place
            last = _entry_before(place, store)
            if last is not None and not await self._advance(topic, last):
                continue
            self._moved[topic] = place
        self._checked = True

    async def _advance(self, topic: str, last: WireId) -> bool:
        try:
            await self._check_unused(topic)
            await self.admin.advance(topic, self.subscription, last)
        except ConfigurationError as refused:
            if not self._checked:
                raise
            _log.warning("%s; its cursor is not moved while they are there", refused)
            return False
        except JMSError as error:
            _log.warning("subscription %s of %s was not moved: %s", self.subscription, topic, error)
            return False
        return True

    async def _check_unused(self, topic: str) -> None:
        if self.shared:
            return
        found = (await self.admin.stats(topic)).subscriptions.get(self.subscription)
        if found is not None and found.consumers:
            raise ConfigurationError(
                f"option subscription: {self.subscription!r} of {topic} has {found.consumers} consumers, which would "
                "miss what the stream reads; close them, name another subscription, or set sharedCursor=true",
                key="subscription",
            )


def _entry_before(place: Place, store: Stored) -> WireId | None:
    """The last entry before a place; None where the topic keeps none."""
    if place.entry:
        return WireId(place.ledger, place.entry - 1)
    before = [ledger for ledger in store.ledgers if ledger.id < place.ledger and ledger.entries]
    return WireId(before[-1].id, before[-1].entries - 1) if before else None

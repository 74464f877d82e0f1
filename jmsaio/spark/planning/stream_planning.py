"""Planning of a stream: its next batch, and the position of its subscription."""

from __future__ import annotations

import logging
from collections.abc import Collection, Container, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import attrs

from jmsaio.errors import ConfigurationError, JMSError, NotFoundError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Resolved
from jmsaio.model.log_fields import log_fields
from jmsaio.model.wire import WireId
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import LATEST, SourceOptions
from jmsaio.spark.planning.batch_planning import (
    admin_of,
    find_stores,
    first_since,
    for_each,
    list_sources,
    start_places,
)
from jmsaio.spark.planning.plan import (
    Behind,
    Offsets,
    Stored,
    advance,
    between,
    clipped,
    from_json,
    lag,
    split,
    to_json,
    with_behind,
)
from jmsaio.spark.planning.ranges import Loss, Range
from jmsaio.spark.planning.tolerance import Outage, read_losses, report_loss
from jmsaio.transport.administration import Admin, StartPosition
from jmsaio.transport.base import Transport

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class StreamCursor:
    """Moves a subscription past the messages that a stream has read, so that the broker retains the rest."""

    admin: Admin
    subscription: str
    _tried: dict[str, tuple[Place | None, bool]] = attrs.field(init=False, factory=dict)  # places, and whether moved
    _existing: set[str] = attrs.field(init=False, factory=set)
    _checked: bool = attrs.field(init=False, default=False)

    async def begin(
        self, places: Offsets, stores: Mapping[str, Stored], position: StartPosition
    ) -> dict[str, Place]:  # fmt: skip
        """Create the subscription at ``position``; return the start: ``places``, or its position where it existed.

        Messages acknowledged individually after that are read again.
        """

        async def one(topic: str) -> Place | None:
            is_new = await self.admin.create_subscription(topic, self.subscription, position)
            self._existing.add(topic)
            if is_new:
                return None
            await self._check_unused(topic)
            mark, store = (await self.admin.cursor(topic, self.subscription)).mark_delete, stores[topic]
            return store.first if mark is None else store.normal(Place(mark.ledger, mark.entry + 1))

        own = await for_each(stores, one)
        self._checked = True
        begun = {**places, **{topic: place for topic, place in own.items() if place is not None}}
        self._tried = {topic: (place, True) for topic, place in begun.items()}
        return begun

    async def find_existing(self, topics: Collection[str]) -> set[str]:
        """Return the topics on which the subscription exists now: it can be deleted, or expire, while a stream runs."""

        async def one(topic: str) -> bool:
            with suppress(NotFoundError):
                return self.subscription in (await self.admin.stats(topic)).subscriptions
            return False

        found = {topic for topic, exists in (await for_each(topics, one)).items() if exists}
        self._existing = self._existing.difference(topics) | found
        return found

    async def move(self, start: Offsets, stores: Mapping[str, Stored], again: bool) -> list[str]:
        """Acknowledge everything before ``start``; return the topics where that failed, which ``again`` retries.

        A failure is a warning, since the broker only retains more than necessary.
        """

        async def one(topic: str) -> bool:
            place = start.get(topic)
            tried, is_done = self._tried.get(topic, (None, False))
            is_same = topic in self._tried and tried == place
            if is_same and (not again or (is_done and topic in self._existing)):
                return is_done
            last = None if place is None else _entry_before(place, stores[topic])
            is_done = await self._try(topic, last, logging.DEBUG if is_same else logging.WARNING)
            self._tried[topic] = place, is_done
            return is_done

        done = await for_each(stores, one)
        self._checked = True
        return [topic for topic in stores if not done[topic]]

    async def _try(self, topic: str, last: WireId | None, level: int) -> bool:
        """Move the subscription of one topic if anything precedes the target; return False on failure."""
        try:
            if topic not in self._existing:
                await self.admin.create_subscription(topic, self.subscription, StartPosition.EARLIEST)
                self._existing.add(topic)
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
                self._existing.discard(topic)
            _log.log(level, "%s", text, extra=log_fields(destination=topic, subscription=self.subscription))
            return False
        return True

    async def _check_unused(self, topic: str) -> None:
        found = (await self.admin.stats(topic)).subscriptions.get(self.subscription)
        if found is not None and found.consumers:
            raise ConfigurationError(
                f"option subscription: {shown(self.subscription)} of {topic} has {found.consumers} consumers, which "
                "would miss what is read; close them, or name another subscription",
                key="subscription",
            )


def _entry_before(place: Place, store: Stored) -> WireId | None:
    if place.entry:
        return WireId(place.ledger, place.entry - 1)
    before = [ledger for ledger in store.ledgers if ledger.id < place.ledger and ledger.entries]
    return WireId(before[-1].id, before[-1].entries - 1) if before else None


class StreamPlanner:
    """Planner of one stream's batches. Lives in the one process that plans, as long as the query runs."""

    def __init__(self, transport: Transport, source: Resolved, options: SourceOptions) -> None:
        self.transport = transport
        self._clock = transport.clock
        self.source = source
        self.options = options
        self._stores: Mapping[str, Stored] = {}
        self._refreshed: float | None = None
        self._begun: float | None = None  # when the previous batch was planned
        self._until: Offsets | None = None  # since ``freeze``
        self._reached: Offsets = {}  # end of the newest batch
        self._behind: Mapping[str, Behind] = {}
        self._reported: tuple[Offsets, float | None] | None = None  # what ``_behind`` is for
        self._outage = Outage(options.outage_timeout)
        self._losses = 0  # found by this planner
        self._cursor: StreamCursor | None = None
        self._unmoved: list[str] = []  # topics whose subscription could not be moved
        if options.subscription is not None:
            self._cursor = StreamCursor(admin_of(transport), options.subscription)

    async def initial(self) -> dict[str, Any]:
        """Return the start of a new query: its subscription's position if that exists, else that of the options.

        Raises ConfigurationError for an end in the options if ``freeze`` was not called first, as by ``availableNow``.
        """
        self._check_trigger()
        return await self._outage.wait(self._initial)

    def _check_trigger(self) -> None:
        options = self.options
        if self._until is None and (options.ending_time is not None or options.ending_offsets != LATEST):
            name = "endingOffsets" if options.ending_time is None else "endingTime"
            advice = "use it, or leave the option out, filter publish_time and call query.stop()"
            text = f"option {name} ends a stream with the trigger availableNow only: {advice}"
            raise ConfigurationError(text, key=name)

    async def _initial(self) -> dict[str, Any]:
        stores = await self._refresh(fresh=True)
        places = await start_places(self.transport, self.options, stores)
        if self._cursor is not None:
            position = StartPosition.LATEST if self.options.starting_offsets == LATEST else StartPosition.EARLIEST
            places = await self._cursor.begin(places, stores, position)
        self._reached = places
        return to_json(places)

    async def freeze(self) -> None:
        """Limit the plan to what is stored now, up to the end of the options; partitions created later are left out."""
        self._until = await self._outage.wait(self._ends)

    async def _ends(self) -> dict[str, Place]:
        stores = await self._refresh(fresh=True)
        marks = {topic: self.options.end_of(topic) for topic in stores}
        times = {topic: mark for topic, mark in marks.items() if isinstance(mark, int)}
        found = await for_each(times, lambda topic: first_since(self.transport, topic, stores[topic], times[topic]))
        places = {topic: mark if isinstance(mark, Place) else found.get(topic) for topic, mark in marks.items()}
        return {
            topic: min(places[topic] or store.end, store.end)
            for topic, store in stores.items() if store.end is not None
        }  # fmt: skip

    async def latest(self, written: Mapping[str, Any], limited: bool) -> dict[str, Any]:
        """Return the end of the batch that starts at ``written``; ``written`` itself if there is nothing or too little.

        Spark has stored that the batch before is done. While the broker is unreachable, ``written`` is returned as
        well, if Spark then calls again; ``report`` has the reason. ``limited`` applies the limits of the options.
        """
        self._check_trigger()
        plan = partial(self._latest, written, limited)
        if self._until is not None or not limited:
            return await self._outage.wait(plan)
        try:
            end = await plan()
        except JMSError as error:
            self._outage.note(error)
            return dict(written)
        self._outage.end()
        return end

    async def _latest(self, written: Mapping[str, Any], limited: bool) -> dict[str, Any]:
        start = from_json(written)
        refreshed = self._refreshed
        stores = await self._refresh()
        plan = partial(
            advance,
            start,
            stores if self._until is None else clipped(stores, self._until),
            max_entries=self.options.max_entries_per_trigger if limited else None,
            max_bytes=self.options.max_bytes_per_trigger if limited else None,
        )
        step = plan()
        if step.losses:
            step = plan(retained=await self._retained(step.losses))
        self._report(step.losses)
        if self._cursor is not None:
            self._unmoved = await self._cursor.move(start, stores, again=self._refreshed != refreshed)
        if limited and self._until is None and not self._is_enough(start, stores):
            self._reached = start
            return dict(written)
        if step.end != start:
            self._begun = self._clock.steady()
        self._reached = step.end
        return to_json(step.end)

    async def report(self) -> dict[str, Any]:
        """Return the broker's newest offsets, the backlog after ``latest``, the source, and the losses so far."""
        if (state := (self._reached, self._refreshed)) != self._reported:
            self._behind, self._reported = lag(self._reached, self._stores), state
        ends = {topic: store.end for topic, store in self._stores.items() if store.end is not None}
        outage = self._outage.shown()
        more: dict[str, Any] = {} if outage is None else {"unreachable": outage}
        more |= {"unmoved": self._unmoved} if self._unmoved else {}
        where = f"{self.options.destination} at {self.options.connection['brokerServiceUrl']}"
        folder = self.options.data_loss_folder
        more |= {"source": where, "losses": self._losses if folder is None else len(read_losses(folder))}
        return with_behind(ends, self._behind) | more

    async def ranges(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Range]:
        """Return the ranges of a batch. Queries the broker only if it never did: after a restart."""
        return await self._outage.wait(partial(self._ranges, start, end))

    async def _ranges(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Range]:
        if self._refreshed is None:
            await self._refresh()
        begins, options = from_json(start), self.options
        plan = partial(between, begins, from_json(end), self._stores)
        found, losses = plan()
        if losses:
            found, losses = plan(await self._retained(losses))
        self._report(losses)
        return split(found, options.min_partitions, options.max_entries_per_partition)

    def _report(self, losses: Iterable[Loss]) -> None:
        for loss in losses:
            self._losses += 1
            report_loss(loss, self.options)

    async def _retained(self, losses: Iterable[Loss]) -> Container[str]:
        return () if self._cursor is None else await self._cursor.find_existing({loss.topic for loss in losses})

    def _is_enough(self, start: Offsets, stores: Mapping[str, Stored]) -> bool:
        now, minimum = self._clock.steady(), self.options.min_entries_per_trigger
        if self._begun is None:
            self._begun = now
        if minimum is None or now - self._begun >= self.options.max_trigger_delay:
            return True
        return sum(one.entries for one in lag(start, stores).values()) >= minimum

    async def _refresh(self, fresh: bool = False) -> Mapping[str, Stored]:
        """Return what the partitions store, requested once per ``offsetPollInterval``, however often Spark calls."""
        now = self._clock.steady()
        if fresh or self._refreshed is None or now - self._refreshed >= self.options.offset_poll_interval:
            may_miss = self._refreshed is not None
            topics = await list_sources(self.transport, self.source, may_miss=may_miss, known=self._stores)
            self._stores = await find_stores(self.transport, topics)
            self._refreshed = now
        return self._stores

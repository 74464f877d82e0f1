"""A redrive, move, copy or purge of all topics of a destination; copies continue where they were interrupted."""

from __future__ import annotations

import itertools
import json
import re
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self

import anyio
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import InvalidDestinationError, NotFoundError
from jmsaio.maintenance.dead_letters import REDRIVE_CURSOR, letter_topics, require_admin
from jmsaio.maintenance.overview import count_messages
from jmsaio.maintenance.transfer import (
    MAX_ERRORS,
    Outlets,
    Transfer,
    TransferProgress,
    TransferRange,
    TransferRequest,
    TransferResult,
    transfer_range,
)
from jmsaio.model.destinations import Queue, Resolved, resolve, short_name
from jmsaio.model.topic_names import COPY_PREFIX, SUBSCRIPTION_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.selector import Selector
from jmsaio.transport.administration import Admin
from jmsaio.transport.base import FILTERING, SELECTOR, StartPosition, Transport
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.subscriptions import list_partitions, list_topics, precreate
from jmsaio.transport.waiting import to_the_end, together

#: Property with the plan: a JSON object of the last message of each topic, as (ledger, entry, index in a batch).
PLAN: Final = "jmsaio.copy"


async def transfer_all(
    transport: Transport, configuration: Configuration, request: TransferRequest,
    progress: TransferProgress | None = None,
) -> list[TransferResult]:  # fmt: skip
    """Carry out a request for all topics and partitions, concurrently unless it has a limit.

    A copy that was interrupted, repeated with the same request, continues. A purge without selector and limit also
    removes messages that consumers hold. Raises as ``plan_transfer`` and ``transfer_range``.
    """
    job = _Job(transport, configuration, request, require_admin(transport), progress or TransferProgress())
    ranges = await plan_transfer(transport, configuration, request)
    if request.transfer is Transfer.COPY:
        return await job.copy(ranges)
    if request.transfer is Transfer.PURGE and request.selector is None and request.limit is None:
        return await together(job.purge(part) for part in ranges)
    return await job.carry_out(ranges)


def describe(job: str, request: TransferRequest, results: Sequence[TransferResult], began: float) -> dict[str, Any]:
    """Combine the results of several topics for a summary in JSON.

    ``targets`` has the number sent, or to be sent, by topic; ``left`` the number by reason; ``unseen`` the topics where
    other consumers hold messages; ``errors`` a few sentences. ``began`` is a time of ``time.monotonic``.
    """
    targets = sum((each.sent for each in results), Counter[str]())
    left = sum((each.left for each in results), Counter[str]())
    errors = dict.fromkeys(text for each in results for text in each.errors)
    return {
        "job": job,
        "dry_run": request.dry_run,
        "destination": str(request.destination),
        "sent": targets.total(),
        "not_selected": sum(each.not_selected for each in results),
        "targets": dict(sorted(targets.items())),
        "left": dict(left),
        "unseen": [each.topic for each in results if not each.complete],
        "errors": list(errors)[:MAX_ERRORS],
        "seconds": round(time.monotonic() - began, 3),
    }


async def plan_transfer(
    transport: Transport, configuration: Configuration, request: TransferRequest
) -> list[TransferRange]:
    """Return one range for each topic without partitions, or partition, that has messages to transfer.

    Raises InvalidDestinationError if ``to`` stands for several topics or refuses a schema, and NotFoundError.
    Cancelling can leave the subscription of the queue ``to``, and schemas.
    """
    if request.selector is not None:
        Selector(request.selector)
    admin = require_admin(transport)
    resolved = resolve(request.destination, configuration.system_namespace)
    target = request.target(configuration)
    if target is not None and isinstance(request.to, Queue) and not request.dry_run:
        name = configuration.queue_subscription(resolve(request.to, configuration.system_namespace).subscription)
        await precreate(transport, configuration, target, name, LoopTimers(transport.clock))
    topics = await letter_topics(admin, resolved, request.of)
    if request.transfer is not Transfer.REDRIVE and target in topics:
        raise InvalidDestinationError(f"{request.destination} is also the target: name another destination")
    ranges = []
    for topic in await find_partitions(admin, topics):
        name, durable, exists = await _subscription(admin, configuration, resolved, request, topic)
        end = await transport.end(topic)
        if end is None or (exists and await is_done(admin, topic, name, end)):
            continue
        ranges.append(TransferRange(topic=topic, subscription=name, durable=durable, end=end))
    if target is not None and not request.dry_run:
        await Outlets(transport, configuration, lambda *_: None).register(target, [each.topic for each in ranges])
    return ranges


async def find_partitions(admin: Admin, topics: Sequence[str]) -> list[str]:
    found = [await list_partitions(admin, topic) for topic in topics]
    missing = [topic for topic, names in zip(topics, found, strict=True) if not names]
    if missing:
        raise NotFoundError(f"topic {', '.join(missing)} does not exist: check its name")
    return list(itertools.chain(*found))


async def _subscription(
    admin: Admin, configuration: Configuration, resolved: Resolved, request: TransferRequest, topic: str
) -> tuple[str, bool, bool]:
    """Return the name of the subscription, whether it outlives the transfer, and whether it exists already."""
    known = (await admin.stats(topic)).subscriptions
    named = None if request.of is not None else resolved.subscription
    # A queue's subscription that was created later has every dead letter, including sent ones.
    if named is None and REDRIVE_CURSOR in known and request.transfer is Transfer.REDRIVE:
        return REDRIVE_CURSOR, True, True
    queue = configuration.queue_subscription(named)
    if (isinstance(request.destination, Queue) or request.of is not None) and queue in known:
        return queue, True, True
    if request.transfer is not Transfer.REDRIVE:
        raise NotFoundError(f"{topic} has no subscription {queue}: {request.destination} is not a queue")
    if named is not None:
        raise NotFoundError(f"{topic} has no subscription {named}, which {request.destination} names")
    if request.dry_run:
        return f"{SUBSCRIPTION_PREFIX}{uuid.uuid4()}", False, False
    return REDRIVE_CURSOR, True, False


async def is_done(admin: Admin, topic: str, name: str, end: WireId) -> bool:
    done = (await admin.cursor(topic, name)).mark_delete
    return done is not None and (end.ledger, end.entry) <= (done.ledger, done.entry)


@attrs.frozen
class _Job:
    """A request at work."""

    transport: Transport
    configuration: Configuration
    request: TransferRequest
    admin: Admin
    progress: TransferProgress

    async def carry_out(self, ranges: Sequence[TransferRange]) -> list[TransferResult]:
        with suppress(NotFoundError):  # a subscription is yet to be created
            backlogs = [await self.admin.backlog(part.topic, part.subscription) for part in ranges]
            self.progress.total = sum(backlogs)
        if self.request.limit is None:
            return await together(self._transfer(part, self.request) for part in ranges)
        found: list[TransferResult] = []
        left = self.request.limit
        for part in ranges:
            found.append(await self._transfer(part, attrs.evolve(self.request, limit=left)))
            left -= found[-1].sent.total()
            if left <= 0:
                break
        return found

    async def _transfer(self, part: TransferRange, request: TransferRequest) -> TransferResult:
        return await transfer_range(self.transport, self.configuration, request, part, self.progress)

    async def copy(self, ranges: Sequence[TransferRange]) -> list[TransferResult]:
        """Begin or continue a copy of the ranges of the queue's subscription, from which nothing is received."""
        cursors = await CopyCursors.of(self.transport, self.configuration, self.request)
        rest = await cursors.find()
        if rest is None and self.request.dry_run:
            cursors = attrs.evolve(cursors, name=f"{SUBSCRIPTION_PREFIX}{uuid.uuid4()}")
            try:
                return await self.carry_out(await cursors.create(ranges))
            finally:
                with anyio.CancelScope(shield=True):
                    await cursors.delete()
        if rest is None:
            rest = await cursors.create(ranges)
            await cursors.plan(rest)
        results = await self.carry_out(rest)
        if not self.request.dry_run and all(one.complete and not one.left and not one.errors for one in results):
            await cursors.delete()
        return results

    async def purge(self, part: TransferRange) -> TransferResult:
        """Acknowledge everything up to the end of a range in one step, including what consumers hold."""
        count = await self._waiting(part)
        if not self.request.dry_run:
            await self.admin.advance(part.topic, part.subscription, part.end)
            count = max(0, count - await self._waiting(part))
        self.progress.seen += count
        self.progress.sent += count
        self.progress.changed(self.progress)
        return TransferResult(topic=part.topic, sent=Counter({part.topic: count} if count else {}), complete=True)

    async def _waiting(self, part: TransferRange) -> int:
        """Return the number of unacknowledged messages; beyond the broker's limit for counting them, of entries."""
        found = (await self.admin.stats(part.topic)).subscriptions[part.subscription]
        return (await count_messages(self.admin, part.topic, found)).backlog


@attrs.frozen(kw_only=True)
class CopyCursors:
    """The subscriptions that record which messages of a queue have been copied.

    Each topic or partition with something to copy has one. One of them also has the plan, a property with the last
    message to copy of each topic: it is stored before anything is copied, and deleted last. So a topic of the plan
    without such a subscription is completely copied, and a repeated command never starts again in the middle. ``name``
    is the same for the same queue, target and selector; ``queue`` is the subscription to copy.
    """

    admin: Admin
    name: str
    queue: str
    topics: Sequence[str]

    @classmethod
    async def of(cls, transport: Transport, configuration: Configuration, request: TransferRequest) -> Self:
        admin, source = require_admin(transport), resolve(request.destination, configuration.system_namespace)
        queue = configuration.queue_subscription(source.subscription)
        target = request.target(configuration) or ""
        # The last one was a limit, which copies had in version 0.2.0: what that began can be continued.
        whole = json.dumps([source.topics, source.pattern, queue, target, request.selector, None])
        readable = re.sub(r"[^\w.-]", "-", short_name(target, configuration.system_namespace), flags=re.ASCII)
        return cls(
            admin=admin,
            name=f"{COPY_PREFIX}{readable}-{zlib.crc32(whole.encode()):08x}",
            queue=queue,
            topics=await find_partitions(admin, await list_topics(admin, source)),
        )

    async def find(self) -> list[TransferRange] | None:
        """Return the ranges that an interrupted copy has left, empty if it was complete; None if no copy had begun."""
        known = await self._properties()
        plan = next((one[PLAN] for one in known.values() if PLAN in one), None)
        if plan is None:
            return None
        ends = {topic: WireId(ledger, entry, -1, index) for topic, (ledger, entry, index) in json.loads(plan).items()}
        return [
            TransferRange(topic=topic, subscription=self.name, end=end, copied_from=self.queue)
            for topic, end in ends.items()
            if topic in known and not await is_done(self.admin, topic, self.name, end)
        ]

    async def create(self, ranges: Sequence[TransferRange]) -> list[TransferRange]:
        """Create the subscriptions, each at the queue's first unacknowledged message, and return their ranges.

        ``ranges`` belong to the queue's subscription, whose selector also applies to the new ones.
        """
        for topic in (each.topic for each in ranges):
            # The broker creates it at the topic's end, then moves it: until then, a next copy would find nothing to do.
            await to_the_end(self.admin.create_subscription(topic, self.name, StartPosition.EARLIEST))
            properties = (await self.admin.stats(topic)).subscriptions[self.queue].properties
            filtering = {key: text for key, text in properties.items() if key in (FILTERING, SELECTOR)}
            if filtering:
                await self.admin.set_subscription_properties(topic, self.name, filtering)
            done = (await self.admin.cursor(topic, self.queue)).mark_delete
            if done is not None:
                await self.admin.advance(topic, self.name, done)
        return [attrs.evolve(each, subscription=self.name, copied_from=self.queue) for each in ranges]

    async def plan(self, ranges: Sequence[TransferRange]) -> None:
        """Store the plan: from now on, ``find`` returns these ranges. Without ranges, nothing is stored."""
        plan = {each.topic: (each.end.ledger, each.end.entry, each.end.batch_index) for each in ranges}
        for topic in list(plan)[:1]:
            properties = {**(await self._properties())[topic], PLAN: json.dumps(plan)}
            await self.admin.set_subscription_properties(topic, self.name, properties)

    async def delete(self) -> None:
        """Delete the subscriptions, the one with the plan last. Raises AdminError if the same copy runs elsewhere."""
        known = await self._properties()
        for topic in sorted(known, key=lambda one: PLAN in known[one]):
            # While the broker deletes it, a next copy would find everything done, and begin again.
            await to_the_end(self.admin.delete_subscription(topic, self.name))

    async def _properties(self) -> dict[str, Mapping[str, str]]:
        found = {topic: (await self.admin.stats(topic)).subscriptions.get(self.name) for topic in self.topics}
        return {topic: one.properties for topic, one in found.items() if one is not None}

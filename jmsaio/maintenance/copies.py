"""``CopyCursors``: the subscriptions that record which messages of a queue have been copied.

Each topic or partition with something to copy has one. One of them also has the plan, a property with the last message
to copy of each topic: it is stored before anything is copied, and deleted last. So a topic of the plan that has no such
subscription any more is completely copied, and a repeated command never starts again in the middle.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Final, Self

import attrs

from jmsaio.config import Configuration
from jmsaio.maintenance.dead_letters import require_admin
from jmsaio.maintenance.transfer import TransferRange, TransferRequest, find_partitions, is_done
from jmsaio.model.destinations import resolve, short_name
from jmsaio.model.topic_names import COPY_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.transport.administration import Admin
from jmsaio.transport.base import FILTERING, SELECTOR, StartPosition, Transport
from jmsaio.transport.subscriptions import list_topics
from jmsaio.transport.waiting import to_the_end

#: Property with the plan: a JSON object of the last message of each topic, as (ledger, entry, index in a batch).
PLAN: Final = "jmsaio.copy"


@attrs.frozen(kw_only=True)
class CopyCursors:
    """The subscriptions of one copy.

    Attributes:
        admin: admin client of the broker.
        name: their name, the same for the same queue, target, selector and limit.
        queue: name of the subscription with the messages to copy.
        topics: full names of the queue's topics, with partitions listed one by one.
    """

    admin: Admin
    name: str
    queue: str
    topics: Sequence[str]

    @classmethod
    async def of(cls, transport: Transport, configuration: Configuration, request: TransferRequest) -> Self:
        """Return the subscriptions of the copy that ``request`` describes; nothing is created.

        Raises as ``plan_transfer``. Cancelling changes nothing.
        """
        admin, source = require_admin(transport), resolve(request.destination, configuration.system_namespace)
        queue = configuration.queue_subscription(source.subscription)
        target = request.target(configuration) or ""
        whole = json.dumps([source.topics, source.pattern, queue, target, request.selector, request.limit])
        readable = re.sub(r"[^\w.-]", "-", short_name(target, configuration.system_namespace), flags=re.ASCII)
        return cls(
            admin=admin,
            name=f"{COPY_PREFIX}{readable}-{zlib.crc32(whole.encode()):08x}",
            queue=queue,
            topics=await find_partitions(admin, await list_topics(admin, source)),
        )

    async def find(self) -> list[TransferRange] | None:
        """Return the ranges that an interrupted copy has left, empty if it was complete; None if none had begun."""
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

        ``ranges`` are those of the queue's subscription, whose selector also applies to the new ones.
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
        """Return the properties of each subscription, by topic."""
        found = {topic: (await self.admin.stats(topic)).subscriptions.get(self.name) for topic in self.topics}
        return {topic: one.properties for topic, one in found.items() if one is not None}
